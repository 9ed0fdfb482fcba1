//! Compares the tables beside the audit with the chains of their changes. Changes nothing.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::SystemTime;

use cognitive_contract::text::hex;
use cognitive_ports::spending::day_of;

use super::{
    CARRIED, CHANGE_COLUMNS, COLUMNS_AT, DELETED, NEW, PURGED, ProtectedTable, REPLACED, RowChain, RowChange,
    hash_of, purged_before,
};
use crate::audit::{Breach, Head, Verification};
use crate::copy::columns_of;
use crate::error::Problem;
use crate::spending::DAYS_KEPT;
use crate::sql::{SqlSession, all, first, number, to_signed, values};
use crate::time;

/// The hashes of changes by table and position.
pub(crate) type KnownChanges = BTreeMap<(String, i64), String>;

/// Returns the ends of the chains.
pub(crate) fn heads(session: &mut dyn SqlSession) -> Result<Vec<Head>, Problem> {
    let mut heads = Vec::new();
    for table in ProtectedTable::ALL {
        let Some(chain) = RowChain::find(session, table)? else { continue };
        heads.push(Head {
            id: format!("{}.{}", table.name(), chain.seq),
            hash: hex(&chain.hash),
            owner: String::new(),
            kind: table.name().to_owned(),
        });
    }
    Ok(heads)
}

/// Verifies all tables. Returns the hashes of the changes that `wanted` names, and the number of changes that each
/// table has dropped.
pub(crate) fn verify(
    session: &mut dyn SqlSession,
    wanted: &[(String, i64)],
    found: &mut Verification,
) -> Result<(KnownChanges, BTreeMap<String, i64>), Problem> {
    let (mut known, mut dropped) = (KnownChanges::new(), BTreeMap::new());
    for table in ProtectedTable::ALL {
        let name = table.name();
        let Some(chain) = RowChain::find(session, table)? else {
            let rows = number(session, &format!("SELECT count(*) FROM {name}"), &[])?;
            found.rows_before_chains += u64::try_from(rows).unwrap_or(0);
            let orphans = "SELECT EXISTS (SELECT 1 FROM row_changes WHERE name = ?1)";
            if number(session, orphans, &values![name])? != 0 {
                found.add_breach(Breach::ChangesMissing { table: name, from: 0, to: 0 });
            }
            continue;
        };
        dropped.insert(name.to_owned(), chain.dropped);
        walk(session, &chain, wanted, &mut known, found)?;
        compare(session, &chain, found)?;
        rules(session, table, found)?;
    }
    Ok((known, dropped))
}

/// Walks along a chain and recomputes every hash.
fn walk(
    session: &mut dyn SqlSession,
    chain: &RowChain,
    wanted: &[(String, i64)],
    known: &mut KnownChanges,
    found: &mut Verification,
) -> Result<(), Problem> {
    let table = chain.table.name();
    let (mut seq, mut hash, mut live, mut dropped) =
        (chain.dropped, chain.dropped_hash.clone(), None, chain.dropped);
    let sql = format!("SELECT {CHANGE_COLUMNS} FROM row_changes WHERE name = ?1 ORDER BY seq");
    session.for_each(&sql, &values![table], &mut |row| {
        let change = RowChange::read(row)?;
        if change.seq > seq + 1 {
            found.add_breach(Breach::ChangesMissing { table, from: seq + 1, to: change.seq - 1 });
        }
        let step = match change.kind.as_str() {
            NEW => Some(1),
            DELETED => Some(-1),
            REPLACED | CARRIED => Some(0),
            _ => None,
        };
        let counts = live.is_none_or(|live: i64| match step {
            Some(step) => live + step == change.live,
            None => change.live <= live,
        });
        let follows = change.seq > seq && (change.before == hash || change.seq > seq + 1);
        if !follows || !counts || change.compute_hash(chain.table).as_slice() != change.hash {
            found.add_breach(Breach::ChangeBroken { table, seq: change.seq });
        }
        if wanted.iter().any(|(name, seq)| name == table && *seq == change.seq) {
            known.insert((table.to_owned(), change.seq), hex(&change.hash));
        }
        (seq, hash, live, dropped) = (change.seq, change.hash, Some(change.live), change.dropped);
        Ok(ControlFlow::Continue(()))
    })?;
    if seq < chain.seq {
        found.add_breach(Breach::ChangesMissing { table, from: seq + 1, to: chain.seq });
    } else if seq > chain.seq || hash != chain.hash || live.unwrap_or(0) != chain.live {
        found.add_breach(Breach::ChangeBroken { table, seq });
    }
    // Every drop comes with a newer change, which counts it.
    if dropped != chain.dropped || (chain.seq > 0 && live.is_none()) {
        found.add_breach(Breach::ChangesMissing { table, from: 1, to: chain.dropped });
    }
    Ok(())
}

/// Compares the rows of a table with their last changes.
fn compare(session: &mut dyn SqlSession, chain: &RowChain, found: &mut Verification) -> Result<(), Problem> {
    let (table, name) = (chain.table, chain.table.name());
    let columns = columns_of(name).split(", ").count();
    let sql = table.rows().replacen(
        " FROM ",
        &format!(
            ", (SELECT c.state FROM row_changes c WHERE c.name = '{name}' AND c.key = CAST(t.{} AS TEXT)
                ORDER BY c.seq DESC LIMIT 1) FROM ",
            table.id()
        ),
        1,
    );
    session.for_each(&sql, &[], &mut |row| {
        found.rows += 1;
        let key = || super::RowState::read(table, row).map(|row| row.key);
        match row.maybe_blob(COLUMNS_AT + columns)? {
            None => found.add_breach(Breach::RowAdded { table: name, key: key()? }),
            Some(state) if state != hash_of(table, row, columns) => {
                found.add_breach(Breach::RowChanged { table: name, key: key()? });
            }
            Some(_) => {}
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let id = if table == ProtectedTable::Spending { "c.key" } else { "CAST(c.key AS BIGINT)" };
    let last =
        "FROM row_changes c WHERE c.name = ?1 AND c.kind IN ('n', 'r', 'c') AND c.part >= ?2 AND NOT EXISTS
            (SELECT 1 FROM row_changes l WHERE l.name = c.name AND l.key = c.key AND l.seq > c.seq)";
    let missing = format!(
        "SELECT c.key {last} AND (c.ends IS NULL OR c.ends > ?3)
            AND NOT EXISTS (SELECT 1 FROM {name} t WHERE t.{} = {id}) ORDER BY c.seq LIMIT 101",
        table.id()
    );
    let (purged, now) = (purged_before(session, table)?, time::text(SystemTime::now()));
    for key in all(session, &missing, &values![name, purged, &now], |row| row.text(0))? {
        found.add_breach(Breach::RowMissing { table: name, key });
    }
    let live = number(session, &format!("SELECT count(*) {last}"), &values![name, purged])?;
    if live != chain.live {
        found.add_breach(Breach::RowsMiscounted { table: name, said: chain.live, found: live });
    }
    Ok(())
}

/// Finds changes that this program never makes: it changes no settled spending and no decision, and deletes only
/// context and old days.
fn rules(
    session: &mut dyn SqlSession,
    table: ProtectedTable,
    found: &mut Verification,
) -> Result<(), Problem> {
    let name = table.name();
    let mut forbidden = |session: &mut dyn SqlSession, sql: &str, more: Option<i64>| {
        let mut parameters = values![name].to_vec();
        parameters.extend(more.map(Into::into));
        for key in all(session, sql, &parameters, |row| row.text(0))? {
            found.add_breach(Breach::ChangeForbidden { table: name, key });
        }
        Ok::<(), Problem>(())
    };
    let changed = concat!(
        "SELECT DISTINCT b.key FROM row_changes a JOIN row_changes b ",
        "ON b.name = a.name AND b.key = a.key AND b.seq > a.seq ",
        "WHERE a.name = ?1 AND a.is_final = 1 AND (b.state IS NULL OR b.state <> a.state) ",
        "ORDER BY b.key LIMIT 101",
    );
    forbidden(session, changed, None)?;
    if table != ProtectedTable::Context {
        let deleted = "SELECT key FROM row_changes WHERE name = ?1 AND kind = 'd' ORDER BY seq LIMIT 101";
        forbidden(session, deleted, None)?;
    }
    if table != ProtectedTable::Spending {
        return forbidden(
            session,
            "SELECT key FROM row_changes WHERE name = ?1 AND kind = 'p' ORDER BY seq LIMIT 101",
            None,
        );
    }
    // A day is purged only when a much later one has begun. A row of the future would allow to purge the present.
    let newest = "SELECT max(part) FROM row_changes WHERE name = ?1 AND kind <> ?2";
    let newest = first(session, newest, &values![name, PURGED], |row| row.maybe_integer(0))?.flatten();
    let bound = newest.unwrap_or(0).saturating_sub(to_signed(DAYS_KEPT));
    let early = "SELECT key FROM row_changes WHERE name = ?1 AND kind = 'p' AND part > ?2 LIMIT 101";
    forbidden(session, early, Some(bound))?;
    let tomorrow = to_signed(day_of(SystemTime::now())).saturating_add(1);
    let future = "SELECT key FROM row_changes WHERE name = ?1 AND kind <> 'p' AND part > ?2 LIMIT 101";
    forbidden(session, future, Some(tomorrow))
}
