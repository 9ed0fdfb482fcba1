//! Failures as Rust errors, for programs that want them. A module whose `failure.contract` is `throw` fails with an
//! `Err` that contains the whole envelope; every other answer is an envelope. (MAN-015)
//! Only for callers in the same process: the printed or sent result is the envelope in either case.

use std::fmt;

use cognitive_contract::Envelope;
use cognitive_contract::manifest::FailureContract;
use cognitive_contract::ports::EventSink;

use crate::host::{Host, ModuleRef, RunRequest};
use crate::run::run;

/// A failure of a module that throws. The envelope has all details.
#[derive(Debug, Clone, PartialEq)]
pub struct ModuleFailure(Box<Envelope>);

impl ModuleFailure {
    /// The failure.
    #[must_use]
    pub fn envelope(&self) -> &Envelope {
        &self.0
    }

    /// Takes the failure, to print or send it.
    #[must_use]
    pub fn into_envelope(self) -> Envelope {
        *self.0
    }
}

impl fmt::Display for ModuleFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.error() {
            Some(error) => write!(f, "{}: {}", error.code(), error.message()),
            None => f.write_str(self.0.meta().explain()),
        }
    }
}

impl std::error::Error for ModuleFailure {}

/// Runs a module and returns its failure as the module declares: by default in the envelope, as an error for `throw`.
/// A module that cannot be found declares nothing.
pub async fn run_by_contract(
    host: &Host,
    mut request: RunRequest,
    sink: &mut dyn EventSink,
) -> Result<Envelope, ModuleFailure> {
    let mut throws = false;
    if let Ok(module) = request.module.load(host.modules.as_ref()) {
        throws = module.manifest.failure.contract == FailureContract::Throw;
        request.module = ModuleRef::from_module(request.module.name(), module);
    }
    let envelope = run(host, request, sink).await;
    if throws && !envelope.ok() { Err(ModuleFailure(Box::new(envelope))) } else { Ok(envelope) }
}
