//! The transports: stdio of a process that a client has started, and HTTP. Both support every protocol revision of
//! the library; the newest needs no session.

use std::collections::HashSet;
use std::sync::Arc;

use rmcp::ServiceExt as _;
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::tower::StreamableHttpService;

use crate::server::McpServer;

/// Serves the process at the other end of stdio until it closes its streams. Only protocol messages may be written to
/// stdout meanwhile. The error says why the client could not be served.
pub async fn serve_stdio(server: McpServer) -> Result<(), String> {
    let running =
        server.serve(rmcp::transport::io::stdio_pipes()).await.map_err(|error| error.to_string())?;
    running.waiting().await.map(drop).map_err(|error| error.to_string())
}

/// The service that answers HTTP requests.
pub type McpHttpService = StreamableHttpService<McpServer, LocalSessionManager>;

/// The HTTP transport. Clients of the newest revision need no session. Older clients have one, which ends after five
/// idle minutes, unless several servers share the clients.
pub struct McpHttp {
    /// Answers an already authorised request: it checks neither hosts nor keys.
    pub service: McpHttpService,
    sessions: Arc<LocalSessionManager>,
    server: McpServer,
}

impl McpHttp {
    /// Creates a transport for requests with bodies of at most `max_body` bytes. Without sessions, each request of an
    /// older client is answered alone, so that any of several servers can answer it.
    #[must_use]
    pub fn new(server: McpServer, max_body: usize, has_sessions: bool) -> Self {
        // The enclosing server checks host and origin for all of its paths.
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(has_sessions)
            .disable_allowed_hosts()
            .with_max_request_body_bytes(max_body);
        let sessions = Arc::new(LocalSessionManager::default());
        let each = server.clone();
        let service = StreamableHttpService::new(move || Ok(each.clone()), Arc::clone(&sessions), config);
        Self { service, sessions, server }
    }

    /// Triggers a scan of the modules after one was changed.
    pub fn rescan(&self) {
        self.server.rescan();
    }

    /// Returns the ids of the open sessions.
    pub async fn open_sessions(&self) -> HashSet<String> {
        self.sessions.sessions.read().await.keys().map(ToString::to_string).collect()
    }

    /// Ends a session, if it is open. Its client gets the answer for an unknown session and opens another one.
    pub async fn end_session(&self, id: &str) {
        // The session may have ended by itself.
        let _ = self.sessions.close_session(&id.into()).await;
    }

    /// Ends all sessions and streams. Runs are ended by the surface that admitted them.
    pub fn close(&self) {
        self.service.config.cancellation_token.cancel();
    }
}

impl std::fmt::Debug for McpHttp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpHttp").finish_non_exhaustive()
    }
}
