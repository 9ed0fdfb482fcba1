//! Serves modules over HTTP: `POST /api/run/{module}` and its aliases, streams by SSE, NDJSON and WebSocket, and the
//! endpoints for operators. Contains no rules about modules or envelopes: every request is passed to
//! `cognitive_runtime`.
//!
//! # Modules
//!
//! In the order of one request:
//!
//! 1. The connection: `server` accepts it, `connection` wraps its socket, `connection_limit` counts it. `app` holds the
//!    state that all requests share, [`config`] its settings.
//! 2. Access: `auth` is the guard around all `routes`. `admission` authenticates the client, `operations` is the table
//!    of endpoints, `roles` the roles of keys, `origin` the listed web origins.
//! 3. The request: `intake` reads the body within the `memory_budget`, `request` parses its options, `catalog` finds
//!    the module, `limits` applies rates.
//! 4. The run: `run` runs it, `counted_run` and `metrics` count it, `spans` and `trace` connect it to a trace.
//! 5. Streams: `session` buffers what a stream has sent in a `stream_log`, `sessions` holds the streams that can be
//!    resumed, `transport` writes them, `pace` disconnects slow readers. WebSocket: `handshake`, `frames`, `websocket`.
//! 6. The response: `response` maps an envelope to a status and headers, whose names are in `header_names`.
//!
//! For several servers, `shared_state` is the port to the state they share, and `redis` implements it (feature
//! `redis`). `shared_streams` resumes a stream at another server, and `other_servers` exchanges messages. `uploads`
//! receives media before a run, `files` serves those of answers.
//!
//! `openapi`, `components`, `schemas` and `client_form` describe the API. `pages` and `overview` describe the server
//! and its modules. `mcp` serves agents, whose sessions have owners in
//! `agent_sessions`, and `studio` serves the web page for people and its API. `readiness` checks
//! another server. `platform` has system-specific code.

pub mod config;
#[cfg(feature = "redis")]
pub mod redis;

mod admission;
mod agent_sessions;
mod app;
mod auth;
mod author_queue;
mod catalog;
mod client_form;
mod components;
mod connection;
mod connection_limit;
mod counted_run;
mod files;
mod frames;
mod handshake;
mod header_names;
mod intake;
mod limits;
mod mcp;
mod memory_budget;
mod metrics;
mod openapi;
mod operations;
mod origin;
mod other_servers;
mod overview;
mod pace;
mod pages;
mod platform;
mod readiness;
mod request;
mod response;
mod roles;
mod routes;
mod run;
mod schemas;
mod server;
mod session;
mod sessions;
mod shared_state;
mod shared_streams;
mod spans;
mod stream_log;
mod studio;
mod trace;
mod transport;
mod uploads;
mod websocket;

pub use app::App;
pub use components::client_types;
pub use config::{AccessRecord, ApiKey, Complaints, NamedModel, ServerConfig};
pub use origin::origin;
pub use readiness::check_ready;
pub use roles::{KeyRole, Roles};
pub use server::{listen, serve};
pub use shared_state::{ServerWord, SharedPart, SharedState, SharedStream};
