//! What all requests share: the host, the configuration, and what is going on right now.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use cognitive_contract::code::Blame;
use cognitive_contract::{ErrorCode, Failure};
use cognitive_mcp::McpHttp;
use cognitive_runtime::Host;
use tokio::sync::{Semaphore, watch};

use crate::catalog::Catalog;
use crate::config::ServerConfig;
use crate::limits::Limits;
use crate::memory_budget::Room;
use crate::metrics::Metrics;
use crate::openapi::Description;
use crate::overview::{LastLook, Renewed};
use crate::pages::ModulesList;
use crate::sessions::Sessions;
use crate::studio::logins::Logins;
use crate::studio::models::ModelShelf;
use crate::studio::replies::KeptReplies;

/// Long texts that are read at once. More would only take the processors from those who serve.
const PARSERS: usize = 2;
/// How many streams with long answers have a thread of their own.
const LONG_ANSWERS: usize = 4;

/// How many work with the files of modules at once.
const WORKBENCHES: usize = 4;

/// How many ask about the past at once.
const ARCHIVISTS: usize = 4;

/// A server without a socket. Cheap to clone.
#[derive(Clone)]
pub struct App(pub(crate) Arc<Shared>);

/// What all requests share.
pub(crate) struct Shared {
    pub(crate) host: Arc<Host>,
    /// Modules as tools of agents.
    pub(crate) mcp: McpHttp,
    pub(crate) config: ServerConfig,
    pub(crate) limits: Arc<Limits>,
    pub(crate) sessions: Sessions,
    /// Who is logged in.
    pub(crate) logins: Logins,
    /// The models that a run may name.
    pub(crate) models: ModelShelf,
    /// What models wrote for authors who want to keep it.
    pub(crate) replies: KeptReplies,
    /// Places for those who work with the files of modules.
    pub(crate) workbenches: Arc<Semaphore>,
    /// Places for those who ask about the past.
    pub(crate) archivists: Arc<Semaphore>,
    pub(crate) metrics: Metrics,
    pub(crate) catalog: Catalog,
    pub(crate) overview: LastLook,
    pub(crate) modules_list: Renewed<ModulesList>,
    pub(crate) description: Renewed<Description>,
    /// Memory for large requests.
    pub(crate) room: Room,
    /// Places for those who read long texts beside the threads that serve.
    pub(crate) parsers: Arc<Semaphore>,
    /// Places for streams whose answers have become long, beside the threads that serve. A thread takes memory for its
    /// stack, so there are few of them.
    pub(crate) long_answers: Arc<Semaphore>,
    /// Sync runs that are going on.
    busy: AtomicUsize,
    /// Set when the server takes no more work.
    pub(crate) draining: watch::Sender<bool>,
    /// Set when what still goes on has to end.
    pub(crate) ending: watch::Sender<bool>,
}

impl App {
    /// A server that runs modules on `host`.
    #[must_use]
    pub fn new(host: Host, config: ServerConfig) -> Self {
        let limits = Arc::new(Limits::new(config.runs_per_minute, config.streams_per_client));
        let room = Room::new(config.large_bodies);
        let sessions = Sessions::new(config.live_streams);
        let host = Arc::new(host);
        let mcp = crate::mcp::open(&host, &config);
        let models = ModelShelf::new(&host, &config.models);
        Self(Arc::new(Shared {
            host,
            mcp,
            config,
            room,
            parsers: Arc::new(Semaphore::new(PARSERS)),
            long_answers: Arc::new(Semaphore::new(LONG_ANSWERS)),
            limits,
            sessions,
            logins: Logins::default(),
            models,
            replies: KeptReplies::default(),
            workbenches: Arc::new(Semaphore::new(WORKBENCHES)),
            archivists: Arc::new(Semaphore::new(ARCHIVISTS)),
            metrics: Metrics::default(),
            catalog: Catalog::default(),
            overview: LastLook::default(),
            modules_list: Renewed::default(),
            description: Renewed::default(),
            busy: AtomicUsize::new(0),
            draining: watch::Sender::new(false),
            ending: watch::Sender::new(false),
        }))
    }

    /// The routes, for a server of your own or for tests without a socket.
    pub fn router(&self) -> Router {
        crate::routes::guarded(Arc::clone(&self.0))
    }

    /// Takes no more work, gives what goes on the time that was configured, then ends each stream with an error chunk and
    /// each other run with an envelope.
    pub(crate) async fn drain(&self) {
        self.0.draining.send_replace(true);
        let gone = async {
            while self.0.runs_in_flight() > 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        if tokio::time::timeout(self.0.config.drain, gone).await.is_err() {
            self.0.sessions.cancel_all(&shutting_down(ErrorCode::StreamInterrupted));
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

impl Shared {
    /// Counts a sync run until it is dropped, so that a server that stops waits for it.
    pub(crate) fn busy(self: &Arc<Self>) -> Busy {
        self.busy.fetch_add(1, Ordering::SeqCst);
        Busy(Arc::clone(self))
    }

    /// Runs that are going on, streams included.
    pub(crate) fn runs_in_flight(&self) -> usize {
        self.sessions.open() + self.busy.load(Ordering::SeqCst)
    }

    /// Resolves when the time is up that a server gives its runs before it stops.
    pub(crate) async fn time_is_up(&self) -> Failure {
        let mut ending = self.ending.subscribe();
        if ending.wait_for(|ending| *ending).await.is_err() {
            return std::future::pending().await;
        }
        shutting_down(ErrorCode::ProviderUnavailable)
    }
}

/// A sync run that is going on.
pub(crate) struct Busy(Arc<Shared>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Why a run ends or does not begin when the server stops.
pub(crate) fn shutting_down(code: ErrorCode) -> Failure {
    // It is the server that goes, not the provider behind it.
    Failure::new(code, "the server is shutting down").blaming(Blame::Runtime).suggest("Try again in a moment")
}
