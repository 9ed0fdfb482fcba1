//! Turns flags, environment and configuration into providers, stores and limits, once for every surface: the command
//! line, the server, Python and Restate begin here, and the crate `cogn` shows the part that programs need. It never
//! prints, and downloads only what the caller requests. Its interface follows the surfaces and promises nothing.
//!
//! # Features
//!
//! All are on by default. `net`: model services, media by address, the export of spans. `local`: the embedded model.
//! `media`: media in inputs. `store`: audit and stored context. Without a feature everything compiles, and a call that
//! needs it fails with a reason.
//!
//! # Modules
//!
//! - The types of the crate `cogn`: `builder`, `runtime` and `module_run`.
//! - Configuration: [`env_vars`] (every variable that is read), [`config`] (the keys of a file), [`layers`] (reads the
//!   files), [`settings`] (the order of precedence), [`serve_config`], [`review_config`], [`project_root`] (finds the
//!   project) and [`trust`] (what an untrusted project may not set).
//! - Wiring: [`wiring`] (the only module that combines a provider and a `Host`), [`services`] and [`named_models`]
//!   (the models that can be named), [`planned_models`] (the models that a plan would call), [`prices`], [`stores`] (the
//!   database), [`media`], `collector` (the connection to a trace collector), [`module_editor`] (module files that authors
//!   edit) and `timer`.
//! - The embedded model: [`embedded_model`] (the provider), [`weights`] (find, verify, download and share weights),
//!   [`training`].
//! - The process: [`async_runtime`] (the only creator of tokio runtimes, except for the PostgreSQL connection),
//!   [`out_file`] (writes the files that users name) and `platform`.

pub mod async_runtime;
mod builder;
#[cfg(feature = "net")]
pub mod collector;
pub mod config;
pub mod embedded_model;
pub mod env_vars;
pub mod layers;
pub mod media;
pub mod module_editor;
mod module_run;
pub mod named_models;
pub mod out_file;
pub mod planned_models;
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

pub use builder::{RuntimeBuilder, WeightsDownload};
pub use module_run::ModuleRun;
pub use runtime::Runtime;

use cognitive_contract::Failure;

/// The result of fallible functions of this crate. A [`Failure`] is an error with a published code and a hint.
pub type Result<T, E = Failure> = std::result::Result<T, E>;
