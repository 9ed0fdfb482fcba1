//! Runs rows through the pipeline concurrently. Each worker takes the next unanswered row, runs it through
//! the common entry point, and passes its line to the log. Rows with temporary failures are retried in
//! another round over the file, so that no list of them is needed. A batch that ends early can be resumed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use cognitive_contract::lock::Lock;
use cognitive_contract::ports::{FailureKind, NullSink};
use cognitive_contract::{Envelope, Failure};
use cognitive_ports::spending::MAX_COST;
use cognitive_runtime::RunRequest;
use cognitive_runtime::host::{ModuleRef, RunInput};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::Notify;

use crate::answer_log::AnswerLog;
use crate::batch_folder::{self, BatchFolder};
use crate::batch_ledger::{self, BatchLedger, TokenLedger};
use crate::journal::{JournalRecord, ShortHash};
use crate::output_line::{OutputLine, envelope_of, spent_usage};
use crate::plan::{BatchPlan, BatchProgress, BatchStop, StopHandle};
use crate::row_input::ReadyRow;
use crate::row_source::{RawRow, RowReader};
use crate::tempo::Tempo;
use crate::watched_provider;

/// The most rows that may wait for the answer to an equal input. Each of them is held in memory.
const MAX_FOLLOWERS: usize = 4096;
/// The output limit of a posted row under a cost limit. It cannot grow with the money that is left, as that of other
/// rows does.
const POSTED_TOKENS: u64 = 4096;
/// After this many consecutive service failures, the batch ends. A dead service would otherwise turn every remaining
/// row into a failure.
const MAX_STREAK: u32 = 50;
/// A worker yields to others of its thread after this many rows, even if models answer immediately.
const ROWS_AT_ONCE: u32 = 32;

/// The state that all workers share.
pub(crate) struct BatchWork {
    pub(crate) plan: BatchPlan,
    tempo: Arc<Tempo>,
    pub(crate) money: Option<Arc<BatchLedger>>,
    tokens: TokenLedger,
    log: Lock<AnswerLog>,
    rows: Lock<RowFeed>,
    /// Inputs in flight, and the rows that wait for the same answer.
    asked: Lock<HashMap<ShortHash, Vec<ReadyRow>>>,
    followers: AtomicU64,
    landed: Notify,
    pub(crate) deferred: AtomicU64,
    streak: AtomicU32,
    ended: Lock<Option<(BatchStop, Option<String>)>>,
    all_rows: u64,
    answered_before: u64,
    pub(crate) started: Instant,
}

/// The source of rows for the workers.
#[derive(Default)]
struct RowFeed {
    reader: Option<Box<dyn RowReader>>,
    next: u64,
    /// Rows that were put back because their reservation did not fit.
    returned: Vec<ReadyRow>,
    is_last_round: bool,
}

/// A row taken by a worker.
enum TakenRow {
    /// A row as read from the file.
    Raw(u64, RawRow),
    /// A row that was prepared before.
    Ready(Box<ReadyRow>),
}

/// The decision about a run.
enum RowVerdict {
    /// The envelope is the answer of the row.
    Keep,
    /// The row is retried in a later round.
    Later,
    /// Its reservation did not fit next to the rows in flight.
    Crowded,
    /// The failure would affect every other row as well.
    Hopeless(String),
}

impl BatchWork {
    pub(crate) fn new(
        mut plan: BatchPlan,
        log: AnswerLog,
        folder: &BatchFolder,
        started: Instant,
    ) -> std::io::Result<Self> {
        let decided = plan.host.decide(&plan.module.manifest.name, &plan.options);
        let is_steady = decided.models.first.is_local() || plan.posts.is_some();
        let tempo = Arc::new(Tempo::new(plan.limits.concurrency, is_steady));
        watched_provider::watch(&mut plan.host, &tempo);
        let held = folder.path.join("held");
        if plan.posts.is_some() {
            // Posted rows are found again after a kill, and counted when they come back.
            let _there_may_be_none = std::fs::remove_file(&held);
        }
        let is_posted = plan.posts.is_some();
        let money = match plan.limits.max_cost {
            Some(limit) => {
                let shared = (!is_posted).then(|| Arc::clone(&tempo));
                Some(batch_ledger::hold(&mut plan.host, limit, log.counts.cost, &held, shared)?)
            }
            None => None,
        };
        if money.is_some() && is_posted && decided.settings.max_output_tokens.is_none() {
            plan.options.settings.max_output_tokens = Some(POSTED_TOKENS);
        }
        let usual = decided.settings.max_output_tokens.unwrap_or(1024) + plan.module.prompt.len() as u64 / 3;
        Ok(Self {
            money,
            tokens: TokenLedger::new(plan.limits.max_tokens, log.counts.tokens, usual),
            tempo,
            answered_before: log.counts.answered,
            log: Lock::new(log),
            rows: Lock::default(),
            asked: Lock::default(),
            followers: AtomicU64::new(0),
            landed: Notify::new(),
            deferred: AtomicU64::new(0),
            streak: AtomicU32::new(0),
            ended: Lock::default(),
            all_rows: folder.rows,
            started,
            plan,
        })
    }

    pub(crate) fn begin_round(&self, round: u32) -> Result<(), Failure> {
        let reader = self.plan.rows.open();
        let reader = reader.map_err(|error| batch_folder::unusable(&self.plan.rows.path, &error))?;
        let is_last_round = round >= self.plan.limits.retries;
        *self.rows.lock() = RowFeed { reader: Some(reader), is_last_round, ..RowFeed::default() };
        self.deferred.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// Ends the batch. The first reason is the one reported.
    pub(crate) fn end(&self, why: BatchStop, reason: Option<String>) {
        self.ended.lock().get_or_insert((why, reason));
        self.tempo.close();
        self.landed.notify_waiters();
    }

    pub(crate) fn end_reason(&self) -> Option<(BatchStop, Option<String>)> {
        self.ended.lock().clone()
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, AnswerLog> {
        self.log.lock()
    }

    /// Takes the next row without an answer.
    fn take(&self) -> std::io::Result<Option<TakenRow>> {
        let mut feed = self.rows.lock();
        if let Some(returned) = feed.returned.pop() {
            return Ok(Some(TakenRow::Ready(Box::new(returned))));
        }
        let RowFeed { reader, next, .. } = &mut *feed;
        let Some(reader) = reader else { return Ok(None) };
        loop {
            let row = *next;
            let is_wanted = !self.log().is_done(row);
            let Some(raw) = reader.next_row(is_wanted)? else { return Ok(None) };
            *next += 1;
            if is_wanted {
                return Ok(Some(TakenRow::Raw(row, raw)));
            }
        }
    }

    pub(crate) fn progress(&self) -> BatchProgress {
        let (in_flight, concurrency) = self.tempo.load();
        BatchProgress {
            rows: self.all_rows,
            counts: self.log().counts,
            answered_before: self.answered_before,
            in_flight,
            concurrency,
            deferred: self.deferred.load(Ordering::Relaxed),
            elapsed: self.started.elapsed(),
        }
    }

    /// Returns whether this worker must ask for an input. Otherwise the answer is copied, or the row waits
    /// for another worker.
    fn claims(&self, ready: &ReadyRow) -> bool {
        if !self.plan.dedupe || ready.input.is_err() {
            return true;
        }
        let mut asked = self.asked.lock();
        if let Some(followers) = asked.get_mut(&ready.short_hash) {
            followers.push(ready.clone());
            self.followers.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        // Checked under the lock, so that no other worker can claim the input in between.
        let answered = self.log().recorded_answer(&ready.short_hash);
        match answered.and_then(|(record, line)| Some((record, envelope_of(&line)?))) {
            Some((record, envelope)) => {
                self.keep(ready, &envelope, Some(record.row), JournalRecord { ok: record.ok, ..free() });
                false
            }
            None => {
                asked.insert(ready.short_hash, Vec::new());
                true
            }
        }
    }

    /// Removes the claim on an input and returns the rows that waited for it.
    fn release(&self, ready: &ReadyRow) -> Vec<ReadyRow> {
        if !self.plan.dedupe || ready.input.is_err() {
            return Vec::new();
        }
        let followers = self.asked.lock().remove(&ready.short_hash).unwrap_or_default();
        self.followers.fetch_sub(followers.len() as u64, Ordering::Relaxed);
        followers
    }

    fn may_lack_room(&self) -> bool {
        self.plan.limits.max_cost.is_some() || self.plan.limits.max_tokens.is_some()
    }

    /// Puts a row back if its reservation does not fit, together with the rows that waited for its answer.
    /// Without other rows in flight it would never fit, so the batch ends.
    fn requeue(&self, ready: &ReadyRow, spare: Option<ReadyRow>, stop: BatchStop) {
        let followers = self.release(ready);
        self.rows.lock().returned.extend(spare.into_iter().chain(followers));
        if !self.tempo.shrink_if_crowded() {
            self.end(stop, None);
        }
    }

    /// Writes the line of a row.
    fn keep(
        &self,
        ready: &ReadyRow,
        envelope: &impl Serialize,
        duplicate_of: Option<u64>,
        record: JournalRecord,
    ) {
        let shared = match &ready.input {
            Ok(RunInput::Shared(value)) => Some(value.as_ref()),
            Ok(RunInput::Json(value)) => Some(value),
            _ => None,
        };
        let input = shared.filter(|_| self.plan.target.with_input);
        let (row, id, input_hash) = (ready.row, ready.id.as_ref(), ready.hash.as_str());
        let line = OutputLine { row, id, input_hash, duplicate_of, input, envelope }.bytes();
        let (in_failed_file, is_copy) = (!record.ok, duplicate_of.is_some());
        self.log()
            .push(&line, JournalRecord { row, in_failed_file, is_copy, hash: ready.short_hash, ..record });
    }

    /// Decides about a run, and counts consecutive failures of the service.
    fn judge(&self, envelope: &Envelope) -> RowVerdict {
        let Some(error) = envelope.error() else {
            self.streak.store(0, Ordering::Relaxed);
            return RowVerdict::Keep;
        };
        let members = error.members();
        let detail =
            |name: &str| members.get("details").and_then(|details| details.get(name)).and_then(Value::as_str);
        if detail("limit_from") == Some(MAX_COST) && self.plan.limits.max_cost.is_some() {
            return RowVerdict::Crowded;
        }
        let kind = detail("kind").unwrap_or_default();
        let is_hopeless = [FailureKind::Auth, FailureKind::Quota, FailureKind::ModelNotFound];
        let said = || match members.get("suggestion").and_then(Value::as_str) {
            Some(hint) => format!("{}. {hint}", error.message()),
            None => error.message().to_owned(),
        };
        if is_hopeless.iter().any(|hopeless| hopeless.word() == kind) || kind == "no_price" {
            return RowVerdict::Hopeless(said());
        }
        let passing = FailureKind::ALL.iter().any(|known| known.passes() && known.word() == kind);
        if !passing || members.get("recoverable").and_then(Value::as_bool) == Some(false) {
            return RowVerdict::Keep;
        }
        let streak = self.streak.fetch_add(1, Ordering::Relaxed) + 1;
        if streak >= MAX_STREAK && self.plan.posts.is_none() {
            return RowVerdict::Hopeless(said());
        }
        if self.rows.lock().is_last_round { RowVerdict::Keep } else { RowVerdict::Later }
    }
}

/// A record without cost.
fn free() -> JournalRecord {
    JournalRecord { cost: Some(cognitive_contract::money::Money::ZERO), ..JournalRecord::default() }
}

/// The loop of one worker, until there are no more rows or the batch has ended.
pub(crate) async fn run_worker(work: Arc<BatchWork>, stop: StopHandle) {
    let mut rows = 0_u32;
    while let Some(pass) = work.tempo.pass().await {
        // Checked for each row: once the user was told that the batch stops, no further row may start.
        if stop.is_stopped() {
            return work.end(BatchStop::Interrupted, None);
        }
        rows = rows.wrapping_add(1);
        if rows.is_multiple_of(ROWS_AT_ONCE) {
            tokio::task::yield_now().await;
        }
        let ready = match work.take() {
            Ok(Some(TakenRow::Raw(row, raw))) => work.plan.mapping.prepare(row, raw, &work.plan.module),
            Ok(Some(TakenRow::Ready(ready))) => *ready,
            Ok(None) => return,
            Err(error) => {
                return work.end(BatchStop::Provider, Some(format!("cannot read the rows: {error}")));
            }
        };
        let landed = work.landed.notified();
        if work.followers.load(Ordering::Relaxed) >= MAX_FOLLOWERS as u64 {
            work.rows.lock().returned.push(ready);
            drop(pass);
            landed.await;
            continue;
        }
        if work.claims(&ready) {
            process_row(&work, ready).await;
            work.landed.notify_waiters();
        }
    }
}

/// Runs a row that this worker claimed, up to its line.
async fn process_row(work: &BatchWork, ready: ReadyRow) {
    // A row is only put back if there are cost or token limits.
    let spare = work.may_lack_room().then(|| ready.clone());
    let Some(held) = work.tokens.hold() else {
        return work.requeue(&ready, spare, BatchStop::MaxTokens);
    };
    let (ready, envelope) = answer(work, ready).await;
    let usage = spent_usage(&envelope);
    let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
    work.tokens.settle(held, tokens);
    match work.judge(&envelope) {
        RowVerdict::Keep => {
            let cost = if tokens == 0 { free().cost } else { usage.cost };
            work.keep(&ready, &envelope, None, JournalRecord { ok: envelope.ok(), tokens, cost, ..free() });
            for follower in work.release(&ready) {
                work.keep(
                    &follower,
                    &envelope,
                    Some(ready.row),
                    JournalRecord { ok: envelope.ok(), ..free() },
                );
            }
        }
        RowVerdict::Later => {
            let followers = work.release(&ready).len() as u64;
            work.deferred.fetch_add(1 + followers, Ordering::Relaxed);
        }
        RowVerdict::Crowded => work.requeue(&ready, spare, BatchStop::MaxCost),
        RowVerdict::Hopeless(reason) => {
            work.release(&ready);
            work.end(BatchStop::Provider, Some(reason));
        }
    }
}

/// Runs a row. The input is shared instead of copied if the output includes it.
async fn answer(work: &BatchWork, mut ready: ReadyRow) -> (ReadyRow, Envelope) {
    let placeholder = || RunInput::Json(Value::Null);
    let input = match std::mem::replace(&mut ready.input, Ok(placeholder())) {
        Err(failure) => {
            ready.input = Err(failure.clone());
            return (ready, failure.into_envelope());
        }
        Ok(RunInput::Json(value)) if work.plan.target.with_input => {
            let shared = Arc::new(value);
            ready.input = Ok(RunInput::Shared(Arc::clone(&shared)));
            RunInput::Shared(shared)
        }
        Ok(input) => input,
    };
    let module = ModuleRef::from_module(work.plan.name.clone(), Arc::clone(&work.plan.module));
    let request = RunRequest { module, input, options: work.plan.options.clone() };
    let envelope = cognitive_runtime::run(&work.plan.host, request, &mut NullSink).await;
    (ready, envelope)
}
