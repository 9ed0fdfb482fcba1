//! The table of routes. Handlers hold no rule: they take a request apart and call the one function that answers it.
//! Everything that is not in the table is answered with an envelope too.

use std::error::Error;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Extension, FromRequestParts, Path, Query as QueryOf, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use axum::routing::{get, post, put};
use cognitive_contract::code::Blame;
use cognitive_contract::manifest::InputModality;
use cognitive_contract::{ErrorCode, Failure, Module};
use cognitive_runtime::host::RunInput;
use cognitive_runtime::stages::input;
use http_body::Body as _;
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use crate::app::{Shared, shutting_down};
use crate::ask::{Content, Query, text_of};
use crate::catalog::{is_name, no_module};
use crate::guard::{Client, Peer, guard};
use crate::run::Incoming;
use crate::{answer, files, openapi, pages, run, uploads, websocket};

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
pub(crate) const OPERATIONS: [Operation; 14] = [
    operation("post", "/api/run/{module}", "Run a module"),
    operation("post", "/v1/modules/{module}/execute", "Run a module"),
    operation("post", "/run", "Run the module that the body names"),
    operation("get", "/api/modules", "The installed modules"),
    operation("get", "/api/modules/{module}", "What a module takes, gives and may do"),
    operation("post", "/v1/media/upload-url", "Make room for an upload"),
    operation("put", "/v1/media/uploads/{id}", "Send the bytes of an upload"),
    operation("get", "/v1/media/files/{id}", "The bytes of a medium of an answer"),
    operation("get", "/capabilities", "What this runtime can do"),
    operation("get", "/health", "Whether the server lives"),
    operation("get", "/ready", "Whether the server takes work"),
    operation("get", "/metrics", "Counters in the text format of Prometheus"),
    operation("get", "/openapi.json", "This description"),
    operation("get", "/ws", "Several runs over one WebSocket"),
];

/// The route of a path, as the table names it. What is not in the table has none.
pub(crate) fn route(path: &str) -> Option<&'static str> {
    let fits = |route: &str| {
        let (mut parts, mut asked) = (route.split('/'), path.split('/'));
        parts.by_ref().all(|part| {
            asked.next().is_some_and(|asked| part == asked || (part.starts_with('{') && !asked.is_empty()))
        }) && asked.next().is_none()
    };
    let pages = ["/docs", "/docs.js"];
    OPERATIONS.iter().map(|operation| operation.path).chain(pages).find(|route| fits(route))
}

/// All routes. Only the guard may call them.
pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/api/run/{module}", post(run_named))
        .route("/v1/modules/{module}/execute", post(run_named))
        .route("/run", post(run_in_body))
        .route("/api/modules", get(pages::modules))
        .route("/api/modules/{module}", get(pages::module))
        .route("/v1/media/upload-url", post(uploads::announce))
        .route("/v1/media/uploads/{id}", put(uploads::receive))
        .route("/v1/media/files/{id}", get(files::serve))
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
        .with_state(shared)
}

/// The same behind the guard. It stands around all of it: as a layer it would stand around every route, and a refusal
/// would say which methods the route has.
pub(crate) fn guarded(shared: Arc<Shared>) -> Router {
    let routes = router(Arc::clone(&shared));
    Router::new().fallback(move |request: Request| {
        let peer = Peer::of(&request);
        guard(Arc::clone(&shared), routes.clone(), peer, request)
    })
}

async fn run_named(
    State(shared): State<Arc<Shared>>,
    Extension(client): Extension<Arc<Client>>,
    Name(module): Name,
    request: Request,
) -> Response<Body> {
    run_module(&shared, client, &module, request).await
}

/// The module of a request that asks for a run in the usual way. Runs are what the server is for, so the guard hands them
/// over without asking the table; whatever is not quite usual, such as a name in other characters, goes through it.
pub(crate) fn usual_run(request: &Request) -> Option<&str> {
    let name = request.uri().path().strip_prefix("/api/run/").filter(|_| request.method() == Method::POST)?;
    is_name(name).then_some(name)
}

/// Runs a module.
pub(crate) async fn run_module(
    shared: &Arc<Shared>,
    client: Arc<Client>,
    module: &str,
    request: Request,
) -> Response<Body> {
    let found = shared.module(module).await;
    let limit = limit_for(shared, found.as_deref().ok());
    match incoming(shared, client, request, limit).await {
        Ok(incoming) => run::answer(shared, module, found, incoming).await,
        Err(refusal) => *refusal,
    }
}

/// `POST /run` with `{module, input | args}` (C-56).
async fn run_in_body(
    State(shared): State<Arc<Shared>>,
    Extension(client): Extension<Arc<Client>>,
    request: Request,
) -> Response<Body> {
    let limit = limit_for_any(&shared, request.body().size_hint().upper()).await;
    let mut incoming = match incoming(&shared, client, request, limit).await {
        Ok(incoming) => incoming,
        Err(refusal) => return *refusal,
    };
    let Content::Bytes(sent) = incoming.body else { return answer::failure(no_module_named()) };
    let length = sent.len();
    let (module, body) = match named(sent) {
        Ok(named) => named,
        Err(failure) => return answer::failure(failure),
    };
    let found = shared.module(&module).await;
    let limit = limit_for(&shared, found.as_deref().ok());
    if length > limit {
        return answer::failure(too_large("body", limit));
    }
    incoming.body = body;
    run::answer(&shared, &module, found, incoming).await
}

/// The module that a body names, and the rest of the body. What is no JSON is told so as by every other run.
fn named(sent: Bytes) -> Result<(String, Content), Failure> {
    let body = input::read(RunInput::Raw(text_of(sent)?))?.into_value();
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
            Err(refused(format!("`args` stands in place of `{rival}`; only one of them can be sent")))
        }
        (Some(_), _) => Err(refused("`args` has to be a text".to_owned())),
    }
}

fn no_module_named() -> Failure {
    Failure::new(ErrorCode::InvalidInput, "the body has to be an object that names a `module`")
        .suggest(r#"Send {"module": "NAME", "input": {…}}"#)
}

/// The largest body for a module that takes media, and for one that takes video (S-28).
const MEDIA_BODY: usize = 40 << 20;
const VIDEO_BODY: usize = 140 << 20;

/// The most that a module may be sent. One that is not there gets no more than text.
fn limit_for(shared: &Shared, module: Option<&Module>) -> usize {
    module.map_or(shared.config.body_limit, |module| body_limit(shared, module))
}

/// The most that may be sent to whichever module a body will name. Nobody looks for it where the body is short.
async fn limit_for_any(shared: &Arc<Shared>, length: Option<u64>) -> usize {
    let usual = shared.config.body_limit;
    if length.is_some_and(|length| length <= usual as u64) {
        return usual;
    }
    shared.most_taken.get(shared, most_taken).await.unwrap_or(usual)
}

/// The limit of the module that takes most.
fn most_taken(shared: &Shared) -> usize {
    let modules = &shared.host.modules;
    let all = modules.names().into_iter().filter_map(|name| modules.module(&name).ok());
    all.map(|module| body_limit(shared, &module)).max().unwrap_or(shared.config.body_limit)
}

/// The most that a module may be sent.
pub(crate) fn body_limit(shared: &Shared, module: &Module) -> usize {
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

/// The most that any module may be sent, for a channel that learns too late which one is meant.
pub(crate) fn largest_body(shared: &Shared) -> usize {
    let usual = shared.config.body_limit;
    if shared.host.media.is_some() { usual.max(VIDEO_BODY) } else { usual }
}

/// Reads a request to its end, within its limits of size, time and type.
async fn incoming(
    shared: &Shared,
    client: Arc<Client>,
    request: Request,
    limit: usize,
) -> Result<Incoming, Box<Response<Body>>> {
    let (mut parts, body) = request.into_parts();
    let room = room_for(shared, &body, limit).map_err(|failure| Box::new(answer::failure(failure)))?;
    let body = body_of(shared, &parts.headers, body, limit).await?;
    let Ok(QueryOf(query)) = QueryOf::<Query>::try_from_uri(&parts.uri) else {
        let failure = Failure::new(ErrorCode::InvalidInput, "the query cannot be understood")
            .suggest("Say `response_mode` once: `sync` or `streaming`");
        return Err(Box::new(answer::failure(failure)));
    };
    let body = Content::Bytes(body);
    Ok(Incoming { client, headers: std::mem::take(&mut parts.headers), query, body, room })
}

/// Room for a body that is larger than usual, or does not say how large it is where it may be.
fn room_for(shared: &Shared, body: &Body, limit: usize) -> Result<Option<OwnedSemaphorePermit>, Failure> {
    let most = body.size_hint().upper().unwrap_or(u64::MAX).min(limit as u64);
    let is_large = most > shared.config.body_limit as u64;
    is_large.then(|| shared.room.take(most)).transpose()
}

/// Reads a body of JSON to its end.
pub(crate) async fn body_of(
    shared: &Shared,
    headers: &HeaderMap,
    body: Body,
    limit: usize,
) -> Result<Bytes, Box<Response<Body>>> {
    if *shared.draining.borrow() {
        let failure = shutting_down(ErrorCode::ProviderUnavailable);
        return Err(Box::new(answer::failure_as(StatusCode::SERVICE_UNAVAILABLE, failure)));
    }
    if !is_json(headers) {
        let failure = Failure::new(ErrorCode::UnsupportedMediaType, "the body has to be JSON")
            .suggest("Send `Content-Type: application/json`");
        return Err(Box::new(answer::failure(failure)));
    }
    let too_large = || Box::new(answer::failure(too_large("body", limit)));
    // What says of itself that it is too large need not be sent at all.
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    let reading = axum::body::to_bytes(body, limit);
    match tokio::time::timeout(shared.config.read_timeout, reading).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(error)) if is_limit(&error) => Err(too_large()),
        Ok(Err(_)) => {
            let failure = Failure::new(ErrorCode::ParseError, "the body broke off or is not framed as HTTP")
                .suggest("Send it again");
            Err(Box::new(answer::failure(failure)))
        }
        Err(_) => {
            let failure =
                Failure::new(ErrorCode::Timeout, "the body did not arrive in time").blaming(Blame::Runtime);
            Err(Box::new(answer::failure_as(StatusCode::REQUEST_TIMEOUT, failure)))
        }
    }
}

/// More than a module may be sent.
pub(crate) fn too_large(what: &str, limit: usize) -> Failure {
    Failure::new(ErrorCode::InputTooLarge, format!("the {what} is larger than {limit} bytes"))
        .suggest("Send less input")
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
    let kind = kind.split(';').next().unwrap_or_default().trim();
    // Nearly all requests say it this way, and need no copy.
    let other = || {
        let kind = kind.to_ascii_lowercase();
        kind.starts_with("application/") && kind.ends_with("+json")
    };
    kind.eq_ignore_ascii_case("application/json") || other()
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
    let posts = path == "/run"
        || path.starts_with("/api/run/")
        || path.starts_with("/v1/modules/")
        || path == "/v1/media/upload-url";
    let puts = path.starts_with("/v1/media/uploads/");
    let allowed = if posts {
        "POST"
    } else if puts {
        "PUT"
    } else {
        "GET, HEAD"
    };
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_quite_a_usual_run_goes_through_the_table() {
        let asks = |method: &str, uri: &str| {
            let request = Request::builder().method(method).uri(uri).body(Body::empty()).unwrap();
            usual_run(&request).map(str::to_owned)
        };
        assert_eq!(asks("POST", "/api/run/a-b_C1").as_deref(), Some("a-b_C1"));
        assert_eq!(asks("POST", "http://h/api/run/a?response_mode=sync").as_deref(), Some("a"));
        for (method, uri) in [
            ("GET", "/api/run/a"),
            ("OPTIONS", "/api/run/a"),
            ("POST", "/api/run/"),
            ("POST", "/api/run/a/"),
            ("POST", "/api/run/a/b"),
            ("POST", "/api/run/a%20b"),
            ("POST", "/api/run/%61"),
            ("POST", "/api/running/a"),
            ("POST", "/v1/modules/a/execute"),
        ] {
            assert_eq!(asks(method, uri), None, "{method} {uri}");
        }
    }

    #[test]
    fn a_path_is_told_by_its_route() {
        assert_eq!(route("/api/run/a"), Some("/api/run/{module}"));
        assert_eq!(route("/v1/modules/a/execute"), Some("/v1/modules/{module}/execute"));
        assert_eq!(route("/ws"), Some("/ws"));
        for none in ["/", "", "/api/run", "/api/run/", "/api/run/a/b", "/v1/modules/a", "/secret"] {
            assert_eq!(route(none), None, "{none}");
        }
    }
}
