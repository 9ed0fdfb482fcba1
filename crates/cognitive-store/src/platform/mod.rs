//! Functions that depend on the operating system. `unix.rs` and `fallback.rs` provide the same functions; code outside
//! this folder has no platform conditions.

#[cfg(not(unix))]
mod fallback;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(crate) use fallback::*;
#[cfg(unix)]
pub(crate) use unix::*;
