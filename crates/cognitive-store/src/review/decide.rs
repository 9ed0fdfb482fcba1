//! Records a decision and its audit record in one transaction. Of two concurrent decisions, the first one counts, and
//! the other gets a conflict.

use cognitive_contract::ports::AuditRecord;
use cognitive_contract::text::hex;
use cognitive_ports::review::{DecidedReview, NewDecision, Review, ReviewDecision, ReviewError};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{ReviewLimits, StoredReviewQueue, read};
use crate::audit::{NoteCost, NoteRecord, writable};
use crate::error::Problem;
use crate::row_changes::{self, ProtectedTable};
use crate::sql::{LockedArea, SqlRow, SqlSession, all, first, to_signed, values};
use crate::store::Retention;
use crate::time;

/// The most decided entries that lose their input and envelope per decision. A decision must not wait for a large
/// backlog.
const BATCH: i64 = 16;

/// The result of a transaction.
enum DecisionOutcome {
    Unknown,
    /// The entry was already decided.
    Before(Review),
    Made(Review, Option<NoteCost>),
}

pub(super) fn decide(
    review_queue: &StoredReviewQueue,
    id: i64,
    decision: &NewDecision,
) -> Result<DecidedReview, ReviewError> {
    let (limits, is_audited, retention) =
        (review_queue.limits, review_queue.is_audited, review_queue.store.retention());
    let rules = DecisionRules { limits, is_audited, retention };
    let areas = &[LockedArea::Reviews, LockedArea::Audit];
    let outcome = review_queue.store.change_synced(areas, |session| transact(session, id, decision, rules));
    match outcome.map_err(|error| ReviewError::Unavailable(error.to_string()))? {
        DecisionOutcome::Unknown => Err(ReviewError::Unknown),
        DecisionOutcome::Before(review) if is_same(&review, decision) => {
            Ok(DecidedReview { review, is_new: false })
        }
        DecisionOutcome::Before(review) => Err(ReviewError::Conflict(Box::new(review))),
        DecisionOutcome::Made(review, cost) => {
            if let Some(cost) = cost {
                review_queue.store.count_drops(&cost);
            }
            review_queue.curves.mark_stale(&review.module);
            Ok(DecidedReview { review, is_new: true })
        }
    }
}

/// Returns whether verdict and correction are the same. Reasons may differ; the first one is kept.
fn is_same(review: &Review, decision: &NewDecision) -> bool {
    let made = review.decision.as_ref();
    made.is_some_and(|made| made.verdict == decision.verdict && made.data == decision.data)
}

#[derive(Clone, Copy)]
struct DecisionRules {
    limits: ReviewLimits,
    is_audited: bool,
    retention: Retention,
}

fn transact(
    session: &mut dyn SqlSession,
    id: i64,
    decision: &NewDecision,
    rules: DecisionRules,
) -> Result<DecisionOutcome, Problem> {
    let Some(mut review) = read::find_review(session, id)? else { return Ok(DecisionOutcome::Unknown) };
    if !review.is_open() {
        return Ok(DecisionOutcome::Before(review));
    }
    let at = time::text(decision.at);
    let data = decision.data.as_ref().map(ToString::to_string);
    let made = first(
        session,
        "INSERT INTO decisions (review, module, model, ok, confidence, verdict, reason, by, at, data)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) RETURNING seq",
        &values![
            id,
            &review.module,
            &review.model,
            review.ok,
            review.confidence,
            decision.verdict.word(),
            writable(&decision.reason),
            decision.by.as_deref().map(writable),
            &at,
            data,
        ],
        |row| row.integer(0),
    )?;
    session.execute("UPDATE reviews SET is_open = 0 WHERE id = ?1", &values![id])?;
    if let Some(made) = made {
        row_changes::note(session, ProtectedTable::Decisions, made)?;
    }
    row_changes::note(session, ProtectedTable::Reviews, id)?;
    forget_oldest(session, rules.limits)?;
    let note = rules.is_audited.then(|| NoteRecord::from_record(&record(&review, decision)));
    let cost = note.map(|note| note.append(session, rules.retention)).transpose()?;
    let NewDecision { verdict, reason, by, data, .. } = decision.clone();
    review.decision = Some(ReviewDecision::new(verdict, reason, by, at, data));
    Ok(DecisionOutcome::Made(review, cost))
}

/// Creates the audit record of a decision. It contains a hash of the reason and the correction, not their text.
fn record(review: &Review, decision: &NewDecision) -> AuditRecord {
    let said = json!({ "reason": decision.reason, "data": decision.data });
    let receipt = json!({
        "review": review.id,
        "verdict": decision.verdict.word(),
        "by": decision.by,
        "sha256": { "decision": hex(&Sha256::digest(said.to_string().as_bytes())) },
    });
    let mut record = AuditRecord::change("review", decision.at, &review.trace_id, &review.module, receipt);
    record.run_id.clone_from(&review.run_id);
    record.version.clone_from(&review.version);
    record.model.clone_from(&review.model);
    record.confidence = review.confidence;
    record.risk.clone_from(&review.risk);
    record.key.clone_from(&decision.key);
    record.user.clone_from(&decision.by);
    record
}

/// Removes input and envelope of the oldest decided entries if the limits are exceeded.
fn forget_oldest(session: &mut dyn SqlSession, limits: ReviewLimits) -> Result<(), Problem> {
    let [most, largest] = [limits.decided, limits.bytes].map(to_signed);
    let pair = |row: &SqlRow| Ok((row.integer(0)?, row.integer(1)?));
    let count = "SELECT count(*), CAST(coalesce(sum(bytes), 0) AS BIGINT) FROM reviews WHERE is_open = 0 AND bytes > 0";
    let (mut kept, mut bytes) = first(session, count, &[], pair)?.unwrap_or_default();
    let oldest = "SELECT id, bytes FROM reviews WHERE is_open = 0 AND bytes > 0 ORDER BY id LIMIT ?1";
    for (id, size) in all(session, oldest, &values![BATCH], pair)? {
        if kept <= most && bytes <= largest {
            break;
        }
        let forget = "UPDATE reviews SET input = NULL, envelope = NULL, bytes = 0 WHERE id = ?1";
        session.execute(forget, &values![id])?;
        row_changes::note(session, ProtectedTable::Reviews, id)?;
        (kept, bytes) = (kept - 1, bytes - size);
    }
    Ok(())
}
