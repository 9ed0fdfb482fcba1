//! Questions about records. One SQL text answers all of them; what is not asked for is NULL and matches everything.

use std::ops::ControlFlow;
use std::time::SystemTime;

use rusqlite::{Connection, ToSql};

use super::row::{COLUMNS, Row};
use crate::error::StoreError;
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

pub(crate) const WHERE: &str = "(:event IS NULL OR event = :event) AND (:module IS NULL OR module = :module)
    AND (:code IS NULL OR code = :code) AND (:ok IS NULL OR ok = :ok) AND (:since IS NULL OR ts >= :since)
    AND (:until IS NULL OR ts < :until) AND (:before IS NULL OR id < :before)
    AND (:model IS NULL OR model = :model) AND (:risk IS NULL OR risk = :risk)
    AND (:least IS NULL OR confidence >= :least) AND (:most IS NULL OR confidence <= :most)
    AND (:key IS NULL OR key = :key) AND (:user IS NULL OR user = :user) AND (:tenant IS NULL OR tenant = :tenant)
    AND (NOT :runs OR event = 'run' OR (event = 'call' AND NOT EXISTS (SELECT 1 FROM audit AS other
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
        // A negative limit is no limit.
        let limit = filter.limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
        Self { filter, since: filter.since.map(time::text), until: filter.until.map(time::text), limit }
    }

    /// The values for [`WHERE`] and a limit.
    pub(crate) fn values(&self) -> [(&'static str, &dyn ToSql); 16] {
        let filter = self.filter;
        [
            (":event", &filter.event),
            (":runs", &filter.runs),
            (":key", &filter.key),
            (":user", &filter.user),
            (":tenant", &filter.tenant),
            (":module", &filter.module),
            (":code", &filter.code),
            (":ok", &filter.ok),
            (":since", &self.since),
            (":until", &self.until),
            (":before", &filter.before),
            (":model", &filter.model),
            (":risk", &filter.risk),
            (":least", &filter.min_confidence),
            (":most", &filter.max_confidence),
            (":limit", &self.limit),
        ]
    }
}

/// How many rows are taken in one go; between two goes others may use the connection.
const PAGE: i64 = 256;

impl Store {
    /// The records that the filter means, the newest first.
    pub fn list(&self, filter: &Filter) -> Result<Vec<Row>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM audit WHERE {WHERE} ORDER BY id DESC LIMIT :limit");
        let bound = SqlFilter::of(filter);
        self.with(|connection| {
            connection.prepare(&sql)?.query_map(bound.values().as_slice(), Row::read)?.collect()
        })
    }

    /// The records whose trace id begins with `prefix`, the oldest first, at most 1,000.
    pub fn find(&self, prefix: &str) -> Result<Vec<Row>, StoreError> {
        // A range is found in the index, as `LIKE` would not be; no character comes after the last one.
        let sql = format!(
            "SELECT {COLUMNS} FROM audit WHERE trace_id >= ?1 AND trace_id < ?2 ORDER BY id LIMIT 1000"
        );
        let end = format!("{prefix}{}", char::MAX);
        self.with(|connection| connection.prepare(&sql)?.query_map((prefix, &end), Row::read)?.collect())
    }

    /// Hands over the records that the filter means one by one, the oldest first, until `take` breaks off. Needs little
    /// memory and blocks nobody: others may read and write meanwhile. What they add is left out.
    pub fn export(
        &self,
        filter: &Filter,
        take: &mut dyn FnMut(Row) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let Some((mut next, last)) = self.with(|connection| range(connection, filter))? else {
            return Ok(());
        };
        loop {
            let page = self.with(|connection| page(connection, filter, next, last))?;
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
fn range(connection: &Connection, filter: &Filter) -> rusqlite::Result<Option<(i64, i64)>> {
    let sql = format!(
        "SELECT min(id), max(id) FROM (SELECT id FROM audit WHERE {WHERE} ORDER BY id DESC LIMIT :limit)"
    );
    let range = |row: &rusqlite::Row<'_>| Ok(row.get::<_, Option<i64>>(0)?.zip(row.get(1)?));
    connection.query_row(&sql, SqlFilter::of(filter).values().as_slice(), range)
}

fn page(connection: &Connection, filter: &Filter, next: i64, last: i64) -> rusqlite::Result<Vec<Row>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM audit WHERE id BETWEEN :next AND :last AND {WHERE} ORDER BY id LIMIT :limit"
    );
    // The limit of the filter has already gone into `next`.
    let bound = SqlFilter { limit: PAGE, ..SqlFilter::of(filter) };
    let mut values = bound.values().to_vec();
    values.extend([(":next", &next as &dyn ToSql), (":last", &last)]);
    connection.prepare_cached(&sql)?.query_map(values.as_slice(), Row::read)?.collect()
}
