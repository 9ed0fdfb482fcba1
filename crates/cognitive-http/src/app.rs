//! What all requests share: the host, the configuration, and what is going on right now.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use cognitive_contract::{ErrorCode, Failure, Module};
use cognitive_runtime::Host;
use tokio::sync::watch;

use crate::config::ServerConfig;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::session::Sessions;

/// A server without a socket. Cheap to clone.
#[derive(Clone)]
pub struct App(pub(crate) Arc<Shared>);

/// What all requests share.
pub(crate) struct Shared {
    pub(crate) host: Host,
    pub(crate) config: ServerConfig,
    pub(crate) limits: Arc<Limits>,
    pub(crate) sessions: Sessions,
    pub(crate) metrics: Metrics,
    /// Set when the server takes no more work.
    pub(crate) draining: watch::Sender<bool>,
}

impl App {
    /// A server that runs modules on `host`.
    #[must_use]
    pub fn new(host: Host, config: ServerConfig) -> Self {
        let limits = Arc::new(Limits::new(config.runs_per_minute, config.streams_per_client));
        Self(Arc::new(Shared {
            host,
            config,
            limits,
            sessions: Sessions::default(),
            metrics: Metrics::default(),
            draining: watch::Sender::new(false),
        }))
    }

    /// The routes, for a server of your own or for tests without a socket.
    pub fn router(&self) -> Router {
        crate::routes::router(Arc::clone(&self.0))
    }

    /// Takes no more work, gives open streams the time that was configured, then ends each with an error chunk.
    pub async fn drain(&self) {
        self.0.draining.send_replace(true);
        let gone = async {
            while self.0.sessions.open() > 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        if tokio::time::timeout(self.0.config.drain, gone).await.is_err() {
            let reason = Failure::new(ErrorCode::StreamInterrupted, "the server is shutting down");
            self.0.sessions.cancel_all(&reason.suggest("Ask again in a moment"));
        }
    }
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").finish_non_exhaustive()
    }
}

impl Shared {
    /// A module by its name. A path, which the command line takes as well, is none: a caller from outside has no
    /// business with other folders.
    pub(crate) fn module(&self, name: &str) -> Result<Arc<Module>, Failure> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if name.is_empty() || name.len() > 128 || !name.bytes().all(plain) {
            let name = cognitive_contract::text::cut(name, 128);
            let failure =
                Failure::new(ErrorCode::ModuleNotFound, format!("there is no module called: `{name}`"));
            return Err(failure.suggest("`GET /api/modules` lists what is installed"));
        }
        self.host.modules.module(name)
    }
}
