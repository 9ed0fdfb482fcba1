//! Modules over HTTP: `POST /api/run/{module}` and its aliases, streams by SSE, NDJSON and WebSocket, and what operators
//! need around them. Has no rule about modules or envelopes: every request enters by `cognitive_runtime`.
//!
//! One request, start to finish: `server` accepts the connection as a `wire`, `operations` is the table, `guard` says who asks
//! and `admission` whether they may, `intake` takes their body in, `ask` reads what they want, `catalog` finds the module, `run` runs it, `session` keeps the `log` of
//! what a stream has sent, `sessions` those that can be taken up again, and `answer` gives every envelope its status and headers.
//! `shared_state` is what several servers share, `shared_streams` how a stream goes on at another of them,
//! `other_servers` what they tell each other.
//! `uploads` takes media that are sent ahead; `files` gives back those of answers. `mcp` lets agents in. `studio` is the page for
//! people, with what it needs besides.

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
