//! The part of a run as its journal knows it: what it is asked, what it answered before, what it answers now. A part that
//! is recalled counts like one that ran: its model calls and its cost belong to the limits of the whole.

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
    /// The entry of a part that is about to run below these modules.
    pub(super) fn of(journal: &'a dyn PartJournal, request: &RunRequest, lineage: &Lineage) -> Self {
        let name = request.module.name();
        let path = lineage.span().map_or_else(|| name.to_owned(), |above| format!("{above}/{name}"));
        let module = match &request.module {
            ModuleRef::Loaded { module, .. } => module.digest.module.clone(),
            ModuleRef::Name(_) => String::new(),
        };
        let input = match &request.input {
            RunInput::Json(value) => input_sha256(value),
            RunInput::Shared(value) => input_sha256(value),
            RunInput::Raw(text) | RunInput::Text(text) => sha256(&[text.as_bytes()]),
        };
        Self { journal, question: PartQuestion::new(path, module, input) }
    }

    /// What the part answered before, and what is shown of it.
    pub(super) async fn recall(&self, part: &ModuleRef, lineage: &Lineage) -> Option<(Envelope, Trace)> {
        let PartAnswer { envelope, calls, .. } = self.journal.recall(&self.question).await?;
        let usage = envelope.meta().usage();
        lineage.took_before(calls, usage.and_then(|usage| usage.cost));
        let version = match part {
            ModuleRef::Loaded { module, .. } => module.manifest.version.as_str(),
            ModuleRef::Name(_) => "",
        };
        let latency = envelope.meta().extra.get("latency_ms").and_then(Value::as_f64).unwrap_or_default();
        let trace = Trace::of(part.name(), version, &envelope, latency, usage);
        Some((envelope, trace))
    }

    /// Records what the part answers now, after so many model calls.
    pub(super) async fn record(&self, envelope: Envelope, calls: u64) -> Envelope {
        let answer = PartAnswer::new(envelope, calls);
        self.journal.record(&self.question, &answer).await;
        answer.envelope
    }
}
