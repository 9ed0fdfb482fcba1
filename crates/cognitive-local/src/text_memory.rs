//! The memory budget for keys and values, in tokens. A request reserves the room that its text may need before it reads
//! anything, so all texts together stay within the limit. First come, first served: short texts do not overtake a long
//! one. A text that exceeds the whole budget is read while no other is.

use std::collections::VecDeque;
use std::sync::{Condvar, PoisonError};
use std::time::Duration;

use cognitive_contract::lock::Lock;

/// The polling interval for cancellation of waiting requests. A cancelled request ends at most this much later.
const LOOK: Duration = Duration::from_millis(20);

/// The room for texts.
pub(crate) struct TextMemory {
    tokens: usize,
    taken: Lock<TextMemoryUse>,
    changed: Condvar,
}

#[derive(Default)]
struct TextMemoryUse {
    tokens: usize,
    texts: usize,
    /// The waiting requests, in order.
    line: VecDeque<u64>,
    next: u64,
}

impl TextMemory {
    /// Creates room for this many tokens.
    pub(crate) fn new(tokens: usize) -> Self {
        Self { tokens, taken: Lock::default(), changed: Condvar::new() }
    }

    /// Waits for room for a text and reserves it. Returns `None` if `stop` returns true before.
    pub(crate) fn take(&self, tokens: usize, stop: &dyn Fn() -> bool) -> Option<TextShare<'_>> {
        let mut taken = self.taken.lock();
        let number = taken.next;
        taken.next += 1;
        taken.line.push_back(number);
        loop {
            let fits = taken.texts == 0 || taken.tokens.saturating_add(tokens) <= self.tokens;
            let is_granted = fits && taken.line.front() == Some(&number);
            if is_granted || stop() {
                taken.line.retain(|other| *other != number);
                if is_granted {
                    taken.texts += 1;
                    taken.tokens = taken.tokens.saturating_add(tokens);
                }
                drop(taken);
                // Another request is first now.
                self.changed.notify_all();
                return is_granted.then(|| TextShare { room: self, tokens });
            }
            taken = self.changed.wait_timeout(taken, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The number of waiting requests.
    #[cfg(test)]
    pub(crate) fn waiting_requests(&self) -> usize {
        self.taken.lock().line.len()
    }
}

/// The room of one text. It is freed when this value is dropped.
pub(crate) struct TextShare<'a> {
    room: &'a TextMemory,
    tokens: usize,
}

impl Drop for TextShare<'_> {
    fn drop(&mut self) {
        let mut taken = self.room.taken.lock();
        taken.texts = taken.texts.saturating_sub(1);
        taken.tokens = taken.tokens.saturating_sub(self.tokens);
        drop(taken);
        self.room.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    fn never() -> bool {
        false
    }

    #[test]
    fn texts_share_the_room_and_the_next_one_waits_for_it() {
        let room = TextMemory::new(100);
        let (first, second) = (room.take(60, &never).unwrap(), room.take(40, &never).unwrap());
        assert!(room.take(1, &|| true).is_none(), "it is full");
        let (tell, told) = mpsc::channel();
        thread::scope(|scope| {
            let room = &room;
            scope.spawn(move || tell.send(room.take(50, &never).is_some()).unwrap());
            drop(second);
            assert!(told.try_recv().is_err(), "40 are not enough");
            drop(first);
            assert_eq!(told.recv(), Ok(true));
        });
        assert_eq!(room.taken.lock().texts, 0);
    }

    #[test]
    fn a_text_that_is_larger_than_the_room_has_it_alone() {
        let room = TextMemory::new(10);
        let large = room.take(1_000, &never).unwrap();
        assert!(room.take(1, &|| true).is_none());
        drop(large);
        let small = room.take(1, &never).unwrap();
        assert!(room.take(1_000, &|| true).is_none());
        drop(small);
    }

    #[test]
    fn who_waits_and_stops_leaves_the_line_to_those_behind() {
        let room = TextMemory::new(10);
        let first = room.take(5, &never).unwrap();
        thread::scope(|scope| {
            let (waits, waiting) = mpsc::channel();
            let (go, stop) = mpsc::channel::<()>();
            let (room, stop) = (&room, Lock::new(stop));
            // A long text waits, and a short one after it that would fit.
            let long = scope.spawn(move || {
                let asked = || {
                    let _ = waits.send(());
                    stop.lock().try_recv().is_ok()
                };
                room.take(10, &asked).is_some()
            });
            waiting.recv().unwrap();
            assert!(room.take(1, &|| true).is_none(), "nobody overtakes");
            go.send(()).unwrap();
            assert!(!long.join().unwrap());
        });
        assert!(room.take(5, &never).is_some());
        drop(first);
    }
}
