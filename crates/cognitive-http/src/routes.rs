//! The table of routes. Handlers hold no rule: they take a request apart and call the one function that answers it.
//! Everything that is not in the table is answered with an envelope too.

use std::error::Error;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Extension, FromRequestParts, Path, Query as QueryOf, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use axum::routing::{get, post};
use axum::{Router, middleware};
use cognitive_contract::{ErrorCode, Failure};
use http_body::Body as _;
use serde_json::Value;

use crate::app::{Shared, shutting_down};
use crate::ask::Query;
use crate::catalog::no_module;
use crate::guard::{Client, guard};
use crate::run::Incoming;
use crate::{answer, openapi, pages, run, websocket};

/// One operation, as `/openapi.json` describes it.
pub(crate) struct Operation {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    pub(crate) summary: &'static str,
}

const fn operation(method: &'static str, path: &'static str, summary: &'static str) -> Operation {
    Operation { method, path, summary }
}

/// Everything that can be asked, besides the runs of each module.
pub(crate) const OPERATIONS: [Operation; 11] = [
    operation("post", "/api/run/{module}", "Run a module"),
    operation("post", "/v1/modules/{module}/execute", "Run a module"),
    operation("post", "/run", "Run the module that the body names"),
    operation("get", "/api/modules", "The installed modules"),
    operation("get", "/api/modules/{module}", "What a module takes, gives and may do"),
    operation("get", "/capabilities", "What this runtime can do"),
    operation("get", "/health", "Whether the server lives"),
    operation("get", "/ready", "Whether the server takes work"),
    operation("get", "/metrics", "Counters in the text format of Prometheus"),
    operation("get", "/openapi.json", "This description"),
    operation("get", "/ws", "Several runs over one WebSocket"),
];

/// All routes, behind the guard.
pub(crate) fn router(shared: Arc<Shared>) -> Router {
    let routes = Router::new()
        .route("/api/run/{module}", post(run_named))
        .route("/v1/modules/{module}/execute", post(run_named))
        .route("/run", post(run_in_body))
        .route("/api/modules", get(pages::modules))
        .route("/api/modules/{module}", get(pages::module))
        .route("/capabilities", get(pages::capabilities))
        .route("/health", get(pages::health))
        .route("/ready", get(pages::ready))
        .route("/metrics", get(pages::metrics))
        .route("/openapi.json", get(openapi::document))
        .route("/docs", get(pages::docs))
        .route("/docs.js", get(pages::docs_script))
        .route("/ws", get(websocket::upgrade))
        .fallback(unknown_path)
        .method_not_allowed_fallback(unknown_method)
        .with_state(Arc::clone(&shared));
    // Around all of it: a route of its own would add to a refusal which methods it has.
    Router::new().fallback_service(routes).layer(middleware::from_fn_with_state(shared, guard))
}

async fn run_named(
    State(shared): State<Arc<Shared>>,
    Extension(client): Extension<Client>,
    Name(module): Name,
    request: Request,
) -> Response<Body> {
    match incoming(&shared, client, request).await {
        Ok(incoming) => run::answer(&shared, &module, incoming).await,
        Err(refusal) => *refusal,
    }
}

/// `POST /run` with `{module, input | args}` (C-56).
async fn run_in_body(
    State(shared): State<Arc<Shared>>,
    Extension(client): Extension<Client>,
    request: Request,
) -> Response<Body> {
    let mut incoming = match incoming(&shared, client, request).await {
        Ok(incoming) => incoming,
        Err(refusal) => return *refusal,
    };
    let body: Option<Value> = serde_json::from_slice(&incoming.body).ok();
    let named = body.and_then(|mut body| {
        let members = body.as_object_mut()?;
        let module = members.shift_remove("module")?.as_str()?.to_owned();
        if let Some(args) = members.shift_remove("args").filter(Value::is_string) {
            let input = serde_json::json!({ "$ARGUMENTS": args, "query": args });
            members.insert("input".to_owned(), input);
        }
        members.entry("_options").or_insert_with(|| serde_json::json!({}));
        Some((module, Bytes::from(body.to_string())))
    });
    let Some((module, body)) = named else {
        let failure =
            Failure::new(ErrorCode::InvalidInput, "the body has to be an object that names a `module`")
                .suggest(r#"Send {"module": "NAME", "input": {…}}"#);
        return answer::failure(failure);
    };
    incoming.body = body;
    run::answer(&shared, &module, incoming).await
}

/// Reads a request to its end, within its limits of size, time and type.
async fn incoming(
    shared: &Shared,
    client: Client,
    request: Request,
) -> Result<Incoming, Box<Response<Body>>> {
    let (mut parts, body) = request.into_parts();
    let limit = shared.config.body_limit;
    if *shared.draining.borrow() {
        let failure = shutting_down(ErrorCode::ProviderUnavailable);
        return Err(Box::new(answer::failure_as(StatusCode::SERVICE_UNAVAILABLE, failure)));
    }
    if !is_json(&parts.headers) {
        let failure = Failure::new(ErrorCode::UnsupportedMediaType, "the body has to be JSON")
            .suggest("Send `Content-Type: application/json`");
        return Err(Box::new(answer::failure(failure)));
    }
    let too_large = || {
        let failure =
            Failure::new(ErrorCode::InputTooLarge, format!("the body is larger than {limit} bytes"))
                .suggest("Send less input");
        Box::new(answer::failure(failure))
    };
    // What says of itself that it is too large need not be sent at all.
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    let reading = axum::body::to_bytes(body, limit);
    let body = match tokio::time::timeout(shared.config.read_timeout, reading).await {
        Ok(Ok(body)) => body,
        Ok(Err(error)) if is_limit(&error) => return Err(too_large()),
        Ok(Err(_)) => {
            let failure = Failure::new(ErrorCode::ParseError, "the body broke off or is not framed as HTTP")
                .suggest("Send it again");
            return Err(Box::new(answer::failure(failure)));
        }
        Err(_) => {
            let failure = Failure::new(ErrorCode::Timeout, "the body did not arrive in time");
            return Err(Box::new(answer::failure_as(StatusCode::REQUEST_TIMEOUT, failure)));
        }
    };
    let Ok(QueryOf(query)) = QueryOf::<Query>::try_from_uri(&parts.uri) else {
        let failure = Failure::new(ErrorCode::InvalidInput, "the query cannot be understood")
            .suggest("Say `response_mode` once: `sync` or `streaming`");
        return Err(Box::new(answer::failure(failure)));
    };
    Ok(Incoming { client, headers: std::mem::take(&mut parts.headers), query, body })
}

fn is_limit(error: &axum::Error) -> bool {
    let mut source = error.source();
    while let Some(cause) = source {
        if cause.is::<http_body_util::LengthLimitError>() {
            return true;
        }
        source = cause.source();
    }
    false
}

/// The name of a module in a path. Bytes that are no text name none.
pub(crate) struct Name(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = Response<Body>;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.map(|Path(name)| Self(name)).map_err(|_| answer::failure(no_module(parts.uri.path())))
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

async fn unknown_path(method: Method, uri: axum::http::Uri) -> Response<Body> {
    let path = cognitive_contract::text::cut(uri.path(), 200);
    let failure = Failure::new(ErrorCode::InvalidReference, format!("there is nothing at `{method} {path}`"))
        .suggest("`GET /openapi.json` describes what there is");
    answer::failure_as(StatusCode::NOT_FOUND, failure)
}

async fn unknown_method(method: Method, uri: axum::http::Uri) -> Response<Body> {
    let path = cognitive_contract::text::cut(uri.path(), 200);
    let failure = Failure::new(ErrorCode::InvalidReference, format!("`{path}` does not take `{method}`"))
        .suggest("`GET /openapi.json` describes what there is");
    let mut response = answer::failure_as(StatusCode::METHOD_NOT_ALLOWED, failure);
    let posts = path == "/run" || path.starts_with("/api/run/") || path.starts_with("/v1/modules/");
    let allowed = if posts { "POST" } else { "GET, HEAD" };
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
    response
}
