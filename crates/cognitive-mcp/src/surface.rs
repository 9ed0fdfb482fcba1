//! Selects the tools that a client sees. Models read the tool list with every request. A server with many modules
//! therefore shows four tools that find and run them instead of one tool per module. Lists tools only; `call` runs
//! them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cognitive_contract::lock::Lock;
use cognitive_contract::policy::{self, Caller};
use cognitive_runtime::Host;
use rmcp::model::Tool;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::backend::McpBackend;
use crate::module_tool;
use crate::search_tools::{ListedModule, SearchTool};

/// The default limit up to which each module is a separate tool. Every tool costs tokens in every request, and models
/// choose worse among many.
pub const DEFAULT_MAX_MODULE_TOOLS: usize = 12;
/// The longest tool name that clients accept.
const MAX_NAME_LENGTH: usize = 64;

/// The minimum validity of a scan.
const FRESH: Duration = Duration::from_secs(1);
/// The validity of a scan as a multiple of its duration, so that scanning takes at most a tenth of a processor.
const REST: u32 = 10;

/// The tools to offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolSurface {
    /// One tool for each module up to this number of modules, otherwise the four search tools.
    UpTo(usize),
    /// One tool for each module.
    All,
    /// The four tools that list, describe, run and validate modules.
    Search,
    /// One tool for each of these modules.
    Named(Vec<String>),
}

impl Default for ToolSurface {
    fn default() -> Self {
        Self::UpTo(DEFAULT_MAX_MODULE_TOOLS)
    }
}

impl From<&str> for ToolSurface {
    /// Parses `all`, `search`, or module names separated by commas.
    fn from(text: &str) -> Self {
        let names = || text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
        match text {
            "all" => Self::All,
            "search" => Self::Search,
            _ => Self::Named(names().collect()),
        }
    }
}

/// The tools offered at one point in time.
#[derive(Debug)]
pub(crate) struct Offer {
    /// Version stamps of the modules; a different list of stamps means a different offer.
    marks: Vec<(String, Option<u64>)>,
    /// The tools, always in the same order.
    pub(crate) tools: Vec<Tool>,
    /// The names of the modules that are separate tools.
    pub(crate) modules: Vec<String>,
    /// The `cognitive_list` entries of modules that agents may run; read at first use.
    listed: OnceLock<Vec<ListedModule>>,
}

impl Offer {
    /// Returns the modules that agents may run, in order. Reads each of them only once.
    pub(crate) fn listed_modules(&self, host: &Host) -> &[ListedModule] {
        self.listed.get_or_init(|| {
            self.marks.iter().filter_map(|(name, _)| ListedModule::read(host, name)).collect()
        })
    }
}

/// An offer and the time of its scan.
#[derive(Debug)]
struct LastOffer {
    offer: Arc<Offer>,
    looked: Instant,
    took: Duration,
}

/// Caches the offer, and rebuilds it only when a module has changed.
#[derive(Debug, Default)]
pub(crate) struct Offers {
    surface: ToolSurface,
    last: Lock<Option<LastOffer>>,
    /// Set if a module was changed after the last scan.
    is_outdated: AtomicBool,
    /// Incremented each time that is set.
    hints: watch::Sender<u64>,
}

impl Offers {
    pub(crate) fn new(surface: ToolSurface) -> Self {
        Self { surface, ..Self::default() }
    }

    /// Marks the offer as outdated and wakes the tasks that wait for a change. Does not block.
    pub(crate) fn mark_outdated(&self) {
        self.is_outdated.store(true, Ordering::SeqCst);
        self.hints.send_modify(|count| *count += 1);
    }

    /// Returns a receiver that is notified of each possible change.
    pub(crate) fn hints(&self) -> watch::Receiver<u64> {
        self.hints.subscribe()
    }

    /// Returns the offer that clients saw last, or the current one if there is none. A client that subscribes to
    /// changes has its list from before.
    pub(crate) fn shown_offer(&self, backend: &dyn McpBackend) -> Arc<Offer> {
        let shown = self.last.lock().as_ref().map(|last| Arc::clone(&last.offer));
        shown.unwrap_or_else(|| self.now(backend))
    }

    /// Returns the offer as of the last scan. May scan folders, so it must be called outside the serving threads.
    /// Concurrent callers share one scan.
    pub(crate) fn now(&self, backend: &dyn McpBackend) -> Arc<Offer> {
        let mut last = self.last.lock();
        let is_outdated = self.is_outdated.swap(false, Ordering::SeqCst);
        if let Some(LastOffer { offer, looked, took }) = last.as_ref().filter(|_| !is_outdated)
            && looked.elapsed() < FRESH.max(*took * REST)
        {
            return Arc::clone(offer);
        }
        let looked = Instant::now();
        let mut marks = backend.host().modules.marks();
        marks.retain(|(name, _)| backend.offers(name));
        // Without stamps, changes of a module cannot be detected.
        let is_known = |known: &Offer| known.marks == marks && marks.iter().all(|(_, mark)| mark.is_some());
        let offer = match last.take() {
            Some(known) if is_known(&known.offer) => known.offer,
            _ => Arc::new(self.offer(backend.host(), marks)),
        };
        *last = Some(LastOffer { offer: Arc::clone(&offer), looked, took: looked.elapsed() });
        offer
    }

    fn offer(&self, host: &Host, marks: Vec<(String, Option<u64>)>) -> Offer {
        let names = || marks.iter().map(|(name, _)| name.as_str());
        let wanted: Vec<&str> = match &self.surface {
            ToolSurface::Search => Vec::new(),
            ToolSurface::UpTo(most) if marks.len() > *most => Vec::new(),
            ToolSurface::UpTo(_) | ToolSurface::All => names().collect(),
            ToolSurface::Named(chosen) => {
                names().filter(|name| chosen.iter().any(|each| each == name)).collect()
            }
        };
        let mut tools = Vec::new();
        let mut modules = Vec::new();
        for name in wanted {
            // A broken module is not a tool; `cogn validate` reports why.
            let Ok(module) = host.modules.glance(name) else { continue };
            let is_invocable = policy::invocation_refusal(&module.manifest, Caller::Agent).is_none();
            if is_invocable && name.len() <= MAX_NAME_LENGTH {
                tools.push(module_tool::tool(name, &module));
                modules.push(name.to_owned());
            }
        }
        if matches!(self.surface, ToolSurface::Search | ToolSurface::UpTo(_)) && tools.is_empty() {
            tools = SearchTool::ALL.map(SearchTool::tool).to_vec();
        }
        Offer { marks, tools, modules, listed: OnceLock::new() }
    }
}
