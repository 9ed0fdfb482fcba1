//! Rows through the pipeline, some of them at once. Each worker takes the next row that has no answer, runs it by the entry of
//! every surface, and hands its line to the log. What may pass is asked again in another round over the file, so that nothing
//! has to be remembered of it. Ends early where it has to, and can then go on later.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use cognitive_contract::ports::{FailureKind, NullSink};
use cognitive_contract::spending::MAX_COST;
use cognitive_contract::{Envelope, Failure};
use cognitive_runtime::RunRequest;
use cognitive_runtime::host::{ModuleRef, RunInput};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::Notify;

use crate::answer_log::AnswerLog;
use crate::batch_folder::{self, BatchFolder};
use crate::journal::{JournalRecord, ShortHash};
use crate::output_line::{OutputLine, envelope_of, spent};
use crate::plan::{BatchPlan, BatchProgress, BatchStop};
use crate::purse::{self, Purse, TokenPurse};
use crate::row_input::ReadyRow;
use crate::row_source::{RawRow, RowReader};
use crate::tempo::Tempo;
use crate::watched_provider;

/// So many rows may wait for the answer of an equal one.
const MAX_FOLLOWERS: usize = 4096;
/// After so many failures of the service in a row, and no answer in between, nobody is asked any more.
const MAX_STREAK: u32 = 50;
/// How many rows a worker does before others of its thread have their turn, also where models answer at once.
const ROWS_AT_ONCE: u32 = 32;

/// What all workers share.
pub(crate) struct BatchWork {
    pub(crate) plan: BatchPlan,
    tempo: Arc<Tempo>,
    pub(crate) money: Option<Arc<Purse>>,
    tokens: TokenPurse,
    log: Mutex<AnswerLog>,
    rows: Mutex<RowFeed>,
    /// Inputs that are being asked, and the rows that wait for the same answer.
    asked: Mutex<HashMap<ShortHash, Vec<ReadyRow>>>,
    followers: AtomicU64,
    landed: Notify,
    pub(crate) deferred: AtomicU64,
    streak: AtomicU32,
    ended: Mutex<Option<(BatchStop, Option<String>)>>,
    all_rows: u64,
    answered_before: u64,
    pub(crate) started: Instant,
}

/// Where rows come from.
#[derive(Default)]
struct RowFeed {
    reader: Option<Box<dyn RowReader>>,
    next: u64,
    /// Rows that were taken and for which there was no room.
    returned: Vec<ReadyRow>,
    is_last_round: bool,
}

/// A row that a worker got.
enum TakenRow {
    /// As it stands in the file.
    Raw(u64, RawRow),
    /// One that was made ready before.
    Ready(Box<ReadyRow>),
}

/// What becomes of a run.
enum RowVerdict {
    /// It is the answer of the row.
    Keep,
    /// It may go better later.
    Later,
    /// There was no room for it among the others.
    Crowded,
    /// It would go no better with any other row.
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
        let is_steady = decided.models.first.stays_here() || plan.posts.is_some();
        let tempo = Arc::new(Tempo::new(plan.limits.concurrency, is_steady));
        watched_provider::watch(&mut plan.host, &tempo);
        let held = folder.path.join("held");
        if plan.posts.is_some() {
            // What was posted is found again, and counted when it comes back.
            let _there_may_be_none = std::fs::remove_file(&held);
        }
        let money = match plan.limits.max_cost {
            Some(limit) => Some(purse::hold(&mut plan.host, limit, log.counts.cost, &held)?),
            None => None,
        };
        let usual = decided.settings.max_output_tokens.unwrap_or(1024) + plan.module.prompt.len() as u64 / 3;
        Ok(Self {
            money,
            tokens: TokenPurse::new(plan.limits.max_tokens, log.counts.tokens, usual),
            tempo,
            answered_before: log.counts.answered,
            log: Mutex::new(log),
            rows: Mutex::default(),
            asked: Mutex::default(),
            followers: AtomicU64::new(0),
            landed: Notify::new(),
            deferred: AtomicU64::new(0),
            streak: AtomicU32::new(0),
            ended: Mutex::default(),
            all_rows: folder.rows,
            started,
            plan,
        })
    }

    pub(crate) fn begin_round(&self, round: u32) -> Result<(), Failure> {
        let reader = self.plan.rows.open();
        let reader = reader.map_err(|error| batch_folder::unusable(&self.plan.rows.path, &error))?;
        let is_last_round = round >= self.plan.limits.retries;
        *lock(&self.rows) = RowFeed { reader: Some(reader), is_last_round, ..RowFeed::default() };
        self.deferred.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// Ends the batch for the first reason that there is.
    pub(crate) fn end(&self, why: BatchStop, reason: Option<String>) {
        lock(&self.ended).get_or_insert((why, reason));
        self.tempo.close();
        self.landed.notify_waiters();
    }

    pub(crate) fn ended(&self) -> Option<(BatchStop, Option<String>)> {
        lock(&self.ended).clone()
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, AnswerLog> {
        lock(&self.log)
    }

    /// The next row without an answer.
    fn take(&self) -> std::io::Result<Option<TakenRow>> {
        let mut feed = lock(&self.rows);
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
        let (in_flight, concurrency) = self.tempo.shown();
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

    /// Whether this worker asks for an input; else the answer is there, or somebody is about to get it.
    fn claims(&self, ready: &ReadyRow) -> bool {
        if !self.plan.dedupe || ready.input.is_err() {
            return true;
        }
        let mut asked = lock(&self.asked);
        if let Some(followers) = asked.get_mut(&ready.short_hash) {
            followers.push(ready.clone());
            self.followers.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        // Before anybody else can claim it: what is neither asked nor answered is ours.
        let answered = self.log().answered(&ready.short_hash);
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

    /// The rows that waited for this input.
    fn release(&self, ready: &ReadyRow) -> Vec<ReadyRow> {
        if !self.plan.dedupe || ready.input.is_err() {
            return Vec::new();
        }
        let followers = lock(&self.asked).remove(&ready.short_hash).unwrap_or_default();
        self.followers.fetch_sub(followers.len() as u64, Ordering::Relaxed);
        followers
    }

    fn may_lack_room(&self) -> bool {
        self.plan.limits.max_cost.is_some() || self.plan.limits.max_tokens.is_some()
    }

    /// Puts a row back for which there is no room beside the others, with those that waited for its answer. Where there are no
    /// others, there never will be room.
    fn put_back(&self, ready: &ReadyRow, spare: Option<ReadyRow>, stop: BatchStop) {
        let followers = self.release(ready);
        lock(&self.rows).returned.extend(spare.into_iter().chain(followers));
        if !self.tempo.crowded() {
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

    /// What becomes of a run, and what that says of the service.
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
        if lock(&self.rows).is_last_round { RowVerdict::Keep } else { RowVerdict::Later }
    }
}

/// Nothing was spent for it.
fn free() -> JournalRecord {
    JournalRecord { cost: Some(cognitive_contract::money::Money::ZERO), ..JournalRecord::default() }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A worker that panicked has lost its own row and nothing else; rows without a line are asked again.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One worker, until there are no more rows or the batch has ended.
pub(crate) async fn work_on(work: Arc<BatchWork>) {
    let mut rows = 0_u32;
    while let Some(pass) = work.tempo.pass().await {
        rows = rows.wrapping_add(1);
        if rows.is_multiple_of(ROWS_AT_ONCE) {
            tokio::task::yield_now().await;
        }
        let ready = match work.take() {
            Ok(Some(TakenRow::Raw(row, raw))) => work.plan.mapping.ready(row, raw, &work.plan.module),
            Ok(Some(TakenRow::Ready(ready))) => *ready,
            Ok(None) => return,
            Err(error) => {
                return work.end(BatchStop::Provider, Some(format!("the rows cannot be read: {error}")));
            }
        };
        let landed = work.landed.notified();
        if work.followers.load(Ordering::Relaxed) >= MAX_FOLLOWERS as u64 {
            lock(&work.rows).returned.push(ready);
            drop(pass);
            landed.await;
            continue;
        }
        if work.claims(&ready) {
            work_through(&work, ready).await;
            work.landed.notify_waiters();
        }
    }
}

/// A row that nobody else asks for, from its beginning to its line.
async fn work_through(work: &BatchWork, ready: ReadyRow) {
    // Only where there may be no room for it has a row to be put back.
    let spare = work.may_lack_room().then(|| ready.clone());
    let Some(held) = work.tokens.hold() else {
        return work.put_back(&ready, spare, BatchStop::MaxTokens);
    };
    let (ready, envelope) = answer(work, ready).await;
    let usage = spent(&envelope);
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
        RowVerdict::Crowded => work.put_back(&ready, spare, BatchStop::MaxCost),
        RowVerdict::Hopeless(reason) => {
            work.release(&ready);
            work.end(BatchStop::Provider, Some(reason));
        }
    }
}

/// Runs a row. With the input in the output it is shared, not copied.
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
    let module = ModuleRef::loaded(work.plan.name.clone(), Arc::clone(&work.plan.module));
    let request = RunRequest { module, input, options: work.plan.options.clone() };
    let envelope = cognitive_runtime::run(&work.plan.host, request, &mut NullSink).await;
    (ready, envelope)
}
