//! Other systems: only one worker per address.

use std::io;

use tokio::net::TcpSocket;

/// Fails, because processes cannot share an address here.
pub(crate) fn share_address(_: &TcpSocket) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "on this system, two processes cannot share an address"))
}

/// Resolves on Ctrl-C.
pub(crate) async fn shutdown_signal() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
