//! A memory for what the parts of one run answered, as a port: a run that is made again after its process died asks only
//! for what is missing. Says nothing about where the memory is; that is for whoever implements it.

use crate::envelope::Envelope;
use crate::port_future::PortFuture;

/// What a part of a run is asked. Parts with equal questions may give each other's answers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct PartQuestion {
    /// The modules above the part, outermost first, and its own name, such as `outer/inner/summarizer`.
    pub path: String,
    /// SHA-256 of all files of the module: another version of it is asked anew.
    pub module_sha256: String,
    /// SHA-256 of its input in canonical form, without context.
    pub input_sha256: String,
}

impl PartQuestion {
    /// A question.
    #[must_use]
    pub fn new(path: String, module_sha256: String, input_sha256: String) -> Self {
        Self { path, module_sha256, input_sha256 }
    }
}

/// What a part answered, and what it took.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PartAnswer {
    /// The answer, good or bad.
    pub envelope: Envelope,
    /// How many model calls it took, those of its own parts included.
    pub calls: u64,
}

impl PartAnswer {
    /// An answer that took so many model calls.
    #[must_use]
    pub fn new(envelope: Envelope, calls: u64) -> Self {
        Self { envelope, calls }
    }
}

/// Someone who remembers what the parts of one run answered. Belongs to that run alone.
///
/// The runtime asks it before each part and tells it after each part. Answers that come back decide what a composition
/// does next, so an implementation gives them back in the order in which they were recorded.
pub trait PartJournal: Send + Sync {
    /// The answer that was recorded for the question and was not given back yet, in its turn; `None` if there is none, so
    /// that the part has to run.
    fn recall<'a>(&'a self, question: &'a PartQuestion) -> PortFuture<'a, Option<PartAnswer>>;

    /// Records an answer. Resolves when the death of the process cannot take it away any more; only then does the run go on
    /// with it.
    fn record<'a>(&'a self, question: &'a PartQuestion, answer: &'a PartAnswer) -> PortFuture<'a, ()>;
}
