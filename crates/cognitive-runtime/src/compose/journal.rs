//! A part of a run as its journal sees it: the question, the recorded answer, and the new answer. A recalled
//! part counts like one that ran: its model calls and cost count against the limits of the whole run.

use cognitive_contract::Envelope;
use cognitive_contract::ports::{PartAnswer, PartJournal, PartQuestion};
use cognitive_contract::trace::Trace;
use serde_json::Value;

use super::lineage::Lineage;
use crate::host::{ModuleRef, RunInput, RunRequest};
use crate::receipt::{input_sha256, sha256};

/// One part and the journal of its run.
pub(super) struct JournalEntry<'a> {
    journal: &'a dyn PartJournal,
    question: PartQuestion,
}

impl<'a> JournalEntry<'a> {
    /// The entry of a part that is about to run below the modules of this lineage.
    pub(super) fn new(journal: &'a dyn PartJournal, request: &RunRequest, lineage: &Lineage) -> Self {
        let name = request.module.name();
        let path = lineage.span().map_or_else(|| name.to_owned(), |above| format!("{above}/{name}"));
        let module = match &request.module {
            ModuleRef::Loaded { module, .. } => module.digest.module.clone(),
            ModuleRef::Name(_) | ModuleRef::Refused { .. } => String::new(),
        };
        let input = match &request.input {
            RunInput::Json(value) => input_sha256(value),
            RunInput::Shared(value) => input_sha256(value),
            RunInput::Raw(text) | RunInput::Text(text) => sha256(&[text.as_bytes()]),
            RunInput::Unreadable(_) => String::new(),
        };
        Self { journal, question: PartQuestion::new(path, module, input) }
    }

    /// Returns the recorded answer of the part, and its trace.
    pub(super) async fn recall(&self, part: &ModuleRef, lineage: &Lineage) -> Option<(Envelope, Trace)> {
        let PartAnswer { envelope, calls, .. } = self.journal.recall(&self.question).await?;
        let usage = envelope.meta().usage();
        lineage.add_earlier_costs(calls, usage.and_then(|usage| usage.cost));
        let version = match part {
            ModuleRef::Loaded { module, .. } => module.manifest.version.as_str(),
            ModuleRef::Name(_) | ModuleRef::Refused { .. } => "",
        };
        let latency = envelope.meta().extra.get("latency_ms").and_then(Value::as_f64).unwrap_or_default();
        let trace = Trace::from_envelope(part.name(), version, &envelope, latency, usage);
        Some((envelope, trace))
    }

    /// Records the new answer of the part, and the number of model calls it took.
    pub(super) async fn record(&self, envelope: Envelope, calls: u64) -> Envelope {
        let answer = PartAnswer::new(envelope, calls);
        self.journal.record(&self.question, &answer).await;
        answer.envelope
    }
}
