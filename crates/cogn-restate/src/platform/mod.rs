//! The operating system interface of this crate. `unix.rs` and `other.rs` provide the same functions; code
//! outside this folder does not depend on the platform.

#[cfg(not(unix))]
mod other;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(crate) use other::*;
#[cfg(unix)]
pub(crate) use unix::*;
