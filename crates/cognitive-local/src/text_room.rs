//! The memory for keys and values, counted in tokens. A request takes the room that its text may come to need before
//! anything of it is read, so that all texts together stay within a bound. First come, first served: a long text is not
//! kept waiting by short ones that come later. A text that is longer than the whole room is read while no other is.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often somebody who waits looks whether to stop.
const LOOK: Duration = Duration::from_millis(20);

/// Room for texts.
pub(crate) struct TextRoom {
    tokens: usize,
    taken: Mutex<TakenRoom>,
    changed: Condvar,
}

#[derive(Default)]
struct TakenRoom {
    tokens: usize,
    texts: usize,
    /// Those who wait, in their order.
    line: VecDeque<u64>,
    next: u64,
}

impl TextRoom {
    /// Room for so many tokens.
    pub(crate) fn new(tokens: usize) -> Self {
        Self { tokens, taken: Mutex::default(), changed: Condvar::new() }
    }

    /// Takes room for a text, and waits until there is some. Nothing if `stop` says so before.
    pub(crate) fn take(&self, tokens: usize, stop: &dyn Fn() -> bool) -> Option<TextShare<'_>> {
        let mut taken = self.taken();
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
                // Another is first now.
                self.changed.notify_all();
                return is_granted.then(|| TextShare { room: self, tokens });
            }
            taken = self.changed.wait_timeout(taken, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// How many wait.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.taken().line.len()
    }

    fn taken(&self) -> MutexGuard<'_, TakenRoom> {
        // Numbers are whole whatever happened while they were held.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The room of one text. It is free again when this value is dropped.
pub(crate) struct TextShare<'a> {
    room: &'a TextRoom,
    tokens: usize,
}

impl Drop for TextShare<'_> {
    fn drop(&mut self) {
        let mut taken = self.room.taken();
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
        let room = TextRoom::new(100);
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
        assert_eq!(room.taken().texts, 0);
    }

    #[test]
    fn a_text_that_is_larger_than_the_room_has_it_alone() {
        let room = TextRoom::new(10);
        let large = room.take(1_000, &never).unwrap();
        assert!(room.take(1, &|| true).is_none());
        drop(large);
        let small = room.take(1, &never).unwrap();
        assert!(room.take(1_000, &|| true).is_none());
        drop(small);
    }

    #[test]
    fn who_waits_and_stops_leaves_the_line_to_those_behind() {
        let room = TextRoom::new(10);
        let first = room.take(5, &never).unwrap();
        thread::scope(|scope| {
            let (waits, waiting) = mpsc::channel();
            let (go, stop) = mpsc::channel::<()>();
            let (room, stop) = (&room, Mutex::new(stop));
            // A long text waits, and a short one behind it that would fit.
            let long = scope.spawn(move || {
                let asked = || {
                    let _ = waits.send(());
                    stop.lock().unwrap().try_recv().is_ok()
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
