//! The functions that depend on the operating system. `unix.rs` and `other.rs` have the same ones; code outside this
//! folder does not check the system.

#[cfg(not(unix))]
mod other;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(crate) use other::*;
#[cfg(unix)]
pub(crate) use unix::*;
