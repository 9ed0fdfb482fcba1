//! Elsewhere there is no socket that every loop watches; the loop is woken through Python.

use std::io;

/// Nothing.
pub(crate) type WakingSockets = ();

/// Nothing has to be opened.
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
pub(crate) fn waking_sockets() -> io::Result<WakingSockets> {
    Ok(())
}

/// There is no socket.
pub(crate) fn watched((): &WakingSockets) -> Option<i32> {
    None
}

/// Says that it cannot.
pub(crate) fn wake((): &WakingSockets) -> bool {
    false
}

/// There is nothing to take note of.
pub(crate) fn rest((): &WakingSockets) {}
