//! Which tools a client sees. A list of tools is read by the model with every request, so a server with many modules shows
//! four tools that find and run them instead of one tool for each. Lists only; `call` runs them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use cognitive_contract::policy::{self, Caller};
use cognitive_runtime::Host;
use rmcp::model::Tool;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::door::McpDoor;
use crate::search_tools::ListedModule;
use crate::{module_tool, search_tools};

/// Up to so many modules each is a tool of its own, unless the user says otherwise.
pub const DEFAULT_MAX_MODULE_TOOLS: usize = 12;
/// The longest name of a tool that clients take.
const MAX_NAME_LENGTH: usize = 64;

/// How long a look at the folders is good for, at least.
const FRESH: Duration = Duration::from_secs(1);
/// How much longer than it took a look is good for, so that looking takes at most a tenth of a processor.
const REST: u32 = 10;

/// Which tools are offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolSurface {
    /// One tool for each module while there are at most so many, else the four that search.
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
    /// `all`, `search`, or names of modules with commas between.
    fn from(text: &str) -> Self {
        let names = || text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
        match text {
            "all" => Self::All,
            "search" => Self::Search,
            _ => Self::Named(names().collect()),
        }
    }
}

/// What is offered at one moment.
#[derive(Debug)]
pub(crate) struct Offer {
    /// Marks of the modules that this was made of; another list of marks means another offer.
    marks: Vec<(String, Option<u64>)>,
    /// The tools, always in the same order.
    pub(crate) tools: Vec<Tool>,
    /// The names of the modules that are tools of their own.
    pub(crate) modules: Vec<String>,
    /// What `cognitive_list` says of each module that agents may run; read when it is first asked for.
    listed: OnceLock<Vec<ListedModule>>,
}

impl Offer {
    /// The modules that agents may run, in order. Reads each of them once, however often it is asked.
    pub(crate) fn listed(&self, host: &Host) -> &[ListedModule] {
        self.listed.get_or_init(|| {
            self.marks.iter().filter_map(|(name, _)| ListedModule::read(host, name)).collect()
        })
    }
}

/// An offer, and how long it holds.
#[derive(Debug)]
struct LastOffer {
    offer: Arc<Offer>,
    looked: Instant,
    took: Duration,
}

/// Makes the offer, and makes it anew only when a module has changed.
#[derive(Debug, Default)]
pub(crate) struct Offers {
    surface: ToolSurface,
    last: Mutex<Option<LastOffer>>,
    /// Whether somebody knows better than the last look.
    is_outdated: AtomicBool,
    /// Grows each time that somebody does.
    hints: watch::Sender<u64>,
}

impl Offers {
    pub(crate) fn new(surface: ToolSurface) -> Self {
        Self { surface, ..Self::default() }
    }

    /// Has the next one look at the folders, and those woken who wait for a change. Waits for nobody.
    pub(crate) fn look_again(&self) {
        self.is_outdated.store(true, Ordering::SeqCst);
        self.hints.send_modify(|count| *count += 1);
    }

    /// Wakes each time that there may be a change.
    pub(crate) fn hints(&self) -> watch::Receiver<u64> {
        self.hints.subscribe()
    }

    /// What clients were shown last, or the tools as they are if nobody was shown any: a client that wants to hear of changes has its
    /// list from before.
    pub(crate) fn shown(&self, door: &dyn McpDoor) -> Arc<Offer> {
        let shown = self
            .last
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .map(|last| Arc::clone(&last.offer));
        shown.unwrap_or_else(|| self.now(door))
    }

    /// The tools as the modules were a moment ago. Looks at folders, so it belongs beside the threads that serve; one looks for
    /// all who ask.
    pub(crate) fn now(&self, door: &dyn McpDoor) -> Arc<Offer> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_outdated = self.is_outdated.swap(false, Ordering::SeqCst);
        if let Some(LastOffer { offer, looked, took }) = last.as_ref().filter(|_| !is_outdated)
            && looked.elapsed() < FRESH.max(*took * REST)
        {
            return Arc::clone(offer);
        }
        let looked = Instant::now();
        let mut marks = door.host().modules.marks();
        marks.retain(|(name, _)| door.offers(name));
        // Without marks nobody can tell whether a module has changed.
        let is_known = |known: &Offer| known.marks == marks && marks.iter().all(|(_, mark)| mark.is_some());
        let offer = match last.take() {
            Some(known) if is_known(&known.offer) => known.offer,
            _ => Arc::new(self.offer(door.host(), marks)),
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
            // A broken module is no tool; `cogn validate` says why.
            let Ok(module) = host.modules.glance(name) else { continue };
            let is_invocable = policy::invocation_refusal(&module.manifest, Caller::Agent).is_none();
            if is_invocable && name.len() <= MAX_NAME_LENGTH {
                tools.push(module_tool::tool(name, &module));
                modules.push(name.to_owned());
            }
        }
        if matches!(self.surface, ToolSurface::Search | ToolSurface::UpTo(_)) && tools.is_empty() {
            tools = search_tools::tools();
        }
        Offer { marks, tools, modules, listed: OnceLock::new() }
    }
}
