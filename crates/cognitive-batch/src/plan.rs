//! What a batch is to do, and what is told of it while it goes on and at its end. Decides nothing.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cognitive_contract::Module;
use cognitive_contract::money::Money;
use cognitive_runtime::{Host, RunOptions};
use serde::Serialize;

use crate::journal::JournalRecord;
use crate::posting::PostPlan;
use crate::row_input::RowMapping;
use crate::row_source::{RowFile, RowFormat};

/// What is to be run, and how.
pub struct BatchPlan {
    /// The module, as it was asked for.
    pub name: String,
    /// The module, loaded.
    pub module: Arc<Module>,
    /// Everything around the runs.
    pub host: Host,
    /// How each run is to be done. Its `max_cost` counts for one run; that of the whole is in `limits`.
    pub options: RunOptions,
    /// The rows.
    pub rows: RowFile,
    /// Which members of a row go in.
    pub mapping: RowMapping,
    /// Where answers go.
    pub target: AnswerTarget,
    /// How much of everything.
    pub limits: BatchLimits,
    /// Ask equal inputs once, and copy the answer.
    pub dedupe: bool,
    /// Forget what an earlier process left, and begin again.
    pub restart: bool,
    /// Ask by the batch endpoint of a service, whose provider then takes the place of that of the host.
    pub posts: Option<PostPlan>,
}

/// Where answers go.
#[derive(Debug, Clone)]
pub struct AnswerTarget {
    /// The output.
    pub path: PathBuf,
    /// Its format: JSON lines or Parquet.
    pub format: RowFormat,
    /// The file of failed rows, if they are to have one of their own; JSON lines.
    pub failed: Option<PathBuf>,
    /// In the order of the rows.
    pub ordered: bool,
    /// Put the input beside each answer.
    pub with_input: bool,
}

/// How much of everything.
#[derive(Debug, Clone, Copy)]
pub struct BatchLimits {
    /// The most rows at once.
    pub concurrency: usize,
    /// What all rows together may cost, those of earlier processes included.
    pub max_cost: Option<Money>,
    /// The same in tokens.
    pub max_tokens: Option<u64>,
    /// How long this process may begin new rows.
    pub max_time: Option<Duration>,
    /// How often rows that failed for a reason that may pass are asked again, at the end.
    pub retries: u32,
}

/// What became of rows so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct RowCounts {
    /// Rows with a line in the output.
    pub answered: u64,
    /// How many of them are good.
    pub ok: u64,
    /// How many of them failed: the dead letters.
    pub failed: u64,
    /// How many of them have the answer of another row with the same input.
    pub duplicates: u64,
    /// Tokens of all of them.
    pub tokens: u64,
    /// What all of them cost, as far as there are prices.
    pub cost: Money,
    /// How many of them asked a model that has no price.
    pub unpriced: u64,
}

impl RowCounts {
    pub(crate) fn add(&mut self, record: &JournalRecord) {
        self.answered += 1;
        self.ok += u64::from(record.ok);
        self.failed += u64::from(!record.ok);
        self.duplicates += u64::from(record.is_copy);
        self.tokens = self.tokens.saturating_add(record.tokens);
        self.cost = self.cost.plus(record.cost.unwrap_or_default());
        self.unpriced += u64::from(record.cost.is_none() && record.tokens > 0);
    }
}

/// What can be seen of a batch while it goes on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchProgress {
    /// All rows of the file.
    pub rows: u64,
    /// What became of them so far, also in earlier processes.
    pub counts: RowCounts,
    /// How many were answered before this process.
    pub answered_before: u64,
    /// How many go on now.
    pub in_flight: usize,
    /// How many may go on now.
    pub concurrency: usize,
    /// How many wait to be asked again at the end.
    pub deferred: u64,
    /// How long this process is at it.
    pub elapsed: Duration,
}

impl BatchProgress {
    /// Rows per second of this process.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    pub fn rate(&self) -> f64 {
        let answered = self.counts.answered.saturating_sub(self.answered_before);
        answered as f64 / self.elapsed.as_secs_f64().max(0.001)
    }

    /// How long the rest takes at this rate; `None` while nobody can say.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a guess for people")]
    pub fn left(&self) -> Option<Duration> {
        let rate = self.rate();
        let left = self.rows.saturating_sub(self.counts.answered) as f64;
        (rate > 0.0).then(|| left / rate).and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    }
}

/// Why a batch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BatchStop {
    /// Every row has its answer.
    Finished,
    /// The next row could cost more than is left.
    MaxCost,
    /// The next row could need more tokens than are left.
    MaxTokens,
    /// The time was up.
    MaxTime,
    /// Somebody stopped it.
    Interrupted,
    /// Nobody answers: a key, a model or an account is wrong, or the service is down.
    Provider,
}

/// What came out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BatchSummary {
    /// The module.
    pub module: String,
    /// Why it ended.
    pub stopped: BatchStop,
    /// What the provider said, if it ended because of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// All rows of the file.
    pub rows: u64,
    /// Rows that have no answer yet.
    pub left: u64,
    /// What became of the others.
    #[serde(flatten)]
    pub counts: RowCounts,
    /// With a limit of cost: what rows of processes that were killed may have cost besides. It counts as spent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unaccounted: Option<Money>,
    /// Whether an earlier process had begun it.
    pub resumed: bool,
    /// How long this process took, in milliseconds.
    pub elapsed_ms: u64,
    /// The output.
    pub output: PathBuf,
    /// The file of failures, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_output: Option<PathBuf>,
}

/// Stops a batch in an orderly way: no new row begins, those that go on come to their end.
#[derive(Debug, Clone, Default)]
pub struct StopHandle(Arc<AtomicBool>);

impl StopHandle {
    /// Stops it.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether it was stopped.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
