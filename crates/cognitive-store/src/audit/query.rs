//! Questions about records. One SQL text answers all of them; what is not asked for is NULL and matches everything.

use std::ops::ControlFlow;
use std::time::SystemTime;

use super::row::{COLUMNS, Row};
use crate::error::{Problem, StoreError};
use crate::sql::{SqlSession, SqlValue, all, first, values};
use crate::store::Store;
use crate::time;

/// Which records are meant. The default means all of them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Filter {
    /// Only this kind of event, such as `run`.
    pub event: Option<String>,
    /// Only runs: each by its record, and where it has none by its first call.
    pub runs: bool,
    /// Only records of who showed the key of this name.
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
    /// Only what was at least so sure.
    pub min_confidence: Option<f64>,
    /// Only what was at most so sure.
    pub max_confidence: Option<f64>,
    /// Only failures with this code.
    pub code: Option<String>,
    /// Only successes, or only failures.
    pub ok: Option<bool>,
    /// Only records of this time and later.
    pub since: Option<SystemTime>,
    /// Only records of before this time.
    pub until: Option<SystemTime>,
    /// Only records that are older than the one with this id.
    pub before: Option<i64>,
    /// Only the newest so many of them.
    pub limit: Option<usize>,
}

/// The places are those of [`SqlFilter::values`]; the limit is the last of them.
pub(crate) const WHERE: &str = "(event = ?1 OR ?1 IS NULL) AND (module = ?6 OR ?6 IS NULL)
    AND (code = ?7 OR ?7 IS NULL) AND (ok = ?8 OR ?8 IS NULL) AND (ts >= ?9 OR ?9 IS NULL)
    AND (ts < ?10 OR ?10 IS NULL) AND (id < ?11 OR ?11 IS NULL)
    AND (model = ?12 OR ?12 IS NULL) AND (risk = ?13 OR ?13 IS NULL)
    AND (confidence >= ?14 OR ?14 IS NULL) AND (confidence <= ?15 OR ?15 IS NULL)
    AND (key = ?3 OR ?3 IS NULL) AND (\"user\" = ?4 OR ?4 IS NULL) AND (tenant = ?5 OR ?5 IS NULL)
    AND (?2 = 0 OR event = 'run' OR (event = 'call' AND NOT EXISTS (SELECT 1 FROM audit AS other
        WHERE other.run_id = audit.run_id AND (other.event = 'run' OR (other.event = 'call' AND other.id < audit.id)))))";

/// A filter in the words of the database.
pub(crate) struct SqlFilter<'a> {
    filter: &'a Filter,
    since: Option<String>,
    until: Option<String>,
    limit: i64,
}

impl<'a> SqlFilter<'a> {
    pub(crate) fn of(filter: &'a Filter) -> Self {
        let limit = filter.limit.map_or(i64::MAX, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
        Self { filter, since: filter.since.map(time::text), until: filter.until.map(time::text), limit }
    }

    /// The values for [`WHERE`] and a limit.
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

/// How many rows are taken in one go; between two goes others may use the connection.
const PAGE: i64 = 256;

impl Store {
    /// The records that the filter means, the newest first.
    pub fn list(&self, filter: &Filter) -> Result<Vec<Row>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM audit WHERE {WHERE} ORDER BY id DESC LIMIT ?16");
        let bound = SqlFilter::of(filter);
        self.look(|session| all(session, &sql, &bound.values(), Row::read))
    }

    /// The records whose trace id begins with `prefix`, the oldest first, at most 1,000.
    pub fn find(&self, prefix: &str) -> Result<Vec<Row>, StoreError> {
        // A range is found in the index, as `LIKE` would not be; no character comes after the last one.
        let sql = format!(
            "SELECT {COLUMNS} FROM audit WHERE trace_id >= ?1 AND trace_id < ?2 ORDER BY id LIMIT 1000"
        );
        let end = format!("{prefix}{}", char::MAX);
        self.look(|session| all(session, &sql, &values![prefix, &end], Row::read))
    }

    /// Hands over the records that the filter means one by one, the oldest first, until `take` breaks off. Needs little
    /// memory and blocks nobody: others may read and write meanwhile. What they add is left out.
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

/// The ids of the first and the last record that the filter means.
fn range(session: &mut dyn SqlSession, filter: &Filter) -> Result<Option<(i64, i64)>, Problem> {
    let sql = format!(
        "SELECT min(id), max(id) FROM (SELECT id FROM audit WHERE {WHERE} ORDER BY id DESC LIMIT ?16) AS meant"
    );
    let found = first(session, &sql, &SqlFilter::of(filter).values(), |row| {
        Ok(row.maybe_integer(0)?.zip(row.maybe_integer(1)?))
    });
    Ok(found?.flatten())
}

fn page(session: &mut dyn SqlSession, filter: &Filter, next: i64, last: i64) -> Result<Vec<Row>, Problem> {
    let sql =
        format!("SELECT {COLUMNS} FROM audit WHERE id BETWEEN ?17 AND ?18 AND {WHERE} ORDER BY id LIMIT ?16");
    // The limit of the filter has already gone into `next`.
    let bound = SqlFilter { limit: PAGE, ..SqlFilter::of(filter) };
    let mut values = bound.values().to_vec();
    values.extend(values![next, last]);
    all(session, &sql, &values, Row::read)
}
