//! The functions that differ between operating systems. `unix.rs` and `other.rs` have the same functions; no code
//! outside this folder checks the system.

#[cfg(all(unix, feature = "local"))]
mod memory;
#[cfg(not(unix))]
mod other;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(crate) use other::*;
#[cfg(unix)]
pub(crate) use unix::*;
