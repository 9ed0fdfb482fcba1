//! Verifies that the audit and the tables beside it are unchanged. Recomputes every hash, walks every chain from where retention left it to its
//! last record, and compares the ends with anchors noted elsewhere. Changes nothing.
//!
//! A writer of the file can also replace a whole chain. Only an [`Anchor`] stored elsewhere reveals that.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;
use std::str::FromStr;

use cognitive_contract::text::hex;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::chain::{Chain, link};
use super::entry::FACTS;
use crate::error::{Problem, StoreError};
use crate::row_changes::{self, ProtectedTable};
use crate::sql::{SqlRow, SqlSession, SqlValue, all, number, values};
use crate::store::Store;

/// The most breaches that are listed; further ones are only counted. One change breaks all later records of its
/// chain.
const TOLD: usize = 100;

/// The result of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Verification {
    /// The number of stored records in chains.
    pub records: u64,
    /// The number of chains.
    pub chains: u64,
    /// The number of records from before chains existed, which cannot be verified.
    pub before_chains: u64,
    /// The number of records that retention dropped.
    pub dropped: u64,
    /// The number of payloads that retention dropped.
    pub dropped_payloads: u64,
    /// The number of rows of spending, reviews, decisions and context.
    pub rows: u64,
    /// The number of such rows in tables without a chain, which cannot be verified.
    pub rows_before_chains: u64,
    /// The first hundred breaches.
    pub breaches: Vec<Breach>,
    /// The number of further breaches.
    pub more: u64,
}

impl Verification {
    /// Returns whether there are no breaches.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.breaches.is_empty()
    }

    pub(crate) fn add_breach(&mut self, breach: Breach) {
        if self.breaches.len() < TOLD {
            self.breaches.push(breach);
        } else {
            self.more += 1;
        }
    }
}

/// An inconsistency in the audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Breach {
    /// The content of a record has changed.
    Changed {
        /// Its id.
        id: i64,
        /// Its chain.
        chain: i64,
        /// Its position in the chain.
        seq: i64,
    },
    /// The payload of a record has changed.
    PayloadChanged {
        /// The id of the record.
        id: i64,
    },
    /// Records of a chain are missing, and retention did not drop them.
    Missing {
        /// The chain.
        chain: i64,
        /// The first missing record.
        from: i64,
        /// The last missing record.
        to: i64,
    },
    /// A record does not follow the one that it names: records were replaced, inserted or reordered.
    Misplaced {
        /// Its id.
        id: i64,
        /// Its chain.
        chain: i64,
        /// Its position in the chain.
        seq: i64,
    },
    /// The chain's row counts a different number of dropped records than its newest record.
    DroppedByHand {
        /// The chain.
        chain: i64,
        /// The number in the chain's row.
        said: i64,
        /// The number in the newest record.
        known: i64,
    },
    /// A chain that has records but no row.
    UnknownChain {
        /// The chain.
        chain: i64,
    },
    /// The chains together count more or fewer records than were written.
    Miscounted {
        /// The number according to the chains.
        said: i64,
        /// The number of written records.
        written: i64,
    },
    /// A row of a table beside the audit has changed.
    RowChanged {
        /// The table.
        table: &'static str,
        /// The id of the row.
        key: String,
    },
    /// A row of a table beside the audit was deleted.
    RowMissing {
        /// The table.
        table: &'static str,
        /// The id of the row.
        key: String,
    },
    /// A row of a table beside the audit was inserted by another program.
    RowAdded {
        /// The table.
        table: &'static str,
        /// The id of the row.
        key: String,
    },
    /// A row was changed or deleted that this program never changes or deletes.
    ChangeForbidden {
        /// The table.
        table: &'static str,
        /// The id of the row.
        key: String,
    },
    /// A change in the chain of a table was replaced, inserted or reordered.
    ChangeBroken {
        /// The table.
        table: &'static str,
        /// Its position in the chain.
        seq: i64,
    },
    /// Changes in the chain of a table are missing.
    ChangesMissing {
        /// The table.
        table: &'static str,
        /// The first missing change.
        from: i64,
        /// The last missing change.
        to: i64,
    },
    /// The chain of a table describes more or fewer rows than it counts.
    RowsMiscounted {
        /// The table.
        table: &'static str,
        /// The number of rows according to the chain.
        said: i64,
        /// The number of rows that its changes describe.
        found: i64,
    },
    /// The record of the anchor is missing or has changed.
    AnchorBroken {
        /// The anchor.
        anchor: String,
    },
    /// Retention has dropped the record of the anchor, so the anchor proves nothing any more.
    AnchorDropped {
        /// The anchor.
        anchor: String,
    },
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed { id, chain, seq } => {
                write!(f, "record {id} ({chain}.{seq}) was changed")
            }
            Self::PayloadChanged { id } => write!(f, "the payload of record {id} was changed"),
            Self::Missing { chain, from, to } if from == to => write!(f, "record {chain}.{from} is missing"),
            Self::Missing { chain, from, to } => {
                write!(f, "records {chain}.{from} to {chain}.{to} are missing")
            }
            Self::Misplaced { id, chain, seq } => {
                write!(f, "record {id} ({chain}.{seq}) does not follow the one before it")
            }
            Self::DroppedByHand { chain, said, known } => {
                write!(
                    f,
                    "chain {chain} lists {said} dropped records, but its remaining records imply {known}"
                )
            }
            Self::UnknownChain { chain } => write!(f, "unknown chain: {chain}"),
            Self::Miscounted { said, written } => {
                write!(f, "{written} records were written, but the chains have {said}")
            }
            Self::RowChanged { table, key } => write!(f, "the row `{key}` of `{table}` was changed"),
            Self::RowMissing { table, key } => write!(f, "the row `{key}` of `{table}` is missing"),
            Self::RowAdded { table, key } => {
                write!(f, "the row `{key}` of `{table}` was inserted by another program")
            }
            Self::ChangeForbidden { table, key } => {
                write!(f, "the row `{key}` of `{table}` was changed or deleted, but it was final")
            }
            Self::ChangeBroken { table, seq } => {
                write!(f, "change {seq} of `{table}` was changed, or does not follow the one before it")
            }
            Self::ChangesMissing { table, from, to } => {
                write!(f, "changes {from} to {to} of `{table}` are missing")
            }
            Self::RowsMiscounted { table, said, found } => {
                write!(f, "the changes of `{table}` describe {found} rows, but its chain has {said}")
            }
            Self::AnchorBroken { anchor } => {
                write!(f, "the record of the anchor is missing or was changed: `{anchor}`")
            }
            Self::AnchorDropped { anchor } => {
                write!(f, "retention has dropped the record of the anchor: `{anchor}`")
            }
        }
    }
}

/// The end of a chain at some moment, to be stored where writers of the file cannot change it: `CHAIN.SEQ:HASH`. The
/// chain is the number of an audit chain, or the name of a table beside the audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchor {
    /// The number of an audit chain, or the name of another table.
    chain: String,
    seq: i64,
    hash: String,
}

impl FromStr for Anchor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let (place, hash) = text.trim().split_once([':', ' '])?;
            let (chain, seq) = place.split_once('.')?;
            let hash = hash.trim().to_ascii_lowercase();
            let whole = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
            let is_known =
                chain.parse::<i64>().is_ok() || ProtectedTable::ALL.iter().any(|table| table.name() == chain);
            let chain = chain.to_owned();
            (whole && is_known).then_some(Self { chain, seq: seq.parse().ok()?, hash })
        };
        read().ok_or_else(|| "an anchor is `CHAIN.SEQ:HASH`, as `cogn audit head` prints it".to_owned())
    }
}

impl fmt::Display for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}:{}", self.chain, self.seq, self.hash)
    }
}

/// The end of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Head {
    /// `CHAIN.SEQ`.
    pub id: String,
    /// The hash of its last record.
    pub hash: String,
    /// The owner of the chain.
    pub owner: String,
    /// `runs` or `details`, or the table of the chain.
    pub kind: String,
}

impl Store {
    /// Returns the ends of all chains.
    pub fn heads(&self) -> Result<Vec<Head>, StoreError> {
        self.look_at_once(heads_of)
    }

    /// Verifies the whole audit in one snapshot. Writers are not blocked.
    pub fn verify(&self, anchors: &[Anchor]) -> Result<Verification, StoreError> {
        self.look_at_once(|session| verify(session, anchors))
    }
}

/// Returns the ends of all chains.
pub(crate) fn heads_of(session: &mut dyn SqlSession) -> Result<Vec<Head>, Problem> {
    let head = |chain: Chain| Head {
        id: format!("{}.{}", chain.id, chain.seq),
        hash: hex(&chain.hash),
        owner: chain.owner,
        kind: chain.kind,
    };
    let tables = row_changes::verify::heads(session)?;
    Ok(Chain::all(session)?.into_iter().map(head).chain(tables).collect())
}

/// Verifies the whole audit as a session sees it.
pub(crate) fn verify_all(session: &mut dyn SqlSession) -> Result<Verification, Problem> {
    verify(session, &[])
}

fn verify(moment: &mut dyn SqlSession, anchors: &[Anchor]) -> Result<Verification, Problem> {
    let mut found = Verification::default();
    let chains = Chain::all(moment)?;
    found.before_chains = count(number(moment, "SELECT count(*) FROM audit WHERE chain IS NULL", &[])?);
    let mut known = BTreeMap::new();
    for chain in &chains {
        found.chains += 1;
        found.dropped += count(chain.dropped);
        found.dropped_payloads += count(chain.dropped_payloads);
        walk(moment, chain, anchors, &mut known, &mut found)?;
    }
    let strangers = "SELECT DISTINCT chain FROM audit WHERE chain IS NOT NULL
        AND chain NOT IN (SELECT id FROM audit_chains) ORDER BY chain LIMIT 100";
    for chain in all(moment, strangers, &[], |row| row.integer(0))? {
        found.add_breach(Breach::UnknownChain { chain });
    }
    balance(moment, &chains, &mut found)?;
    let wanted: Vec<_> = anchors.iter().map(|anchor| (anchor.chain.clone(), anchor.seq)).collect();
    let (changes, mut dropped) = row_changes::verify::verify(moment, &wanted, &mut found)?;
    known.extend(changes);
    dropped.extend(chains.iter().map(|chain| (chain.id.to_string(), chain.dropped - 1)));
    for anchor in anchors {
        judge(anchor, &dropped, &known, &mut found);
    }
    Ok(found)
}

fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Compares the counts. Ids have no gaps, so the newest id is the number of records ever written; a deleted chain
/// leaves a difference.
fn balance(moment: &mut dyn SqlSession, chains: &[Chain], found: &mut Verification) -> Result<(), Problem> {
    let began = number(moment, "SELECT coalesce(max(before_id), 0) FROM audit_began", &[])?;
    let newest = number(moment, "SELECT coalesce(max(id), 0) FROM audit", &[])?;
    let said = chains.iter().map(|chain| chain.seq).sum();
    let written = newest.saturating_sub(began);
    // Without records, there is no id to compare the chains with.
    if said != written && newest > 0 {
        found.add_breach(Breach::Miscounted { said, written });
    }
    Ok(())
}

/// The hashes that anchors refer to.
type AnchoredHashes = BTreeMap<(String, i64), String>;

fn walk(
    moment: &mut dyn SqlSession,
    chain: &Chain,
    anchors: &[Anchor],
    known: &mut AnchoredHashes,
    found: &mut Verification,
) -> Result<(), Problem> {
    let id = chain.id.to_string();
    let wanted: Vec<i64> =
        anchors.iter().filter(|anchor| anchor.chain == id).map(|anchor| anchor.seq).collect();
    if wanted.contains(&chain.dropped) {
        known.insert((id.clone(), chain.dropped), hex(&chain.dropped_hash));
    }
    let sql = format!(
        "SELECT id, seq, dropped, before, hash, payload, {} FROM audit WHERE chain = ?1 ORDER BY seq",
        FACTS.join(", ")
    );
    let (mut seq, mut hash, mut dropped) = (chain.dropped, chain.dropped_hash.clone(), None);
    moment.for_each(&sql, &values![chain.id], &mut |row| {
        found.records += 1;
        let record = ChainStep::read(row)?;
        if record.seq > seq + 1 {
            found.add_breach(Breach::Missing { chain: chain.id, from: seq + 1, to: record.seq - 1 });
        } else if record.before != hash || record.seq <= seq {
            found.add_breach(Breach::Misplaced { id: record.id, chain: chain.id, seq: record.seq });
        }
        if record.compute_hash(chain, row) != record.hash.as_slice() {
            found.add_breach(Breach::Changed { id: record.id, chain: chain.id, seq: record.seq });
        }
        if !payload_matches(row) {
            found.add_breach(Breach::PayloadChanged { id: record.id });
        }
        if wanted.contains(&record.seq) {
            known.insert((id.clone(), record.seq), hex(&record.hash));
        }
        (seq, hash, dropped) = (record.seq, record.hash, Some(record.dropped));
        Ok(ControlFlow::Continue(()))
    })?;
    if seq < chain.seq {
        found.add_breach(Breach::Missing { chain: chain.id, from: seq + 1, to: chain.seq });
    } else if hash != chain.hash || seq > chain.seq {
        let id = number(moment, "SELECT max(id) FROM audit WHERE chain = ?1", &values![chain.id]);
        found.add_breach(Breach::Misplaced { id: id.unwrap_or(0), chain: chain.id, seq });
    }
    // The newest record stores how many records were dropped before it, and every later drop comes with a newer
    // record.
    if let Some(known) = dropped.filter(|known| *known != chain.dropped && seq == chain.seq) {
        found.add_breach(Breach::DroppedByHand { chain: chain.id, said: chain.dropped, known });
    }
    Ok(())
}

/// One record during the walk along its chain.
struct ChainStep {
    id: i64,
    seq: i64,
    dropped: i64,
    before: Vec<u8>,
    hash: Vec<u8>,
}

/// The first column of the facts in the row of a step.
const FACTS_AT: usize = 6;

impl ChainStep {
    fn read(row: &SqlRow) -> Result<Self, Problem> {
        let blob = |column| row.maybe_blob(column).map(Option::unwrap_or_default);
        let number = |column| row.maybe_integer(column).map(Option::unwrap_or_default);
        Ok(Self {
            id: row.integer(0)?,
            seq: number(1)?,
            dropped: number(2)?,
            before: blob(3)?,
            hash: blob(4)?,
        })
    }

    /// Computes the hash that the record should have.
    fn compute_hash(&self, chain: &Chain, row: &SqlRow) -> [u8; 32] {
        let facts = (FACTS_AT..FACTS_AT + FACTS.len()).map(|column| row.value(column));
        let place = (chain.id, self.seq, self.dropped);
        link(self.id, &chain.owner, &chain.kind, place, &self.before, facts)
    }
}

/// Returns whether a payload matches its hash. A dropped payload is not a change.
fn payload_matches(row: &SqlRow) -> bool {
    let SqlValue::Text(payload) = row.value(FACTS_AT - 1) else { return true };
    let SqlValue::Blob(hash) = row.value(FACTS_AT + FACTS.len() - 1) else { return false };
    hash.as_slice() == Sha256::digest(payload.as_bytes()).as_slice()
}

/// Compares an anchor with the chain. `dropped` has the last position of each chain that is known no more.
fn judge(anchor: &Anchor, dropped: &BTreeMap<String, i64>, known: &AnchoredHashes, found: &mut Verification) {
    let is_gone = dropped.get(&anchor.chain).is_some_and(|dropped| anchor.seq <= *dropped);
    let hash = known.get(&(anchor.chain.clone(), anchor.seq));
    match () {
        () if hash.is_some_and(|hash| *hash == anchor.hash) => {}
        () if is_gone => found.add_breach(Breach::AnchorDropped { anchor: anchor.to_string() }),
        () => found.add_breach(Breach::AnchorBroken { anchor: anchor.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_anchor_is_read_as_it_is_written() {
        let text = format!("2.17:{}", "ab".repeat(32));
        let anchor: Anchor = text.parse().unwrap();
        assert_eq!((anchor.chain.as_str(), anchor.seq), ("2", 17));
        assert_eq!(anchor.to_string(), text);
        assert_eq!(text.to_uppercase().replace(':', " ").parse::<Anchor>().unwrap(), anchor);
        let table = text.replace("2.", "spending.");
        assert_eq!(table.parse::<Anchor>().unwrap().to_string(), table);
        for odd in [
            &text.replace("2.", "other."),
            "",
            "2:ab",
            "2.x:ab",
            "2.17",
            &text[..40],
            &format!("{text}0"),
            &text.replace('a', "g"),
        ] {
            odd.parse::<Anchor>().unwrap_err();
        }
    }
}
