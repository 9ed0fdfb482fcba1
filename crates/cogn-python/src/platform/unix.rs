//! Waking an event loop by a byte on a socket that it watches.

use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;

/// Two ends: what is written to the first wakes whoever watches the second.
pub(crate) type WakingSockets = (UnixStream, UnixStream);

/// A pair of its own. Fails where no file can be opened any more.
pub(crate) fn waking_sockets() -> io::Result<WakingSockets> {
    let (near, far) = UnixStream::pair()?;
    near.set_nonblocking(true)?;
    far.set_nonblocking(true)?;
    Ok((near, far))
}

/// The number of the socket that a loop has to watch.
#[expect(clippy::unnecessary_wraps, reason = "elsewhere there is none")]
pub(crate) fn watched((_, far): &WakingSockets) -> Option<i32> {
    Some(far.as_raw_fd())
}

/// Wakes whoever watches; says whether that is possible.
pub(crate) fn wake((near, _): &WakingSockets) -> bool {
    let mut near = near;
    // A full socket wakes the loop as well.
    let _ = near.write(&[1]);
    true
}

/// Takes note that the loop is awake.
pub(crate) fn rest((_, far): &WakingSockets) {
    let mut far = far;
    let _ = far.read(&mut [0; 64]);
}
