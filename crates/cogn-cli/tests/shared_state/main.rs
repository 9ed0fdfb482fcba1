//! Three servers on one PostgreSQL and one Redis: one is killed under two hundred streams, and nobody pays twice or loses what was
//! acknowledged; limits and the audit are one for all of them; and what happens when the database or Redis stands still.

#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in a test, a panic is the report"
)]

mod cancel;
mod copies;
mod lists;
mod logins;
mod outage;
mod service;
mod sockets;
mod streams;
mod tls;
mod trouble;
mod uploads;
