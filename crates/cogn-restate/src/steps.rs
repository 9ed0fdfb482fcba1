//! The journal entries of a run, as JSON: one step per part that answered, and a last one for the whole run.
//! The Restate server stores them. They may have been written by another process with an older version.

use std::time::{Duration, SystemTime};

use cognitive_contract::Envelope;
use cognitive_contract::context::{ContextEntry, Key, Ttl};
use cognitive_contract::ports::{PartAnswer, PartQuestion};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One durable step of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub(crate) enum RunStep {
    /// A part answered.
    Part(PartStep),
    /// The run has ended.
    Whole(WholeStep),
}

/// The step of a part that answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PartStep {
    path: String,
    module: String,
    input: String,
    calls: u64,
    envelope: Value,
    /// The context stored since the previous step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) context: Vec<KeptEntry>,
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct WholeStep {
    pub(crate) envelope: Value,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) context: Vec<KeptEntry>,
    /// The review that a person must decide, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) review: Option<OpenReview>,
}

/// An undecided review: its id, and the rule that requires it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OpenReview {
    pub(crate) id: String,
    pub(crate) rule: String,
}

impl PartStep {
    pub(crate) fn new(question: &PartQuestion, answer: &PartAnswer, context: Vec<KeptEntry>) -> Self {
        Self {
            path: question.path.clone(),
            module: question.module_sha256.clone(),
            input: question.input_sha256.clone(),
            calls: answer.calls,
            envelope: serde_json::to_value(&answer.envelope).unwrap_or_default(),
            context,
        }
    }

    /// Returns the question.
    pub(crate) fn question(&self) -> PartQuestion {
        PartQuestion::new(self.path.clone(), self.module.clone(), self.input.clone())
    }

    /// Returns the answer; `None` if it cannot be parsed, so that the part is asked again.
    pub(crate) fn answer(&self) -> Option<PartAnswer> {
        let envelope = Envelope::from_value(self.envelope.clone()).ok()?;
        Some(PartAnswer::new(envelope, self.calls))
    }
}

/// One context entry in the state of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct KeptEntry {
    #[serde(rename = "type")]
    kind: String,
    key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    input_hash: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pattern: Option<String>,
    value: Value,
    /// Seconds, or -1 for no expiry, as in manifests.
    ttl: i64,
    /// Microseconds since 1970.
    created: u64,
    #[serde(default)]
    module: String,
}

impl KeptEntry {
    pub(crate) fn from_entry(entry: &ContextEntry) -> Self {
        let since = entry.created.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self {
            kind: entry.kind.clone(),
            key: entry.key.text.clone(),
            session: entry.key.session.clone(),
            input_hash: entry.key.input_hash.clone(),
            pattern: entry.key.pattern.clone(),
            value: entry.value.clone(),
            ttl: entry.ttl.seconds(),
            created: u64::try_from(since.as_micros()).unwrap_or(u64::MAX),
            module: entry.module.clone(),
        }
    }

    /// Converts it to a context entry; `None` if its time or lifetime is invalid.
    pub(crate) fn entry(&self) -> Option<ContextEntry> {
        let key = Key {
            text: self.key.clone(),
            session: self.session.clone(),
            input_hash: self.input_hash.clone(),
            pattern: self.pattern.clone(),
        };
        let created = SystemTime::UNIX_EPOCH.checked_add(Duration::from_micros(self.created))?;
        let entry = ContextEntry::new(&self.kind, key, self.value.clone(), Ttl::parse(self.ttl)?, created);
        Some(entry.with_module(&self.module))
    }

    /// Returns whether it replaces another entry.
    pub(crate) fn replaces(&self, other: &Self) -> bool {
        self.kind == other.kind && self.key == other.key
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        let envelope = json!({
            "ok": true, "meta": { "confidence": 0.5, "risk": "low", "explain": "e", "usage": { "cost": 0.25 } },
            "data": { "rationale": "r" }, "_emitted_context": { "a": 1 },
        });
        let answer = PartAnswer::new(Envelope::from_value(envelope.clone()).unwrap(), 3);
        let question = PartQuestion::new("whole/a".to_owned(), "m".to_owned(), "i".to_owned());
        let created = SystemTime::UNIX_EPOCH + Duration::from_micros(1_234_567);
        let entry =
            ContextEntry::new("state", Key::plain("k"), json!([1]), Ttl::Forever, created).with_module("a");
        let step = RunStep::Part(PartStep::new(&question, &answer, vec![KeptEntry::from_entry(&entry)]));
        let text = serde_json::to_string(&step).unwrap();
        let RunStep::Part(read) = serde_json::from_str(&text).unwrap() else { panic!("another step") };
        assert_eq!(read.question(), question);
        let back = read.answer().unwrap();
        assert_eq!((serde_json::to_value(back.envelope).unwrap(), back.calls), (envelope, 3));
        assert_eq!(read.context.first().and_then(KeptEntry::entry), Some(entry));
    }
}
