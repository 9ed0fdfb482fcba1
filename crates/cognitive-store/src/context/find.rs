//! Reads context entries. Every query names its owner; no query spans owners.

use cognitive_contract::context::{ContextEntry, ContextFilter, ContextScope, Key, Owner, Ttl};
use serde_json::Value;

use crate::error::Problem;
use crate::sql::{SqlRow, SqlSession, SqlValue, all, first, values};
use crate::time;

/// The columns of an entry, in the order in which [`read`] reads them.
const COLUMNS: &str = "kind, key, session, input_hash, module, ttl, created, value, pattern";

/// The condition for live entries of an owner.
const OWN: &str = "tenant = ?1 AND \"user\" = ?2 AND (ends IS NULL OR ends > ?3)";

/// A query for entries of an owner.
pub(super) struct EntryQuery<'a> {
    pub(super) owner: &'a Owner,
    pub(super) filter: ContextFilter<'a>,
    pub(super) now: &'a str,
}

pub(super) fn find_entry(
    session: &mut dyn SqlSession,
    owner: &Owner,
    kind: &str,
    key: &str,
    now: &str,
) -> Result<Option<ContextEntry>, Problem> {
    let sql = format!("SELECT {COLUMNS} FROM context WHERE {OWN} AND kind = ?4 AND key = ?5");
    first(session, &sql, &values![owner.tenant(), owner.name(), now, kind, key], read)
}

/// Returns all matching entries, newest first.
pub(super) fn find_for_owner(
    session: &mut dyn SqlSession,
    asked: &EntryQuery<'_>,
) -> Result<Vec<ContextEntry>, Problem> {
    let EntryQuery { owner, filter, now } = asked;
    // A separate statement for each kind of query, so that each uses its index. The unary plus prevents `ORDER BY`
    // from choosing the index.
    let mut sql = format!("SELECT {COLUMNS} FROM context WHERE {OWN}");
    let mut values: Vec<SqlValue> = values![owner.tenant(), owner.name(), *now].to_vec();
    if let Some(kind) = filter.kind {
        values.push(kind.into());
        sql.push_str(" AND kind = ?4");
    }
    if let Some(ContextScope { session, input_hash }) = filter.from {
        for (column, seen) in [("session", session), ("input_hash", input_hash)] {
            sql = match seen {
                Some(seen) => {
                    values.push(seen.into());
                    format!("{sql} AND ({column} IS NULL OR {column} = ?{})", values.len())
                }
                None => format!("{sql} AND {column} IS NULL"),
            };
        }
    }
    sql.push_str(" ORDER BY +id DESC");
    all(session, &sql, &values, read)
}

fn read(row: &SqlRow) -> Result<ContextEntry, Problem> {
    let key = Key {
        text: row.text(1)?,
        session: row.maybe_text(2)?,
        input_hash: row.maybe_text(3)?,
        pattern: row.maybe_text(8)?,
    };
    let (kind, module) = (row.str(0)?, row.str(4)?);
    // An invalid number, from manual edits, ends the entry.
    let ttl = Ttl::parse(row.integer(5)?).unwrap_or(Ttl::Request);
    let created = time::read(row.str(6)?);
    let text = row.text(7)?;
    let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
    Ok(ContextEntry::new(kind, key, value, ttl, created).with_module(module))
}
