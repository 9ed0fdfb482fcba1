//! What a run needs and what it is asked: the host that a surface builds once, and the request of one run.
//! Builds no provider itself.

use std::sync::Arc;

use cognitive_contract::policy::Caller;
use cognitive_contract::ports::Provider;
use cognitive_contract::tier::Gate;
use cognitive_contract::{Enforcement, Failure, Module};
use cognitive_library::Library;
use serde_json::Value;

/// The surroundings of all runs of a process. Safe to share between runs.
pub struct Host {
    /// Where modules come from.
    pub modules: Arc<dyn ModuleSource>,
    /// The model.
    pub provider: Arc<dyn Provider>,
    /// The operator's thresholds.
    pub gate: Gate,
}

/// Finds and loads modules by name.
pub trait ModuleSource: Send + Sync {
    /// A module, ready to run.
    fn module(&self, name: &str) -> Result<Arc<Module>, Failure>;
}

impl ModuleSource for Library {
    fn module(&self, name: &str) -> Result<Arc<Module>, Failure> {
        self.load(name).map(Arc::new)
    }
}

impl Host {
    /// A host with the usual thresholds.
    #[must_use]
    pub fn new(modules: Arc<dyn ModuleSource>, provider: Arc<dyn Provider>) -> Self {
        Self { modules, provider, gate: Gate::default() }
    }
}

/// One run.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// Name or path of the module.
    pub module: String,
    /// What the caller sends.
    pub input: RunInput,
    /// How it is to be run.
    pub options: RunOptions,
}

/// What the caller sends.
#[derive(Debug, Clone)]
pub enum RunInput {
    /// An object for the input schema.
    Json(Value),
    /// Free text (`--args`), which no schema judges.
    Text(String),
}

/// How a run is to be done.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Who asks.
    pub caller: Caller,
    /// Whether schemas are enforced; the envelope contract always is.
    pub enforcement: Enforcement,
    /// The id under which logs and audit know the run; made up if absent.
    pub trace_id: Option<String>,
    /// Take no liberties with the model's syntax in any tier.
    pub strict_parse: bool,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self { caller: Caller::User, enforcement: Enforcement::Full, trace_id: None, strict_parse: false }
    }
}

impl RunRequest {
    /// A run with the usual options.
    #[must_use]
    pub fn new(module: &str, input: Value) -> Self {
        Self { module: module.to_owned(), input: RunInput::Json(input), options: RunOptions::default() }
    }
}
