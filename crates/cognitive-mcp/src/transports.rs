//! The ways in: the standard streams of a process that a client has started, and HTTP. Both speak every revision of the
//! protocol that the library knows; the newest needs no session.

use std::sync::Arc;

use rmcp::ServiceExt as _;
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::tower::StreamableHttpService;

use crate::server::McpServer;

/// The service behind `/mcp`. Call it with requests that were checked: it looks neither at hosts nor at keys.
pub type McpHttpService = StreamableHttpService<McpServer, LocalSessionManager>;

/// Serves the process that holds the other ends of the standard streams, until it closes them. Nothing but the protocol may
/// be written to stdout meanwhile. The error is why no client could be served.
pub async fn serve_stdio(server: McpServer) -> Result<(), String> {
    let running =
        server.serve(rmcp::transport::io::stdio_pipes()).await.map_err(|error| error.to_string())?;
    running.waiting().await.map(drop).map_err(|error| error.to_string())
}

/// Serves requests over HTTP.
#[must_use]
pub fn http_service(server: McpServer, max_body: usize) -> McpHttpService {
    // Host and origin are checked by the server that this stands behind, for all of its paths alike.
    let config =
        StreamableHttpServerConfig::default().disable_allowed_hosts().with_max_request_body_bytes(max_body);
    StreamableHttpService::new(move || Ok(server.clone()), Arc::new(LocalSessionManager::default()), config)
}
