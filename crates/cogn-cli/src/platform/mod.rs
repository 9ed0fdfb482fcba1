//! The functions that differ between operating systems. `unix.rs` and `fallback.rs` have the same functions; no code
//! outside this folder checks the system.

#[cfg(not(unix))]
mod fallback;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(crate) use fallback::*;
#[cfg(unix)]
pub(crate) use unix::*;

/// The signal that cancelled a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(unix), expect(dead_code, reason = "elsewhere Ctrl-C is the only signal"))]
pub(crate) enum StopSignal {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM, for example from a process supervisor.
    Terminate,
    /// The terminal was closed.
    Hangup,
}

/// The request of a signal to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(unix), expect(dead_code, reason = "elsewhere Ctrl-C is the only signal"))]
pub(crate) enum ServerSignal {
    /// Ends the server after the runs in flight.
    Stop,
    /// Reads the keys again.
    Reload,
}
