//! Runs rows through the batch endpoint of a service: a provider whose calls wait for the answer to a post,
//! possibly across processes. The pipeline is unaffected: re-asked questions, parts and tools go into the
//! next post. A request is identified by the hash of its body. A resumed process therefore finds the posts of
//! an earlier one and posts nothing twice.

mod coordinator;
mod post_file;
mod sender;

use std::sync::Arc;
use std::time::Duration;

use cognitive_contract::ports::{CallSink, ModelCall, ModelEnd, PortFuture, Provider, ProviderError};
use cognitive_ports::batch_service::{BatchService, PostOutcome};

pub(crate) use self::coordinator::PostCoordinator;
pub(crate) use self::sender::deliver;

/// The number of reposts for a request that the service did not process. Without the limit, a request that a service
/// never processes would keep the batch open.
const REPOSTS: u32 = 2;
/// The most changes of terms per request; there are fewer terms than this. The limit ends a loop with a service that
/// changes its mind.
const CONCESSIONS: u32 = 8;

/// The settings for posting rows.
#[derive(Clone)]
pub struct PostPlan {
    /// The service.
    pub service: Arc<dyn BatchService>,
    /// The interval between status checks of a post.
    pub poll: Duration,
}

/// A provider whose calls go into the next post.
pub(crate) struct PostedProvider {
    pub(crate) service: Arc<dyn BatchService>,
    pub(crate) coordinator: Arc<PostCoordinator>,
}

impl PostedProvider {
    async fn answer_by_post(
        &self,
        call: &ModelCall,
        sink: &mut dyn CallSink,
    ) -> Result<ModelEnd, ProviderError> {
        let (mut reposts, mut concessions) = (0, 0);
        loop {
            let draft = self.service.draft(call)?;
            let ticket = self.coordinator.ticket(&draft.body, reposts);
            let reply = self.coordinator.reply(&ticket, &draft.body).await?;
            match self.service.read(call, &draft, &reply, sink) {
                PostOutcome::Answered(end) => return Ok(*end),
                PostOutcome::OtherTerms if concessions < CONCESSIONS => concessions += 1,
                PostOutcome::Failed(_, true) if reposts < REPOSTS => reposts += 1,
                PostOutcome::Failed(error, _) => return Err(error),
                PostOutcome::OtherTerms => {
                    return Err(ProviderError::Rejected(
                        "the service rejects the request in every form".to_owned(),
                    ));
                }
            }
            sink.before_retry().await?;
        }
    }
}

impl Provider for PostedProvider {
    fn name(&self) -> &str {
        self.service.single().name()
    }

    fn inner(&self) -> Option<&dyn Provider> {
        Some(self.service.single())
    }

    fn ask<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a mut dyn CallSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>> {
        Box::pin(self.answer_by_post(call, sink))
    }
}
