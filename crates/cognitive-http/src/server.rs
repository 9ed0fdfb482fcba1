//! The listener: accepts connections, limits their number, and closes them in order when the server stops.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{Semaphore, watch};

use crate::app::{App, AppState};
use crate::auth::{Peer, guard};
use crate::connection::Wire;
use crate::connection_limit::AddressConnections;
use crate::{other_servers, platform, routes};

/// The interval at which expired streams are removed. Their memory is free at most this much later.
const SWEEP: Duration = Duration::from_secs(5);
/// The pause after the system had no file handle or memory for one more connection. Without it, the accept loop would
/// keep a processor busy.
const BREATH: Duration = Duration::from_millis(50);
/// The time for connections to close after their streams have ended. Without it, a client that keeps its connection
/// open would block the exit.
const FAREWELL: Duration = Duration::from_secs(2);

/// The send buffer of the system per client, in bytes. A larger one would hide a slow client for minutes, and
/// thousands of idle readers would fill the memory.
const SEND_BUFFER: u32 = 128 << 10;
/// The backlog of connections to accept: the maximum, which the system caps at its own limit.
const QUEUE: u32 = i32::MAX.cast_unsigned();

/// Listens on an address, ready for a burst of connections.
pub fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv6() { TcpSocket::new_v6() } else { TcpSocket::new_v4() }?;
    platform::allow_restart(&socket)?;
    // Connections inherit the buffer size of their listener.
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.bind(address)?;
    socket.listen(QUEUE)
}

/// Serves until `stop` resolves. Then lets open streams finish within their limit, and ends the others with an error
/// chunk.
pub async fn serve(app: App, listener: TcpListener, stop: impl Future<Output = ()> + Send) {
    let routes = routes::router(Arc::clone(&app.0));
    let config = &app.0.config;
    let most = u32::try_from(config.connections.min(Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
    let places = Arc::new(Semaphore::new(most as usize));
    let per_address = AddressConnections::new(config.connections_per_address);
    let closing = watch::Sender::new(false);
    let mut sweep = tokio::time::interval(SWEEP);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(config.read_timeout).max_buf_size(64 << 10);
    // Messages of other servers are handled also while the last streams end.
    let others = other_servers::follow_servers(&app.0);
    tokio::pin!(stop, others);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = sweep.tick() => {
                app.0.sessions.sweep(config.replay);
                continue;
            }
            () = &mut stop => break,
            () = &mut others => continue,
        };
        let Ok((stream, address)) = accepted else {
            tokio::time::sleep(BREATH).await;
            continue;
        };
        // Above the limit a connection is closed at once instead of queued, so the client notices immediately.
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
        let Some(seat) = per_address.admit(address.ip()) else { continue };
        // Chunks are small and read as they arrive, so they are not delayed.
        let _ = stream.set_nodelay(true);
        let wire = Wire::new(stream, (place, seat), config.write_timeout);
        let service = guard_connection(Arc::clone(&app.0), routes.clone(), address);
        let (http, closing) = (http.clone(), closing.subscribe());
        tokio::spawn(async move { connection(&http, wire, service, closing).await });
    }
    drop(listener);
    tokio::select! {
        () = app.drain() => {}
        () = &mut others => {}
    }
    closing.send_replace(true);
    // All streams have sent their last chunk; once every permit is free again, all connections are closed.
    let _ = tokio::time::timeout(FAREWELL, places.acquire_many(most)).await;
}

/// Returns the guarded routes for one connection.
fn guard_connection(
    shared: Arc<AppState>,
    routes: Router,
    address: SocketAddr,
) -> impl HttpService<Incoming, ResBody = Body, Error = Infallible, Future: Send> {
    let peer = Peer::new(Some(address.ip()));
    service_fn(move |request: Request<Incoming>| {
        let (shared, routes, peer) = (Arc::clone(&shared), routes.clone(), peer.clone());
        async move { Ok(guard(shared, routes, peer, request.map(Body::new)).await) }
    })
}

/// Serves one connection to its end. During shutdown it finishes the current request and accepts no more.
async fn connection(
    http: &http1::Builder,
    wire: Wire,
    service: impl HttpService<Incoming, ResBody = Body, Error = Infallible, Future: Send>,
    mut closing: watch::Receiver<bool>,
) {
    let connection = http.serve_connection(TokioIo::new(wire), service).with_upgrades();
    tokio::pin!(connection);
    tokio::select! {
        // An error here concerns only the client's connection, and the client is gone.
        _ = connection.as_mut() => return,
        _ = closing.wait_for(|closing| *closing) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
