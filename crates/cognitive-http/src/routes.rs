//! The router built from the table of operations, and the handlers of runs. Contains no rules: handlers parse a
//! request and call the function that answers it. Unknown paths and methods are answered with an envelope too.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, FromRequestParts, Path, Query as QueryOf, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, Response, StatusCode, header};
use cognitive_contract::manifest::InputModality;
use cognitive_contract::{ErrorCode, Failure, Module};
use cognitive_runtime::host::RunInput;
use cognitive_runtime::stages::input;
use http_body::Body as _;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::app::AppState;
use crate::auth::{Client, Peer, guard};
use crate::catalog::no_module;
use crate::intake::{self, too_large};
use crate::operations::{OPERATIONS, allowed_methods};
use crate::request::{Content, Options, Query, by_headers};
use crate::run::Incoming;
use crate::{response, run};

/// Returns all routes. Only the guard may call them.
pub(crate) fn router(shared: Arc<AppState>) -> Router {
    let routes = OPERATIONS
        .iter()
        .fold(Router::new(), |routes, operation| routes.route(operation.path, (operation.handler)()));
    routes.fallback(unknown_path).method_not_allowed_fallback(unknown_method).with_state(shared)
}

/// Returns all routes behind the guard. The guard wraps the whole router: as a layer it would wrap each route, and a
/// refusal would reveal the methods of the route.
pub(crate) fn guarded_router(shared: Arc<AppState>) -> Router {
    let routes = router(Arc::clone(&shared));
    Router::new().fallback(move |request: Request| {
        let peer = Peer::from_request(&request);
        guard(Arc::clone(&shared), routes.clone(), peer, request)
    })
}

pub(crate) async fn run_named(
    State(shared): State<Arc<AppState>>,
    Extension(client): Extension<Arc<Client>>,
    Name(module): Name,
    request: Request,
) -> Response<Body> {
    let found = shared.module(&module).await;
    let limit = limit_for(&shared, found.as_deref().ok());
    match read_request(&shared, client, request, limit, |text| Ok(Content::parse(text))).await {
        // Boxed: the router copies the future of a handler several times, and that of a run is large.
        Ok((body, incoming)) => Box::pin(run::answer(&shared, &module, found, body, incoming)).await,
        Err(refusal) => *refusal,
    }
}

/// A run that is told to end.
#[derive(Serialize, JsonSchema)]
pub(crate) struct StreamEnd {
    session_id: String,
    #[schemars(extend("const" = "cancelled"))]
    status: &'static str,
}

/// `DELETE /v1/streams/{id}`.
pub(crate) async fn end_stream(
    State(shared): State<Arc<AppState>>,
    Extension(client): Extension<Arc<Client>>,
    Name(id): Name,
) -> Response<Body> {
    match run::cancel(&shared, &client, &id).await {
        Ok(()) => response::json(StatusCode::OK, &StreamEnd { session_id: id, status: "cancelled" }),
        Err(failure) => response::failure(failure),
    }
}

/// `POST /run` with `{module, input | args}` (C-56).
pub(crate) async fn run_in_body(
    State(shared): State<Arc<AppState>>,
    Extension(client): Extension<Arc<Client>>,
    request: Request,
) -> Response<Body> {
    let limit = limit_for_any(&shared, request.body().size_hint().upper()).await;
    let read = |text: String| {
        let length = text.len();
        read_named_body(text).map(|named| (length, named))
    };
    let ((length, (module, body)), incoming) = match read_request(&shared, client, request, limit, read).await
    {
        Ok(read) => read,
        Err(refusal) => return *refusal,
    };
    let found = shared.module(&module).await;
    let limit = limit_for(&shared, found.as_deref().ok());
    if length > limit {
        return response::failure(too_large("body", limit));
    }
    Box::pin(run::answer(&shared, &module, found, body, incoming)).await
}

/// A run of the module that the body names.
#[derive(JsonSchema)]
#[schemars(rename = "NamedRun")]
#[expect(dead_code, reason = "only its schema is used: the body is taken apart without copies")]
pub(crate) struct NamedRunBody {
    module: String,
    input: Option<Map<String, Value>>,
    /// Free text in place of an input; no schema validates it.
    args: Option<String>,
    _options: Option<Options>,
}

/// The input of the module, or `{input, _options}`.
#[derive(JsonSchema)]
#[schemars(rename = "AnyInput")]
#[expect(dead_code, reason = "only its schema is used: the body is taken apart without copies")]
pub(crate) struct InputBody(Map<String, Value>);

/// Returns the module that a body names, and the rest of the body. Invalid JSON is reported as for every other run.
fn read_named_body(sent: String) -> Result<(String, Content), Failure> {
    let body = input::read(RunInput::Raw(sent))?.into_value();
    let Value::Object(mut members) = body else { return Err(no_module_named()) };
    let Some(Value::String(module)) = members.shift_remove("module") else { return Err(no_module_named()) };
    let args = members.shift_remove("args").filter(|args| !args.is_null());
    let rivals = ["input", "_context"];
    let rival = rivals.into_iter().find(|name| members.get(*name).is_some_and(|value| !value.is_null()));
    members.entry("_options").or_insert_with(|| serde_json::json!({}));
    let refused = |what: String| {
        Failure::new(ErrorCode::InvalidInput, what)
            .suggest(r#"Send {"module": "NAME", "input": {…}} for anything but free text"#)
    };
    match (args, rival) {
        (None, _) => Ok((module, Content::Members(members))),
        (Some(Value::String(text)), None) => Ok((module, Content::Args(text, members))),
        (Some(Value::String(_)), Some(rival)) => {
            Err(refused(format!("`args` and `{rival}` exclude each other")))
        }
        (Some(_), _) => Err(refused("`args` must be a string".to_owned())),
    }
}

fn no_module_named() -> Failure {
    Failure::new(ErrorCode::InvalidInput, "the body must be an object with `module`")
        .suggest(r#"Send {"module": "NAME", "input": {…}}"#)
}

/// Bodies up to this size are read even from a client that is rate-limited. The client then gets the refusal as a
/// response, and keeps its connection.
const SMALL_BODY: u64 = 64 << 10;

/// The largest body for a module that takes media, and for one that takes video (S-28).
const MEDIA_BODY: usize = 40 << 20;
const VIDEO_BODY: usize = 140 << 20;

/// Returns the body limit of a module. A missing module gets the default.
fn limit_for(shared: &AppState, module: Option<&Module>) -> usize {
    module.map_or(shared.config.body_limit, |module| body_limit(shared, module))
}

/// Returns the body limit for any module that the body may name. A short body needs no lookup.
pub(crate) async fn limit_for_any(shared: &Arc<AppState>, length: Option<u64>) -> usize {
    let usual = shared.config.body_limit;
    if length.is_some_and(|length| length <= usual as u64) {
        return usual;
    }
    shared.modules_list.get(shared).await.map_or(usual, |told| told.most_taken)
}

/// Returns the body limit of a module.
pub(crate) fn body_limit(shared: &AppState, module: &Module) -> usize {
    let (usual, taken) = (shared.config.body_limit, &module.manifest.modalities.input);
    if shared.host.media.is_none() {
        usual
    } else if taken.contains(&InputModality::Video) {
        usual.max(VIDEO_BODY)
    } else if taken.iter().any(|kind| *kind != InputModality::Text) {
        usual.max(MEDIA_BODY)
    } else {
        usual
    }
}

/// Reads a request to its end. A rate-limited client is refused before a large body is read. A small body is parsed
/// first, since resuming a stream does not count as a run.
async fn read_request<T: Send + 'static>(
    shared: &Arc<AppState>,
    client: Arc<Client>,
    request: Request,
    limit: usize,
    make: impl FnOnce(String) -> Result<T, Failure> + Send + 'static,
) -> Result<(T, Incoming), Box<Response<Body>>> {
    let (mut parts, body) = request.into_parts();
    let refuse = |failure| Box::new(response::failure(failure));
    let Ok(QueryOf(query)) = QueryOf::<Query>::try_from_uri(&parts.uri) else {
        let failure = Failure::new(ErrorCode::InvalidInput, "invalid query")
            .suggest("Use one `response_mode`: `sync` or `streaming`");
        return Err(refuse(failure));
    };
    let is_small = body.size_hint().upper().is_some_and(|length| length <= SMALL_BODY);
    let rate = run::within_shared_rate(shared, &client).await;
    if !is_small && by_headers(&parts.headers).is_none() {
        rate.as_ref().map_err(|failure| refuse(failure.clone()))?;
    }
    let mut claim = shared.room.claim();
    let body = intake::body_of(shared, &parts.headers, body, limit, &mut claim).await?;
    let (content, claim) = intake::read(shared, body, claim, make).await.map_err(refuse)?;
    let headers = std::mem::take(&mut parts.headers);
    Ok((content, Incoming { client, headers, query, rate, claim }))
}

/// The module name in a path. Bytes that are not UTF-8 are refused.
pub(crate) struct Name(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = Response<Body>;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.map(|Path(name)| Self(name)).map_err(|_| response::failure(no_module(parts.uri.path())))
    }
}

async fn unknown_path(method: Method, uri: axum::http::Uri) -> Response<Body> {
    no_such_path(&method, &uri)
}

/// The response for an unknown path.
pub(crate) fn no_such_path(method: &Method, uri: &axum::http::Uri) -> Response<Body> {
    let path = cognitive_contract::text::cut(uri.path(), 200);
    let failure = Failure::new(ErrorCode::InvalidReference, format!("no such endpoint: `{method} {path}`"))
        .suggest("`GET /openapi.json` lists the endpoints");
    response::failure_as(StatusCode::NOT_FOUND, failure)
}

async fn unknown_method(method: Method, uri: axum::http::Uri) -> Response<Body> {
    let path = cognitive_contract::text::cut(uri.path(), 200);
    let failure = Failure::new(ErrorCode::InvalidReference, format!("`{path}` does not support `{method}`"))
        .suggest("`GET /openapi.json` lists the endpoints");
    let mut response = response::failure_as(StatusCode::METHOD_NOT_ALLOWED, failure);
    if let Ok(allowed) = HeaderValue::try_from(allowed_methods(uri.path())) {
        response.headers_mut().insert(header::ALLOW, allowed);
    }
    response
}

#[cfg(test)]
mod tests {
    use axum::middleware::map_response;
    use cognitive_runtime::Host;
    use cognitive_testkit::{FolderModule, ScriptedProvider, module_folder};
    use serde_json::json;

    use super::*;
    use crate::app::App;
    use crate::config::ServerConfig;

    // A layer added to the router has to apply to every request that the guard admits, above all to runs.
    #[tokio::test]
    async fn every_request_passes_the_router_and_its_layers() {
        let folder = module_folder(&json!({}), &json!({}), "");
        let host = Host::new(Arc::new(FolderModule::new(folder)), Arc::new(ScriptedProvider::new([""])));
        let shared = App::new(host, ServerConfig::default()).0;
        let layer = map_response(async |mut response: Response<Body>| {
            response.headers_mut().insert("x-layer", HeaderValue::from_static("seen"));
            response
        });
        let table = router(Arc::clone(&shared)).layer(layer);
        let unknown = [("get", "/nothing"), ("delete", "/api/run/a")];
        let known = OPERATIONS.iter().map(|operation| (operation.method, operation.path));
        for (method, path) in known.chain(unknown) {
            let (method, path) = (method.to_uppercase(), path.replace(['{', '}'], ""));
            let request = Request::builder().method(&*method).uri(&path).body(Body::empty()).unwrap();
            let response = guard(Arc::clone(&shared), table.clone(), Peer::new(None), request).await;
            assert!(response.headers().contains_key("x-layer"), "{method} {path}");
        }
    }
}
