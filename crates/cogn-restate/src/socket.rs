//! The socket of a worker: HTTP/2 without TLS, the protocol between the Restate server and its services. Each
//! connection carries a limited number of runs, so that the server opens more connections and the load
//! spreads over several workers.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use restate_sdk::endpoint::Endpoint;
use restate_sdk::hyper::HyperEndpoint;
use tokio::net::{TcpListener, TcpSocket};

use crate::platform;

/// The queue length for connections that are not accepted yet. A short queue would refuse connections in a burst.
const BACKLOG: u32 = 1_024;
/// The longest time for runs in flight at shutdown; other workers take over the rest. Without it, one long run would
/// block the exit.
const GRACE: Duration = Duration::from_secs(10);
/// The ping interval for connections, so that a connection to a dead server does not block its runs.
const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// The address and the connection settings of a worker.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ListenOptions {
    /// The address.
    pub address: SocketAddr,
    /// Set if other workers on this machine listen on the same address.
    pub shared: bool,
    /// The most concurrent runs per connection.
    pub runs_per_connection: u32,
}

impl ListenOptions {
    /// The default options for this address.
    #[must_use]
    pub fn at(address: SocketAddr) -> Self {
        Self { address, shared: false, runs_per_connection: 16 }
    }
}

/// Opens the socket.
pub fn listen(options: &ListenOptions) -> io::Result<TcpListener> {
    let socket = if options.address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    if options.shared {
        platform::share_address(&socket)?;
    }
    socket.bind(options.address)?;
    socket.listen(BACKLOG)
}

/// Serves until `end` resolves, and then lets runs in flight finish for a limited time.
pub async fn serve(
    listener: TcpListener,
    endpoint: Endpoint,
    options: &ListenOptions,
    end: impl Future<Output = ()>,
) {
    let (service, graceful) = (HyperEndpoint::new(endpoint), GracefulShutdown::new());
    let mut end = std::pin::pin!(end);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut end => break,
        };
        // The client may have disconnected, or no file descriptor is free for a moment: neither ends the
        // worker.
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .max_concurrent_streams(options.runs_per_connection)
            .keep_alive_interval(KEEP_ALIVE);
        let connection = graceful.watch(builder.serve_connection(TokioIo::new(stream), service.clone()));
        tokio::spawn(async move {
            // The server reopens a broken connection.
            let _ = connection.await;
        });
    }
    let _ = tokio::time::timeout(GRACE, graceful.shutdown()).await;
}

/// Resolves when the process receives a termination signal or Ctrl-C.
pub async fn shutdown_signal() {
    platform::shutdown_signal().await;
}
