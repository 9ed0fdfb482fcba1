//! A mutex without poisoning.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// A mutex that can be locked after a panic of a thread that held it.
///
/// A panic in one request must not fail every later one, so the poison flag is ignored. Users keep the value usable at
/// every moment: each change is a single step, or an interrupted one leaves at worst a missing entry or a wrong count.
#[derive(Debug, Default)]
pub struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    /// Creates a lock around a value.
    pub const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Waits until the value is free, and borrows it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Borrows the value, if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Borrows the value without locking, which a unique reference makes unnecessary.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_panic_of_the_holder_leaves_the_value_usable() {
        let mut lock = Lock::new(1);
        let holder = thread::scope(|scope| {
            let panics = || {
                *lock.lock() = 2;
                let _held = lock.lock();
                panic!("while the lock is held");
            };
            scope.spawn(panics).join()
        });
        assert!(holder.is_err());
        assert_eq!(lock.try_lock().map(|value| *value), Some(2));
        let held = lock.lock();
        assert_eq!(*held, 2);
        assert!(lock.try_lock().is_none());
        drop(held);
        assert_eq!(*lock.get_mut(), 2);
        assert_eq!(lock.into_inner(), 2);
    }
}
