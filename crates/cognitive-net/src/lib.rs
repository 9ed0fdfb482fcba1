//! Outbound HTTP: the model providers behind one port, media that a caller names by URL, packages in registries, and
//! the download of one public file.
//!
//! [`provider`] turns a [`ProviderConfig`] into a [`Provider`](cognitive_contract::ports::Provider). The same rules
//! apply to every service:
//!
//! - Every request asks for a stream.
//! - The output is bound to the lowered contract where the service supports it. If the service refuses a feature, the
//!   request is sent without it, and the refusal is remembered.
//! - Transient errors are retried, at most twice and never after the first piece of text.
//! - The whole call ends within its timeout.
//! - An answer counts only if the service reported that it is complete.
//!
//! This is the only crate that opens connections to the outside. It reads no environment variables except the proxy
//! variables: keys and addresses are parameters. It prints nothing, knows neither envelopes nor prompts, and passes
//! schemas through unchanged. No text that it returns contains a key.
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
//! # Modules
//!
//! In reading order:
//!
//! 1. `kind` and `config`: the supported providers.
//! 2. `llm`: one file per service, and `llm::remote`, the loop that all of them share.
//! 3. `batches`: batch endpoints, one file per service.
//! 4. `complaint` and `fault`: errors of services and the network; `retry`.
//! 5. `service`: connections; `frames` and `sse`: the wire formats.
//! 6. `secret` and `redact`: keys; `probe`: checks a service; `proxy` and `tls`: the route to a service and its errors.
//! 7. `client`: HTTP clients for everything except models; `download`; `deployment`: workers of a Restate server;
//!    `otlp`: spans for a collector.
//! 8. [`fetch`]: untrusted URLs; [`registry`]: packages, through the guard of `fetch`.
//! 9. `platform`: system-specific code.

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
