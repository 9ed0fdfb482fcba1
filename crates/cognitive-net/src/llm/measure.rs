//! How long an answer may be. What the model says is counted apart from what the service wraps it in: a stream of small
//! pieces may be fifty times as long as its text. Both end: the text at its own limit, the wrapping where it has become
//! out of all proportion to the text. Reads nothing.

/// What may come around an answer, however short that is: marks of life, counts, members that nobody asked for.
const FREE: usize = 32 * 1024 * 1024;
/// What may come around each byte of an answer besides. The wordiest services send a third of this with every letter.
const PER_BYTE: usize = 1024;

/// How much of an answer has come.
#[derive(Debug)]
pub(crate) struct Measure {
    /// The most that the model may say, in bytes.
    longest: usize,
    /// All bytes that came.
    wire: usize,
}

/// Why an answer is not read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Excess {
    /// The model says more than this.
    Said(usize),
    /// So much came, and so little of it was said by the model.
    Wrapping { wire: usize, said: usize },
}

impl Measure {
    /// For an answer in which the model may say so much.
    pub(crate) fn new(longest: usize) -> Self {
        Self { longest, wire: 0 }
    }

    /// Takes note of bytes that came.
    pub(crate) fn came(&mut self, bytes: usize) {
        self.wire = self.wire.saturating_add(bytes);
    }

    /// Whether to read on, when the model has said so much. A document is kept until its end, so all of it counts.
    pub(crate) fn check(&self, said: usize, is_document: bool) -> Result<(), Excess> {
        if said > self.longest || (is_document && self.wire > self.longest) {
            return Err(Excess::Said(self.longest));
        }
        if self.wire > said.saturating_mul(PER_BYTE).saturating_add(FREE) {
            return Err(Excess::Wrapping { wire: self.wire, said });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(wire: usize, said: usize, is_document: bool) -> Result<(), Excess> {
        let mut measure = Measure::new(1_000_000);
        measure.came(wire);
        measure.check(said, is_document)
    }

    #[test]
    fn growth_e_what_is_said_counts_and_not_what_stands_around_it() {
        assert_eq!(check(FREE + 100_000_000, 100_000, false), Ok(()));
        assert_eq!(check(1_000_001, 1_000_001, false), Err(Excess::Said(1_000_000)));
        assert_eq!(check(1_000_001, 0, true), Err(Excess::Said(1_000_000)), "a document is kept whole");
        assert_eq!(check(FREE, 0, false), Ok(()));
        let (wire, said) = (FREE + 10 * PER_BYTE + 1, 10);
        assert_eq!(check(wire, said, false), Err(Excess::Wrapping { wire, said }));
        assert_eq!(check(usize::MAX, usize::MAX, false), Err(Excess::Said(1_000_000)));
    }
}
