//! The socket of a worker: HTTP/2 without TLS, as the Restate server speaks it to services. Every connection carries a bounded
//! number of runs, so that the server opens more of them and several workers get their share.

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

/// Connections that wait to be taken.
const BACKLOG: u32 = 1_024;
/// How long runs may go on after the worker was asked to end; the rest is made by other workers.
const GRACE: Duration = Duration::from_secs(10);
/// How often a connection is tried, so that one whose server is gone does not hold its runs.
const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// Where and how a worker listens.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ListenOptions {
    /// The address.
    pub address: SocketAddr,
    /// Whether other workers of this machine listen there as well.
    pub shared: bool,
    /// How many runs one connection carries at a time.
    pub runs_per_connection: u32,
}

impl ListenOptions {
    /// The usual way, at this address.
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

/// Serves until `end` resolves, and for a while what is under way then.
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
        // A client that is gone already, or no file left for a moment: neither ends the worker.
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
            // A connection that breaks is the server's to open again.
            let _ = connection.await;
        });
    }
    let _ = tokio::time::timeout(GRACE, graceful.shutdown()).await;
}

/// Resolves when the process is asked to end, by a signal or by Ctrl-C.
pub async fn asked_to_end() {
    platform::asked_to_end().await;
}
