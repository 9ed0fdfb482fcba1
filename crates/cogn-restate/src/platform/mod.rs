//! What this crate asks of one kind of operating system. `unix.rs` and `other.rs` have the same functions; nothing outside
//! this folder asks which system it runs on.

#[cfg(not(unix))]
mod other;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(crate) use other::*;
#[cfg(unix)]
pub(crate) use unix::*;
