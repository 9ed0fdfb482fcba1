//! Pseudo-random numbers for tests: the same seed always gives the same numbers, on every machine. Not for anything
//! that has to be unpredictable.

/// A generator with a seed (xorshift). A seed of 0 yields only 0.
#[derive(Debug, Clone)]
pub struct SeededRandom(u64);

impl SeededRandom {
    /// A generator that starts from this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `limit`; 0 if the limit is 0.
    pub fn next_below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit.max(1)
    }

    /// An index into a list of this length; 0 if it is empty.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.next_below(length as u64)).unwrap_or(0)
    }

    /// Returns true or false.
    pub fn flip(&mut self) -> bool {
        self.next_below(2) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_within_the_limit() {
        let draw = |seed| {
            let mut random = SeededRandom::new(seed);
            (0..100).map(|_| random.next_below(10)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        assert!((0..10).all(|number| draw(7).contains(&number)) && draw(7).iter().all(|number| *number < 10));
        assert_eq!((SeededRandom::new(7).next_below(0), SeededRandom::new(7).index(0)), (0, 0));
    }
}
