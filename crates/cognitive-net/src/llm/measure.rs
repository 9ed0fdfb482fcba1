//! The limits on the length of an answer. The model's output is counted apart from the service's wrapping: a stream
//! of small pieces may be fifty times as long as its text. The text has a fixed limit, and the wrapping a limit in
//! proportion to the text. Parses nothing.

/// The wrapping allowed for any answer: keep-alives, counts, unrequested members.
const FREE: usize = 32 * 1024 * 1024;
/// The additional wrapping allowed per byte of an answer. The most verbose services send a third of this with every
/// letter.
const PER_BYTE: usize = 1024;

/// The amount of an answer received so far.
#[derive(Debug)]
pub(crate) struct Measure {
    /// The most bytes that the model may write.
    longest: usize,
    /// The number of bytes received.
    wire: usize,
}

/// The limit that an answer exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Excess {
    /// The model's output is longer than this.
    Said(usize),
    /// The wrapping is out of proportion to the model's output.
    Wrapping { wire: usize, said: usize },
}

impl Measure {
    /// Creates a measure for an answer of at most `longest` bytes of model output.
    pub(crate) fn new(longest: usize) -> Self {
        Self { longest, wire: 0 }
    }

    /// Counts received bytes.
    pub(crate) fn count_received(&mut self, bytes: usize) {
        self.wire = self.wire.saturating_add(bytes);
    }

    /// Checks the limits after `said` bytes of model output. A document is buffered to its end, so all of its bytes
    /// count.
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
        measure.count_received(wire);
        measure.check(said, is_document)
    }

    #[test]
    fn what_is_said_counts_and_not_what_stands_around_it() {
        assert_eq!(check(FREE + 100_000_000, 100_000, false), Ok(()));
        assert_eq!(check(1_000_001, 1_000_001, false), Err(Excess::Said(1_000_000)));
        assert_eq!(check(1_000_001, 0, true), Err(Excess::Said(1_000_000)), "a document is kept whole");
        assert_eq!(check(FREE, 0, false), Ok(()));
        let (wire, said) = (FREE + 10 * PER_BYTE + 1, 10);
        assert_eq!(check(wire, said, false), Err(Excess::Wrapping { wire, said }));
        assert_eq!(check(usize::MAX, usize::MAX, false), Err(Excess::Said(1_000_000)));
    }
}
