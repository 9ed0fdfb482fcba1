//! The end of a run as far as people have a hand in it: what its confidence is worth by what they decided before, and
//! whether one of them has to look at it. A run that could not be queued says so and stays what it is.

use std::sync::Arc;
use std::time::SystemTime;

use cognitive_contract::review::{
    CALIBRATED_CONFIDENCE, REVIEW, ReviewDesk, ReviewEntry, ReviewFacts, ReviewRules,
};
use cognitive_contract::{Envelope, Warning};
use serde_json::{Value, json};

use crate::audit::RunRecord;

/// Which runs people look at, and where they do.
#[derive(Clone)]
pub struct Reviewing {
    /// Which runs.
    pub rules: ReviewRules,
    /// Who keeps the queue and the decisions.
    pub desk: Arc<dyn ReviewDesk>,
}

/// Digits of a calibrated confidence: more would claim more than decisions can say.
const PRECISION: f64 = 1_000.0;

/// Says what the confidence of an answer is worth, beside the confidence itself. Nobody but the runtime says it.
pub(crate) fn calibrate(envelope: &mut Envelope, record: &RunRecord<'_>) {
    envelope.meta_mut().extra.shift_remove(CALIBRATED_CONFIDENCE);
    let Some(review) = record.host().review.as_ref().filter(|_| envelope.ok()) else { return };
    let (model, stated) = (record.model(), envelope.meta().confidence.get());
    if let Some(worth) = review.desk.calibrated(record.module(), &model, stated) {
        let worth = (worth * PRECISION).round() / PRECISION;
        envelope.meta_mut().extra.insert(CALIBRATED_CONFIDENCE.to_owned(), json!(worth));
    }
}

/// Puts the run of a surface into the queue if a rule holds for it. When this resolves it is on the disk, or the warning
/// says why it is not. The parts of a composition are judged with the whole.
pub(crate) async fn queue(envelope: &mut Envelope, record: &mut RunRecord<'_>) {
    let Some(review) = record.host().review.as_ref().filter(|_| record.is_root()) else { return };
    let model = record.model();
    let facts = ReviewFacts { module: record.module(), model: &model, envelope };
    let Some(rule) = review.rules.first_match(facts) else { return };
    let entry = entry(envelope, record, rule.source(), model);
    let message = match review.desk.enter(&entry).await {
        Ok(id) => format!("a person is to look at this answer, review {id}: `{}`", rule.source()),
        Err(reason) => {
            format!(
                "a person should look at this answer (`{}`), and it could not be queued: {reason}",
                rule.source()
            )
        }
    };
    envelope.meta_mut().warn(&Warning::new(REVIEW, message));
}

fn entry(envelope: &Envelope, record: &RunRecord<'_>, rule: &str, model: String) -> ReviewEntry {
    let options = &record.request().options;
    ReviewEntry {
        at: SystemTime::now(),
        run_id: record.run_id().to_owned(),
        trace_id: options.trace_id.clone().unwrap_or_default(),
        key: options.key.clone(),
        user: options.user.clone(),
        tenant: options.tenant.clone(),
        module: record.module().to_owned(),
        version: record.version.clone(),
        model,
        rule: rule.to_owned(),
        input: record.given_value().unwrap_or(Value::Null),
        envelope: serde_json::to_value(envelope).unwrap_or_default(),
    }
}
