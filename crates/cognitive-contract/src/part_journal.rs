//! The port to a journal of the parts of one run. A run that is repeated after its process died calls the model
//! only for missing parts.
//! Does not say where the journal is stored; the implementation decides.

use crate::envelope::Envelope;
use crate::port_future::PortFuture;

/// The key of a part's answer. Parts with equal keys may receive each other's answers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct PartQuestion {
    /// The modules above the part, outermost first, followed by its own name, such as `outer/inner/summarizer`.
    pub path: String,
    /// SHA-256 of all files of the module, so that another version of it runs again.
    pub module_sha256: String,
    /// SHA-256 of its input in canonical form, without context.
    pub input_sha256: String,
}

impl PartQuestion {
    /// A journal key.
    #[must_use]
    pub fn new(path: String, module_sha256: String, input_sha256: String) -> Self {
        Self { path, module_sha256, input_sha256 }
    }
}

/// The recorded answer of a part and its cost in model calls.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PartAnswer {
    /// The answer, successful or not.
    pub envelope: Envelope,
    /// The number of model calls, including those of nested parts.
    pub calls: u64,
}

impl PartAnswer {
    /// An answer that took `calls` model calls.
    #[must_use]
    pub fn new(envelope: Envelope, calls: u64) -> Self {
        Self { envelope, calls }
    }
}

/// A journal of the parts of one run. Belongs to that run alone.
///
/// The runtime queries it before each part and records after each part. Recalled answers decide the next step
/// of a composition, so an implementation returns them in the order in which they were recorded.
pub trait PartJournal: Send + Sync {
    /// Returns the next recorded answer for the key that was not returned yet. `None` if there is none, so the
    /// part has to run.
    fn recall<'a>(&'a self, question: &'a PartQuestion) -> PortFuture<'a, Option<PartAnswer>>;

    /// Records an answer. Resolves when the answer would survive a crash of the process; the run waits for
    /// that.
    fn record<'a>(&'a self, question: &'a PartQuestion, answer: &'a PartAnswer) -> PortFuture<'a, ()>;
}
