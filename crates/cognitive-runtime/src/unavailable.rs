//! A provider that could not be built. A run that would ask it ends with the reason, and has an envelope, a trace and
//! an audit record like any other run. Asks no model.

use cognitive_contract::Failure;
use cognitive_contract::ports::{
    CallSink, Destination, ModelCall, ModelEnd, PortFuture, Provider, ProviderError,
};

/// A placeholder for a provider that could not be built.
#[derive(Debug, Clone)]
pub struct Unavailable {
    name: String,
    reason: Failure,
}

impl Unavailable {
    /// A provider with this name that cannot be asked, and the reason.
    #[must_use]
    pub fn new(name: impl Into<String>, reason: Failure) -> Self {
        Self { name: name.into(), reason }
    }
}

impl Provider for Unavailable {
    fn name(&self) -> &str {
        &self.name
    }

    fn unavailable(&self) -> Option<&Failure> {
        Some(&self.reason)
    }

    fn destination(&self) -> Option<Destination> {
        None
    }

    fn ask<'a>(
        &'a self,
        _: &'a ModelCall,
        _: &'a mut dyn CallSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>> {
        Box::pin(async { Err(ProviderError::Unavailable(self.reason.message().to_owned())) })
    }
}
