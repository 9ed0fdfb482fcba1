//! Operating system specific code of this crate, with a fallback for other systems.

use std::io;

use tokio::net::TcpSocket;

/// Lets a stopped server restart at once on the same port.
#[cfg(not(windows))]
pub(crate) fn allow_restart(socket: &TcpSocket) -> io::Result<()> {
    socket.set_reuseaddr(true)
}

/// Windows allows that anyway; there the option would let two servers share a port.
#[cfg(windows)]
pub(crate) fn allow_restart(_: &TcpSocket) -> io::Result<()> {
    Ok(())
}
