//! Run Cognitive Modules, AI tasks with a contract, from a Rust program.
//!
//! ```
//! use cogn::{Runtime, json};
//!
//! #[tokio::main]
//! async fn main() -> cogn::Result<()> {
//!     let runtime = Runtime::from_env()?; // modules, provider and stores as the command line has them
//!     let input = json!({ "text": "What a wonderful day, everything went well!" });
//!     let envelope = runtime.module("text-classifier")?.input(input).run().await; // an envelope, always
//!     match envelope.into_result() {
//!         Ok(data) => println!("{}", data["sentiment"]),
//!         Err(failure) => println!("{failure:?}"), // its code, what happened, and a hint
//!     }
//!     Ok(())
//! }
//! ```
//!
//! A [`Runtime`] has modules, a provider, stores and limits. [`Runtime::from_env`] resolves them like the command line
//! does; [`Runtime::builder`] takes them one by one and reads nothing else. [`Runtime::module`] prepares a run; its
//! answer is an [`Envelope`], whole or as a [`Stream`] of [`Chunk`]s. [`Envelope::data_as`] deserializes it into a type
//! of the program. A [`Failure`] is an error with a published code and a hint. The folder `examples` shows each of them
//! and a custom [`Provider`].
//!
//! The modules of this crate turn flags, environment and configuration into providers, stores and limits, once for
//! every surface: the command line and the server use them too. They never print, and download only what the caller
//! requests.
//!
//! # Features
//!
//! All are on by default. `net`: model services, media by address, the export of spans. `local`: the embedded model.
//! `media`: media in inputs. `store`: audit and stored context. Without a feature everything compiles, and a call that
//! needs it fails with a reason.
//!
//! # Modules
//!
//! - For programs: `builder`, `runtime` and `module_run`.
//! - Configuration: [`env_vars`] (every variable that is read), [`config`] (the keys of a file), [`layers`] (reads the
//!   files), [`settings`] (the order of precedence), [`serve_config`], [`review_config`], [`project_root`] (finds the
//!   project) and [`trust`] (what an untrusted project may not set).
//! - Wiring: [`wiring`] (the only module that combines a provider and a [`Host`]), [`services`] and [`named_models`]
//!   (the models that can be named), [`planned`] (the models that a plan would call), [`prices`], [`stores`] (the
//!   database), [`media`], `collector` (the connection to a trace collector), [`workshop`] (module files that authors
//!   edit) and `timer`.
//! - The embedded model: [`embedded`] (the provider), [`weights`] (find, verify, download and share weights),
//!   [`training`].
//! - The process: [`async_runtime`] (the only creator of tokio runtimes, except for the PostgreSQL connection),
//!   [`out_file`] (writes the files that users name) and `platform`.

pub mod async_runtime;
mod builder;
#[cfg(feature = "net")]
pub mod collector;
pub mod config;
pub mod embedded;
pub mod env_vars;
pub mod layers;
pub mod media;
mod module_run;
pub mod named_models;
pub mod out_file;
pub mod planned;
mod platform;
pub mod prices;
pub mod project_root;
pub mod review_config;
mod runtime;
pub mod serve_config;
pub mod services;
pub mod settings;
pub mod stores;
mod timer;
pub mod training;
pub mod trust;
pub mod weights;
pub mod wiring;
pub mod workshop;

pub use builder::{RuntimeBuilder, WeightsDownload};
pub use module_run::ModuleRun;
pub use runtime::Runtime;

pub use cognitive_contract::money::Money;
pub use cognitive_contract::ports::ModuleSource;
pub use cognitive_contract::ports::{
    CallSink, DecodeMode, Event, EventSink, Finish, ModelCall, ModelEnd, PortFuture, Provider, ProviderError,
};
pub use cognitive_contract::stream::Chunk;
pub use cognitive_contract::tools::{Tool, ToolSpec};
pub use cognitive_contract::{Envelope, ErrorCode, Failure, Meta, Module, Outcome};
pub use cognitive_runtime::{Host, RunOptions};
pub use futures_util::{Stream, StreamExt};
pub use serde_json::{Value, json};

/// The result of fallible functions of this crate. A [`Failure`] is an error with a published code and a hint.
pub type Result<T, E = Failure> = std::result::Result<T, E>;
