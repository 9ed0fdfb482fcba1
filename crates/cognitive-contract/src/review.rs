//! Runs that a person has to look at: the queue of them, what people decided, and what their decisions say about
//! confidence. Which runs enter is decided by [`ReviewRules`], over `meta` alone; what stated confidences are worth by
//! [`CalibrationCurve`]. The port is [`ReviewDesk`]; nothing here keeps anything.

pub mod calibration;
mod rules;

use std::fmt;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use self::calibration::{
    CalibrationBin, CalibrationCurve, CalibrationReport, JudgedByModel, ModelCalibration,
};
pub use self::rules::{ReviewFacts, ReviewRule, ReviewRules};
use crate::module::{Enforcement, Module};
use crate::port_future::PortFuture;
use crate::violation::Violation;

/// The code of the warning about a run that waits for a person, or should.
pub const REVIEW: &str = "REVIEW";
/// The member of `meta` that says how often answers of such a confidence were found right. The runtime alone sets it.
pub const CALIBRATED_CONFIDENCE: &str = "calibrated_confidence";
/// The longest reason of a decision, in characters.
pub const MAX_REASON: usize = 2_000;

/// A run that enters the queue.
#[derive(Debug, Clone, PartialEq)]
pub struct ReviewEntry {
    /// When it ended.
    pub at: SystemTime,
    /// The run in the audit; empty where there is no audit.
    pub run_id: String,
    /// The id that envelope and logs share.
    pub trace_id: String,
    /// The name of the key that was shown, where a server has keys.
    pub key: Option<String>,
    /// The user, where one is known.
    pub user: Option<String>,
    /// The tenant of the user, where there are tenants.
    pub tenant: Option<String>,
    /// The module by its own name, wherever it was found.
    pub module: String,
    /// Its version.
    pub version: String,
    /// `provider/model`; empty if no model was asked.
    pub model: String,
    /// The condition that held, as it was written.
    pub rule: String,
    /// What was sent, without the credentials of media.
    pub input: Value,
    /// The whole answer.
    pub envelope: Value,
}

/// What a person says about an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is right.
    Approve,
    /// It is wrong.
    Reject,
    /// It is wrong, and this is the right one.
    Correct,
}

impl Verdict {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Approve, Self::Reject, Self::Correct];

    /// The word on the wire.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Reject => "reject",
            Self::Correct => "correct",
        }
    }

    /// What became of the answer, for people.
    #[must_use]
    pub fn past(self) -> &'static str {
        match self {
            Self::Approve => "approved",
            Self::Reject => "rejected",
            Self::Correct => "corrected",
        }
    }

    /// Reads a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.word() == word)
    }

    /// Whether the answer was right.
    #[must_use]
    pub fn is_right(self) -> bool {
        self == Self::Approve
    }
}

/// A decision that somebody wants to make.
#[derive(Debug, Clone, PartialEq)]
pub struct NewDecision {
    /// What it says.
    pub verdict: Verdict,
    /// Why; may be empty.
    pub reason: String,
    /// The right `data`; with [`Verdict::Correct`] and no other.
    pub data: Option<Value>,
    /// Who decides: the name of a key or of a user.
    pub by: Option<String>,
    /// The name of the key that the decider has shown to a server, for the audit.
    pub key: Option<String>,
    /// When.
    pub at: SystemTime,
}

impl NewDecision {
    /// What is wrong with it, whatever it is about.
    pub fn check(&self) -> Result<(), DeskError> {
        let invalid = |why: String| Err(DeskError::Invalid(why));
        match (self.verdict, &self.data) {
            (Verdict::Correct, Some(Value::Object(_))) => {}
            (Verdict::Correct, _) => return invalid("a correction needs `data`, an object".to_owned()),
            (verdict, Some(_)) => {
                return invalid(format!("`data` belongs to a correction, not to: `{}`", verdict.word()));
            }
            (_, None) => {}
        }
        if !crate::text::fits(&self.reason, MAX_REASON) {
            return invalid(format!("a reason has at most {MAX_REASON} characters"));
        }
        Ok(())
    }
}

/// A decision that was made.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReviewDecision {
    /// What it says.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
    /// Who decided.
    pub by: Option<String>,
    /// When, as of RFC 3339 in UTC.
    pub at: String,
    /// The right `data`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl ReviewDecision {
    /// A decision.
    #[must_use]
    pub fn new(
        verdict: Verdict,
        reason: String,
        by: Option<String>,
        at: String,
        data: Option<Value>,
    ) -> Self {
        Self { verdict, reason, by, at, data }
    }
}

/// An entry of the queue, decided or not. As JSON it has `state`, `open` or `decided`, besides.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Review {
    /// What it is called.
    pub id: String,
    /// When the run ended, as of RFC 3339 in UTC.
    pub at: String,
    /// The run in the audit; empty where there is no audit.
    pub run_id: String,
    /// The id that envelope and logs share.
    pub trace_id: String,
    /// The name of the key of whoever ran it.
    pub key: Option<String>,
    /// The user who ran it.
    pub user: Option<String>,
    /// The tenant of that user.
    pub tenant: Option<String>,
    /// The module by its own name.
    pub module: String,
    /// Its version.
    pub version: String,
    /// `provider/model`; empty if no model was asked.
    pub model: String,
    /// Whether the run succeeded.
    pub ok: bool,
    /// The error code of a failure.
    pub code: Option<String>,
    /// `meta.risk` as a word.
    pub risk: String,
    /// `meta.confidence`.
    pub confidence: f64,
    /// `meta.calibrated_confidence`, as far as there was one.
    pub calibrated_confidence: Option<f64>,
    /// `meta.explain`.
    pub explain: String,
    /// The condition that held.
    pub rule: String,
    /// What was decided, if anything.
    pub decision: Option<ReviewDecision>,
    /// What was sent. Lists leave it out.
    pub input: Option<Value>,
    /// The whole answer. Lists leave it out.
    pub envelope: Option<Value>,
}

impl Review {
    /// An entry as it is queued, called `id`, at a time as of RFC 3339.
    #[must_use]
    pub fn of(id: String, at: String, entry: &ReviewEntry) -> Self {
        let meta = entry.envelope.get("meta");
        let word = |name: &str| meta.and_then(|meta| meta.get(name)).and_then(Value::as_str);
        let number = |name: &str| meta.and_then(|meta| meta.get(name)).and_then(Value::as_f64);
        let risk = word("risk").unwrap_or(if meta.is_some() { "medium" } else { "" });
        let code = entry.envelope.pointer("/error/code").and_then(Value::as_str);
        Self {
            id,
            at,
            run_id: entry.run_id.clone(),
            trace_id: entry.trace_id.clone(),
            key: entry.key.clone(),
            user: entry.user.clone(),
            tenant: entry.tenant.clone(),
            module: entry.module.clone(),
            version: entry.version.clone(),
            model: entry.model.clone(),
            ok: entry.envelope.get("ok") == Some(&Value::Bool(true)),
            code: code.map(str::to_owned),
            risk: risk.to_owned(),
            confidence: number("confidence").unwrap_or_default(),
            calibrated_confidence: number(CALIBRATED_CONFIDENCE),
            explain: word("explain").unwrap_or_default().to_owned(),
            rule: entry.rule.clone(),
            decision: None,
            input: Some(entry.input.clone()),
            envelope: Some(entry.envelope.clone()),
        }
    }

    /// Whether nobody has decided yet.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.decision.is_none()
    }

    /// What a module has against a correction of its answer: a correction is what it could have answered.
    #[must_use]
    pub fn correction_faults(&self, module: &Module, data: &Value) -> Vec<Violation> {
        let meta = self.envelope.as_ref().and_then(|envelope| envelope.get("meta")).cloned();
        let corrected = json!({ "ok": true, "meta": meta.unwrap_or_default(), "data": data });
        let mut found = module.envelope_violations(&corrected, Enforcement::Full);
        found.extend(module.rule_violations(&corrected));
        found.retain(|violation| violation.path.starts_with("/data"));
        found
    }

    /// The entry as JSON, for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut object = Map::new();
        let mut set = |name: &str, value: Value| object.insert(name.to_owned(), value);
        set("id", json!(self.id));
        set("at", json!(self.at));
        set("state", json!(if self.is_open() { "open" } else { "decided" }));
        set("module", json!(self.module));
        set("version", json!(self.version));
        set("model", json!(self.model));
        set("ok", json!(self.ok));
        set("code", json!(self.code));
        set("risk", json!(self.risk));
        set("confidence", json!(self.confidence));
        if let Some(calibrated) = self.calibrated_confidence {
            set(CALIBRATED_CONFIDENCE, json!(calibrated));
        }
        set("explain", json!(self.explain));
        set("rule", json!(self.rule));
        set("run_id", json!(self.run_id));
        set("trace_id", json!(self.trace_id));
        set("key", json!(self.key));
        set("user", json!(self.user));
        set("tenant", json!(self.tenant));
        let parts = [
            ("decision", self.decision.as_ref().map(|decision| json!(decision))),
            ("input", self.input.clone()),
            ("envelope", self.envelope.clone()),
        ];
        for (name, value) in parts {
            if let Some(value) = value {
                set(name, value);
            }
        }
        Value::Object(object)
    }
}

impl Serialize for Review {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

/// Which entries are meant. The default means all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReviewFilter {
    /// Only those that are open, or only those that are not.
    pub open: Option<bool>,
    /// Only this module, by its own name.
    pub module: Option<String>,
    /// The most of them; all if nothing is said.
    pub limit: Option<usize>,
    /// Where the page before ended: its [`ReviewPage::next`].
    pub cursor: Option<String>,
}

/// Some entries. Open ones stand in the order in which they came, so that the oldest is decided first; decided and mixed
/// ones the newest first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReviewPage {
    /// The entries, without input and envelope.
    pub reviews: Vec<Review>,
    /// How many are open in all, of the module that was asked for.
    pub open: u64,
    /// How to ask for those that follow, if any do.
    pub next: Option<String>,
}

/// A decision as it stands now.
#[derive(Debug, Clone, PartialEq)]
pub struct Decided {
    /// The entry with its decision, input and envelope.
    pub review: Review,
    /// Whether it was made just now. The same decision made again changes nothing, and the first one stands.
    pub is_new: bool,
}

/// Why the desk did not do what it was asked.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum DeskError {
    /// There is no entry of this name.
    Unknown,
    /// Somebody decided otherwise before: this is the entry with that decision.
    Conflict(Box<Review>),
    /// The decision contradicts itself.
    Invalid(String),
    /// It cannot be kept or read: the reason.
    Unavailable(String),
}

impl fmt::Display for DeskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("there is no such review"),
            Self::Conflict(review) => {
                let decision = review.decision.as_ref();
                let past = decision.map_or("decided", |decision| decision.verdict.past());
                write!(f, "review {} was {past} before", review.id)?;
                match decision.and_then(|decision| decision.by.as_deref()) {
                    Some(by) => write!(f, " by: `{by}`"),
                    None => Ok(()),
                }
            }
            Self::Invalid(why) => f.write_str(why),
            Self::Unavailable(why) => write!(f, "the decision was not kept: {why}"),
        }
    }
}

/// In which form decisions are exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewExport {
    /// Every decided entry as it is, input and envelope included.
    Decisions,
    /// Labelled cases as `cogn eval` reads them. What was rejected without a correction is left out: nobody said what
    /// would have been right.
    Cases,
}

/// Someone who keeps the queue and the decisions.
pub trait ReviewDesk: Send + Sync {
    /// Puts a run into the queue and gives its name there. Resolves when the death of the process cannot take it away.
    fn enter<'a>(&'a self, entry: &'a ReviewEntry) -> PortFuture<'a, Result<String, String>>;

    /// The entries that the filter means.
    fn list(&self, filter: &ReviewFilter) -> Result<ReviewPage, String>;

    /// An entry with input and envelope.
    fn get(&self, id: &str) -> Result<Option<Review>, String>;

    /// Makes a decision. What is acknowledged survives the death of the process.
    fn decide(&self, id: &str, decision: &NewDecision) -> Result<Decided, DeskError>;

    /// What decisions say about the confidence of a module, or of all.
    fn calibration(&self, module: Option<&str>) -> Result<CalibrationReport, String>;

    /// The same for each module and each model that answered: what one is worth says nothing of another. The newest decisions
    /// of each count, as they do for [`calibrated`](Self::calibrated).
    fn calibrations(&self, module: Option<&str>) -> Result<Vec<ModelCalibration>, String> {
        let mut judged = JudgedByModel::default();
        let mut take = |review: Value| {
            let word = |name: &str| review.get(name).and_then(Value::as_str).unwrap_or_default();
            let verdict =
                review.pointer("/decision/verdict").and_then(Value::as_str).and_then(Verdict::parse);
            let confidence = review.get("confidence").and_then(Value::as_f64);
            // Failures are no answers.
            let is_answer = review.get("ok") == Some(&Value::Bool(true));
            if let (Some(verdict), Some(confidence), true) = (verdict, confidence, is_answer) {
                judged.add(word("module"), word("model"), (confidence, verdict.is_right()));
            }
            true
        };
        self.export(ReviewExport::Decisions, module, &mut take)?;
        Ok(judged.reports())
    }

    /// How often answers of such a confidence were found right, if enough was decided to say so. Cheap: it is asked at the
    /// end of every run.
    fn calibrated(&self, module: &str, model: &str, confidence: f64) -> Option<f64>;

    /// Hands over what was decided as lines of JSON, the oldest first, until `take` says that it has enough.
    fn export(
        &self,
        form: ReviewExport,
        module: Option<&str>,
        take: &mut dyn FnMut(Value) -> bool,
    ) -> Result<(), String>;
}

/// The line of an export that stands for a decided entry, if it gives one.
#[must_use]
pub fn exported(form: ReviewExport, review: &Review) -> Option<Value> {
    match form {
        ReviewExport::Decisions => Some(review.to_json()),
        ReviewExport::Cases => case_of(review),
    }
}

/// A labelled case: the input, and every member of `data` that a person found or made right, `rationale` apart: nobody
/// wants the same words again.
fn case_of(review: &Review) -> Option<Value> {
    let decision = review.decision.as_ref()?;
    let data = match decision.verdict {
        Verdict::Approve => review.envelope.as_ref()?.get("data")?,
        Verdict::Correct => decision.data.as_ref()?,
        Verdict::Reject => return None,
    };
    let input = review.input.as_ref().filter(|input| input.is_object())?;
    let expect = expectation_of(data)?;
    Some(json!({ "id": format!("review-{}", review.id), "input": input, "expect": expect }))
}

/// The expectation of a labelled case whose answer is to have this data, `rationale` apart; nothing if nothing is left.
#[must_use]
pub fn expectation_of(data: &Value) -> Option<Map<String, Value>> {
    let members = data.as_object()?.iter().filter(|(name, _)| *name != "rationale");
    let expect: Map<String, Value> = members.map(|(name, value)| (place(name), literally(value))).collect();
    (!expect.is_empty()).then_some(expect)
}

/// A member of `data` as expectations name it: a plain name as it is, any other as a pointer.
fn place(name: &str) -> String {
    let is_plain =
        name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-')
            && name.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && !["ok", "meta", "data", "error", "partial_data"].contains(&name);
    if is_plain { name.to_owned() } else { crate::text::pointer("/data", name) }
}

/// A value that is to be expected as it is, whatever in it looks like a rule.
fn literally(value: &Value) -> Value {
    match value {
        Value::Object(_) | Value::Array(_) => json!({ "$exact": value }),
        scalar => scalar.clone(),
    }
}

#[cfg(test)]
mod tests;
