//! Durable runs of Cognitive Modules: a worker for the [Restate](https://restate.dev) server.
//!
//! Every module is a service, every composition a workflow, every session a virtual object; [`WorkerOffer`]
//! lists them. The server calls the worker and stores a journal of each run. The answer of each part of a
//! composition is recorded before the next part starts. When another worker takes over a run, it only calls
//! the missing parts, so recorded answers are not paid for twice. The run itself is that of
//! [`cogn::Runtime`], with the same envelopes; this crate has no rules about modules.
//!
//! ```no_run
//! use std::sync::Arc;
//! use cogn_restate::{DurableWorker, ListenOptions, WorkerOffer, shutdown_signal, listen, serve};
//!
//! # async fn worker() -> Result<(), Box<dyn std::error::Error>> {
//! let worker = Arc::new(DurableWorker::new(cogn::Runtime::from_env()?));
//! let options = ListenOptions::at("127.0.0.1:9080".parse()?);
//! serve(listen(&options)?, WorkerOffer::for_worker(&worker).endpoint, &options, shutdown_signal()).await;
//! # Ok(())
//! # }
//! ```
//!
//! # Modules
//!
//! - Services: `services` (one file per kind) and `run_request` (parses requests).
//! - Runs: `worker` (the shared state of all invocations), `durable` (drives one run step by step), `run_journal` (the
//!   port `PartJournal`), `steps` (the entries that the server stores).
//! - State: `session_context` (the context of a session) and `review` (answers that wait for a person).
//! - The socket: `socket`, with `platform`.

mod durable;
mod platform;
mod review;
mod run_journal;
mod run_request;
mod services;
mod session_context;
mod socket;
mod steps;
mod worker;

pub use services::{ANY_RUN, FRONT, OfferedService, SESSION, WorkerOffer};
pub use socket::{ListenOptions, listen, serve, shutdown_signal};
pub use worker::DurableWorker;
