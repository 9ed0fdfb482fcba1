//! The pipeline: input in, one envelope out, whatever the model, the network or the caller does.
//!
//! Every surface — command line, HTTP, MCP, another module — enters by [`run`](run::run), [`stream()`] or
//! [`repeat()`], a program also by [`run_by_contract`] or [`chunks()`], and hands in a [`Host`]: the library of modules and a
//! provider behind a port. The stages are one file each, in the order of the run, and what one stage hands to the next is
//! a type that only that stage can make.
//!
//! Opens no socket and no file of its own, reads no environment variable, writes to no terminal. Does not know HTTP
//! status codes, exit codes or MCP. Always returns an [`Envelope`](cognitive_contract::Envelope).

mod canonical;
pub mod chunks;
pub mod clock;
pub mod compose;
pub mod declare;
mod departure;
pub mod host;
pub mod ids;
mod kept;
pub mod live;
pub mod memory;
mod panics;
mod pipeline;
pub mod preview;
pub mod receipt;
pub mod repeat;
pub mod replay;
pub mod reply;
pub mod run;
pub mod spans;
pub mod stages;
pub mod stream;
pub mod throw;
pub mod tools;
mod trail;

pub use chunks::{Chunks, chunks};
pub use clock::Clock;
pub use declare::{CONFORMANCE_LEVEL, declaration};
pub use departure::DEFAULT_MAX_CALLS;
pub use host::{Host, RunOptions, RunRequest};
pub use memory::Memory;
pub use preview::{Preview, preview};
pub use repeat::{repeat, repeat_until};
pub use replay::Replay;
pub use run::{run, run_until};
pub use spans::SpanPlace;
pub use stream::{Delivery, Stream, session_id, stream};
pub use throw::{Thrown, run_by_contract};
