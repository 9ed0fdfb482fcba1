//! Answers that wait for a person: what a rule queued, what a person decides, and what becomes of the answer. The promise
//! itself is kept by the server; a desk of the worker, where there is one, hears of the decision as well.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use cognitive_contract::ports::PortFuture;
use cognitive_contract::review::{
    CalibrationReport, Decided, DeskError, NewDecision, Review, ReviewDesk, ReviewEntry, ReviewExport,
    ReviewFilter, ReviewPage, Verdict,
};
use cognitive_contract::{Envelope, ErrorCode, Failure, Module};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::steps::OpenReview;

/// What a person says about an answer, as it is sent and kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SentDecision {
    verdict: Verdict,
    #[serde(default)]
    reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    /// The right `data`, with `correct`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
}

/// An answer that waits, as the state of its run holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct WaitingAnswer {
    pub(crate) module: String,
    pub(crate) review: OpenReview,
    pub(crate) envelope: Value,
}

impl SentDecision {
    /// Reads a decision that fits the answer; the failure says why it does not.
    pub(crate) fn read(
        body: &[u8],
        waiting: &WaitingAnswer,
        module: Option<&Module>,
    ) -> Result<Self, Failure> {
        let refused = |what: String| {
            Failure::new(ErrorCode::InvalidInput, what)
                .suggest("Send {\"verdict\": \"approve\"}, `reject`, or `correct` with `data`; `reason` and `by` may follow")
        };
        let decision: Self = serde_json::from_slice(body)
            .map_err(|error| refused(format!("the decision cannot be read: {error}")))?;
        decision.as_new().check().map_err(|error| refused(error.to_string()))?;
        if let (Some(data), Some(module)) = (&decision.data, module) {
            let review = Review::of(waiting.review.id.clone(), String::new(), &waiting.as_entry());
            if let Some(fault) = review.correction_faults(module, data).first() {
                return Err(refused(format!(
                    "the correction does not fit the module: {}: {}",
                    fault.path, fault.message
                )));
            }
        }
        Ok(decision)
    }

    /// The decision as a desk takes it.
    pub(crate) fn as_new(&self) -> NewDecision {
        NewDecision {
            verdict: self.verdict,
            reason: self.reason.clone(),
            data: self.data.clone(),
            by: self.by.clone(),
            key: None,
            at: SystemTime::now(),
        }
    }

    /// The answer after the decision: as it was, with other data, or refused. `meta.review` says what was decided.
    pub(crate) fn apply(&self, envelope: &Value) -> Value {
        let mut decided = match self.verdict {
            Verdict::Approve => envelope.clone(),
            Verdict::Correct => corrected(envelope, self.data.clone().unwrap_or_default()),
            Verdict::Reject => self.rejected(envelope),
        };
        let said = json!({ "verdict": self.verdict.word(), "reason": self.reason, "by": self.by });
        if let Some(meta) = decided.get_mut("meta").and_then(Value::as_object_mut) {
            meta.insert("review".to_owned(), said);
        }
        decided
    }

    fn rejected(&self, envelope: &Value) -> Value {
        let why = if self.reason.is_empty() { String::new() } else { format!(": {}", self.reason) };
        let failure = Failure::new(ErrorCode::PermissionDenied, format!("a person rejected the answer{why}"))
            .with_detail("kind", json!("rejected"));
        let mut rejected = serde_json::to_value(failure.into_envelope()).unwrap_or_default();
        let known = envelope.get("meta").and_then(Value::as_object);
        if let Some(meta) = rejected.get_mut("meta").and_then(Value::as_object_mut) {
            // What the run took it took all the same.
            for (name, value) in known.into_iter().flatten() {
                meta.entry(name).or_insert_with(|| value.clone());
            }
        }
        rejected
    }
}

fn corrected(envelope: &Value, data: Value) -> Value {
    let mut corrected = envelope.clone();
    if let Some(members) = corrected.as_object_mut() {
        members.insert("data".to_owned(), data);
    }
    corrected
}

impl WaitingAnswer {
    fn as_entry(&self) -> ReviewEntry {
        ReviewEntry {
            at: SystemTime::now(),
            run_id: String::new(),
            trace_id: String::new(),
            key: None,
            user: None,
            tenant: None,
            module: self.module.clone(),
            version: String::new(),
            model: String::new(),
            rule: self.review.rule.clone(),
            input: Value::Object(Map::new()),
            envelope: self.envelope.clone(),
        }
    }
}

/// A desk that remembers that a run was queued, and passes everything on to the one behind it.
pub(crate) struct WaitingDesk {
    behind: Option<Arc<dyn ReviewDesk>>,
    /// What the run is called where there is no desk behind.
    name: String,
    entered: Mutex<Option<OpenReview>>,
}

impl WaitingDesk {
    pub(crate) fn new(behind: Option<Arc<dyn ReviewDesk>>, name: String) -> Self {
        Self { behind, name, entered: Mutex::default() }
    }

    /// The review of the run, if a rule asks for one.
    pub(crate) fn entered(&self) -> Option<OpenReview> {
        self.entered.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn desk(&self) -> Result<&dyn ReviewDesk, String> {
        self.behind.as_deref().ok_or_else(|| "this worker has no desk".to_owned())
    }
}

impl ReviewDesk for WaitingDesk {
    fn enter<'a>(&'a self, entry: &'a ReviewEntry) -> PortFuture<'a, Result<String, String>> {
        Box::pin(async move {
            let behind = match self.behind.as_deref() {
                Some(desk) => desk.enter(entry).await.ok(),
                None => None,
            };
            let id = behind.unwrap_or_else(|| self.name.clone());
            let open = OpenReview { id: id.clone(), rule: entry.rule.clone() };
            *self.entered.lock().unwrap_or_else(PoisonError::into_inner) = Some(open);
            Ok(id)
        })
    }

    fn list(&self, filter: &ReviewFilter) -> Result<ReviewPage, String> {
        self.desk()?.list(filter)
    }

    fn get(&self, id: &str) -> Result<Option<Review>, String> {
        self.desk()?.get(id)
    }

    fn decide(&self, id: &str, decision: &NewDecision) -> Result<Decided, DeskError> {
        self.desk().map_err(DeskError::Unavailable)?.decide(id, decision)
    }

    fn calibration(&self, module: Option<&str>) -> Result<CalibrationReport, String> {
        self.desk()?.calibration(module)
    }

    fn calibrated(&self, module: &str, model: &str, confidence: f64) -> Option<f64> {
        self.behind.as_deref()?.calibrated(module, model, confidence)
    }

    fn export(
        &self,
        form: ReviewExport,
        module: Option<&str>,
        take: &mut dyn FnMut(Value) -> bool,
    ) -> Result<(), String> {
        self.desk()?.export(form, module, take)
    }
}

/// Whether a decided answer is still an envelope; what is not is given out as it was.
pub(crate) fn decided(decision: &SentDecision, envelope: &Value) -> Value {
    let after = decision.apply(envelope);
    if Envelope::from_value(after.clone()).is_ok() { after } else { envelope.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting() -> WaitingAnswer {
        let meta =
            json!({ "confidence": 0.4, "risk": "low", "explain": "e", "trace_id": "t", "model": "m/1" });
        let envelope = json!({ "ok": true, "meta": meta, "data": { "rationale": "r", "label": "a" } });
        let review = OpenReview { id: "m/k".to_owned(), rule: "confidence < 0.6".to_owned() };
        WaitingAnswer { module: "m".to_owned(), review, envelope }
    }

    fn after(decision: &Value) -> Value {
        let waiting = waiting();
        let read = SentDecision::read(decision.to_string().as_bytes(), &waiting, None).unwrap();
        decided(&read, &waiting.envelope)
    }

    #[test]
    fn a_decision_is_applied_to_the_answer() {
        let approved = after(&json!({ "verdict": "approve", "by": "ann" }));
        assert_eq!(approved["data"], waiting().envelope["data"]);
        assert_eq!(approved["meta"]["review"], json!({ "verdict": "approve", "reason": "", "by": "ann" }));
        let right = json!({ "rationale": "s", "label": "b" });
        let corrected = after(&json!({ "verdict": "correct", "data": right }));
        assert_eq!(
            (&corrected["data"], &corrected["meta"]["review"]["verdict"]),
            (&right, &json!("correct"))
        );
        let rejected = after(&json!({ "verdict": "reject", "reason": "no" }));
        assert_eq!(rejected["error"]["code"], "E4007");
        assert_eq!(rejected["error"]["details"]["kind"], "rejected");
        assert_eq!((&rejected["meta"]["trace_id"], &rejected["meta"]["model"]), (&json!("t"), &json!("m/1")));
    }

    #[test]
    fn a_decision_that_says_nothing_sensible_is_refused() {
        for wrong in [
            "{}",
            r#"{"verdict": "maybe"}"#,
            r#"{"verdict": "correct"}"#,
            r#"{"verdict": "approve", "data": {}}"#,
        ] {
            assert_eq!(
                SentDecision::read(wrong.as_bytes(), &waiting(), None).unwrap_err().number(),
                "E1001",
                "{wrong}"
            );
        }
    }
}
