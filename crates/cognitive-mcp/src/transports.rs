//! The ways in: the standard streams of a process that a client has started, and HTTP. Both speak every revision of the
//! protocol that the library knows; the newest needs no session.

use std::sync::Arc;

use rmcp::ServiceExt as _;
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::tower::StreamableHttpService;

use crate::server::McpServer;

/// Serves the process that holds the other ends of the standard streams, until it closes them. Nothing but the protocol may
/// be written to stdout meanwhile. The error is why no client could be served.
pub async fn serve_stdio(server: McpServer) -> Result<(), String> {
    let running =
        server.serve(rmcp::transport::io::stdio_pipes()).await.map_err(|error| error.to_string())?;
    running.waiting().await.map(drop).map_err(|error| error.to_string())
}

/// What answers requests over HTTP.
pub type McpHttpService = StreamableHttpService<McpServer, LocalSessionManager>;

/// The way in over HTTP. Clients of the newest revision need no session; older ones have one, which ends when it was idle for
/// five minutes.
pub struct McpHttp {
    /// Answers a request that was checked: it looks neither at hosts nor at keys.
    pub service: McpHttpService,
    sessions: Arc<LocalSessionManager>,
    server: McpServer,
}

impl McpHttp {
    /// A way in for requests whose bodies have at most so many bytes.
    #[must_use]
    pub fn new(server: McpServer, max_body: usize) -> Self {
        // Host and origin are checked by the server that this stands behind, for all of its paths alike.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_max_request_body_bytes(max_body);
        let sessions = Arc::new(LocalSessionManager::default());
        let each = server.clone();
        let service = StreamableHttpService::new(move || Ok(each.clone()), Arc::clone(&sessions), config);
        Self { service, sessions, server }
    }

    /// Looks at the modules at once, since somebody has changed one.
    pub fn look_again(&self) {
        self.server.look_again();
    }

    /// How many sessions are open.
    pub async fn open_sessions(&self) -> usize {
        self.sessions.sessions.read().await.len()
    }

    /// Ends all sessions and streams. Runs are ended by whoever admitted them.
    pub fn close(&self) {
        self.service.config.cancellation_token.cancel();
    }
}

impl std::fmt::Debug for McpHttp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpHttp").finish_non_exhaustive()
    }
}
