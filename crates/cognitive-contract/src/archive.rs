//! Questions about runs of the past, as pages and charts ask them: which runs there were, one of them with all its records,
//! and figures over time. The port is [`RunArchive`]; whoever keeps the audit answers.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::Serialize;
use serde_json::Value;

use crate::money::Money;
use crate::usage::{Usage, as_member};

/// Which runs are meant. The default means all of them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunFilter {
    /// Only this module, as it was asked for.
    pub module: Option<String>,
    /// Only this model: `provider/model`.
    pub model: Option<String>,
    /// Only runs of this risk.
    pub risk: Option<String>,
    /// Only runs that were at least so sure.
    pub min_confidence: Option<f64>,
    /// Only runs that were at most so sure.
    pub max_confidence: Option<f64>,
    /// Only failures with this code.
    pub code: Option<String>,
    /// Only successes, or only failures.
    pub ok: Option<bool>,
    /// Only runs of who showed the key of this name.
    pub key: Option<String>,
    /// Only runs of this user.
    pub user: Option<String>,
    /// Only runs of this tenant.
    pub tenant: Option<String>,
    /// Only runs that ended then or later.
    pub since: Option<SystemTime>,
    /// Only runs that ended before then.
    pub until: Option<SystemTime>,
    /// The most runs of a page; those who answer have a limit of their own as well.
    pub limit: Option<usize>,
    /// Where the page before ended: its [`RunPage::next`].
    pub cursor: Option<String>,
}

/// Some runs, the newest first.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct RunPage {
    /// The runs.
    pub runs: Vec<ArchivedRun>,
    /// How to ask for those that follow, if any do.
    pub next: Option<String>,
}

/// A run in one line.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ArchivedRun {
    /// What all records of the run share.
    pub run_id: String,
    /// The id that envelope and logs share; several runs may have it.
    pub trace_id: String,
    /// When it ended, as of RFC 3339 in UTC; of one that is unfinished, when it asked a model.
    pub ts: String,
    /// The module as it was asked for.
    pub module: String,
    /// Its version; empty if it was not found.
    pub version: String,
    /// `provider/model`; empty if no model was asked.
    pub model: String,
    /// Whether it succeeded.
    pub ok: bool,
    /// The error code of a failure.
    pub code: Option<String>,
    /// How risky it was.
    pub risk: String,
    /// How sure it was.
    pub confidence: f64,
    /// How long it took.
    pub latency_ms: f64,
    /// Tokens, if known.
    #[serde(serialize_with = "as_member")]
    pub usage: Option<Usage>,
    /// What it cost in dollars, if known.
    pub cost: Option<Money>,
    /// The name of the key that was shown.
    pub key: Option<String>,
    /// The user.
    pub user: Option<String>,
    /// Whether input and envelope are there.
    pub has_payload: bool,
    /// Whether it asked a model and left no record of its end: its process died, or it still goes on.
    pub unfinished: bool,
}

/// Everything that is known of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunDetails {
    /// The run.
    pub run: ArchivedRun,
    /// All records of its trace as the audit exports them, the oldest first.
    pub records: Vec<Value>,
    /// The run with the runs that it is made of, as far as the records say; nothing for one that is unfinished.
    pub tree: Option<WaterfallNode>,
    /// What was sent, if it was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The whole answer, if it was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub envelope: Option<Value>,
}

/// A piece of work in time: a run, one that it is made of, or a request to a model.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct WaterfallNode {
    /// What was done: `run`, or the event of the record, such as `call` and `tool_call`.
    pub name: String,
    /// The module.
    pub module: String,
    /// When it began, counted from the beginning of the outermost run.
    pub start_ms: f64,
    /// How long it took; 0 where only its moment is known.
    pub duration_ms: f64,
    /// Whether it succeeded.
    pub ok: bool,
    /// The error code of a failure.
    pub code: Option<String>,
    /// What happened within.
    pub children: Vec<WaterfallNode>,
}

/// Figures over time.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct RunStats {
    /// Where the first bucket begins, as of RFC 3339 in UTC; nothing if there are no runs.
    pub from: Option<String>,
    /// Where the last one ends.
    pub to: Option<String>,
    /// Equal parts of that time, the oldest first.
    pub buckets: Vec<RunBucket>,
    /// How often each error code came up.
    pub codes: BTreeMap<String, u64>,
    /// How many runs each model answered.
    pub models: BTreeMap<String, u64>,
    /// How many runs each module had.
    pub modules: BTreeMap<String, u64>,
    /// How many successes had a confidence in each twentieth from 0 to 1.
    pub confidence: Vec<u64>,
    /// All of it together.
    pub totals: RunTotals,
}

/// What happened in one part of the time.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct RunBucket {
    /// Where it begins, as of RFC 3339 in UTC.
    pub at: String,
    /// What happened in it.
    #[serde(flatten)]
    pub totals: RunTotals,
}

/// Some runs in figures.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct RunTotals {
    /// How many came to an end.
    pub runs: u64,
    /// How many of those failed.
    pub failures: u64,
    /// How many asked a model and left no record of their end.
    pub unfinished: u64,
    /// Half of the runs were at least as fast.
    pub p50_ms: Option<f64>,
    /// 19 of 20 were.
    pub p95_ms: Option<f64>,
    /// 99 of 100 were.
    pub p99_ms: Option<f64>,
    /// Tokens read, as far as known.
    pub input_tokens: u64,
    /// Tokens written, as far as known.
    pub output_tokens: u64,
    /// What was paid in dollars, as far as known.
    pub cost: Money,
}

/// Someone who can be asked about runs of the past.
pub trait RunArchive: Send + Sync {
    /// The runs that the filter means.
    fn runs(&self, filter: &RunFilter) -> Result<RunPage, String>;

    /// One of them.
    fn run(&self, run_id: &str) -> Result<Option<RunDetails>, String>;

    /// Figures over the runs that the filter means, in so many equal parts of their time.
    fn stats(&self, filter: &RunFilter, buckets: usize) -> Result<RunStats, String>;
}
