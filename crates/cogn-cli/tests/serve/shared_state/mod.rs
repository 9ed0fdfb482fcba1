//! Three servers on one PostgreSQL and one Redis. One is killed under two hundred streams: no call is paid twice and no
//! acknowledged data is lost. Limits and the audit are shared. Also the behaviour while the database or Redis hangs.

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
