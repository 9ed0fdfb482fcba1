//! Platforms without a socket that every loop can watch: the loop is woken through Python.

use std::io;

/// No sockets are needed.
pub(crate) type WakingSockets = ();

/// Returns no sockets.
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
pub(crate) fn waking_sockets() -> io::Result<WakingSockets> {
    Ok(())
}

/// Returns `None`, because there is no socket.
pub(crate) fn watched_socket((): &WakingSockets) -> Option<i32> {
    None
}

/// Returns false, so that the caller wakes the loop in another way.
pub(crate) fn wake((): &WakingSockets) -> bool {
    false
}

/// Does nothing.
pub(crate) fn drain((): &WakingSockets) {}
