//! Ports and types that only some crates need: stores, surfaces that edit modules, and batch services. The ports of every
//! run are in [`cognitive_contract::ports`]. They are apart from the contract, so that a change here recompiles only
//! their users.
//!
//! This crate does no I/O. Everything external is passed in.
//!
//! # Modules
//!
//! - Records of runs: [`archive`] (queries about past runs), [`review`] (human decisions and calibration).
//! - Cost: [`prices`] (dated prices of models), [`spending`] (daily budgets).
//! - [`module_editor`] (module files for editing), [`batch_service`] (endpoints that take many requests at once),
//!   [`openai_api`] (chat completions or Responses).

pub mod archive;
pub mod batch_service;
pub mod module_editor;
pub mod openai_api;
pub mod prices;
pub mod review;
pub mod spending;
