//! Unix: several workers share an address, and the system hands each of them some of the connections.

use std::io;

use tokio::net::TcpSocket;
use tokio::signal::unix::{SignalKind, signal};

/// Lets other processes of this user listen on the same address.
pub(crate) fn share_address(socket: &TcpSocket) -> io::Result<()> {
    socket.set_reuseport(true)
}

/// Resolves when somebody asks the process to end.
pub(crate) async fn asked_to_end() {
    let Ok(mut terminated) = signal(SignalKind::terminate()) else { return std::future::pending().await };
    tokio::select! {
        _ = terminated.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}
