//! Unix: several workers share an address, and the kernel distributes connections among them.

use std::io;

use tokio::net::TcpSocket;
use tokio::signal::unix::{SignalKind, signal};

/// Allows other processes of this user to listen on the same address.
pub(crate) fn share_address(socket: &TcpSocket) -> io::Result<()> {
    socket.set_reuseport(true)
}

/// Resolves when the process receives SIGTERM or Ctrl-C.
pub(crate) async fn shutdown_signal() {
    let Ok(mut terminated) = signal(SignalKind::terminate()) else { return std::future::pending().await };
    tokio::select! {
        _ = terminated.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}
