//! `/mcp`: modules as tools for agents, behind the same guard, keys, limits and memory budget as all other endpoints.
//! Responses are messages of the Model Context Protocol that carry envelopes; `cognitive_mcp` implements the
//! protocol.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, Response, StatusCode};
use cognitive_contract::{ErrorCode, Failure};
use cognitive_mcp::{Admission, AdmissionFuture, Extensions, McpBackend, McpHttp, McpServer};
use cognitive_runtime::Host;
use serde_json::Value;

use crate::app::AppState;
use crate::auth::Client;
use crate::config::{ModuleFilter, ModuleFindings, ServerConfig};
use crate::memory_budget::MemoryClaim;
use crate::request::Options;
use crate::{intake, response, run};

/// The header that names a session.
const SESSION: &str = "mcp-session-id";
/// The id of no session. A request for the session of another client gets the answer for this one.
const NO_SESSION: HeaderValue = HeaderValue::from_static("none");

/// Creates the MCP service.
pub(crate) fn open(host: &Arc<Host>, config: &ServerConfig) -> McpHttp {
    let backend = ServerBackend {
        host: Arc::clone(host),
        offers: config.offers.clone(),
        findings: config.findings.clone(),
    };
    let server = McpServer::new(Arc::new(backend), config.tools.clone());
    // Behind a balancer the next request may reach another server, which does not know the session.
    let has_sessions = config.shared.is_none();
    McpHttp::new(server, config.body_limit, has_sessions)
}

/// The context of a request that starts a run. Passed through the MCP library as a request extension.
#[derive(Clone)]
struct AgentRequest {
    shared: Arc<AppState>,
    client: Arc<Client>,
    /// The memory of the request body, held until the request is over.
    claim: Option<Arc<MemoryClaim>>,
}

/// Answers one MCP request.
pub(crate) async fn serve(
    State(shared): State<Arc<AppState>>,
    Extension(client): Extension<Arc<Client>>,
    request: Request,
) -> Response<Body> {
    let (mut parts, body) = request.into_parts();
    let (body, claim) = if parts.method == Method::POST {
        let mut claim = shared.room.claim();
        let limit = shared.config.body_limit;
        let bytes = match intake::body_of(&shared, &parts.headers, body, limit, &mut claim).await {
            Ok(bytes) => bytes,
            Err(refusal) => return *refusal,
        };
        match intake::read(&shared, bytes, claim, Ok).await {
            Ok((text, claim)) => (Body::from(text), Some(Arc::new(claim))),
            Err(failure) => return response::failure(failure),
        }
    } else {
        (Body::empty(), None)
    };
    let now = Instant::now();
    let session = parts.headers.get(SESSION).map(|id| id.to_str().unwrap_or_default());
    let is_new = session.is_none();
    if session.is_some_and(|id| !shared.agents.take(id, &client.name, now)) {
        parts.headers.insert(SESSION, NO_SESSION);
    }
    let ends = parts.method == Method::DELETE;
    let owner = Arc::clone(&client.name);
    parts.extensions.insert(AgentRequest { shared: Arc::clone(&shared), client, claim });
    let mut response = shared.mcp.service.handle(Request::from_parts(parts, body)).await.map(Body::new);
    let opened = response.headers().get(SESSION).filter(|_| is_new).and_then(|id| id.to_str().ok());
    if let Some(id) = opened {
        let open = shared.mcp.open_sessions().await;
        if let Some(oldest) = shared.agents.insert(id, &owner, now, &open) {
            shared.mcp.end_session(&oldest).await;
        }
    }
    // The protocol leaves the status open, and some clients report "accepted" as a failure.
    if ends && response.status() == StatusCode::ACCEPTED {
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    response
}

/// The parts of the server that the MCP service uses.
struct ServerBackend {
    host: Arc<Host>,
    offers: Option<ModuleFilter>,
    findings: Option<ModuleFindings>,
}

impl McpBackend for ServerBackend {
    fn host(&self) -> &Host {
        &self.host
    }

    fn offers(&self, name: &str) -> bool {
        self.offers.as_ref().is_none_or(|offers| offers(name))
    }

    fn admit<'a>(&'a self, client: &'a Extensions) -> AdmissionFuture<'a> {
        Box::pin(admit(client))
    }

    fn findings(&self, name: &str) -> Result<Value, Failure> {
        let Some(findings) = &self.findings else {
            return Err(Failure::new(ErrorCode::PermissionDenied, "this server does not validate modules")
                .suggest("Ask the server operator to validate the module"));
        };
        findings(name)
    }
}

/// Admits one run of a client. Like every run, it is counted over all servers with shared state.
async fn admit(client: &Extensions) -> Result<Admission, Failure> {
    let Some(known) = client.get::<Parts>().and_then(|parts| parts.extensions.get::<AgentRequest>()) else {
        return Err(Failure::new(ErrorCode::InternalError, "unknown client of this call"));
    };
    let AgentRequest { shared, client, claim } = known.clone();
    run::within_shared_rate(&shared, &client).await?;
    let mut options = run::options(&client, &Options::default())?;
    options.trace_id = Some(client.trace.id.clone());
    options.spans = shared.place(&client.trace, Some(&client.trace.span));
    // A run that has become a task outlives its request, and so does the memory of its input.
    let held = (shared.count_run(), claim);
    let (ending, counting) = (Arc::clone(&shared), shared);
    Ok(Admission {
        options,
        stop: Box::pin(async move { ending.shutdown_deadline().await }),
        held: Some(Box::new(held)),
        ended: Some(Box::new(move |module, envelope, took| {
            counting.metrics.count_run(module, envelope, None, took);
        })),
    })
}
