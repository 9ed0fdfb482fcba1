//! Read-only pages about the server and its modules. Exposes no folder and no secret. Links are relative, so that
//! they work behind a proxy that serves them below another path.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use cognitive_contract::{Format, Warning};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::admission::unknown_client;
use crate::app::AppState;
use crate::auth::Client;
use crate::metrics::ServerGauges;
use crate::overview::{CombinedOverview, PerModule};
use crate::response;
use crate::routes::{Name, body_limit};
use crate::studio::assets::{first_page, wants_page};

type Shares = State<Arc<AppState>>;

/// The process is alive.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Health")]
pub(crate) struct ServerHealth {
    #[schemars(extend("const" = "ok"))]
    status: &'static str,
    version: &'static str,
    modules_count: usize,
}

/// Whether the server accepts work.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Readiness {
    status: ReadyWord,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum ReadyWord {
    Ready,
    Draining,
    /// Records are required, and the audit log cannot be written.
    NoAudit,
}

/// The offered modules.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "the list is joined from the texts of its entries")]
pub(crate) struct ModuleList<'a> {
    modules: Vec<ModuleSummary<'a>>,
}

/// A module in short. A broken module has only a name.
#[derive(Default, Serialize, JsonSchema)]
struct ModuleSummary<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tier: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    responsibility: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mode: Option<&'static str>,
    valid: bool,
    /// True for a module that is a part of the program.
    bundled: bool,
}

/// Manifest and schema of a module.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ModuleDetail<'a> {
    name: &'a str,
    /// The format, such as `v2.2`.
    #[schemars(with = "String")]
    format: Format,
    /// The manifest with all defaults.
    #[schemars(with = "Map<String, Value>")]
    manifest: Value,
    /// The schema as written.
    #[schemars(with = "Map<String, Value>")]
    schema: &'a Value,
    warnings: &'a [Warning],
}

/// `GET /health`: the process is alive (API-003).
pub(crate) async fn health(State(shared): Shares) -> Response<Body> {
    let count = shared.modules_count().await;
    match count {
        Ok(modules_count) => {
            let health = ServerHealth { status: "ok", version: env!("CARGO_PKG_VERSION"), modules_count };
            response::json(StatusCode::OK, &health)
        }
        Err(failure) => response::failure(failure),
    }
}

/// `GET /ready`: the server accepts work.
pub(crate) async fn get_ready(State(shared): Shares) -> Response<Body> {
    if *shared.draining.borrow() {
        return response::json(StatusCode::SERVICE_UNAVAILABLE, &Readiness { status: ReadyWord::Draining });
    }
    // Every run would be refused, so a balancer should send them to another server.
    let host = &shared.host;
    if host.audit_required && host.audit.as_ref().is_some_and(|audit| audit.check().is_err()) {
        return response::json(StatusCode::SERVICE_UNAVAILABLE, &Readiness { status: ReadyWord::NoAudit });
    }
    response::json(StatusCode::OK, &Readiness { status: ReadyWord::Ready })
}

/// `GET /metrics`.
pub(crate) async fn metrics(State(shared): Shares) -> Response<Body> {
    let now = ServerGauges {
        runs_in_flight: shared.runs_in_flight(),
        open_streams: shared.sessions.open(),
        lost_spans: shared.config.spans.as_ref().map(|spans| spans.lost_spans()),
        dropped: shared.host.audit.as_ref().map(|audit| audit.drop_counts()),
    };
    let mut response = Response::new(Body::from(shared.metrics.text(&now)));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// `GET /capabilities` (CAP-003).
pub(crate) async fn capabilities(State(shared): Shares) -> Response<Body> {
    response::json(StatusCode::OK, &cognitive_runtime::declaration(&shared.host.declare_capabilities()))
}

/// `GET /api/modules`: the offered modules. A broken module is listed as invalid.
pub(crate) async fn modules(State(shared): Shares, headers: HeaderMap) -> Response<Body> {
    match shared.modules_list.get(&shared).await {
        Ok(told) => response::overview_response(&headers, told),
        Err(failure) => response::failure(failure),
    }
}

/// The list of modules. A piece is the entry of a module and its body limit.
pub(crate) struct ModulesList;

impl PerModule for ModulesList {
    type Piece = (Box<str>, usize);

    fn piece(shared: &AppState, name: &str) -> Self::Piece {
        // Serialising texts cannot fail.
        let text = |line: &ModuleSummary<'_>| serde_json::to_string(line).unwrap_or_default().into();
        let Ok(module) = shared.host.modules.glance(name) else {
            return (text(&ModuleSummary { name, ..ModuleSummary::default() }), 0);
        };
        let line = ModuleSummary {
            name,
            version: Some(&module.manifest.version),
            tier: Some(module.manifest.tier.word()),
            responsibility: Some(&module.manifest.responsibility),
            response_mode: Some(module.manifest.response.mode.word()),
            valid: true,
            bundled: module.folder.is_none(),
        };
        (text(&line), body_limit(shared, &module))
    }

    fn combine(shared: &AppState, pieces: &[&Self::Piece]) -> CombinedOverview {
        let lines: Vec<&str> = pieces.iter().map(|(line, _)| &**line).collect();
        let text = format!("{{\"modules\":[{}]}}", lines.join(",")).into();
        let most_taken = pieces.iter().map(|(_, limit)| *limit).fold(shared.config.body_limit, usize::max);
        CombinedOverview { text, most_taken, version: 0 }
    }
}

/// `GET /api/modules/{name}`.
pub(crate) async fn module(State(shared): Shares, Name(name): Name) -> Response<Body> {
    match shared.module(&name).await {
        Ok(module) => response::json(
            StatusCode::OK,
            &ModuleDetail {
                name: &name,
                format: module.format,
                manifest: module.manifest.effective(),
                schema: module.contract.source(),
                warnings: &module.warnings,
            },
        ),
        Err(failure) => response::failure(failure),
    }
}

/// `GET /`: the page for browsers, which is Studio unless the operator disabled it. Other clients get links to the
/// endpoints.
pub(crate) async fn index(
    State(shared): Shares,
    Extension(client): Extension<Arc<Client>>,
    headers: HeaderMap,
) -> Response<Body> {
    let mut response = if wants_page(&headers) {
        match first_page(&shared, &client) {
            Some(page) => page,
            None if client.is_known => docs().await,
            // Without Studio there is no login page either.
            None => unknown_client(),
        }
    } else {
        let places = json!({
            "name": "cogn",
            "version": env!("CARGO_PKG_VERSION"),
            "docs": "docs",
            "openapi": "openapi.json",
            "modules": "api/modules",
            "health": "health",
        });
        response::json(StatusCode::OK, &places)
    };
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
    response
}

/// `GET /docs`: the documentation page, without third-party code.
pub(crate) async fn docs() -> Response<Body> {
    let mut response = Response::new(Body::from(include_str!("docs.html")));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    let policy = "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; script-src 'self'; \
                  frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    response
}

/// `GET /docs.js`: the script of that page, a separate file so that the page can forbid inline scripts.
pub(crate) async fn docs_script() -> Response<Body> {
    let mut response = Response::new(Body::from(include_str!("docs.js")));
    let kind = HeaderValue::from_static("text/javascript; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
