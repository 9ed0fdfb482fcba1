//! Writes runs into the review queue. A background thread writes, so that a waiting run blocks no other, and waiting
//! runs share one transaction. The thread starts with the first entry.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use cognitive_contract::lock::Lock;
use cognitive_ports::review::{Review, ReviewEntry};
use serde_json::{Value, json};

use super::ReviewLimits;
use crate::acknowledgement::Acknowledgement;
use crate::audit::writable;
use crate::error::Problem;
use crate::row_changes::{self, ProtectedTable};
use crate::sql::{LockedArea, SqlSession, first, to_signed, values};
use crate::store::Store;
use crate::time;

/// The most entries per transaction. One transaction for each entry would be slow on disk.
const BATCH: usize = 64;
/// The longest input or envelope, in bytes. Without it, one entry could fill the database; a longer one becomes a
/// note.
const LONGEST: usize = 4 << 20;

/// The outcome for an entry: its id, or the reason why it was refused.
type EntryOutcome = Result<String, String>;
type QueuedEntry = (ReviewEntry, Arc<Acknowledgement<EntryOutcome>>);

/// Sends entries to the background thread.
#[derive(Debug)]
pub(super) struct EntryWriter {
    store: Arc<Store>,
    limits: ReviewLimits,
    line: Lock<Option<(Sender<QueuedEntry>, JoinHandle<()>)>>,
}

impl EntryWriter {
    pub(super) fn new(store: Arc<Store>, limits: ReviewLimits) -> Self {
        Self { store, limits, line: Lock::default() }
    }

    /// Queues an entry. The acknowledgement resolves when the entry is stored or refused.
    pub(super) fn push(&self, entry: &ReviewEntry) -> Result<Arc<Acknowledgement<EntryOutcome>>, String> {
        let mut line = self.line.lock();
        if line.is_none() {
            *line = Some(self.begin().map_err(|error| format!("cannot start a thread: {error}"))?);
        }
        let receipt = Arc::new(Acknowledgement::default());
        let queued = (entry.clone(), Arc::clone(&receipt));
        let is_taken = line.as_ref().is_some_and(|(sender, _)| sender.send(queued).is_ok());
        if is_taken { Ok(receipt) } else { Err("internal error of the review queue".to_owned()) }
    }

    fn begin(&self) -> std::io::Result<(Sender<QueuedEntry>, JoinHandle<()>)> {
        let (sender, receiver) = channel();
        let (store, limits) = (Arc::clone(&self.store), self.limits);
        let work = move || write_all(&receiver, &store, limits);
        let thread = std::thread::Builder::new().name("reviews".to_owned()).spawn(work)?;
        Ok((sender, thread))
    }
}

impl Drop for EntryWriter {
    fn drop(&mut self) {
        let line = self.line.lock().take();
        if let Some((sender, thread)) = line {
            drop(sender);
            let _ = thread.join();
        }
    }
}

fn write_all(receiver: &Receiver<QueuedEntry>, store: &Store, limits: ReviewLimits) {
    while let Ok(first) = receiver.recv() {
        let mut batch = vec![first];
        batch.extend(receiver.try_iter().take(BATCH - 1));
        // Every waiter must get an outcome, even after a panic.
        let kept = catch_unwind(AssertUnwindSafe(|| write(&batch, store, limits)))
            .unwrap_or_else(|_| Err("internal error of the review queue".to_owned()));
        let mut outcomes = kept.as_ref().map(|outcomes| outcomes.iter()).into_iter().flatten();
        for (_, receipt) in &batch {
            let lost = || kept.as_ref().err().cloned().unwrap_or_default();
            receipt.give(outcomes.next().cloned().unwrap_or_else(|| Err(lost())));
        }
    }
}

fn write(batch: &[QueuedEntry], store: &Store, limits: ReviewLimits) -> Result<Vec<EntryOutcome>, String> {
    let rows: Vec<NewReviewRow> = batch.iter().map(|(entry, _)| NewReviewRow::from_entry(entry)).collect();
    let kept = store.change_synced(&[LockedArea::Reviews], |session| insert(session, &rows, limits));
    kept.map_err(|error| error.to_string())
}

/// An entry converted to columns, before the lock is taken.
struct NewReviewRow {
    review: Review,
    input: String,
    envelope: String,
}

impl NewReviewRow {
    fn from_entry(entry: &ReviewEntry) -> Self {
        let review = Review::from_entry(String::new(), time::text(entry.at), entry);
        Self { review, input: bounded_json(&entry.input), envelope: bounded_json(&entry.envelope) }
    }

    fn bytes(&self) -> u64 {
        (self.input.len() + self.envelope.len()) as u64
    }
}

/// Serialises a value. One above the limit is replaced with a note.
fn bounded_json(value: &Value) -> String {
    let text = value.to_string();
    if text.len() <= LONGEST {
        return text;
    }
    json!({ "omitted": format!("{} bytes, above the limit of {LONGEST}", text.len()) }).to_string()
}

fn insert(
    session: &mut dyn SqlSession,
    rows: &[NewReviewRow],
    limits: ReviewLimits,
) -> Result<Vec<EntryOutcome>, Problem> {
    let count = "SELECT count(*), CAST(coalesce(sum(bytes), 0) AS BIGINT) FROM reviews WHERE is_open = 1";
    let found = first(session, count, &[], |row| Ok((row.integer(0)?, row.integer(1)?)))?;
    let (mut open, mut bytes) = found.unwrap_or_default();
    let mut outcomes = Vec::with_capacity(rows.len());
    for row in rows {
        let size = to_signed(row.bytes());
        let is_full = u64::try_from(open).unwrap_or(u64::MAX) >= limits.open
            || u64::try_from(bytes.saturating_add(size)).unwrap_or(u64::MAX) > limits.bytes;
        if is_full {
            outcomes.push(Err(format!("{open} runs already wait for review")));
            continue;
        }
        outcomes.push(Ok(insert_row(session, row, size)?));
        (open, bytes) = (open + 1, bytes.saturating_add(size));
    }
    Ok(outcomes)
}

fn insert_row(session: &mut dyn SqlSession, row: &NewReviewRow, size: i64) -> Result<String, Problem> {
    let NewReviewRow { review, input, envelope } = row;
    let sql = "INSERT INTO reviews (at, run_id, trace_id, key, \"user\", tenant, module, version, model, ok, code, risk,
            confidence, calibrated, explain, rule, is_open, bytes, input, envelope)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, 1, ?17, ?18, ?19) RETURNING id";
    let values = values![
        &review.at,
        writable(&review.run_id),
        writable(&review.trace_id),
        review.key.as_deref().map(writable),
        review.user.as_deref().map(writable),
        review.tenant.as_deref().map(writable),
        writable(&review.module),
        writable(&review.version),
        writable(&review.model),
        review.ok,
        review.code.as_deref().map(writable),
        writable(&review.risk),
        review.confidence,
        review.calibrated_confidence,
        writable(&review.explain),
        writable(&review.rule),
        size,
        input,
        envelope,
    ];
    let id = first(session, sql, &values, |row| row.integer(0))?;
    let id = id.ok_or_else(|| Problem::Failed("the entry has no id".to_owned()))?;
    row_changes::note(session, ProtectedTable::Reviews, id)?;
    Ok(id.to_string())
}
