//! Outbound HTTP: the model providers behind one port, media that a caller names by URL, packages in registries, and the
//! download of one public file.
//!
//! [`provider`] turns a [`ProviderConfig`] into a [`Provider`](cognitive_contract::ports::Provider). Whatever the service,
//! the same holds: it is always asked to stream; it is bound to the lowered contract where it can be, and what it refuses
//! is tried with less and remembered; what is transient is tried again, twice at most and never after the first piece of
//! text; the whole call ends within its time; and an answer counts only if the service said that it is complete.
//!
//! Read the modules in this order: `kind` and `config` (what can be asked), `llm` (one file per service, and
//! `llm::remote`, the one loop that all of them share), `batches` (many requests at once, a file per service), `complaint` and `fault` (what a service or the network says
//! when it goes wrong), `retry`, `service` (connections), `frames` and `sse` (the wire), `secret` and `redact`, `probe`,
//! `proxy` and `tls` (the way there, and why it is closed), `client` (for all but models), `download`, `deployment` (workers of a Restate server), `otlp` (spans for a collector),
//! [`fetch`], which trusts nobody, and [`registry`] (packages, through the guard of `fetch`).
//!
//! ```
//! use cognitive_net::{Kind, ProviderConfig, Secret, provider};
//!
//! let config = ProviderConfig::new(Kind::parse("OpenAI").unwrap()).with_key(Secret::new("sk-not-a-real-key"));
//! assert!(!format!("{config:?}").contains("not-a-real-key"));
//! assert_eq!(provider(config).unwrap().name(), "openai");
//!
//! let error = provider(ProviderConfig::new(Kind::Anthropic)).err().unwrap();
//! assert!(error.to_string().ends_with("anthropic needs a key: set `ANTHROPIC_API_KEY`"));
//! ```
//!
//! This crate is the only one that opens a connection to the outside. It reads no environment variable — keys and
//! addresses are handed in; only the proxies of the machine are taken from where every program finds them — prints
//! nothing, knows no envelope and no prompt, and passes schemas through as they come. No text that leaves it carries a key.

mod batches;
mod client;
mod complaint;
mod config;
mod deployment;
mod download;
mod fault;
pub mod fetch;
mod frames;
mod kind;
mod llm;
mod otlp;
mod platform;
mod probe;
mod proxy;
mod redact;
pub mod registry;
mod retry;
mod secret;
mod service;
mod sse;
mod tls;

#[cfg(fuzzing)]
pub use llm::remote::fuzzing;

pub use batches::batch_service;
pub use config::{ProviderConfig, Proxies, is_on_this_machine, is_unprotected, provider};
pub use deployment::{DeployedService, Deployment, DeploymentRequest, register_deployment};
pub use download::{Download, DownloadError, FileSink};
pub use kind::Kind;
pub use otlp::{SpanExporter, SpanWorker, span_exporter};
pub use probe::{Probe, probe};
pub use retry::Pause;
pub use secret::Secret;
