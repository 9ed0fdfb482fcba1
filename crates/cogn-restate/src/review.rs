//! Answers that wait for a person: the queued review, the person's decision, and the resulting answer. The
//! server stores the promise; the worker's review queue, if it has one, also receives the decision.

use std::sync::Arc;
use std::time::SystemTime;

use cognitive_contract::lock::Lock;
use cognitive_contract::ports::PortFuture;
use cognitive_contract::{Envelope, ErrorCode, Failure, Module};
use cognitive_ports::review::{
    CalibrationReport, DecidedReview, NewDecision, Review, ReviewEntry, ReviewError, ReviewExport,
    ReviewFilter, ReviewPage, ReviewQueue, Verdict,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::steps::OpenReview;

/// A person's decision about an answer, as sent and stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SentDecision {
    verdict: Verdict,
    #[serde(default)]
    reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    /// The right `data`, for the verdict `correct`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
}

/// A waiting answer, as stored in the state of its run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct WaitingAnswer {
    pub(crate) module: String,
    pub(crate) review: OpenReview,
    pub(crate) envelope: Value,
}

impl SentDecision {
    /// Parses a decision and checks it against the answer; the failure explains why it does not fit.
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
            .map_err(|error| refused(format!("cannot read the decision: {error}")))?;
        decision.as_new().check().map_err(|error| refused(error.to_string()))?;
        if let (Some(data), Some(module)) = (&decision.data, module) {
            let review = Review::from_entry(waiting.review.id.clone(), String::new(), &waiting.as_entry());
            if let Some(fault) = review.correction_faults(module, data).first() {
                return Err(refused(format!(
                    "the correction does not match the module: {}: {}",
                    fault.path, fault.message
                )));
            }
        }
        Ok(decision)
    }

    /// Converts the decision for a review queue.
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

    /// Applies the decision: the answer is unchanged, corrected or rejected. `meta.review` contains the
    /// decision.
    pub(crate) fn apply(&self, envelope: &Value) -> Value {
        let mut decided = match self.verdict {
            Verdict::Approve => envelope.clone(),
            Verdict::Correct => with_corrected_data(envelope, self.data.clone().unwrap_or_default()),
            Verdict::Reject => self.reject(envelope),
        };
        let said = json!({ "verdict": self.verdict.word(), "reason": self.reason, "by": self.by });
        if let Some(meta) = decided.get_mut("meta").and_then(Value::as_object_mut) {
            meta.insert("review".to_owned(), said);
        }
        decided
    }

    fn reject(&self, envelope: &Value) -> Value {
        let why = if self.reason.is_empty() { String::new() } else { format!(": {}", self.reason) };
        let failure = Failure::new(ErrorCode::PermissionDenied, format!("a person rejected the answer{why}"))
            .with_detail("kind", json!("rejected"));
        let mut rejected = serde_json::to_value(failure.into_envelope()).unwrap_or_default();
        let known = envelope.get("meta").and_then(Value::as_object);
        if let Some(meta) = rejected.get_mut("meta").and_then(Value::as_object_mut) {
            // The measured values of the run, such as its usage, still apply.
            for (name, value) in known.into_iter().flatten() {
                meta.entry(name).or_insert_with(|| value.clone());
            }
        }
        rejected
    }
}

fn with_corrected_data(envelope: &Value, data: Value) -> Value {
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

/// A review queue that remembers the queued review of its run and forwards everything to the queue behind it.
pub(crate) struct RunReviewQueue {
    behind: Option<Arc<dyn ReviewQueue>>,
    /// The review id if there is no queue behind.
    name: String,
    entered: Lock<Option<OpenReview>>,
}

impl RunReviewQueue {
    pub(crate) fn new(behind: Option<Arc<dyn ReviewQueue>>, name: String) -> Self {
        Self { behind, name, entered: Lock::default() }
    }

    /// Returns the review of the run, if a rule requires one.
    pub(crate) fn open_review(&self) -> Option<OpenReview> {
        self.entered.lock().clone()
    }

    fn review_queue(&self) -> Result<&dyn ReviewQueue, String> {
        self.behind.as_deref().ok_or_else(|| "this worker has no review queue".to_owned())
    }
}

impl ReviewQueue for RunReviewQueue {
    fn enter<'a>(&'a self, entry: &'a ReviewEntry) -> PortFuture<'a, Result<String, String>> {
        Box::pin(async move {
            let behind = match self.behind.as_deref() {
                Some(review_queue) => review_queue.enter(entry).await.ok(),
                None => None,
            };
            let id = behind.unwrap_or_else(|| self.name.clone());
            let open = OpenReview { id: id.clone(), rule: entry.rule.clone() };
            *self.entered.lock() = Some(open);
            Ok(id)
        })
    }

    fn list(&self, filter: &ReviewFilter) -> Result<ReviewPage, String> {
        self.review_queue()?.list(filter)
    }

    fn get(&self, id: &str) -> Result<Option<Review>, String> {
        self.review_queue()?.get(id)
    }

    fn decide(&self, id: &str, decision: &NewDecision) -> Result<DecidedReview, ReviewError> {
        self.review_queue().map_err(ReviewError::Unavailable)?.decide(id, decision)
    }

    fn calibration(&self, module: Option<&str>) -> Result<CalibrationReport, String> {
        self.review_queue()?.calibration(module)
    }

    fn calibrated_confidence(&self, module: &str, model: &str, confidence: f64) -> Option<f64> {
        self.behind.as_deref()?.calibrated_confidence(module, model, confidence)
    }

    fn export(
        &self,
        form: ReviewExport,
        module: Option<&str>,
        take: &mut dyn FnMut(Value) -> bool,
    ) -> Result<(), String> {
        self.review_queue()?.export(form, module, take)
    }
}

/// Applies a decision. If the result is not a valid envelope, the answer is returned unchanged.
pub(crate) fn apply_decision(decision: &SentDecision, envelope: &Value) -> Value {
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
        apply_decision(&read, &waiting.envelope)
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
