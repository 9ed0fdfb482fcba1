//! Functions that depend on the operating system. `unix.rs` and `other.rs` provide the same functions; code outside
//! this folder has no platform conditions.

#[cfg(not(unix))]
mod other;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(crate) use other::*;
#[cfg(unix)]
pub(crate) use unix::*;
