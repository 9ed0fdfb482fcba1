//! Human review of runs: the queue, the decisions, and what they say about confidence. [`ReviewRules`] select
//! the runs, by `meta` alone. [`CalibrationCurve`] maps stated confidences to observed ones.
//! The port is [`ReviewQueue`]; this file stores nothing.

pub mod calibration;
mod rules;

use std::fmt;
use std::time::SystemTime;

use cognitive_contract::Envelope;
use cognitive_contract::meta::CALIBRATED_CONFIDENCE;
use cognitive_contract::module::{Enforcement, Module};
use cognitive_contract::ports::PortFuture;
use cognitive_contract::violation::Violation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};

pub use self::calibration::{
    CalibrationBin, CalibrationCurve, CalibrationReport, JudgedByModel, ModelCalibration,
};
pub use self::rules::{ReviewFacts, ReviewRule, ReviewRules};

/// The code of the warning about a run that waits for a human review, or should.
pub const REVIEW: &str = "REVIEW";
/// The maximum length of a decision's reason, in characters. It is stored with every decision and shown in lists.
pub const MAX_REASON: usize = 2_000;

/// A run that enters the review queue.
#[derive(Debug, Clone, PartialEq)]
pub struct ReviewEntry {
    /// The end of the run.
    pub at: SystemTime,
    /// The id of the run in the audit; empty without an audit.
    pub run_id: String,
    /// The id that envelope and logs share.
    pub trace_id: String,
    /// The name of the caller's API key, if the server has keys.
    pub key: Option<String>,
    /// The user, if known.
    pub user: Option<String>,
    /// The tenant of the user, if there are tenants.
    pub tenant: Option<String>,
    /// The module's own name, regardless of its location.
    pub module: String,
    /// The module's version.
    pub version: String,
    /// `provider/model`; empty if no model was called.
    pub model: String,
    /// The condition that matched, as written in the rule.
    pub rule: String,
    /// The input, without credentials of media.
    pub input: Value,
    /// The whole answer.
    pub envelope: Value,
}

/// A person's judgement of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Verdict {
    /// The answer is right.
    Approve,
    /// The answer is wrong.
    Reject,
    /// The answer is wrong, and the decision contains the right one.
    Correct,
}

impl Verdict {
    /// All verdicts.
    pub const ALL: [Self; 3] = [Self::Approve, Self::Reject, Self::Correct];

    /// Returns the word of the JSON form.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Reject => "reject",
            Self::Correct => "correct",
        }
    }

    /// Returns the past participle, for messages.
    #[must_use]
    pub fn past_participle(self) -> &'static str {
        match self {
            Self::Approve => "approved",
            Self::Reject => "rejected",
            Self::Correct => "corrected",
        }
    }

    /// Parses a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.word() == word)
    }

    /// Returns whether the answer was right.
    #[must_use]
    pub fn is_right(self) -> bool {
        self == Self::Approve
    }
}

/// A decision that a person wants to make.
#[derive(Debug, Clone, PartialEq)]
pub struct NewDecision {
    /// The verdict.
    pub verdict: Verdict,
    /// The reason; may be empty.
    pub reason: String,
    /// The right `data`; only with [`Verdict::Correct`].
    pub data: Option<Value>,
    /// The name of the key or user that decides.
    pub by: Option<String>,
    /// The name of the API key that the decider used, for the audit.
    pub key: Option<String>,
    /// The time of the decision.
    pub at: SystemTime,
}

impl NewDecision {
    /// Checks the decision itself, independently of its entry.
    pub fn check(&self) -> Result<(), ReviewError> {
        let invalid = |why: String| Err(ReviewError::Invalid(why));
        match (self.verdict, &self.data) {
            (Verdict::Correct, Some(Value::Object(_))) => {}
            (Verdict::Correct, _) => return invalid("a correction needs `data`, an object".to_owned()),
            (verdict, Some(_)) => {
                return invalid(format!("only a correction has `data`, not: `{}`", verdict.word()));
            }
            (_, None) => {}
        }
        if !cognitive_contract::text::fits(&self.reason, MAX_REASON) {
            return invalid(format!("a reason has at most {MAX_REASON} characters"));
        }
        Ok(())
    }
}

/// A stored decision.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
#[non_exhaustive]
pub struct ReviewDecision {
    /// The verdict.
    pub verdict: Verdict,
    /// The reason.
    pub reason: String,
    /// The name of the decider.
    pub by: Option<String>,
    /// The time, as RFC 3339 in UTC.
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

/// A queue entry, open or decided. Its JSON form has an additional `state`: `open` or `decided`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "RunReview")]
#[non_exhaustive]
pub struct Review {
    /// The id of the entry.
    pub id: String,
    /// The end of the run, as RFC 3339 in UTC.
    pub at: String,
    /// The module's own name.
    pub module: String,
    /// The module's version.
    pub version: String,
    /// `provider/model`; empty if no model was called.
    pub model: String,
    /// True if the run succeeded.
    pub ok: bool,
    /// The error code of a failure.
    pub code: Option<String>,
    /// `meta.risk` as a word.
    pub risk: String,
    /// `meta.confidence`.
    pub confidence: f64,
    /// `meta.calibrated_confidence`, if present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibrated_confidence: Option<f64>,
    /// `meta.explain`.
    pub explain: String,
    /// The condition that matched.
    pub rule: String,
    /// The id of the run in the audit; empty without an audit.
    pub run_id: String,
    /// The id that envelope and logs share.
    pub trace_id: String,
    /// The name of the API key that started the run.
    pub key: Option<String>,
    /// The user who started the run.
    pub user: Option<String>,
    /// The tenant of that user.
    pub tenant: Option<String>,
    /// The decision, if there is one.
    #[serde(flatten, serialize_with = "with_state")]
    #[schemars(with = "DecisionMembers")]
    pub decision: Option<ReviewDecision>,
    /// The input. Omitted in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The whole answer. Omitted in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Envelope")]
    pub envelope: Option<Value>,
}

/// The members of an entry that follow from its decision.
#[derive(Serialize, JsonSchema)]
struct DecisionMembers<'a> {
    state: ReviewState,
    /// The decision, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'a ReviewDecision>,
}

/// The state of an entry.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum ReviewState {
    Open,
    Decided,
}

#[expect(clippy::ref_option, reason = "serde passes a reference to the member")]
fn with_state<S: Serializer>(decision: &Option<ReviewDecision>, serializer: S) -> Result<S::Ok, S::Error> {
    let state = if decision.is_some() { ReviewState::Decided } else { ReviewState::Open };
    DecisionMembers { state, decision: decision.as_ref() }.serialize(serializer)
}

impl Review {
    /// An open entry with this id, at an RFC 3339 time.
    #[must_use]
    pub fn from_entry(id: String, at: String, entry: &ReviewEntry) -> Self {
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

    /// Returns whether the entry is undecided.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.decision.is_none()
    }

    /// Returns the violations of a correction. A correction has to be a valid answer of the module.
    #[must_use]
    pub fn correction_faults(&self, module: &Module, data: &Value) -> Vec<Violation> {
        let meta = self.envelope.as_ref().and_then(|envelope| envelope.get("meta")).cloned();
        let corrected = json!({ "ok": true, "meta": meta.unwrap_or_default(), "data": data });
        let mut found = module.envelope_violations(&corrected, Enforcement::Full);
        found.extend(module.rule_violations(&corrected));
        found.retain(|violation| violation.path.starts_with("/data"));
        found
    }
}

/// The filter of a query. The default matches all entries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReviewFilter {
    /// Only open entries, or only decided ones.
    pub open: Option<bool>,
    /// Only this module, by its own name.
    pub module: Option<String>,
    /// The maximum number of entries; all by default.
    pub limit: Option<usize>,
    /// The cursor of the previous page: its [`ReviewPage::next`].
    pub cursor: Option<String>,
}

/// A page of entries. Open entries are sorted oldest first, because the oldest is decided first. Decided and
/// mixed ones are sorted newest first.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ReviewPage {
    /// The entries, without input and envelope.
    pub reviews: Vec<Review>,
    /// The total number of open entries, of the requested module if there is one.
    pub open: u64,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
}

/// The result of a decision.
#[derive(Debug, Clone, PartialEq)]
pub struct DecidedReview {
    /// The entry with its decision, input and envelope.
    pub review: Review,
    /// True if this call made the decision. Repeating the same decision changes nothing; the first one is kept.
    pub is_new: bool,
}

/// The reason why a review queue rejected a request.
#[derive(Debug, Clone, PartialEq)]
pub enum ReviewError {
    /// No entry has this id.
    Unknown,
    /// An earlier decision differs; the entry contains it.
    Conflict(Box<Review>),
    /// The decision is invalid in itself.
    Invalid(String),
    /// The store failed, for this reason.
    Unavailable(String),
}

impl fmt::Display for ReviewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("unknown review"),
            Self::Conflict(review) => {
                let decision = review.decision.as_ref();
                let past = decision.map_or("decided", |decision| decision.verdict.past_participle());
                write!(f, "review {} was already {past}", review.id)?;
                match decision.and_then(|decision| decision.by.as_deref()) {
                    Some(by) => write!(f, " by: `{by}`"),
                    None => Ok(()),
                }
            }
            Self::Invalid(why) => f.write_str(why),
            Self::Unavailable(why) => write!(f, "the decision was not recorded: {why}"),
        }
    }
}

/// The form in which decisions are exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewExport {
    /// Every decided entry unchanged, including input and envelope.
    Decisions,
    /// Labelled cases as `cogn eval` reads them. Rejections without a correction are omitted, because the right
    /// answer is unknown.
    Cases,
}

/// A store of the review queue and its decisions.
pub trait ReviewQueue: Send + Sync {
    /// Adds a run to the queue and returns its id there. Resolves when the entry would survive a crash of the
    /// process.
    fn enter<'a>(&'a self, entry: &'a ReviewEntry) -> PortFuture<'a, Result<String, String>>;

    /// Returns the entries that match the filter.
    fn list(&self, filter: &ReviewFilter) -> Result<ReviewPage, String>;

    /// Returns an entry with input and envelope.
    fn get(&self, id: &str) -> Result<Option<Review>, String>;

    /// Stores a decision. An acknowledged decision survives a crash of the process.
    fn decide(&self, id: &str, decision: &NewDecision) -> Result<DecidedReview, ReviewError>;

    /// Returns the calibration of a module's confidence, or that of all modules.
    fn calibration(&self, module: Option<&str>) -> Result<CalibrationReport, String>;

    /// Returns one calibration for each pair of module and model, because confidences are not comparable
    /// between them. Uses the newest decisions of each, as [`calibrated_confidence`](Self::calibrated_confidence) does.
    fn calibrations(&self, module: Option<&str>) -> Result<Vec<ModelCalibration>, String> {
        let mut judged = JudgedByModel::default();
        let mut take = |review: Value| {
            let word = |name: &str| review.get(name).and_then(Value::as_str).unwrap_or_default();
            let verdict =
                review.pointer("/decision/verdict").and_then(Value::as_str).and_then(Verdict::parse);
            let confidence = review.get("confidence").and_then(Value::as_f64);
            // Failures are not answers, so they do not count.
            let is_answer = review.get("ok") == Some(&Value::Bool(true));
            if let (Some(verdict), Some(confidence), true) = (verdict, confidence, is_answer) {
                judged.add(word("module"), word("model"), (confidence, verdict.is_right()));
            }
            true
        };
        self.export(ReviewExport::Decisions, module, &mut take)?;
        Ok(judged.reports())
    }

    /// Returns the share of answers of such a confidence that people found right, if there are enough
    /// decisions. Must be cheap, because it is called at the end of every run.
    fn calibrated_confidence(&self, module: &str, model: &str, confidence: f64) -> Option<f64>;

    /// Passes the exported decisions to `take` as JSON lines, oldest first, until `take` returns false.
    fn export(
        &self,
        form: ReviewExport,
        module: Option<&str>,
        take: &mut dyn FnMut(Value) -> bool,
    ) -> Result<(), String>;
}

/// Returns the export line of a decided entry, if it yields one.
#[must_use]
pub fn export_entry(form: ReviewExport, review: &Review) -> Option<Value> {
    match form {
        ReviewExport::Decisions => serde_json::to_value(review).ok(),
        ReviewExport::Cases => case_of(review),
    }
}

/// Builds a labelled case: the input, and every member of `data` that a person approved or corrected. Leaves
/// out `rationale`, whose exact words are not expected again.
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

/// Returns the expectations of a labelled case with this data, without `rationale`; `None` if none remain.
#[must_use]
pub fn expectation_of(data: &Value) -> Option<Map<String, Value>> {
    let members = data.as_object()?.iter().filter(|(name, _)| *name != "rationale");
    let expect: Map<String, Value> = members.map(|(name, value)| (place(name), exact_rule(value))).collect();
    (!expect.is_empty()).then_some(expect)
}

/// Returns the name of a `data` member in expectations: a plain name as it is, any other as a pointer.
fn place(name: &str) -> String {
    let is_plain =
        name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-')
            && name.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && !["ok", "meta", "data", "error", "partial_data"].contains(&name);
    if is_plain { name.to_owned() } else { cognitive_contract::text::pointer("/data", name) }
}

/// Expects a value exactly, even if parts of it look like a rule.
fn exact_rule(value: &Value) -> Value {
    match value {
        Value::Object(_) | Value::Array(_) => json!({ "$exact": value }),
        scalar => scalar.clone(),
    }
}

#[cfg(test)]
mod tests;
