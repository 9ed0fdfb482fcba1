//! Counts of cases by outcome. A case that was not judged counts as skipped or failed, never as passed.

/// Counts of cases by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CaseTally {
    /// Cases that are as expected.
    pub passed: usize,
    /// Cases that differ, and cases that should have been judged but could not be.
    pub failed: usize,
    /// Modules without tests, and vectors for unbuilt features.
    pub skipped: usize,
}

impl CaseTally {
    /// Returns the sum of all counts.
    #[must_use]
    pub fn total(self) -> usize {
        self.passed + self.failed + self.skipped
    }

    /// Adds two tallies.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            skipped: self.skipped + other.skipped,
        }
    }
}
