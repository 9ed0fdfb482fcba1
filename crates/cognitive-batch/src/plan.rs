//! The plan, the progress and the summary of a batch. Contains no decisions.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cognitive_contract::Module;
use cognitive_contract::money::Money;
use cognitive_runtime::{Host, RunOptions};
use serde::Serialize;

use crate::batch_folder;
use crate::journal::JournalRecord;
use crate::posting::PostPlan;
use crate::row_input::RowMapping;
use crate::row_source::{RowFile, RowFormat};

/// The rows, the module and the options of a batch.
pub struct BatchPlan {
    /// The module, as the caller named it.
    pub name: String,
    /// The module, loaded.
    pub module: Arc<Module>,
    /// The host that all runs share.
    pub host: Host,
    /// The options of each run. Its `max_cost` applies to one run; that of the whole batch is in `limits`.
    pub options: RunOptions,
    /// The rows.
    pub rows: RowFile,
    /// The members of a row that form the input.
    pub mapping: RowMapping,
    /// The output of the answers.
    pub target: AnswerTarget,
    /// The limits of the batch.
    pub limits: BatchLimits,
    /// Asks equal inputs once and copies the answer.
    pub dedupe: bool,
    /// Discards the state of an earlier process and starts again.
    pub restart: bool,
    /// Uses the batch endpoint of a service, whose provider then replaces that of the host.
    pub posts: Option<PostPlan>,
}

/// The output of the answers.
#[derive(Debug, Clone)]
pub struct AnswerTarget {
    /// The output.
    pub path: PathBuf,
    /// Its format: JSON lines or Parquet.
    pub format: RowFormat,
    /// The file of failed rows as JSON lines, if they are written separately.
    pub failed: Option<PathBuf>,
    /// Sorts the output by row.
    pub ordered: bool,
    /// Adds the input to each answer.
    pub with_input: bool,
}

impl AnswerTarget {
    /// The folder beside an output that a batch keeps until it is finished.
    #[must_use]
    pub fn work_folder(output: &Path) -> PathBuf {
        batch_folder::for_output(output)
    }
}

/// The amounts of a plan.
#[derive(Debug, Clone, Copy)]
pub struct BatchLimits {
    /// The most rows in flight.
    pub concurrency: usize,
    /// The maximum cost of all rows together, including those of earlier processes.
    pub max_cost: Option<Money>,
    /// The maximum number of tokens of all rows together, including those of earlier processes.
    pub max_tokens: Option<u64>,
    /// The time during which this process may start new rows.
    pub max_time: Option<Duration>,
    /// The number of extra rounds at the end, in which rows with temporary failures are retried.
    pub retries: u32,
}

/// The counts of rows by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct RowCounts {
    /// Rows with a line in the output.
    pub answered: u64,
    /// The number of successful rows.
    pub ok: u64,
    /// The number of failed rows: the dead letters.
    pub failed: u64,
    /// The number of rows whose answer was copied from a row with the same input.
    pub duplicates: u64,
    /// The tokens of all answered rows.
    pub tokens: u64,
    /// The cost of all answered rows, as far as prices are known.
    pub cost: Money,
    /// The number of rows answered by a model without a price.
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

/// The progress of a running batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchProgress {
    /// All rows of the file.
    pub rows: u64,
    /// The counts so far, including those of earlier processes.
    pub counts: RowCounts,
    /// The number of rows answered before this process.
    pub answered_before: u64,
    /// The number of rows in flight.
    pub in_flight: usize,
    /// The current limit of rows in flight.
    pub concurrency: usize,
    /// The number of rows that are retried at the end.
    pub deferred: u64,
    /// The time since this process started the batch.
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

    /// The estimated time for the remaining rows at this rate; `None` while the rate is zero.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a guess for people")]
    pub fn remaining_time(&self) -> Option<Duration> {
        let rate = self.rate();
        let left = self.rows.saturating_sub(self.counts.answered) as f64;
        (rate > 0.0).then(|| left / rate).and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    }
}

/// The reason why a batch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchStop {
    /// Every row is answered.
    Finished,
    /// The next row could exceed the cost limit.
    MaxCost,
    /// The next row could exceed the token limit.
    MaxTokens,
    /// The time limit was reached.
    MaxTime,
    /// The caller stopped it.
    Interrupted,
    /// The provider does not respond (wrong key, model or account, or the service is down), or the rows
    /// cannot be read.
    Provider,
}

/// The result of a batch.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BatchSummary {
    /// The module.
    pub module: String,
    /// The reason why it ended.
    pub stopped: BatchStop,
    /// The error message, if it ended because of the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// All rows of the file.
    pub rows: u64,
    /// The number of rows without an answer.
    pub left: u64,
    /// The counts of the answered rows.
    #[serde(flatten)]
    pub counts: RowCounts,
    /// With a cost limit: the additional cost that rows of killed processes may have caused. It counts as
    /// spent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unaccounted: Option<Money>,
    /// True if an earlier process started the batch.
    pub resumed: bool,
    /// The duration of this process, in milliseconds.
    pub elapsed_ms: u64,
    /// The output.
    pub output: PathBuf,
    /// The file of failures, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_output: Option<PathBuf>,
}

/// Stops a batch gracefully: no new row starts, and rows in flight finish.
#[derive(Debug, Clone, Default)]
pub struct StopHandle(Arc<AtomicBool>);

impl StopHandle {
    /// Stops the batch.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Returns whether the batch was stopped.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
