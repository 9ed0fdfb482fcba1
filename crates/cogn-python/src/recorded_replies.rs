//! A provider that answers with the recorded replies of a run, by module. Calls no model; needs no key and no
//! network.

use cogn::{CallSink, ModelCall, ModelEnd, PortFuture, Provider, ProviderError};
use cognitive_contract::media::{AcceptedForm, Category};
use cognitive_contract::ports::Destination;
use cognitive_runtime::Replay;

use crate::caller;

/// A provider for the recorded replies of the current run.
pub struct RecordedReplies {
    silence: Replay,
}

impl RecordedReplies {
    /// Creates the provider. The replies come from the scope of each run.
    pub fn new() -> Self {
        let none = ProviderError::Unavailable("no reply is recorded for this input".to_owned());
        Self { silence: Replay::pieces(Vec::new(), Some(none)) }
    }
}

impl Provider for RecordedReplies {
    fn name(&self) -> &str {
        self.silence.name()
    }

    fn capabilities(&self) -> &[&str] {
        self.silence.capabilities()
    }

    fn takes(&self, category: Category) -> Option<AcceptedForm> {
        self.silence.takes(category)
    }

    fn destination(&self) -> Option<Destination> {
        None
    }

    fn ask<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a mut dyn CallSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>> {
        Box::pin(async move {
            let replies = caller::replies();
            let reply = replies.as_deref().and_then(|replies| replies.get(&call.module));
            match reply {
                Some(reply) => Replay::from_recorded(reply.clone()).ask(call, sink).await,
                None => self.silence.ask(call, sink).await,
            }
        })
    }
}
