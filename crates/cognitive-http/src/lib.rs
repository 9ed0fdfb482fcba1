//! Modules over HTTP: `POST /api/run/{module}` and its aliases, streams by SSE, NDJSON and WebSocket, and what operators
//! need around them. Has no rule about modules or envelopes: every request enters by `cognitive_runtime`.
//!
//! One request, start to finish: `server` accepts the connection, `routes` is the table, `guard` says who asks and
//! whether they may, `ask` reads what they want, `run` runs it, `session` keeps what a stream has sent, and `answer`
//! gives every envelope its status and headers.

pub mod config;

mod answer;
mod app;
mod ask;
mod guard;
mod limits;
mod metrics;
mod openapi;
mod pages;
mod routes;
mod run;
mod server;
mod session;
mod trace;
mod transport;
mod websocket;

pub use app::App;
pub use config::{AccessRecord, ApiKey, ServerConfig};
pub use server::serve;
