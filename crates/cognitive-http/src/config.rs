//! The configuration of a server. Every default is safe on the operator's own machine.

use std::sync::Arc;
use std::time::Duration;

use cognitive_contract::Failure;
use cognitive_contract::media::UploadStore;
use cognitive_contract::ports::Provider;
use cognitive_contract::span::SpanSink;
use cognitive_contract::text::hex;
pub use cognitive_mcp::ToolSurface;
use cognitive_ports::archive::RunArchive;
use cognitive_ports::module_editor::{CaseBook, ModuleEditor};
use cognitive_ports::review::ReviewQueue;
use serde_json::Value;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::roles::Roles;
use crate::shared_state::SharedState;

/// An API key and the client name that records use for it. Stores only the hash of the key.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    pub(crate) name: String,
    pub(crate) roles: Roles,
    hash: [u8; 32],
}

impl ApiKey {
    /// Creates a key; `None` if it is too short or has no name.
    #[must_use]
    pub fn new(name: &str, key: &str) -> Option<Self> {
        (key.len() >= 16 && !name.is_empty()).then(|| Self {
            name: name.to_owned(),
            roles: Roles::USUAL,
            hash: Sha256::digest(key.as_bytes()).into(),
        })
    }

    /// Returns the key with these roles instead of the default, which is to run modules.
    #[must_use]
    pub fn with_roles(mut self, roles: Roles) -> Self {
        self.roles = roles;
        self
    }

    /// Returns a proof that a login was created with this key. Only servers with the same key can compute it.
    pub(crate) fn login_proof(&self, login: &[u8; 32]) -> String {
        hex(&Sha256::new().chain_update(b"cogn login").chain_update(self.hash).chain_update(login).finalize())
    }

    /// Returns whether `said` is the proof for a login.
    pub(crate) fn is_login_proof(&self, login: &[u8; 32], said: &str) -> bool {
        self.login_proof(login).as_bytes().ct_eq(said.as_bytes()).into()
    }

    /// Finds the key that a client shows. Compares all keys in constant time, so that timing reveals nothing about a
    /// guess.
    pub(crate) fn find<'a>(keys: &'a [Self], shown: &str) -> Option<&'a Self> {
        let shown: [u8; 32] = Sha256::digest(shown.as_bytes()).into();
        keys.iter()
            .fold(None, |found, key| if bool::from(key.hash.ct_eq(&shown)) { Some(key) } else { found })
    }
}

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiKey").field("name", &self.name).finish_non_exhaustive()
    }
}

/// One entry of the access log.
#[derive(Debug, Clone, serde::Serialize)]
#[non_exhaustive]
pub struct AccessRecord {
    /// The method.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The status.
    pub status: u16,
    /// The client: the name of a key, or an address; `local` if there is none.
    pub client: String,
    /// The id that envelope, audit and log share.
    pub trace_id: String,
    /// Time to the headers of the response, in milliseconds.
    pub latency_ms: u64,
}

/// Receives one record per response.
pub type AccessLog = Arc<dyn Fn(&AccessRecord) + Send + Sync>;

/// The default limit of runs per minute and client. Without a limit, one client could spend the whole quota with the
/// provider.
pub const DEFAULT_RUNS_PER_MINUTE: u32 = 60;

/// Returns whether a module is offered, by its name.
pub type ModuleFilter = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Returns the validation findings of a module, as `cogn validate --json` does.
pub type ModuleFindings = Arc<dyn Fn(&str) -> Result<Value, Failure> + Send + Sync>;

/// Builds a provider, or returns why it is unavailable.
pub type ProviderMaker = Arc<dyn Fn() -> Result<Arc<dyn Provider>, Failure> + Send + Sync>;

/// A model that authors may name instead of the default one.
#[derive(Clone)]
pub struct NamedModel {
    /// `provider/model`.
    pub name: String,
    /// True if requests to it stay on this machine.
    pub is_local: bool,
    /// Builds the provider at its first use.
    pub make: ProviderMaker,
}

/// Receives messages about problems outside of responses.
pub type Complaints = Arc<dyn Fn(&str) + Send + Sync>;

/// The configuration of a server.
#[derive(Clone)]
#[non_exhaustive]
pub struct ServerConfig {
    /// The accepted keys; without any, every client that reaches the server may use it.
    pub keys: Vec<ApiKey>,
    /// Serves Studio as the first page.
    pub studio: bool,
    /// Models that authors may name, besides the default one and its fallbacks.
    pub models: Vec<NamedModel>,
    /// Access to module files; without it, authors see none.
    pub module_editor: Option<Arc<dyn ModuleEditor>>,
    /// Access to the test cases of modules.
    pub cases: Option<Arc<dyn CaseBook>>,
    /// Access to past runs.
    pub archive: Option<Arc<dyn RunArchive>>,
    /// The store of reviews.
    pub reviews: Option<Arc<dyn ReviewQueue>>,
    /// State shared with other servers of the same service; `None` for a single server.
    pub shared: Option<Arc<dyn SharedState>>,
    /// Receives messages about problems outside of responses, such as an unreachable shared state.
    pub complaints: Option<Complaints>,
    /// Web origins that may call the server from a browser.
    pub cors: Vec<String>,
    /// Runs per minute and client (S-29); 0 means no limit.
    pub runs_per_minute: u32,
    /// Apply that limit to local callers without key and proxy too.
    pub limit_local_callers: bool,
    /// Selects the offered modules; `None` offers all. Parts of compositions need not be offered themselves.
    pub offers: Option<ModuleFilter>,
    /// The tools that agents see at `/mcp`.
    pub tools: ToolSurface,
    /// Validates modules for agents; without it, validation is unavailable.
    pub findings: Option<ModuleFindings>,
    /// Streams at once per client (STREAM-023); 0 means no limit.
    pub streams_per_client: usize,
    /// Connections at once.
    pub connections: usize,
    /// Connections at once per address, or per /64 of IPv6; 0 means no limit.
    pub connections_per_address: usize,
    /// The largest body, in bytes (S-28). Modules that take media accept more.
    pub body_limit: usize,
    /// The memory budget of all large requests, for their bodies and parsed values, in bytes.
    pub large_bodies: usize,
    /// The memory budget of all streams that run or are being read, in bytes.
    pub live_streams: usize,
    /// The store of uploads; without it, uploads are refused.
    pub uploads: Option<Arc<dyn UploadStore>>,
    /// The time for a request to arrive.
    pub read_timeout: Duration,
    /// The time in which a client has to read at least some of its response.
    pub write_timeout: Duration,
    /// The longest stream (S-04).
    pub stream_limit: Duration,
    /// The silence after which a heartbeat is sent (STREAM-006).
    pub heartbeat: Duration,
    /// The time that a model call continues without its client (EXT-REC); zero cancels it at once.
    pub grace: Duration,
    /// The time that an ended stream can be resumed (S-16); zero disables recovery.
    pub replay: Duration,
    /// The time that open streams may continue when the server stops.
    pub drain: Duration,
    /// Receives every response for the access log.
    pub log: Option<AccessLog>,
    /// Receives trace spans.
    pub spans: Option<Arc<dyn SpanSink>>,
    /// The model of the provider, if known; used in traces only.
    pub model: Option<String>,
}

impl ServerConfig {
    /// Reports a problem to the configured receiver.
    pub(crate) fn complain(&self, what: &str) {
        if let Some(complaints) = &self.complaints {
            complaints(what);
        }
    }
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            keys: Vec::new(),
            studio: true,
            models: Vec::new(),
            module_editor: None,
            cases: None,
            archive: None,
            reviews: None,
            shared: None,
            complaints: None,
            cors: Vec::new(),
            runs_per_minute: DEFAULT_RUNS_PER_MINUTE,
            limit_local_callers: true,
            offers: None,
            tools: ToolSurface::default(),
            findings: None,
            streams_per_client: 4,
            connections: 10_000,
            connections_per_address: 0,
            body_limit: 2 << 20,
            large_bodies: 512 << 20,
            live_streams: 256 << 20,
            uploads: None,
            read_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            stream_limit: Duration::from_mins(5),
            heartbeat: Duration::from_secs(15),
            grace: Duration::from_secs(30),
            replay: Duration::from_mins(1),
            drain: Duration::from_secs(20),
            log: None,
            spans: None,
            model: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_by_hash_and_never_shown() {
        let keys =
            [ApiKey::new("a", "0123456789abcdef").unwrap(), ApiKey::new("b", "fedcba9876543210").unwrap()];
        let found = |keys: &[ApiKey], shown: &str| ApiKey::find(keys, shown).map(|key| key.name.clone());
        assert_eq!(found(&keys, "fedcba9876543210").as_deref(), Some("b"));
        assert_eq!(found(&keys, "fedcba9876543211"), None);
        assert_eq!(found(&[], ""), None);
        assert!(ApiKey::new("short", "0123").is_none() && ApiKey::new("", "0123456789abcdef").is_none());
        assert!(!format!("{:?}", keys[0]).contains("hash"));
    }
}
