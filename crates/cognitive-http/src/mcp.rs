//! `/mcp`: modules as tools for agents, behind the same guard, keys, limits and memory budget as all other endpoints.
//! Responses are messages of the Model Context Protocol that carry envelopes; `cognitive_mcp` implements the
//! protocol.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::request::Parts;
use axum::http::{Method, Response};
use cognitive_contract::{ErrorCode, Failure};
use cognitive_mcp::{Admission, Extensions, McpDoor, McpHttp, McpServer};
use cognitive_runtime::Host;
use serde_json::Value;

use crate::app::Shared;
use crate::auth::Client;
use crate::config::{ModuleFilter, ModuleFindings, ServerConfig};
use crate::memory_budget::MemoryClaim;
use crate::request::Options;
use crate::{intake, response, run};

/// Open sessions of older clients. Each is small, but a client that opens one need not return to close it.
const MAX_SESSIONS: usize = 1_000;
/// The header that names a session.
const SESSION: &str = "mcp-session-id";

/// Creates the MCP service.
pub(crate) fn open(host: &Arc<Host>, config: &ServerConfig) -> McpHttp {
    let door = ServerDoor {
        host: Arc::clone(host),
        offers: config.offers.clone(),
        findings: config.findings.clone(),
    };
    McpHttp::new(McpServer::new(Arc::new(door), config.tools.clone()), config.body_limit)
}

/// The context of a request that starts a run. Passed through the MCP library as a request extension.
#[derive(Clone)]
struct AgentRequest {
    shared: Arc<Shared>,
    client: Arc<Client>,
    /// The memory of the request body, held until the request is over.
    claim: Option<Arc<MemoryClaim>>,
}

/// Answers one MCP request.
pub(crate) async fn serve(
    State(shared): State<Arc<Shared>>,
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
    if !parts.headers.contains_key(SESSION) && shared.mcp.open_sessions().await >= MAX_SESSIONS {
        return response::failure(run::too_much(
            "too many sessions are open",
            std::time::Duration::from_mins(1),
        ));
    }
    parts.extensions.insert(AgentRequest { shared: Arc::clone(&shared), client, claim });
    shared.mcp.service.handle(Request::from_parts(parts, body)).await.map(Body::new)
}

/// The parts of the server that the MCP service uses.
struct ServerDoor {
    host: Arc<Host>,
    offers: Option<ModuleFilter>,
    findings: Option<ModuleFindings>,
}

impl McpDoor for ServerDoor {
    fn host(&self) -> &Host {
        &self.host
    }

    fn offers(&self, name: &str) -> bool {
        self.offers.as_ref().is_none_or(|offers| offers(name))
    }

    fn admit(&self, client: &Extensions) -> Result<Admission, Failure> {
        let Some(known) = client.get::<Parts>().and_then(|parts| parts.extensions.get::<AgentRequest>())
        else {
            return Err(Failure::new(ErrorCode::InternalError, "unknown client of this call"));
        };
        let AgentRequest { shared, client, claim } = known.clone();
        run::within_rate(&shared, &client)?;
        let mut options = run::options(&client, &Options::default())?;
        options.trace_id = Some(client.trace.id.clone());
        options.spans = shared.place(&client.trace, Some(&client.trace.span));
        // A run that has become a task outlives its request, and so does the memory of its input.
        let held = (shared.busy(), claim);
        let (ending, counting) = (Arc::clone(&shared), shared);
        Ok(Admission {
            options,
            stop: Box::pin(async move { ending.time_is_up().await }),
            held: Some(Box::new(held)),
            ended: Some(Box::new(move |module, envelope, took| {
                counting.metrics.ran(module, envelope, None, took);
            })),
        })
    }

    fn findings(&self, name: &str) -> Result<Value, Failure> {
        let Some(findings) = &self.findings else {
            return Err(Failure::new(ErrorCode::PermissionDenied, "this server does not validate modules")
                .suggest("Ask the server operator to validate the module"));
        };
        findings(name)
    }
}
