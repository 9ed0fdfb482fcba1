//! A module as a service: input in, envelope out, one run per invocation.

use std::sync::Arc;

use bytes::Bytes;
use restate_sdk::endpoint::ContextInternal;

use super::{Service, ServiceBoxFuture, answer, unknown_handler};
use crate::run_request;
use crate::worker::{DurableWorker, WantedRun, failure_json};

/// The service of one module.
pub(super) struct ModuleService {
    pub(super) worker: Arc<DurableWorker>,
    pub(super) module: String,
}

impl Service for ModuleService {
    type Future = ServiceBoxFuture;

    fn handle(&self, ctx: ContextInternal) -> Self::Future {
        let (worker, module) = (Arc::clone(&self.worker), self.module.clone());
        Box::pin(async move {
            if ctx.handler_name() != "run" {
                return unknown_handler(&ctx);
            }
            let (body, about) = ctx.input::<Bytes>().await;
            let invocation = about.invocation_id;
            let read = run_request::read(&body).and_then(|(body, wishes)| {
                wishes.refuse_waiting()?;
                Ok((body, wishes))
            });
            let envelope = match read {
                Ok((body, wishes)) => {
                    let wanted = WantedRun { module, body, wishes, invocation, session: None };
                    worker.finish(&ctx, wanted).await.envelope
                }
                Err(failure) => failure_json(failure, &invocation),
            };
            answer(&ctx, envelope);
            Ok(())
        })
    }
}
