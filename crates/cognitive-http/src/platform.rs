//! What this crate asks of one kind of operating system; elsewhere there is a fallback.

use std::io;

use tokio::net::TcpSocket;

/// Lets a server that was stopped start again at once on the same port.
#[cfg(not(windows))]
pub(crate) fn allow_restart(socket: &TcpSocket) -> io::Result<()> {
    socket.set_reuseaddr(true)
}

/// Windows allows it anyway; there the option would let two servers share a port.
#[cfg(windows)]
pub(crate) fn allow_restart(_: &TcpSocket) -> io::Result<()> {
    Ok(())
}
