//! The names that an object has had so far. Stores a hash of each, not the name: a collision (once in 2⁶⁴ names) only
//! leaves a field to the final chunk.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

/// Up to this size a list is faster than a table.
const MAX_LISTED: usize = 16;

static HASHING: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The names of one object.
#[derive(Debug, Default)]
pub(super) struct SeenNames {
    few: Vec<u64>,
    many: HashSet<u64>,
}

impl SeenNames {
    /// Adds a name; returns whether it is new.
    pub(super) fn insert(&mut self, name: &str) -> bool {
        let hash = HASHING.hash_one(name);
        if !self.many.is_empty() {
            return self.many.insert(hash);
        }
        if self.few.contains(&hash) {
            return false;
        }
        self.few.push(hash);
        if self.few.len() > MAX_LISTED {
            self.many.extend(self.few.drain(..));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_new_once() {
        let mut names = SeenNames::default();
        for index in 0..100 {
            assert!(names.insert(&format!("n{index}")));
            assert!(!names.insert("n0"));
            assert!(!names.insert(&format!("n{index}")));
        }
    }
}
