//! Rows by the batch endpoint of a service: a provider whose calls wait until a post with them has come back, be it in another
//! process. The pipeline does not notice: questions that are asked again, parts and tools go into the next post. A request is
//! known by the hash of what is sent, so a process that goes on finds what an earlier one has posted, and posts nothing twice.

mod desk;
mod post_file;
mod postman;

use std::sync::Arc;
use std::time::Duration;

use cognitive_contract::batch_service::{BatchService, PostOutcome};
use cognitive_contract::media::{AcceptedForm, Category};
use cognitive_contract::ports::{
    CallSink, Destination, ModelCall, ModelEnd, PortFuture, Provider, ProviderError, RenderedRequest,
};
use cognitive_schema::SchemaTarget;

pub(crate) use self::desk::PostDesk;
pub(crate) use self::postman::deliver;

/// How often a request is posted again that the service did not come to.
const REPOSTS: u32 = 2;
/// There are fewer terms than this.
const CONCESSIONS: u32 = 8;

/// How rows are posted.
#[derive(Clone)]
pub struct PostPlan {
    /// The service.
    pub service: Arc<dyn BatchService>,
    /// How long to wait before a post is asked about again.
    pub poll: Duration,
}

/// A provider whose calls go with the next post.
pub(crate) struct PostedProvider {
    pub(crate) service: Arc<dyn BatchService>,
    pub(crate) desk: Arc<PostDesk>,
}

impl PostedProvider {
    async fn answered(&self, call: &ModelCall, sink: &mut dyn CallSink) -> Result<ModelEnd, ProviderError> {
        let (mut reposts, mut concessions) = (0, 0);
        loop {
            let draft = self.service.draft(call)?;
            let ticket = self.desk.ticket(&draft.body, reposts);
            let reply = self.desk.reply(&ticket, &draft.body).await?;
            match self.service.read(call, &draft, &reply, sink) {
                PostOutcome::Answered(end) => return Ok(*end),
                PostOutcome::OtherTerms if concessions < CONCESSIONS => concessions += 1,
                PostOutcome::Failed(_, true) if reposts < REPOSTS => reposts += 1,
                PostOutcome::Failed(error, _) => return Err(error),
                PostOutcome::OtherTerms => {
                    return Err(ProviderError::Rejected(
                        "the service takes the request on no terms".to_owned(),
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

    fn identity(&self) -> String {
        self.service.single().identity()
    }

    fn target(&self) -> Option<SchemaTarget> {
        self.service.single().target()
    }

    fn capabilities(&self) -> &[&str] {
        self.service.single().capabilities()
    }

    fn takes(&self, category: Category) -> Option<AcceptedForm> {
        self.service.single().takes(category)
    }

    fn gives(&self, category: Category) -> bool {
        self.service.single().gives(category)
    }

    fn destination(&self) -> Option<Destination> {
        self.service.single().destination()
    }

    fn rendered(&self, call: &ModelCall) -> Option<RenderedRequest> {
        self.service.single().rendered(call)
    }

    fn stays_here(&self) -> bool {
        self.service.single().stays_here()
    }

    fn ask<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a mut dyn CallSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>> {
        Box::pin(self.answered(call, sink))
    }
}
