//! Entries as they come back, with what was decided about them.

use cognitive_contract::review::{Review, ReviewDecision, ReviewEntry, ReviewFilter, ReviewPage, Verdict};
use rusqlite::{Connection, OptionalExtension, Row, named_params};
use serde_json::Value;

use crate::store::Store;
use crate::time;

/// The most entries of a page, whatever is asked for.
const MOST: usize = 1_000;
/// How many decided entries are taken in one go; between two goes others may use the connection.
const PAGE: i64 = 64;

/// What every question reads, in the order in which [`light`] takes it.
const COLUMNS: &str = "reviews.id, reviews.at, run_id, trace_id, key, user, tenant, reviews.module, version, reviews.model,
    reviews.ok, code, risk, reviews.confidence, calibrated, explain, rule, verdict, reason, decisions.by, decisions.at, data";
const FROM: &str = "reviews LEFT JOIN decisions ON decisions.review = reviews.id";

/// An entry without input and envelope.
fn light(row: &Row<'_>) -> rusqlite::Result<Review> {
    let verdict = row.get::<_, Option<String>>(17)?.as_deref().and_then(Verdict::parse);
    let at = row.get::<_, Option<String>>(20)?.unwrap_or_default();
    let (reason, by) = (row.get::<_, Option<String>>(18)?.unwrap_or_default(), row.get(19)?);
    let data = row.get::<_, Option<String>>(21)?.map(value);
    // The members that an envelope would give are columns here.
    let entry = ReviewEntry {
        at: time::read(&row.get::<_, String>(1)?),
        run_id: row.get(2)?,
        trace_id: row.get(3)?,
        key: row.get(4)?,
        user: row.get(5)?,
        tenant: row.get(6)?,
        module: row.get(7)?,
        version: row.get(8)?,
        model: row.get(9)?,
        rule: row.get(16)?,
        input: Value::Null,
        envelope: Value::Null,
    };
    let mut review = Review::of(row.get::<_, i64>(0)?.to_string(), row.get(1)?, &entry);
    review.ok = row.get(10)?;
    review.code = row.get(11)?;
    review.risk = row.get(12)?;
    review.confidence = row.get(13)?;
    review.calibrated_confidence = row.get(14)?;
    review.explain = row.get(15)?;
    review.decision = verdict.map(|verdict| ReviewDecision::new(verdict, reason, by, at, data));
    (review.input, review.envelope) = (None, None);
    Ok(review)
}

/// Text that somebody made unreadable by hand is still shown.
fn value(text: String) -> Value {
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

fn heavy(row: &Row<'_>) -> rusqlite::Result<Review> {
    let mut review = light(row)?;
    review.input = row.get::<_, Option<String>>(22)?.map(value);
    review.envelope = row.get::<_, Option<String>>(23)?.map(value);
    Ok(review)
}

/// An entry with everything.
pub(super) fn whole(connection: &Connection, id: i64) -> rusqlite::Result<Option<Review>> {
    let sql = format!("SELECT {COLUMNS}, input, envelope FROM {FROM} WHERE reviews.id = ?1");
    connection.prepare_cached(&sql)?.query_row([id], heavy).optional()
}

/// The entries that a filter means.
pub(super) fn page(store: &Store, filter: &ReviewFilter) -> Result<ReviewPage, String> {
    let limit = filter.limit.unwrap_or(MOST).clamp(1, MOST);
    let waits = filter.open == Some(true);
    let (beyond, order) = if waits { (">", "") } else { ("<", "DESC") };
    let cursor = match &filter.cursor {
        None => None,
        Some(text) => Some(text.parse::<i64>().map_err(|_| format!("no such cursor: `{text}`"))?),
    };
    let sql = format!(
        "SELECT {COLUMNS} FROM {FROM} WHERE (:open IS NULL OR is_open = :open)
            AND (:module IS NULL OR reviews.module = :module) AND (:cursor IS NULL OR reviews.id {beyond} :cursor)
         ORDER BY reviews.id {order} LIMIT :limit"
    );
    let count = "SELECT count(*) FROM reviews WHERE is_open = 1 AND (?1 IS NULL OR module = ?1)";
    let found = store.with(|connection| {
        let one_more = i64::try_from(limit + 1).unwrap_or(i64::MAX);
        let values = named_params! {
            ":open": filter.open, ":module": filter.module, ":cursor": cursor, ":limit": one_more,
        };
        let rows: Vec<Review> =
            connection.prepare_cached(&sql)?.query_map(values, light)?.collect::<rusqlite::Result<_>>()?;
        let open: i64 = connection.prepare_cached(count)?.query_row([&filter.module], |row| row.get(0))?;
        Ok((rows, u64::try_from(open).unwrap_or(0)))
    });
    let (mut reviews, open) = found.map_err(|error| error.to_string())?;
    let has_more = reviews.len() > limit;
    reviews.truncate(limit);
    let next = reviews.last().filter(|_| has_more).map(|last| last.id.clone());
    Ok(ReviewPage { reviews, open, next })
}

/// Some decided entries with everything, in the order of their decisions, each with its place in it.
pub(super) fn decided_after(
    connection: &Connection,
    after: i64,
    module: Option<&str>,
) -> rusqlite::Result<Vec<(i64, Review)>> {
    let sql = format!(
        "SELECT {COLUMNS}, input, envelope, decisions.seq FROM decisions JOIN reviews ON reviews.id = decisions.review
         WHERE decisions.seq > ?1 AND (?2 IS NULL OR decisions.module = ?2) ORDER BY decisions.seq LIMIT ?3"
    );
    let read = |row: &Row<'_>| Ok((row.get(24)?, heavy(row)?));
    connection.prepare_cached(&sql)?.query_map((after, module, PAGE), read)?.collect()
}
