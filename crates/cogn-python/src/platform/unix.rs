//! Wakes an event loop by writing a byte to a socket that it watches.

use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;

/// Two ends: a write to the first wakes the loop that watches the second.
pub(crate) type WakingSockets = (UnixStream, UnixStream);

/// Opens a socket pair. Fails if no more files can be opened.
pub(crate) fn waking_sockets() -> io::Result<WakingSockets> {
    let (near, far) = UnixStream::pair()?;
    near.set_nonblocking(true)?;
    far.set_nonblocking(true)?;
    Ok((near, far))
}

/// Returns the descriptor of the socket that a loop has to watch.
#[expect(clippy::unnecessary_wraps, reason = "other systems have none")]
pub(crate) fn watched_socket((_, far): &WakingSockets) -> Option<i32> {
    Some(far.as_raw_fd())
}

/// Wakes the watching loop. Returns whether that is possible.
pub(crate) fn wake((near, _): &WakingSockets) -> bool {
    let mut near = near;
    // If the socket is full, the loop is being woken anyway.
    let _ = near.write(&[1]);
    true
}

/// Drains the socket after the loop has woken.
pub(crate) fn drain((_, far): &WakingSockets) {
    let mut far = far;
    let _ = far.read(&mut [0; 64]);
}
