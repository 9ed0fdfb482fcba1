//! What an operator decides about a server. Every value has a default that is safe on one's own machine.

use std::sync::Arc;
use std::time::Duration;

use cognitive_contract::Failure;
use cognitive_contract::archive::RunArchive;
use cognitive_contract::media::UploadStore;
use cognitive_contract::ports::Provider;
use cognitive_contract::review::ReviewDesk;
use cognitive_contract::span::SpanSink;
use cognitive_contract::text::hex;
use cognitive_contract::workshop::{CaseBook, ModuleWorkshop};
pub use cognitive_mcp::ToolSurface;
use serde_json::Value;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::roles::Roles;
use crate::shared_state::SharedState;

/// A key that a caller may show, and the name under which the books know it. Only its hash is kept.
#[derive(Clone)]
pub struct ApiKey {
    pub(crate) name: String,
    pub(crate) roles: Roles,
    hash: [u8; 32],
}

impl ApiKey {
    /// A key; `None` if it is too short to be one.
    #[must_use]
    pub fn new(name: &str, key: &str) -> Option<Self> {
        (key.len() >= 16 && !name.is_empty()).then(|| Self {
            name: name.to_owned(),
            roles: Roles::USUAL,
            hash: Sha256::digest(key.as_bytes()).into(),
        })
    }

    /// The same key, good for these roles instead of running modules alone.
    #[must_use]
    pub fn with_roles(mut self, roles: Roles) -> Self {
        self.roles = roles;
        self
    }

    /// What only somebody who knows the key can say of a login: it proves to servers with the same key that it was made with it.
    pub(crate) fn vouch(&self, login: &[u8; 32]) -> String {
        hex(&Sha256::new().chain_update(b"cogn login").chain_update(self.hash).chain_update(login).finalize())
    }

    /// Whether somebody who knows the key said this of a login.
    pub(crate) fn has_vouched(&self, login: &[u8; 32], said: &str) -> bool {
        self.vouch(login).as_bytes().ct_eq(said.as_bytes()).into()
    }

    /// The key that somebody shows. Looks at all of them, in time that says nothing about how close a guess was.
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

/// One line of the access log.
#[derive(Debug, Clone, serde::Serialize)]
#[non_exhaustive]
pub struct AccessRecord {
    /// The method.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The status.
    pub status: u16,
    /// Who asked: the name of a key, or an address; `local` where there is none.
    pub client: String,
    /// The id that envelope, audit and log share.
    pub trace_id: String,
    /// Time to the headers of the answer.
    pub latency_ms: u64,
}

/// Receives one record per answer.
pub type AccessLog = Arc<dyn Fn(&AccessRecord) + Send + Sync>;

/// Runs per minute and client, unless the operator says otherwise.
pub const DEFAULT_RUNS_PER_MINUTE: u32 = 60;

/// Says of a module by name whether it is offered.
pub type ModuleFilter = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Says what is right and wrong with a module, as `cogn validate --json` does.
pub type ModuleFindings = Arc<dyn Fn(&str) -> Result<Value, Failure> + Send + Sync>;

/// Builds a provider, or says why it cannot be asked.
pub type ProviderMaker = Arc<dyn Fn() -> Result<Arc<dyn Provider>, Failure> + Send + Sync>;

/// A model that authors may name instead of the one that is asked anyway.
#[derive(Clone)]
pub struct NamedModel {
    /// `provider/model`.
    pub name: String,
    /// Whether what it is asked stays on this machine.
    pub is_local: bool,
    /// Builds it, when somebody asks it for the first time.
    pub make: ProviderMaker,
}

/// Hears what goes wrong besides the answers.
pub type Complaints = Arc<dyn Fn(&str) + Send + Sync>;

/// How the server behaves.
#[derive(Clone)]
#[non_exhaustive]
pub struct ServerConfig {
    /// The keys that open it; without any, everybody who reaches it may use it.
    pub keys: Vec<ApiKey>,
    /// Whether the first page is Studio.
    pub studio: bool,
    /// Models that authors may name, besides the one that is asked and those above it.
    pub models: Vec<NamedModel>,
    /// Who knows the files of modules; without, authors see none.
    pub workshop: Option<Arc<dyn ModuleWorkshop>>,
    /// Who knows the cases of modules.
    pub cases: Option<Arc<dyn CaseBook>>,
    /// Who can be asked about runs of the past.
    pub archive: Option<Arc<dyn RunArchive>>,
    /// Who keeps what waits for a person.
    pub reviews: Option<Arc<dyn ReviewDesk>>,
    /// What this server shares with others of the same service; nothing if it stands alone.
    pub shared: Option<Arc<dyn SharedState>>,
    /// Who hears what goes wrong besides the answers, such as that nothing can be shared.
    pub complaints: Option<Complaints>,
    /// Web origins that may call it from a browser.
    pub cors: Vec<String>,
    /// Runs per minute and client (S-29); 0 is no limit.
    pub runs_per_minute: u32,
    /// Whether that also holds for callers on this machine that show no key and come through no proxy.
    pub limit_local_callers: bool,
    /// Which modules are offered; all of them without. Parts of compositions need not be offered themselves.
    pub offers: Option<ModuleFilter>,
    /// Which tools agents see at `/mcp`.
    pub tools: ToolSurface,
    /// Who validates modules for agents; without, nobody does.
    pub findings: Option<ModuleFindings>,
    /// Streams at once per client (STREAM-023); 0 is no limit.
    pub streams_per_client: usize,
    /// Connections at once.
    pub connections: usize,
    /// Connections at once per address, or per /64 of IPv6; 0 is no limit.
    pub connections_per_address: usize,
    /// The largest body, in bytes (S-28). Modules that take media may be sent more.
    pub body_limit: usize,
    /// What all large requests may take of the memory together, as they were sent and as values, in bytes.
    pub large_bodies: usize,
    /// What all streams that go on or are read may take of the memory together, in bytes.
    pub live_streams: usize,
    /// Who keeps uploads; without, there are none.
    pub uploads: Option<Arc<dyn UploadStore>>,
    /// The time for a request to arrive.
    pub read_timeout: Duration,
    /// The time in which a client has to take at least something of what it is sent.
    pub write_timeout: Duration,
    /// The longest stream (S-04).
    pub stream_limit: Duration,
    /// Silence after which a heartbeat is sent (STREAM-006).
    pub heartbeat: Duration,
    /// How long a model call goes on without its client (EXT-REC); zero ends it at once.
    pub grace: Duration,
    /// How long an ended stream can be taken up again (S-16); zero switches recovery off.
    pub replay: Duration,
    /// How long open streams may go on when the server stops.
    pub drain: Duration,
    /// Who hears of every answer.
    pub log: Option<AccessLog>,
    /// Who draws traces.
    pub spans: Option<Arc<dyn SpanSink>>,
    /// The model that the provider asks for, if that is known; only traces say it.
    pub model: Option<String>,
}

impl ServerConfig {
    /// Tells whoever wants to hear it what goes wrong.
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
            workshop: None,
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
    fn s_19_keys_are_found_by_hash_and_never_shown() {
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
