//! The table of routes. Handlers hold no rule: they take a request apart and call the one function that answers it.
//! Everything that is not in the table is answered with an envelope too.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, FromRequestParts, Path, Query as QueryOf, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, Response, StatusCode, header};
use axum::routing::{get, post, put};
use cognitive_contract::manifest::InputModality;
use cognitive_contract::{ErrorCode, Failure, Module};
use cognitive_runtime::host::RunInput;
use cognitive_runtime::stages::input;
use http_body::Body as _;
use serde_json::Value;

use crate::app::Shared;
use crate::ask::{Content, Query, by_headers};
use crate::catalog::{is_name, no_module};
use crate::guard::{Client, Peer, guard};
use crate::intake::{self, too_large};
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
    match incoming(shared, client, request, limit, |text| Ok(Content::of(text))).await {
        Ok((body, incoming)) => run::answer(shared, module, found, body, incoming).await,
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
    let read = |text: String| {
        let length = text.len();
        named(text).map(|named| (length, named))
    };
    let ((length, (module, body)), incoming) = match incoming(&shared, client, request, limit, read).await {
        Ok(read) => read,
        Err(refusal) => return *refusal,
    };
    let found = shared.module(&module).await;
    let limit = limit_for(&shared, found.as_deref().ok());
    if length > limit {
        return answer::failure(too_large("body", limit));
    }
    run::answer(&shared, &module, found, body, incoming).await
}

/// The module that a body names, and the rest of the body. What is no JSON is told so as by every other run.
fn named(sent: String) -> Result<(String, Content), Failure> {
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
            Err(refused(format!("`args` stands in place of `{rival}`; only one of them can be sent")))
        }
        (Some(_), _) => Err(refused("`args` has to be a text".to_owned())),
    }
}

fn no_module_named() -> Failure {
    Failure::new(ErrorCode::InvalidInput, "the body has to be an object that names a `module`")
        .suggest(r#"Send {"module": "NAME", "input": {…}}"#)
}

/// A body of so many bytes is read also from a client that may run nothing at the moment.
const SMALL_BODY: u64 = 64 << 10;

/// The largest body for a module that takes media, and for one that takes video (S-28).
const MEDIA_BODY: usize = 40 << 20;
const VIDEO_BODY: usize = 140 << 20;

/// The most that a module may be sent. One that is not there gets no more than text.
fn limit_for(shared: &Shared, module: Option<&Module>) -> usize {
    module.map_or(shared.config.body_limit, |module| body_limit(shared, module))
}

/// The most that may be sent to whichever module a body will name. Nobody looks for it where the body is short.
pub(crate) async fn limit_for_any(shared: &Arc<Shared>, length: Option<u64>) -> usize {
    let usual = shared.config.body_limit;
    if length.is_some_and(|length| length <= usual as u64) {
        return usual;
    }
    shared.modules_list.get(shared).await.map_or(usual, |told| told.most_taken)
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

/// Reads a request to its end. A client that has used up its runs is told so before a large body is read; what a small
/// one asks for is looked at first, since coming back to a stream is no run.
async fn incoming<T: Send + 'static>(
    shared: &Arc<Shared>,
    client: Arc<Client>,
    request: Request,
    limit: usize,
    make: impl FnOnce(String) -> Result<T, Failure> + Send + 'static,
) -> Result<(T, Incoming), Box<Response<Body>>> {
    let (mut parts, body) = request.into_parts();
    let refuse = |failure| Box::new(answer::failure(failure));
    let Ok(QueryOf(query)) = QueryOf::<Query>::try_from_uri(&parts.uri) else {
        let failure = Failure::new(ErrorCode::InvalidInput, "the query cannot be understood")
            .suggest("Say `response_mode` once: `sync` or `streaming`");
        return Err(refuse(failure));
    };
    let is_small = body.size_hint().upper().is_some_and(|length| length <= SMALL_BODY);
    let rate = run::within_rate(shared, &client);
    if !is_small && by_headers(&parts.headers).is_none() {
        rate.as_ref().map_err(|failure| refuse(failure.clone()))?;
    }
    let mut claim = shared.room.claim();
    let body = intake::body_of(shared, &parts.headers, body, limit, &mut claim).await?;
    let (content, claim) = intake::read(shared, body, claim, make).await.map_err(refuse)?;
    let headers = std::mem::take(&mut parts.headers);
    Ok((content, Incoming { client, headers, query, rate, claim }))
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
