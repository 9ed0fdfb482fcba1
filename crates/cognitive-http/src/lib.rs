//! Serves modules over HTTP: `POST /api/run/{module}` and its aliases, streams by SSE, NDJSON and WebSocket, and the
//! endpoints for operators. Contains no rules about modules or envelopes: every request is passed to
//! `cognitive_runtime`.
//!
//! The modules in the order of one request: `server` accepts the connection, `connection` wraps its socket and
//! `connection_limit` counts it. `auth` is the guard around all `routes`: `admission` authenticates the client and
//! `operations` is the table of endpoints. `intake` reads the body, `request` parses its options and `catalog` finds
//! the module. `run` runs it and `counted_run` counts it. `session` buffers what a stream has sent in a `stream_log`;
//! `sessions` holds the streams that can be resumed. `response` maps an envelope to a status and headers; `transport`
//! writes streams; `pace` disconnects slow readers.
//!
//! WebSocket: `handshake`, `frames`, `websocket`. Several servers: `shared_state` is the state they share,
//! `shared_streams` resumes a stream at another server, `other_servers` exchanges messages. Limits: `limits` for
//! rates and streams, `memory_budget` for memory. Media: `uploads` receives media before a run, `files` serves those
//! of answers. `mcp` serves agents; `studio` serves the web page for people and its API.

pub mod config;

mod admission;
mod app;
mod auth;
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
mod ready;
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
pub use config::{AccessRecord, ApiKey, Complaints, NamedModel, ServerConfig};
pub use origin::origin;
pub use ready::ask_ready;
pub use roles::{KeyRole, Roles};
pub use server::{listen, serve};
pub use shared_state::{ServerWord, SharedPart, SharedState, SharedStream};
