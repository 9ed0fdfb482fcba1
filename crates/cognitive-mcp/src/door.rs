//! What a surface lends to the protocol: the host that runs modules, and what a client may do. The protocol itself knows
//! neither keys nor limits nor folders.

use std::any::Any;
use std::pin::Pin;
use std::time::Duration;

use cognitive_contract::{Envelope, Failure};
use cognitive_runtime::{Host, RunOptions};
use rmcp::model::Extensions;
use serde_json::Value;

/// A surface that offers its modules to agents.
pub trait McpDoor: Send + Sync + 'static {
    /// What runs the modules.
    fn host(&self) -> &Host;

    /// Whether clients may know of a module. One that is not offered is answered as one that is not there.
    fn offers(&self, _name: &str) -> bool {
        true
    }

    /// Lets a client run once, or says why it may not. The extensions are those of the request: over HTTP they hold what
    /// the server knows of the client.
    fn admit(&self, client: &Extensions) -> Result<Admission, Failure>;

    /// What is right and wrong with a module, as `cogn validate --json` says it.
    fn findings(&self, name: &str) -> Result<Value, Failure>;
}

/// Takes note of a run that is over: its module, its envelope, and how long it took.
pub type RunEnded = Box<dyn FnOnce(&str, &Envelope, Duration) + Send>;

/// The right to one run.
pub struct Admission {
    /// How it is to be run. That the caller is an agent, and far away, is decided here and not by the surface.
    pub options: RunOptions,
    /// Resolves when the run has to end before its time.
    pub stop: Pin<Box<dyn Future<Output = Failure> + Send>>,
    /// Held until the run is over, such as a place among those that may run at once.
    pub held: Option<Box<dyn Any + Send>>,
    /// Told when it is over, also when its client did not wait for it.
    pub ended: Option<RunEnded>,
}

impl Admission {
    /// A run with these options that nothing ends before its time.
    #[must_use]
    pub fn of(options: RunOptions) -> Self {
        Self { options, stop: Box::pin(std::future::pending()), held: None, ended: None }
    }
}

impl std::fmt::Debug for Admission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admission").field("options", &self.options).finish_non_exhaustive()
    }
}
