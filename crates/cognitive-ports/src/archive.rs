//! Queries about past runs, for pages and charts: a list of runs, one run with all its records, and statistics
//! over time. The audit store implements the port [`RunArchive`].

use std::collections::BTreeMap;
use std::time::SystemTime;

use cognitive_contract::Envelope;
use cognitive_contract::money::Money;
use cognitive_contract::ports::Usage;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// The filter of a query. The default matches all runs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunFilter {
    /// Only this module, as the caller named it.
    pub module: Option<String>,
    /// Only this model: `provider/model`.
    pub model: Option<String>,
    /// Only runs of this risk.
    pub risk: Option<String>,
    /// Only runs with at least this confidence.
    pub min_confidence: Option<f64>,
    /// Only runs with at most this confidence.
    pub max_confidence: Option<f64>,
    /// Only failures with this code.
    pub code: Option<String>,
    /// Only successes, or only failures.
    pub ok: Option<bool>,
    /// Only runs of the API key with this name.
    pub key: Option<String>,
    /// Only runs of this user.
    pub user: Option<String>,
    /// Only runs of this tenant.
    pub tenant: Option<String>,
    /// Only runs that ended at or after this time.
    pub since: Option<SystemTime>,
    /// Only runs that ended before this time.
    pub until: Option<SystemTime>,
    /// The maximum page size. An implementation also has its own limit.
    pub limit: Option<usize>,
    /// The cursor of the previous page: its [`RunPage::next`].
    pub cursor: Option<String>,
}

/// A page of runs, newest first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct RunPage {
    /// The runs.
    pub runs: Vec<ArchivedRun>,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
}

/// The summary of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct ArchivedRun {
    /// The id that all records of the run share.
    pub run_id: String,
    /// The id that envelope and logs share. Several runs may have the same one.
    pub trace_id: String,
    /// The end of the run, as RFC 3339 in UTC. For an unfinished run, the time of its model call.
    pub ts: String,
    /// The module as the caller named it.
    pub module: String,
    /// The module's version; empty if the module was not found.
    pub version: String,
    /// `provider/model`; empty if no model was called.
    pub model: String,
    /// True if the run succeeded.
    pub ok: bool,
    /// The error code of a failure.
    pub code: Option<String>,
    /// The risk of the answer.
    pub risk: String,
    /// The confidence of the answer.
    pub confidence: f64,
    /// The latency.
    pub latency_ms: f64,
    /// Tokens, if known.
    pub usage: Option<Usage>,
    /// The cost in dollars, if known.
    pub cost: Option<Money>,
    /// The name of the caller's API key.
    pub key: Option<String>,
    /// The user.
    pub user: Option<String>,
    /// True if input and envelope are stored.
    pub has_payload: bool,
    /// True if the run called a model and has no end record: its process died, or it is still running.
    pub unfinished: bool,
    /// The path of the runs above it, such as `outer/inner`: their usage includes this one's. Nothing for a run that was asked for.
    pub parent_span: Option<String>,
}

/// All stored data about a run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RunDetails {
    /// The run.
    pub run: ArchivedRun,
    /// All records of its trace in the export format of the audit, oldest first.
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub records: Vec<Value>,
    /// The run with its parts, as far as the records show them; `None` for an unfinished run.
    pub tree: Option<WaterfallNode>,
    /// The input, if it was stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The whole answer, if it was stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Envelope")]
    pub envelope: Option<Value>,
}

/// A timed piece of work: a run, one of its parts, or a request to a model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct WaterfallNode {
    /// The kind of work: `run`, or the event of the record, such as `call` and `tool_call`.
    pub name: String,
    /// The module.
    pub module: String,
    /// The start, relative to the start of the outermost run.
    pub start_ms: f64,
    /// The duration; 0 if the record has only a single timestamp.
    pub duration_ms: f64,
    /// True if the work succeeded.
    pub ok: bool,
    /// The error code of a failure.
    pub code: Option<String>,
    /// The work inside this node.
    pub children: Vec<WaterfallNode>,
}

/// Statistics over time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct RunStats {
    /// The start of the first bucket, as RFC 3339 in UTC; `None` if there are no runs.
    pub from: Option<String>,
    /// The end of the last bucket.
    pub to: Option<String>,
    /// Buckets of equal length, oldest first.
    pub buckets: Vec<RunBucket>,
    /// The number of runs for each error code, parts included, as a filter by that code finds them.
    pub codes: BTreeMap<String, u64>,
    /// The number of runs for each model, parts included.
    pub models: BTreeMap<String, u64>,
    /// The number of runs for each module, parts included.
    pub modules: BTreeMap<String, u64>,
    /// The number of successes in each twentieth of the confidence from 0 to 1, parts included.
    pub confidence: Vec<u64>,
    /// The totals over all buckets.
    pub totals: RunTotals,
}

/// The statistics of one time bucket.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct RunBucket {
    /// The start of the bucket, as RFC 3339 in UTC.
    pub at: String,
    /// The totals of the bucket.
    #[serde(flatten)]
    pub totals: RunTotals,
}

/// Totals of a set of runs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct RunTotals {
    /// Runs that came to an end, without the parts of other runs among them.
    pub runs: u64,
    /// Parts of these runs that came to an end. Their tokens and cost are in those of the runs.
    pub parts: u64,
    /// The number of failed runs.
    pub failures: u64,
    /// The number of runs that called a model and have no end record.
    pub unfinished: u64,
    /// The median latency (p50).
    pub p50_ms: Option<f64>,
    /// The p95 latency.
    pub p95_ms: Option<f64>,
    /// The p99 latency.
    pub p99_ms: Option<f64>,
    /// Input tokens, as far as known.
    pub input_tokens: u64,
    /// Output tokens, as far as known.
    pub output_tokens: u64,
    /// The cost in dollars, as far as known.
    pub cost: Money,
}

/// A queryable store of past runs.
pub trait RunArchive: Send + Sync {
    /// Returns the runs that match the filter.
    fn runs(&self, filter: &RunFilter) -> Result<RunPage, String>;

    /// Returns one run with the records of its trace. With a key, only its own run and records.
    fn run(&self, run_id: &str, key: Option<&str>) -> Result<Option<RunDetails>, String>;

    /// Returns statistics of the runs that match the filter, in the given number of equal time buckets.
    fn stats(&self, filter: &RunFilter, buckets: usize) -> Result<RunStats, String>;
}
