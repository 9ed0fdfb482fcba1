//! The operating system interface of this crate. `unix.rs` and `fallback.rs` provide the same functions; code
//! outside this folder does not depend on the platform.

#[cfg(not(unix))]
mod fallback;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(crate) use fallback::*;
#[cfg(unix)]
pub(crate) use unix::*;
