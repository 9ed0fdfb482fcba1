//! The services of a worker: one per module, a workflow per composition, sessions, and two that receive the
//! module name in the request. The names depend on the modules, so the SDK's macros cannot generate these
//! definitions.

mod front;
mod module;
mod session;
mod workflow;

use std::sync::Arc;
use std::time::Duration;

use restate_sdk::discovery::{
    Handler, HandlerName, HandlerType, InputPayload, OutputPayload, Service as Manifest, ServiceName,
    ServiceType,
};
use restate_sdk::endpoint::{ContextInternal, Endpoint, Error};
use restate_sdk::serde::Json;
use restate_sdk::service::macro_support::{ServiceBoxFuture, service_definition};
use restate_sdk::service::{Service, ServiceDefinition};
use serde_json::Value;

use crate::worker::DurableWorker;
use front::Front;
use module::ModuleService;
use session::SessionObject;
use workflow::RunWorkflow;

/// The service that accepts any module and selects the right way to run it.
pub const FRONT: &str = "cogn";
/// The workflow that accepts any module.
pub const ANY_RUN: &str = "cogn-run";
/// The virtual object of sessions.
pub const SESSION: &str = "cogn-session";

/// The time after which the server takes a run away from a silent worker and restarts it. It is long because
/// models may be slow, and restarting would pay twice for an answer in flight.
const PATIENCE: Duration = Duration::from_hours(1);

/// The first and the longest retry interval of the server after a worker was lost. Attempts are unlimited, so
/// no run is lost.
const FIRST_RETRY: Duration = Duration::from_millis(50);
const LAST_RETRY: Duration = Duration::from_secs(2);

/// A service of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OfferedService {
    /// Its name at the server.
    pub name: String,
    /// `service`, `workflow` or `object`.
    pub kind: &'static str,
}

/// The services of a worker: the endpoint for the server and the service names. Modules that fail to load,
/// and names that the server rejects, are listed in `left_out` with the reason.
pub struct WorkerOffer {
    /// The endpoint that the server calls.
    pub endpoint: Endpoint,
    /// The services of the endpoint.
    pub services: Vec<OfferedService>,
    /// The modules and names that were left out, with the reasons.
    pub left_out: Vec<String>,
}

impl WorkerOffer {
    /// Collects all services of a worker.
    #[must_use]
    pub fn for_worker(worker: &Arc<DurableWorker>) -> Self {
        let mut offer =
            Self { endpoint: Endpoint::builder().build(), services: Vec::new(), left_out: Vec::new() };
        let mut builder = Endpoint::builder();
        let own = [
            PlannedService::new(FRONT, "Runs any module once for each key", ServiceShape::Front),
            PlannedService::new(ANY_RUN, "One run of any module, by its key", ServiceShape::Workflow(None)),
            PlannedService::new(
                SESSION,
                "A conversation: its runs in order, and its context",
                ServiceShape::Session,
            ),
        ];
        let mut all: Vec<PlannedService> = own.into();
        for name in worker.runtime.modules().names() {
            match worker.runtime.modules().glance(&name) {
                Ok(module) => {
                    let about = &module.manifest.responsibility;
                    let shape = if module.is_standalone() {
                        ServiceShape::Module
                    } else {
                        ServiceShape::Workflow(Some(name.clone()))
                    };
                    all.push(PlannedService::new(&name, about, shape));
                }
                Err(failure) => offer.left_out.push(format!("{name}: {}", failure.message())),
            }
        }
        for described in all {
            let (name, kind) = (described.name.clone(), described.shape.word());
            match described.definition(worker) {
                Some(definition) => {
                    builder = builder.bind(definition);
                    offer.services.push(OfferedService { name, kind });
                }
                None => offer.left_out.push(format!("{name}: the server does not accept this service name")),
            }
        }
        offer.endpoint = builder.build();
        offer
    }
}

/// A service that is not bound yet.
struct PlannedService {
    name: String,
    about: String,
    shape: ServiceShape,
}

/// The kind of service. A workflow belongs to one module or receives its name in the request.
enum ServiceShape {
    Front,
    Module,
    Workflow(Option<String>),
    Session,
}

impl ServiceShape {
    fn word(&self) -> &'static str {
        match self {
            Self::Front | Self::Module => "service",
            Self::Workflow(_) => "workflow",
            Self::Session => "object",
        }
    }
}

impl PlannedService {
    fn new(name: &str, about: &str, shape: ServiceShape) -> Self {
        Self { name: name.to_owned(), about: about.to_owned(), shape }
    }

    /// Defines the service; `None` if the server would reject the name.
    fn definition(self, worker: &Arc<DurableWorker>) -> Option<ServiceDefinition> {
        let (worker, shared, exclusive) = (Arc::clone(worker), Some(HandlerType::Shared), None);
        let (ty, handlers) = match &self.shape {
            ServiceShape::Front | ServiceShape::Module => (ServiceType::Service, vec![handler("run", None)?]),
            ServiceShape::Workflow(_) => (
                ServiceType::Workflow,
                vec![
                    handler("run", Some(HandlerType::Workflow))?,
                    handler("envelope", shared)?,
                    handler("status", shared)?,
                    handler("review", shared)?,
                    handler("decide", shared)?,
                ],
            ),
            ServiceShape::Session => (
                ServiceType::VirtualObject,
                vec![handler("run", exclusive)?, handler("context", shared)?, handler("forget", exclusive)?],
            ),
        };
        let manifest = manifest(&self.name, &self.about, ty, handlers)?;
        Some(match self.shape {
            ServiceShape::Front => service_definition(Front { worker }, manifest),
            ServiceShape::Module => service_definition(ModuleService { worker, module: self.name }, manifest),
            ServiceShape::Workflow(module) => service_definition(RunWorkflow { worker, module }, manifest),
            ServiceShape::Session => service_definition(SessionObject { worker }, manifest),
        })
    }
}

fn manifest(name: &str, about: &str, ty: ServiceType, handlers: Vec<Handler>) -> Option<Manifest> {
    Some(Manifest {
        name: ServiceName::try_from(name.to_owned()).ok()?,
        ty,
        handlers,
        documentation: Some(about.to_owned()),
        metadata: std::collections::HashMap::default(),
        abort_timeout: Some(milliseconds(PATIENCE)),
        inactivity_timeout: Some(milliseconds(PATIENCE)),
        journal_retention: None,
        idempotency_retention: None,
        enable_lazy_state: None,
        ingress_private: None,
        retry_policy_initial_interval: Some(milliseconds(FIRST_RETRY)),
        retry_policy_max_interval: Some(milliseconds(LAST_RETRY)),
        retry_policy_max_attempts: None,
        retry_policy_exponentiation_factor: Some(2.0),
        retry_policy_on_max_attempts: None,
    })
}

fn handler(name: &str, ty: Option<HandlerType>) -> Option<Handler> {
    let json = "application/json".to_owned();
    Some(Handler {
        name: HandlerName::try_from(name).ok()?,
        // Invalid JSON is answered with an error envelope, so every content type is accepted.
        input: Some(InputPayload {
            content_type: Some("*/*".to_owned()),
            json_schema: None,
            required: Some(false),
        }),
        output: Some(OutputPayload {
            content_type: Some(json),
            json_schema: None,
            set_content_type_if_empty: Some(false),
        }),
        ty,
        documentation: None,
        metadata: std::collections::HashMap::default(),
        abort_timeout: None,
        inactivity_timeout: None,
        journal_retention: None,
        idempotency_retention: None,
        workflow_completion_retention: None,
        enable_lazy_state: None,
        ingress_private: None,
        retry_policy_initial_interval: None,
        retry_policy_max_interval: None,
        retry_policy_max_attempts: None,
        retry_policy_exponentiation_factor: None,
        retry_policy_on_max_attempts: None,
    })
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Ends an invocation with its answer.
fn answer(ctx: &ContextInternal, answer: Value) {
    ctx.handle_handler_result(Ok(Json(answer)));
    ctx.end();
}

fn unknown_handler(ctx: &ContextInternal) -> Result<(), Error> {
    Err(Error::unknown_handler(ctx.service_name(), ctx.handler_name()))
}
