//! Human review at the end of a run: calibrates the confidence by earlier decisions, and queues the run if a rule
//! selects it. A run that could not be queued gets a warning and keeps its answer.

use std::sync::Arc;
use std::time::SystemTime;

use cognitive_contract::address::shown_reason;
use cognitive_contract::meta::CALIBRATED_CONFIDENCE;
use cognitive_contract::{Envelope, Warning};
use cognitive_ports::review::{REVIEW, ReviewEntry, ReviewFacts, ReviewQueue, ReviewRules};
use serde_json::{Value, json};

use crate::audit::RunRecord;

/// The review rules, and the store of the queue.
#[derive(Clone)]
pub struct Reviewing {
    /// The rules that select runs.
    pub rules: ReviewRules,
    /// The store of the queue and the decisions.
    pub review_queue: Arc<dyn ReviewQueue>,
}

/// The rounding of a calibrated confidence: more digits would claim more precision than decisions provide.
const PRECISION: f64 = 1_000.0;

/// Adds the calibrated confidence of an answer, in addition to the model's own. Only the runtime may set it.
pub(crate) fn calibrate(envelope: &mut Envelope, record: &RunRecord<'_>) {
    envelope.meta_mut().extra.shift_remove(CALIBRATED_CONFIDENCE);
    let Some(review) = record.host().review.as_ref().filter(|_| envelope.ok()) else { return };
    let (model, stated) = (record.model(), envelope.meta().confidence.get());
    if let Some(worth) = review.review_queue.calibrated_confidence(record.module(), &model, stated) {
        let worth = (worth * PRECISION).round() / PRECISION;
        envelope.meta_mut().extra.insert(CALIBRATED_CONFIDENCE.to_owned(), json!(worth));
    }
}

/// Queues a root run if a rule matches. Resolves when the entry is on disk, or adds a warning with the reason. The
/// parts of a composition are judged with the whole.
pub(crate) async fn queue(envelope: &mut Envelope, record: &mut RunRecord<'_>) {
    let Some(review) = record.host().review.as_ref().filter(|_| record.is_root()) else { return };
    if record.host().is_experimental {
        return;
    }
    let model = record.model();
    let facts = ReviewFacts { module: record.module(), model: &model, envelope };
    let Some(rule) = review.rules.first_match(facts) else { return };
    let entry = entry(envelope, record, rule.source(), model);
    let message = match review.review_queue.enter(&entry).await {
        Ok(id) => format!("this answer needs review, review {id}: `{}`", rule.source()),
        Err(reason) => {
            let reason = shown_reason(&reason, record.request().options.remote);
            format!("this answer needs review (`{}`), but it could not be queued: {reason}", rule.source())
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
        input: record.input_value().unwrap_or(Value::Null),
        envelope: serde_json::to_value(envelope).unwrap_or_default(),
    }
}
