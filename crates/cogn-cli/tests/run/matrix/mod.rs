//! Every run option on every surface, by every way to set it: honoured, or refused with a clear error, and never ignored. A cell
//! is judged by what the model service received or by the envelope. Each surface starts as users start it.
//!
//! `run_options` has the options of [`RunSettings`](cognitive_contract::RunSettings), `own_options` those of single surfaces,
//! `model_options` and `module_models` the choice of the model, `operator_settings` the other settings that decide about a run,
//! `precedence` two sources of one option, and `refusals` what a surface does not have. The surface of Restate is in the tests of
//! its crate.

#![expect(clippy::print_stdout, reason = "each table prints its number of cells")]

mod clients;
mod foreign_pages;
mod model_options;
mod module_models;
mod operator_settings;
mod own_options;
mod precedence;
mod refusals;
mod run_options;
mod surfaces;
mod table;
