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

/// What asked a run to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(unix), expect(dead_code, reason = "elsewhere Ctrl-C is the only signal"))]
pub(crate) enum StopSignal {
    /// Ctrl-C.
    Interrupt,
    /// Whoever looks after processes wants it gone.
    Terminate,
    /// The terminal was closed.
    Hangup,
}
