//! How many cases ended in which way. What was not judged is counted as skipped, and never as passed.

/// How many cases ended in which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CaseTally {
    /// Cases that are as expected.
    pub passed: usize,
    /// Cases that are not, and what could not be judged although it should have been.
    pub failed: usize,
    /// Modules without tests, and vectors of what is not built yet.
    pub skipped: usize,
}

impl CaseTally {
    /// All of them.
    #[must_use]
    pub fn total(self) -> usize {
        self.passed + self.failed + self.skipped
    }

    /// Both counts together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            skipped: self.skipped + other.skipped,
        }
    }
}
