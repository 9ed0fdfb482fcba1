//! The receipt of an answer: its model, decode mode, attempts and every change. Filled in during the run, also if the
//! run fails. Stored in the audit log and, on request, in `meta.provenance`.

use std::sync::Arc;
use std::time::Duration;

use cognitive_contract::context::MEMBER;
use cognitive_contract::ports::{Attempt, DecodeMode, Usage};
use cognitive_contract::repair::Repair;
use cognitive_contract::text::hex;
use cognitive_contract::thinking::ThoughtOutcome;
use cognitive_contract::tools::ToolUse;
use cognitive_contract::trace::Trace;
use cognitive_schema::ProviderSchema;
use serde::{Serialize, Serializer};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::canonical;
pub use crate::early_stop::record::EarlyStopRecord;
use crate::ladder::LeftRung;
use crate::stages::call::Reply;
use crate::stages::media::MediaNote;
use crate::stages::output::JudgedAnswer;
use crate::stages::parse::Liberty;
use crate::stream::listeners::StoppedCall;

/// The receipt of one run.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct Receipt {
    /// The `provider/model`, as the server named it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The decode mode that bound the answer to the contract.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decode: Option<DecodeMode>,
    /// The source of the confidence, if it is not the model's own value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence_from: Option<&'static str>,
    /// The thinking before the answer, if it was requested or reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<ThoughtRecord>,
    /// Set if the service received a schema and answered as if it had not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub schema_ignored: bool,
    /// The contract in the form that the provider received, shared with all runs of the module. The receipt lists the
    /// constraints that this form cannot express; they were enforced afterwards.
    #[serde(rename = "constraints_lost", serialize_with = "losses")]
    pub lowered: Option<Arc<ProviderSchema>>,
    /// The liberties taken with the model's syntax.
    pub liberties: Vec<Liberty>,
    /// The changes to the answer, each with the original value.
    pub repairs: Vec<Repair>,
    /// Every try at the provider.
    pub attempts: Vec<Attempt>,
    /// Every tool that the model requested, whether it was called or not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolUse>,
    /// The media of the input.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<MediaNote>,
    /// The number of media items, including those that were not inspected because an earlier one was invalid.
    #[serde(skip)]
    pub media_count: usize,
    /// The models whose answers were not good enough, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<LeftRung>,
    /// The model among them that gave the same answer, if that made the answer good enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreed_with: Option<String>,
    /// The number of repair prompts after a broken answer.
    #[serde(skip_serializing_if = "is_zero")]
    pub reasked: u32,
    /// The early stop of the last call, if its answer could not become valid any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fuse: Option<EarlyStopRecord>,
    /// Set if the answer comes from the cache, and no model was asked.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
    /// The hashes of the exact input and output; empty if the receipt is not used.
    pub sha256: Hashes,
    /// Set if the receipt is used, by the audit log or by the caller.
    #[serde(skip)]
    pub(crate) is_read: bool,
    /// The tokens of all calls together.
    #[serde(skip)]
    pub usage: Option<Usage>,
    /// The total time of model calls, including those of its parts. Parallel parts are all counted. (C-44)
    #[serde(skip)]
    pub model_time: Option<Duration>,
    /// The traces of the module's parts.
    #[serde(skip)]
    pub parts: Vec<Trace>,
}

/// The requested thinking and its outcome. Its length is in `usage`; its text is not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ThoughtRecord {
    /// The longest thought that was requested, in tokens; 0 means none.
    pub max_tokens: u32,
    /// The outcome, if the provider reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<ThoughtOutcome>,
}

/// SHA-256 in lower-case hex; empty if there was nothing to hash.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(default)]
pub struct Hashes {
    /// All files of the module.
    pub module: String,
    /// Its `schema.json`.
    pub schema: String,
    /// The prompt as it was sent.
    pub prompt: String,
    /// The input in canonical form.
    pub input: String,
    /// The model's raw text.
    pub reply: String,
    /// The weights of a model on this machine.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub weights: String,
}

#[expect(clippy::ref_option, reason = "serde hands over a reference")]
fn losses<S: Serializer>(lowered: &Option<Arc<ProviderSchema>>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(lowered.iter().flat_map(|lowered| &lowered.losses))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Receipt {
    /// Records a reply.
    pub(crate) fn record_reply(&mut self, reply: &Reply) {
        self.fuse = None;
        self.model = Some(reply.model.clone());
        self.decode = Some(reply.end.decode);
        self.confidence_from = reply.end.confidence_from;
        self.sha256.weights = reply.end.weights_sha256.clone().unwrap_or_default();
        self.sha256.reply = self.hash(|| sha256(&[reply.text.as_bytes()]));
        if let Some(usage) = reply.end.usage {
            self.add_usage(usage);
        }
    }

    /// Records the verdict on a reply.
    pub(crate) fn record_verdict(&mut self, answer: &JudgedAnswer, schema_ignored: bool) {
        self.schema_ignored = schema_ignored;
        self.liberties.clone_from(&answer.liberties);
        self.repairs.clone_from(&answer.repairs);
    }

    /// Records a failed call, from its try number `first` on: the model that started to answer, and its text.
    pub(crate) fn record_interruption(&mut self, provider: &str, text: &str, first: usize) {
        let tries = self.attempts.get(first..).unwrap_or_default();
        let model = tries.iter().rev().find_map(|attempt| attempt.model.as_ref());
        let (model, decode) =
            (model.map(|model| format!("{provider}/{model}")), tries.last().map(|attempt| attempt.decode));
        if model.is_some() {
            self.model = model;
        }
        self.decode = decode.or(self.decode);
        if !text.is_empty() {
            self.sha256.reply = self.hash(|| sha256(&[text.as_bytes()]));
        }
    }

    /// Restores the receipt of an earlier answer of the run. Attempts and usage since then stay recorded.
    pub(crate) fn return_to(&mut self, earlier: &Self) {
        let earlier = earlier.clone();
        self.model = earlier.model;
        self.decode = earlier.decode;
        self.confidence_from = earlier.confidence_from;
        self.thinking = earlier.thinking;
        self.schema_ignored = earlier.schema_ignored;
        self.lowered = earlier.lowered;
        self.liberties = earlier.liberties;
        self.repairs = earlier.repairs;
        self.fuse = earlier.fuse;
        self.sha256 = earlier.sha256;
    }

    /// Clears what is known about the last answer, before another model is asked. Attempts, usage and the rejected
    /// models stay recorded.
    pub(crate) fn begin_next_model(&mut self) {
        let Hashes { module, schema, prompt, input, .. } = std::mem::take(&mut self.sha256);
        let asked = Hashes { module, schema, prompt, input, ..Hashes::default() };
        self.return_to(&Self { sha256: asked, ..Self::default() });
        self.reasked = 0;
    }

    /// Adds the usage of a call.
    pub(crate) fn add_usage(&mut self, usage: Usage) {
        self.usage = Some(self.usage.unwrap_or_default().plus(usage));
    }

    /// Returns whether a model was asked, now or for the cached answer.
    pub(crate) fn has_asked(&self) -> bool {
        let is_answered = self.kept || self.model.is_some() || self.fuse.is_some();
        is_answered || !self.attempts.is_empty() || !self.left.is_empty()
    }

    /// Records a call that was stopped early.
    pub(crate) fn cut(&mut self, cut: &StoppedCall, limit: Option<u64>) {
        self.fuse = Some(EarlyStopRecord::new(cut, limit));
        self.sha256.reply = self.hash(|| sha256(&[cut.text.as_bytes()]));
    }

    /// Adds the time that a model took.
    pub(crate) fn add_time(&mut self, time: Duration) {
        self.model_time = Some(self.model_time.unwrap_or_default().saturating_add(time));
    }

    /// Computes a hash, if the receipt is used.
    pub(crate) fn hash(&self, make: impl FnOnce() -> String) -> String {
        if self.is_read { make() } else { String::new() }
    }
}

/// The hash of several byte strings, one after the other.
pub(crate) fn sha256(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    hex(&hash.finalize())
}

/// Returns the hash of a value that does not depend on the order of its members.
#[must_use]
pub fn canonical_sha256(value: &Value) -> String {
    let mut hash = Sha256::new();
    canonical::feed(value, &mut hash);
    hex(&hash.finalize())
}

/// Returns the hash of an input without its context, independent of the order of its members.
pub(crate) fn input_sha256(input: &Value) -> String {
    let mut hash = Sha256::new();
    match input {
        Value::Object(members) => canonical::feed_members(members, Some(MEMBER), &mut hash),
        other => canonical::feed(other, &mut hash),
    }
    hex(&hash.finalize())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hashes_are_the_published_ones_and_ignore_member_order() {
        assert_eq!(
            sha256(&[b"a", b"bc"]),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(
            canonical_sha256(&json!({ "b": 1.0, "a": [] })),
            canonical_sha256(&json!({ "a": [], "b": 1 }))
        );
    }
}
