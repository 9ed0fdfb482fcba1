//! Makes a decision: one transaction with its record in the audit. Of two that come at once the first stands, and the other
//! hears of it.

use cognitive_contract::ports::AuditRecord;
use cognitive_contract::review::{Decided, DeskError, NewDecision, Review, ReviewDecision};
use cognitive_contract::text::hex;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{Desk, ReviewLimits, read};
use crate::audit::{NoteCost, NoteRecord};
use crate::store::Retention;
use crate::time;

/// How many decided entries lose their input and envelope with one decision, at most.
const BATCH: i64 = 16;

/// What a transaction came to.
enum DecisionOutcome {
    Unknown,
    /// Somebody has decided before.
    Before(Review),
    Made(Review, Option<NoteCost>),
}

pub(super) fn decide(desk: &Desk, id: i64, decision: &NewDecision) -> Result<Decided, DeskError> {
    let (limits, is_audited, retention) = (desk.limits, desk.is_audited, desk.store.retention());
    let rules = DecisionRules { limits, is_audited, retention };
    let outcome = desk.store.with_synced(|connection| transact(connection, id, decision, rules));
    match outcome.map_err(|error| DeskError::Unavailable(error.to_string()))? {
        DecisionOutcome::Unknown => Err(DeskError::Unknown),
        DecisionOutcome::Before(review) if is_same(&review, decision) => {
            Ok(Decided { review, is_new: false })
        }
        DecisionOutcome::Before(review) => Err(DeskError::Conflict(Box::new(review))),
        DecisionOutcome::Made(review, cost) => {
            if let Some(cost) = cost {
                desk.store.count_drops(&cost);
            }
            Ok(Decided { review, is_new: true })
        }
    }
}

/// The same verdict with the same correction. Reasons may differ: the first one stands.
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
    connection: &mut Connection,
    id: i64,
    decision: &NewDecision,
    rules: DecisionRules,
) -> rusqlite::Result<DecisionOutcome> {
    // Immediate: what is read here has to be so until the end.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let Some(mut review) = read::whole(&transaction, id)? else { return Ok(DecisionOutcome::Unknown) };
    if !review.is_open() {
        return Ok(DecisionOutcome::Before(review));
    }
    let at = time::text(decision.at);
    let data = decision.data.as_ref().map(ToString::to_string);
    transaction
        .prepare_cached(
            "INSERT INTO decisions (review, module, model, ok, confidence, verdict, reason, by, at, data)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?
        .execute(params![
            id,
            review.module,
            review.model,
            review.ok,
            review.confidence,
            decision.verdict.word(),
            decision.reason,
            decision.by,
            at,
            data,
        ])?;
    transaction.execute("UPDATE reviews SET is_open = 0 WHERE id = ?1", [id])?;
    forget_oldest(&transaction, rules.limits)?;
    let note = rules.is_audited.then(|| NoteRecord::of(&record(&review, decision)));
    let cost = note.map(|note| note.append(&transaction, rules.retention)).transpose()?;
    transaction.commit()?;
    let NewDecision { verdict, reason, by, data, .. } = decision.clone();
    review.decision = Some(ReviewDecision::new(verdict, reason, by, at, data));
    Ok(DecisionOutcome::Made(review, cost))
}

/// The record of a decision. It has a hash of what was said, and no word of it.
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

/// Lets the oldest decided entries lose their input and envelope when there are too many, or they are too large.
fn forget_oldest(transaction: &Transaction<'_>, limits: ReviewLimits) -> rusqlite::Result<()> {
    let [most, largest] =
        [limits.decided, limits.bytes].map(|limit| i64::try_from(limit).unwrap_or(i64::MAX));
    let count = "SELECT count(*), coalesce(sum(bytes), 0) FROM reviews WHERE is_open = 0 AND bytes > 0";
    let (mut kept, mut bytes): (i64, i64) =
        transaction.prepare_cached(count)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut oldest = transaction.prepare_cached(
        "SELECT id, bytes FROM reviews WHERE is_open = 0 AND bytes > 0 ORDER BY id LIMIT ?1",
    )?;
    let rows: Vec<(i64, i64)> =
        oldest.query_map([BATCH], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
    for (id, size) in rows {
        if kept <= most && bytes <= largest {
            break;
        }
        transaction
            .prepare_cached("UPDATE reviews SET input = NULL, envelope = NULL, bytes = 0 WHERE id = ?1")?
            .execute([id])?;
        (kept, bytes) = (kept - 1, bytes - size);
    }
    Ok(())
}
