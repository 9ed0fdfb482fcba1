//! Queries on records. One SQL statement serves all filters: an unset filter is NULL and matches everything.

use std::ops::ControlFlow;
use std::time::SystemTime;

use super::row::{COLUMNS, Row};
use crate::error::{Problem, StoreError};
use crate::sql::{SqlSession, SqlValue, all, first, values};
use crate::store::Store;
use crate::time;

/// A filter for records. The default matches all of them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Filter {
    /// Only this event, such as `run`.
    pub event: Option<String>,
    /// Only runs: each by its end record, or by its first call if it has none.
    pub runs: bool,
    /// Only records of callers with the key of this name.
    pub key: Option<String>,
    /// Only records of this user.
    pub user: Option<String>,
    /// Only records of this tenant.
    pub tenant: Option<String>,
    /// Only this module.
    pub module: Option<String>,
    /// Only this model: `provider/model`.
    pub model: Option<String>,
    /// Only this risk.
    pub risk: Option<String>,
    /// Only records with at least this confidence.
    pub min_confidence: Option<f64>,
    /// Only records with at most this confidence.
    pub max_confidence: Option<f64>,
    /// Only failures with this code.
    pub code: Option<String>,
    /// Only successes, or only failures.
    pub ok: Option<bool>,
    /// Only records at or after this time.
    pub since: Option<SystemTime>,
    /// Only records before this time.
    pub until: Option<SystemTime>,
    /// Only records older than the one with this id.
    pub before: Option<i64>,
    /// Only this many of the newest records.
    pub limit: Option<usize>,
}

/// The condition of a filter. Its parameters are those of [`SqlFilter::values`]; the last one is the limit.
pub(crate) const WHERE: &str = "(event = ?1 OR ?1 IS NULL) AND (module = ?6 OR ?6 IS NULL)
    AND (code = ?7 OR ?7 IS NULL) AND (ok = ?8 OR ?8 IS NULL) AND (ts >= ?9 OR ?9 IS NULL)
    AND (ts < ?10 OR ?10 IS NULL) AND (id < ?11 OR ?11 IS NULL)
    AND (model = ?12 OR ?12 IS NULL) AND (risk = ?13 OR ?13 IS NULL)
    AND (confidence >= ?14 OR ?14 IS NULL) AND (confidence <= ?15 OR ?15 IS NULL)
    AND (key = ?3 OR ?3 IS NULL) AND (\"user\" = ?4 OR ?4 IS NULL) AND (tenant = ?5 OR ?5 IS NULL)
    AND (?2 = 0 OR event = 'run' OR (event = 'call' AND NOT EXISTS (SELECT 1 FROM audit AS other
        WHERE other.run_id = audit.run_id AND (other.event = 'run' OR (other.event = 'call' AND other.id < audit.id)))))";

/// A filter converted to SQL values.
pub(crate) struct SqlFilter<'a> {
    filter: &'a Filter,
    since: Option<String>,
    until: Option<String>,
    limit: i64,
}

impl<'a> SqlFilter<'a> {
    pub(crate) fn new(filter: &'a Filter) -> Self {
        let limit = filter.limit.map_or(i64::MAX, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
        Self { filter, since: filter.since.map(time::text), until: filter.until.map(time::text), limit }
    }

    /// Returns the values for [`WHERE`] and the limit.
    pub(crate) fn values(&self) -> [SqlValue; 16] {
        let filter = self.filter;
        values![
            filter.event.as_deref(),
            filter.runs,
            filter.key.as_deref(),
            filter.user.as_deref(),
            filter.tenant.as_deref(),
            filter.module.as_deref(),
            filter.code.as_deref(),
            filter.ok,
            self.since.as_deref(),
            self.until.as_deref(),
            filter.before,
            filter.model.as_deref(),
            filter.risk.as_deref(),
            filter.min_confidence,
            filter.max_confidence,
            self.limit,
        ]
    }
}

/// The number of rows read at once; between two pages, other threads can use the connection.
const PAGE: i64 = 256;

impl Store {
    /// Returns the matching records, newest first.
    pub fn list(&self, filter: &Filter) -> Result<Vec<Row>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM audit WHERE {WHERE} ORDER BY id DESC LIMIT ?16");
        let bound = SqlFilter::new(filter);
        self.look(|session| all(session, &sql, &bound.values(), Row::read))
    }

    /// Returns the records whose trace id starts with `prefix`, oldest first, at most 1,000.
    pub fn find(&self, prefix: &str) -> Result<Vec<Row>, StoreError> {
        // A range query uses the index, unlike `LIKE`. No character sorts after `char::MAX`.
        let sql = format!(
            "SELECT {COLUMNS} FROM audit WHERE trace_id >= ?1 AND trace_id < ?2 ORDER BY id LIMIT 1000"
        );
        let end = format!("{prefix}{}", char::MAX);
        self.look(|session| all(session, &sql, &values![prefix, &end], Row::read))
    }

    /// Passes the matching records to `take` one by one, oldest first, until it breaks. Needs little memory and
    /// blocks no other reader or writer. Records added in the meantime are left out.
    pub fn export(
        &self,
        filter: &Filter,
        take: &mut dyn FnMut(Row) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let Some((mut next, last)) = self.look(|session| range(session, filter))? else {
            return Ok(());
        };
        loop {
            let page = self.look(|session| page(session, filter, next, last))?;
            let Some(end) = page.last().map(|row| row.id) else { return Ok(()) };
            for row in page {
                if take(row).is_break() {
                    return Ok(());
                }
            }
            next = end.saturating_add(1);
        }
    }
}

/// Returns the ids of the first and the last matching record.
fn range(session: &mut dyn SqlSession, filter: &Filter) -> Result<Option<(i64, i64)>, Problem> {
    let sql = format!(
        "SELECT min(id), max(id) FROM (SELECT id FROM audit WHERE {WHERE} ORDER BY id DESC LIMIT ?16) AS meant"
    );
    let found = first(session, &sql, &SqlFilter::new(filter).values(), |row| {
        Ok(row.maybe_integer(0)?.zip(row.maybe_integer(1)?))
    });
    Ok(found?.flatten())
}

fn page(session: &mut dyn SqlSession, filter: &Filter, next: i64, last: i64) -> Result<Vec<Row>, Problem> {
    let sql =
        format!("SELECT {COLUMNS} FROM audit WHERE id BETWEEN ?17 AND ?18 AND {WHERE} ORDER BY id LIMIT ?16");
    // The limit of the filter is already applied in `next`.
    let bound = SqlFilter { limit: PAGE, ..SqlFilter::new(filter) };
    let mut values = bound.values().to_vec();
    values.extend(values![next, last]);
    all(session, &sql, &values, Row::read)
}
