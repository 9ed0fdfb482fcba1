//! The state shared by all requests: the host, the configuration and the work in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use cognitive_contract::code::Blame;
use cognitive_contract::lock::Lock;
use cognitive_contract::{ErrorCode, Failure};
use cognitive_mcp::McpHttp;
use cognitive_runtime::Host;
use tokio::sync::{Semaphore, watch};

use crate::agent_sessions::AgentSessions;
use crate::author_queue::AuthorQueue;
use crate::catalog::Catalog;
use crate::config::{ApiKey, ServerConfig};
use crate::limits::Limits;
use crate::memory_budget::MemoryBudget;
use crate::metrics::Metrics;
use crate::openapi::Description;
use crate::overview::{LastLook, OverviewCache};
use crate::pages::ModulesList;
use crate::sessions::Sessions;
use crate::studio::logins::Logins;
use crate::studio::models::ServerModels;
use crate::studio::replies::KeptReplies;

/// Long bodies parsed at once. More would only take processors from the serving threads.
const PARSERS: usize = 2;
/// Streams with long answers that may use a separate thread each. Each of them takes a processor from the serving
/// threads.
const LONG_ANSWERS: usize = 4;

/// Requests that query past runs at once. A query may read the whole database, and each one occupies a thread.
const ARCHIVISTS: usize = 4;

/// Exports at once. Each holds a thread for as long as its client reads.
const EXPORTERS: usize = 16;

/// A server without a socket. Cheap to clone.
#[derive(Clone)]
pub struct App(pub(crate) Arc<AppState>);

/// The state shared by all requests.
pub(crate) struct AppState {
    pub(crate) host: Arc<Host>,
    /// Serves modules as tools for agents.
    pub(crate) mcp: McpHttp,
    /// The owners of the agents' sessions.
    pub(crate) agents: AgentSessions,
    pub(crate) config: ServerConfig,
    pub(crate) limits: Arc<Limits>,
    pub(crate) sessions: Sessions,
    /// Active logins.
    pub(crate) logins: Logins,
    /// The keys in effect: those of the configuration until [`App::replace_keys`].
    keys: Lock<Arc<[ApiKey]>>,
    /// The models that a run may name.
    pub(crate) models: ServerModels,
    /// Model replies that authors asked to record.
    pub(crate) replies: KeptReplies,
    /// The queue for work with module files.
    pub(crate) authors: AuthorQueue,
    /// Permits for queries of past runs.
    pub(crate) archivists: Arc<Semaphore>,
    /// Permits for exports.
    pub(crate) exporters: Arc<Semaphore>,
    pub(crate) metrics: Metrics,
    pub(crate) catalog: Catalog,
    pub(crate) overview: LastLook,
    pub(crate) modules_list: OverviewCache<ModulesList>,
    pub(crate) description: OverviewCache<Description>,
    /// Memory budget for large requests.
    pub(crate) room: MemoryBudget,
    /// Permits for parsing long bodies outside the serving threads.
    pub(crate) parsers: Arc<Semaphore>,
    /// Permits for streams with long answers, which run outside the serving threads. A thread takes memory for its
    /// stack, so there are few of them.
    pub(crate) long_answers: Arc<Semaphore>,
    /// Sync runs in flight.
    busy: AtomicUsize,
    /// Set when the server accepts no more work.
    pub(crate) draining: watch::Sender<bool>,
    /// Set when the remaining runs have to end.
    pub(crate) ending: watch::Sender<bool>,
}

impl App {
    /// Creates a server that runs modules on `host`.
    #[must_use]
    pub fn new(host: impl Into<Arc<Host>>, config: ServerConfig) -> Self {
        let limits = Arc::new(Limits::new(config.runs_per_minute, config.streams_per_client));
        let room = MemoryBudget::new(config.large_bodies);
        let sessions = Sessions::new(config.live_streams);
        let host = host.into();
        let mcp = crate::mcp::open(&host, &config);
        let models = ServerModels::new(&host, &config.models);
        let keys = Lock::new(config.keys.as_slice().into());
        Self(Arc::new(AppState {
            host,
            mcp,
            agents: AgentSessions::default(),
            config,
            room,
            parsers: Arc::new(Semaphore::new(PARSERS)),
            long_answers: Arc::new(Semaphore::new(LONG_ANSWERS)),
            limits,
            sessions,
            logins: Logins::default(),
            keys,
            models,
            replies: KeptReplies::default(),
            authors: AuthorQueue::default(),
            archivists: Arc::new(Semaphore::new(ARCHIVISTS)),
            exporters: Arc::new(Semaphore::new(EXPORTERS)),
            metrics: Metrics::default(),
            catalog: Catalog::default(),
            overview: LastLook::default(),
            modules_list: OverviewCache::default(),
            description: OverviewCache::default(),
            busy: AtomicUsize::new(0),
            draining: watch::Sender::new(false),
            ending: watch::Sender::new(false),
        }))
    }

    /// Replaces the keys of a running server. Logins with a key that is gone or changed end; runs in flight go on. Returns
    /// false and changes nothing if a server with keys would have none, or the other way round: that decides who may
    /// reach the server at all.
    #[must_use]
    pub fn replace_keys(&self, keys: Vec<ApiKey>) -> bool {
        if keys.is_empty() || self.0.config.keys.is_empty() {
            return false;
        }
        let before = std::mem::replace(&mut *self.0.keys.lock(), keys.into());
        let now = self.0.keys();
        let stays = |name: &str| before.iter().any(|key| key.name == name && now.contains(key));
        self.0.logins.retain(|login| stays(&login.name));
        true
    }

    /// Replaces the limits of runs per minute and of streams of each client; zero means no limit. Runs and streams in
    /// flight go on.
    pub fn replace_limits(&self, runs_per_minute: u32, streams_per_client: usize) {
        self.0.limits.replace(runs_per_minute, streams_per_client);
    }

    /// Returns the routes, for use in another server or in tests without a socket.
    pub fn router(&self) -> Router {
        crate::routes::guarded_router(Arc::clone(&self.0))
    }

    /// Stops accepting work and waits for runs in flight, up to the configured time. Then ends each stream with an
    /// error chunk and every other run with an envelope.
    pub(crate) async fn drain(&self) {
        self.0.draining.send_replace(true);
        let gone = async {
            while self.0.runs_in_flight() > 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        if tokio::time::timeout(self.0.config.drain, gone).await.is_err() {
            self.0.sessions.cancel_all(&shutdown_failure(ErrorCode::StreamInterrupted));
            self.0.ending.send_replace(true);
        }
        self.0.mcp.close();
    }
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").finish_non_exhaustive()
    }
}

impl AppState {
    /// Returns the keys in effect.
    pub(crate) fn keys(&self) -> Arc<[ApiKey]> {
        Arc::clone(&self.keys.lock())
    }

    /// Counts a sync run until the guard is dropped, so that shutdown waits for it.
    pub(crate) fn count_run(self: &Arc<Self>) -> InFlightGuard {
        self.busy.fetch_add(1, Ordering::SeqCst);
        InFlightGuard(Arc::clone(self))
    }

    /// The number of runs in flight, streams included.
    pub(crate) fn runs_in_flight(&self) -> usize {
        self.sessions.open() + self.busy.load(Ordering::SeqCst)
    }

    /// Resolves when the time for runs in flight is over during shutdown.
    pub(crate) async fn shutdown_deadline(&self) -> Failure {
        let mut ending = self.ending.subscribe();
        if ending.wait_for(|ending| *ending).await.is_err() {
            return std::future::pending().await;
        }
        shutdown_failure(ErrorCode::ProviderUnavailable)
    }
}

/// Guard that counts a sync run in flight.
pub(crate) struct InFlightGuard(Arc<AppState>);

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The failure for a run that ends or is refused because the server stops.
pub(crate) fn shutdown_failure(code: ErrorCode) -> Failure {
    // The server stops, not the provider behind it.
    Failure::new(code, "the server is shutting down")
        .with_blame(Blame::Runtime)
        .suggest("Try again in a moment")
}
