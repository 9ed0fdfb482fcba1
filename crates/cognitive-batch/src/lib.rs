//! Runs a module over files of rows: one envelope per row, exactly once, even if the process is killed.
//!
//! [`run`] takes a [`BatchPlan`] and returns a [`BatchSummary`].
//!
//! It accesses only the files that a caller names (rows in, answers out) and a folder next to the output. It knows no
//! terminal and no provider, and uses the same entry to the pipeline as every surface. A faulty row gets an envelope
//! with the error.
//!
//! # Modules
//!
//! In reading order:
//!
//! - `plan` (what to run), [`row_source`] (the rows of a file), `row_input` (the members of a row that form the input).
//! - `batch_run` (from the folder to the summary), `workers` (rows in the pipeline, concurrently).
//! - `tempo` (adaptive concurrency) with `watched_provider` (reports rate limits and response times to it), `batch_ledger`
//!   (limits of cost and tokens), `duplicates` (equal inputs are asked once).
//! - `posting` (rows through the batch endpoint of a service).
//! - `answer_log`, `output_line` and `journal` (only what is on disk counts), `batch_folder` (the state next to the
//!   output).
//! - `finish` (the output in its order and format), `parquet_answers`, `dry_run` (the estimated cost).

mod answer_log;
mod batch_folder;
mod batch_ledger;
mod batch_run;
mod dry_run;
mod duplicates;
mod finish;
mod journal;
mod output_line;
#[cfg(feature = "parquet")]
mod parquet_answers;
mod plan;
mod posting;
mod row_input;
pub mod row_source;
mod tempo;
mod watched_provider;
mod workers;

pub use batch_run::run;
pub use dry_run::{BatchEstimate, estimate};
pub use plan::{
    AnswerTarget, BatchLimits, BatchPlan, BatchProgress, BatchStop, BatchSummary, RowCounts, StopHandle,
};
pub use posting::PostPlan;
pub use row_input::RowMapping;
pub use row_source::{RowFile, RowFormat};
