//! Files of rows through a module: one envelope for each row, exactly once, whatever ends the process.
//!
//! [`run`] takes a [`BatchPlan`] and answers with a [`BatchSummary`]. Read the modules in this order: `plan` (what is to be
//! done), `row_source` (rows of a file, one after the other), `row_input` (which members of a row go in), `batch_run`
//! (from the folder to the summary), `workers` (rows through the pipeline, some of them at once), `tempo` (how many), `purse` (how much money and how many tokens),
//! `duplicates` (equal inputs are asked once), `posting` (rows by the batch endpoint of a service), `answer_log` and `journal` (what is on disk counts, the rest does not),
//! `batch_folder` (the state beside the output), `finish` (the output in its order and format), `dry_run` (what it would cost).
//!
//! Its door are the files that a caller names: rows in, answers out, and a folder beside the output. It knows no terminal and no
//! provider, and enters the pipeline where every surface does. What is wrong with a row is the envelope of that row.

mod answer_log;
mod batch_folder;
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
mod purse;
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
