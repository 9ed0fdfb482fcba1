//! Other systems: one worker for each address.

use std::io;

use tokio::net::TcpSocket;

/// No process shares its address here.
pub(crate) fn share_address(_: &TcpSocket) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this system lets no two processes share an address"))
}

/// Resolves when somebody asks the process to end.
pub(crate) async fn asked_to_end() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
