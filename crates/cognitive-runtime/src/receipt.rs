//! How an answer was obtained: who wrote it, bound by what, in how many attempts, and everything that was changed.
//! Filled in along the run, also when the run fails; kept in the audit and, on request, in `meta.provenance`.

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

/// The books of one run.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct Receipt {
    /// `provider/model`, as the server named it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How the answer was bound to the contract while it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decode: Option<DecodeMode>,
    /// What the confidence was measured from, if it is not the model's own word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence_from: Option<&'static str>,
    /// The thought before the answer, if there was a word about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<ThoughtRecord>,
    /// Whether the service was given a schema and answered as if it had not been.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub schema_ignored: bool,
    /// The contract as the provider was told it, shared with all runs of the module. Goes into the books as the
    /// constraints that it could not be told; they were enforced afterwards.
    #[serde(rename = "constraints_lost", serialize_with = "losses")]
    pub lowered: Option<Arc<ProviderSchema>>,
    /// Liberties taken with the model's syntax.
    pub liberties: Vec<Liberty>,
    /// Changes to the answer, each with what stood there before.
    pub repairs: Vec<Repair>,
    /// Every try at the provider.
    pub attempts: Vec<Attempt>,
    /// Every tool that the model asked for, whether it was called or not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolUse>,
    /// The media of the input.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<MediaNote>,
    /// How many there are, also when a bad one kept the others from being looked at.
    #[serde(skip)]
    pub media_count: usize,
    /// The models whose answers were not good enough, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<LeftRung>,
    /// The model among them that gave the same answer, where that made the answer good enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreed_with: Option<String>,
    /// How often the model was asked again after a broken answer.
    #[serde(skip_serializing_if = "is_zero")]
    pub reasked: u32,
    /// Where the last call was cut because its answer could not become valid any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fuse: Option<EarlyStopRecord>,
    /// Whether the answer is one of an earlier run, and no model was asked.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
    /// What exactly went in and came out; empty if nobody will read it.
    pub sha256: Hashes,
    /// Whether somebody will read the receipt: the books, or the caller.
    #[serde(skip)]
    pub(crate) is_read: bool,
    /// Tokens of all calls together.
    #[serde(skip)]
    pub usage: Option<Usage>,
    /// How long models took for it, those of its parts included. Parts that ran at once are all counted. (C-44)
    #[serde(skip)]
    pub model_time: Option<Duration>,
    /// What the modules did that this one is made of.
    #[serde(skip)]
    pub parts: Vec<Trace>,
}

/// What was asked about a thought, and what became of it. How long it was is in `usage`; what it said is nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ThoughtRecord {
    /// The longest thought that was asked for, in tokens; 0 is none.
    pub max_tokens: u32,
    /// What became of it, if the provider says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<ThoughtOutcome>,
}

/// SHA-256 in lower-case hex; empty where there was nothing to hash.
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
    /// The model's text as it came.
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
    /// Takes note of a reply.
    pub(crate) fn replied(&mut self, reply: &Reply) {
        self.fuse = None;
        self.model = Some(reply.model.clone());
        self.decode = Some(reply.end.decode);
        self.confidence_from = reply.end.confidence_from;
        self.sha256.weights = reply.end.weights_sha256.clone().unwrap_or_default();
        self.sha256.reply = self.hash(|| sha256(&[reply.text.as_bytes()]));
        if let Some(usage) = reply.end.usage {
            self.spent(usage);
        }
    }

    /// Takes note of the verdict on a reply.
    pub(crate) fn judged(&mut self, answer: &JudgedAnswer, schema_ignored: bool) {
        self.schema_ignored = schema_ignored;
        self.liberties.clone_from(&answer.liberties);
        self.repairs.clone_from(&answer.repairs);
    }

    /// Takes note of a call that did not work, from its try number `first` on: who began to answer, and what it said.
    pub(crate) fn broke_off(&mut self, provider: &str, text: &str, first: usize) {
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

    /// Goes back to what was known of an earlier answer of the run. What was tried and spent since stays in the books.
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

    /// Adds what a call cost.
    pub(crate) fn spent(&mut self, usage: Usage) {
        self.usage = Some(self.usage.unwrap_or_default().plus(usage));
    }

    /// Whether a model was asked, or spoke through an answer that was kept.
    pub(crate) fn was_asked(&self) -> bool {
        self.kept || self.model.is_some() || self.fuse.is_some() || !self.attempts.is_empty()
    }

    /// Takes note of a call that was stopped early.
    pub(crate) fn cut(&mut self, cut: &StoppedCall, limit: Option<u64>) {
        self.fuse = Some(EarlyStopRecord::new(cut, limit));
        self.sha256.reply = self.hash(|| sha256(&[cut.text.as_bytes()]));
    }

    /// Takes note of the time that a model took.
    pub(crate) fn took(&mut self, time: Duration) {
        self.model_time = Some(self.model_time.unwrap_or_default().saturating_add(time));
    }

    /// A hash, if somebody will read it.
    pub(crate) fn hash(&self, make: impl FnOnce() -> String) -> String {
        if self.is_read { make() } else { String::new() }
    }
}

/// The hash of some bytes, one after the other.
pub(crate) fn sha256(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    hex(&hash.finalize())
}

/// The hash of a value that does not depend on the order of its members.
#[must_use]
pub fn canonical_sha256(value: &Value) -> String {
    let mut hash = Sha256::new();
    canonical::feed(value, &mut hash);
    hex(&hash.finalize())
}

/// The same for an input without its context.
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
