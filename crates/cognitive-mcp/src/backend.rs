//! The interface between a surface and the protocol: the host that runs modules, and the permissions of a client. The
//! protocol itself knows no keys, limits or folders.

use std::any::Any;
use std::pin::Pin;
use std::time::Duration;

use cognitive_contract::{Envelope, Failure};
use cognitive_runtime::{Host, RunOptions};
use rmcp::model::Extensions;
use serde_json::Value;

/// A surface that offers its modules to agents.
pub trait McpBackend: Send + Sync + 'static {
    /// Returns the host that runs the modules.
    fn host(&self) -> &Host;

    /// Returns whether clients may see a module. One that is not offered is treated as missing.
    fn offers(&self, _name: &str) -> bool {
        true
    }

    /// Admits one run of a client, or returns why it is refused. The extensions are those of the request; over HTTP
    /// they hold the server's data about the client.
    fn admit<'a>(&'a self, client: &'a Extensions) -> AdmissionFuture<'a>;

    /// Returns the validation findings of a module, as `cogn validate --json` does.
    fn findings(&self, name: &str) -> Result<Value, Failure>;
}

/// The decision on a run. It may ask other servers.
pub type AdmissionFuture<'a> = Pin<Box<dyn Future<Output = Result<Admission, Failure>> + Send + 'a>>;

/// Called when a run is over, with its module, its envelope and its duration.
pub type RunEnded = Box<dyn FnOnce(&str, &Envelope, Duration) + Send>;

/// The permission for one run.
pub struct Admission {
    /// The options of the run. The protocol sets the caller to a remote agent; the surface cannot override that.
    pub options: RunOptions,
    /// Resolves when the run has to end early.
    pub stop: Pin<Box<dyn Future<Output = Failure> + Send>>,
    /// Dropped when the run is over, such as a permit for concurrent runs.
    pub held: Option<Box<dyn Any + Send>>,
    /// Called when the run is over, even if its client has disconnected.
    pub ended: Option<RunEnded>,
}

impl Admission {
    /// Creates a permission for a run with these options that is never stopped early.
    #[must_use]
    pub fn new(options: RunOptions) -> Self {
        Self { options, stop: Box::pin(std::future::pending()), held: None, ended: None }
    }
}

impl std::fmt::Debug for Admission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admission").field("options", &self.options).finish_non_exhaustive()
    }
}
