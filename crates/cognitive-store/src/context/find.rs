//! Entries as they come back. Every question names its owner; there is none about all owners.

use cognitive_contract::context::{ContextEntry, ContextFilter, ContextScope, Key, Owner, Ttl};
use rusqlite::{Connection, OptionalExtension, Row, named_params};
use serde_json::Value;

use crate::time;

/// The columns of an entry, in the order in which [`read`] takes them.
const COLUMNS: &str = "kind, key, session, input_hash, module, ttl, created, value";

/// What belongs to an owner and may still be used.
const OWN: &str = "tenant = :tenant AND user = :user AND (ends IS NULL OR ends > :now)";

/// A question about the entries of an owner.
pub(super) struct EntryQuery<'a> {
    pub(super) owner: &'a Owner,
    pub(super) filter: ContextFilter<'a>,
    pub(super) now: &'a str,
}

pub(super) fn one(
    connection: &Connection,
    owner: &Owner,
    kind: &str,
    key: &str,
    now: &str,
) -> rusqlite::Result<Option<ContextEntry>> {
    let sql = format!("SELECT {COLUMNS} FROM context WHERE {OWN} AND kind = :kind AND key = :key");
    let values = named_params! {
        ":tenant": owner.tenant(), ":user": owner.name(), ":now": now, ":kind": kind, ":key": key,
    };
    connection.prepare_cached(&sql)?.query_row(values, read).optional()
}

/// All that are meant, the newest first.
pub(super) fn all(connection: &Connection, bound: &EntryQuery<'_>) -> rusqlite::Result<Vec<ContextEntry>> {
    // A text for each kind of question, so that each finds its index. What is not named is NULL.
    // The plus keeps the order from choosing the index.
    let kind = if bound.filter.kind.is_some() { "kind = :kind" } else { ":kind IS NULL" };
    let seen = match bound.filter.from {
        Some(_) => {
            "(session IS NULL OR session = :session) AND (input_hash IS NULL OR input_hash = :input_hash)"
        }
        None => ":session IS NULL AND :input_hash IS NULL",
    };
    let sql = format!("SELECT {COLUMNS} FROM context WHERE {OWN} AND {kind} AND {seen} ORDER BY +id DESC");
    let EntryQuery { owner, filter, now } = bound;
    let ContextScope { session, input_hash } = filter.from.unwrap_or_default();
    let values = named_params! {
        ":tenant": owner.tenant(),
        ":user": owner.name(),
        ":now": now,
        ":kind": filter.kind,
        ":session": session,
        ":input_hash": input_hash,
    };
    connection.prepare_cached(&sql)?.query_map(values, read)?.collect()
}

fn read(row: &Row<'_>) -> rusqlite::Result<ContextEntry> {
    let key = Key { text: row.get(1)?, session: row.get(2)?, input_hash: row.get(3)? };
    let kind: String = row.get(0)?;
    let module: String = row.get(4)?;
    // A number that somebody wrote by hand and that means nothing ends the entry.
    let ttl = Ttl::parse(row.get(5)?).unwrap_or(Ttl::Request);
    let created = time::read(row.get_ref(6)?.as_str()?);
    let text: String = row.get(7)?;
    let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
    Ok(ContextEntry::new(&kind, key, value, ttl, created).of_module(&module))
}
