//! Reads entries with their decisions.

use cognitive_ports::review::{Review, ReviewDecision, ReviewEntry, ReviewFilter, ReviewPage, Verdict};
use serde_json::Value;

use crate::error::Problem;
use crate::sql::{SqlRow, SqlSession, all, first, number, values};
use crate::store::Store;
use crate::time;

/// The largest page size. All of a page is held in memory.
const MOST: usize = 1_000;
/// The number of decided entries read at once; between two pages, other threads can use the connection.
const PAGE: i64 = 64;

/// The columns of every query, in the order in which [`light`] reads them.
const COLUMNS: &str = "reviews.id, reviews.at, run_id, trace_id, key, \"user\", tenant, reviews.module, version, reviews.model,
    reviews.ok, code, risk, reviews.confidence, calibrated, explain, rule, verdict, reason, decisions.by, decisions.at, data";
const FROM: &str = "reviews LEFT JOIN decisions ON decisions.review = reviews.id";

/// Reads an entry without input and envelope.
fn light(row: &SqlRow) -> Result<Review, Problem> {
    let verdict = row.maybe_text(17)?.as_deref().and_then(Verdict::parse);
    let at = row.maybe_text(20)?.unwrap_or_default();
    let (reason, by) = (row.maybe_text(18)?.unwrap_or_default(), row.maybe_text(19)?);
    let data = row.maybe_text(21)?.map(value);
    // Members that usually come from the envelope are columns here.
    let entry = ReviewEntry {
        at: time::read(row.str(1)?),
        run_id: row.text(2)?,
        trace_id: row.text(3)?,
        key: row.maybe_text(4)?,
        user: row.maybe_text(5)?,
        tenant: row.maybe_text(6)?,
        module: row.text(7)?,
        version: row.text(8)?,
        model: row.text(9)?,
        rule: row.text(16)?,
        input: Value::Null,
        envelope: Value::Null,
    };
    let mut review = Review::from_entry(row.integer(0)?.to_string(), row.text(1)?, &entry);
    review.ok = row.is_true(10)?;
    review.code = row.maybe_text(11)?;
    review.risk = row.text(12)?;
    review.confidence = row.real(13)?;
    review.calibrated_confidence = row.maybe_real(14)?;
    review.explain = row.text(15)?;
    review.decision = verdict.map(|verdict| ReviewDecision::new(verdict, reason, by, at, data));
    (review.input, review.envelope) = (None, None);
    Ok(review)
}

/// Parses stored JSON. Invalid text, from manual edits, is returned as a string.
fn value(text: String) -> Value {
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

fn heavy(row: &SqlRow) -> Result<Review, Problem> {
    let mut review = light(row)?;
    review.input = row.maybe_text(22)?.map(value);
    review.envelope = row.maybe_text(23)?.map(value);
    Ok(review)
}

/// Returns an entry with input and envelope.
pub(super) fn find_review(session: &mut dyn SqlSession, id: i64) -> Result<Option<Review>, Problem> {
    let sql = format!("SELECT {COLUMNS}, input, envelope FROM {FROM} WHERE reviews.id = ?1");
    first(session, &sql, &values![id], heavy)
}

/// Returns the matching entries.
pub(super) fn page(store: &Store, filter: &ReviewFilter) -> Result<ReviewPage, String> {
    let limit = filter.limit.unwrap_or(MOST).clamp(1, MOST);
    let waits = filter.open == Some(true);
    let (beyond, order) = if waits { (">", "") } else { ("<", "DESC") };
    let cursor = match &filter.cursor {
        None => None,
        Some(text) => Some(text.parse::<i64>().map_err(|_| format!("unknown cursor: `{text}`"))?),
    };
    let sql = format!(
        "SELECT {COLUMNS} FROM {FROM} WHERE (is_open = ?1 OR ?1 IS NULL)
            AND (reviews.module = ?2 OR ?2 IS NULL) AND (reviews.id {beyond} ?3 OR ?3 IS NULL)
         ORDER BY reviews.id {order} LIMIT ?4"
    );
    let count = "SELECT count(*) FROM reviews WHERE is_open = 1 AND (module = ?1 OR ?1 IS NULL)";
    let found = store.look(|session| {
        let one_more = i64::try_from(limit + 1).unwrap_or(i64::MAX);
        let module = filter.module.as_deref();
        let rows = all(session, &sql, &values![filter.open, module, cursor, one_more], light)?;
        let open = number(session, count, &values![module])?;
        Ok((rows, u64::try_from(open).unwrap_or(0)))
    });
    let (mut reviews, open) = found.map_err(|error| error.to_string())?;
    let has_more = reviews.len() > limit;
    reviews.truncate(limit);
    let next = reviews.last().filter(|_| has_more).map(|last| last.id.clone());
    Ok(ReviewPage { reviews, open, next })
}

/// Returns a page of decided entries with input and envelope, in the order of their decisions. Each comes with the
/// sequence number of its decision.
pub(super) fn decided_page(
    session: &mut dyn SqlSession,
    after: i64,
    module: Option<&str>,
) -> Result<Vec<(i64, Review)>, Problem> {
    let sql = format!(
        "SELECT {COLUMNS}, input, envelope, decisions.seq FROM decisions JOIN reviews ON reviews.id = decisions.review
         WHERE decisions.seq > ?1 AND (decisions.module = ?2 OR ?2 IS NULL) ORDER BY decisions.seq LIMIT ?3"
    );
    all(session, &sql, &values![after, module, PAGE], |row| Ok((row.integer(24)?, heavy(row)?)))
}
