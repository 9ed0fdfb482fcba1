//! Merges the tokens of a piece: the second step of byte-level pair encoding, after the text is cut. Knows no text.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::Hasher;

/// Combines two neighbours into one key.
pub(super) fn pair(one: u32, other: u32) -> u64 {
    (u64::from(one) << 32) | u64::from(other)
}

/// Merges the tokens of a piece, the lowest rank first and the leftmost of equals. Reused between pieces to keep its
/// buffers.
#[derive(Debug, Default)]
pub(super) struct Merger {
    parts: Vec<LinkedToken>,
    queue: BinaryHeap<Reverse<(u32, usize, u32, u32)>>,
}

/// A token in a linked list of tokens.
#[derive(Debug, Clone, Copy)]
struct LinkedToken {
    /// `None` once it is part of its left neighbour.
    token: Option<u32>,
    before: usize,
    after: usize,
}

impl Merger {
    /// Appends the merged tokens. `look_up` returns the rank of the merge of two neighbours and the resulting token.
    pub(super) fn merge(
        &mut self,
        tokens: impl Iterator<Item = u32>,
        look_up: impl Fn(u32, u32) -> Option<(u32, u32)>,
        out: &mut Vec<u32>,
    ) {
        self.parts.clear();
        self.parts.extend((0_usize..).zip(tokens).map(|(at, token)| LinkedToken {
            token: Some(token),
            before: at.wrapping_sub(1),
            after: at + 1,
        }));
        for at in 0..self.parts.len() {
            self.consider(at, &look_up);
        }
        while let Some(Reverse((_, at, one, other))) = self.queue.pop() {
            self.join(at, one, other, &look_up);
        }
        out.extend(self.parts.iter().filter_map(|part| part.token));
    }

    fn token(&self, at: usize) -> Option<u32> {
        self.parts.get(at).and_then(|part| part.token)
    }

    /// Queues the merge of a part with the next one, if that merge exists.
    fn consider(&mut self, at: usize, look_up: &impl Fn(u32, u32) -> Option<(u32, u32)>) {
        let Some(part) = self.parts.get(at) else { return };
        let (Some(one), Some(other)) = (part.token, self.token(part.after)) else { return };
        if let Some((rank, _)) = look_up(one, other) {
            self.queue.push(Reverse((rank, at, one, other)));
        }
    }

    /// Merges a part with the next one, unless one of them has changed since the merge was queued.
    fn join(&mut self, at: usize, one: u32, other: u32, look_up: &impl Fn(u32, u32) -> Option<(u32, u32)>) {
        let Some(&part) = self.parts.get(at) else { return };
        if part.token != Some(one) || self.token(part.after) != Some(other) {
            return;
        }
        let Some((_, both)) = look_up(one, other) else { return };
        let Some(gone) = self.parts.get_mut(part.after) else { return };
        gone.token = None;
        let after = gone.after;
        if let Some(next) = self.parts.get_mut(after) {
            next.before = at;
        }
        if let Some(part) = self.parts.get_mut(at) {
            (part.token, part.after) = (Some(both), after);
        }
        self.consider(at, look_up);
        self.consider(part.before, look_up);
    }
}

/// A hasher with one multiplication per word. Keys come from the vocabulary and not from callers, so a caller cannot
/// create collisions beyond those in the file.
#[derive(Debug, Default)]
pub(super) struct PairHasher(u64);

impl Hasher for PairHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_u8(&mut self, byte: u8) {
        self.write_u64(byte.into());
    }
}
