//! The table of operations: method, path, required access, description and handler of each. The router, the methods
//! in `Allow`, span names, roles and `/openapi.json` are derived from it. An operation cannot be added without an
//! access rule.

use std::sync::Arc;

use axum::http::Method;
use axum::routing::{MethodRouter, delete, get, post, put};
use cognitive_ports::archive::{RunDetails, RunPage, RunStats};
use cognitive_ports::module_editor::{KeptCase, SavedModule};
use cognitive_ports::review::{Review, ReviewPage};
use cognitive_runtime::Declaration;

use crate::app::AppState;
use crate::components::{AddSchema, query, shape};
use crate::roles::KeyRole;
use crate::studio::{assets, cases, login, models, module_files, preview, replay, reviews, runs};
use crate::{files, mcp, openapi, pages, routes, uploads, websocket};

/// One operation: its method and path, its description in `/openapi.json`, and its handler.
pub(crate) struct Operation {
    /// Lower case, as in `OpenAPI`.
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    /// The length of the path before its first parameter. Most operations differ in it from a request, which then needs
    /// no further comparison.
    fixed: usize,
    /// The required access.
    pub(crate) access: OperationAccess,
    /// The description; `None` for pages for people, MCP and other routes outside `/openapi.json`.
    pub(crate) described: Option<OperationDescription>,
    pub(crate) handler: fn() -> MethodRouter<Arc<AppState>>,
}

/// The access that an operation of a server with keys requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperationAccess {
    /// Open to all clients: the response reveals nothing about the modules here.
    Open,
    /// Any client with a key or a login.
    Known,
    /// A known client with this role.
    Role(KeyRole),
    /// Like `Role`, for past runs. Without keys these are the runs of the user of this machine, and pages of other
    /// origins cannot read them.
    History(KeyRole),
    /// Like `Known`, for statistics over past runs, which require no role.
    KnownHistory,
}

/// The description of an operation in `/openapi.json`. Operations that run one module have ids starting with `run`;
/// no id in this table may.
pub(crate) struct OperationDescription {
    pub(crate) id: &'static str,
    pub(crate) tag: &'static str,
    pub(crate) summary: &'static str,
    /// The type of the JSON body, if there is one.
    pub(crate) takes: Option<AddSchema>,
    /// The type of the JSON response, if it has a single one.
    pub(crate) gives: Option<AddSchema>,
    /// The type of the query, if there is one.
    pub(crate) asks: Option<AddSchema>,
}

/// Creates a description: id, tag and summary.
const fn describe_operation(
    id: &'static str,
    tag: &'static str,
    summary: &'static str,
) -> OperationDescription {
    OperationDescription { id, tag, summary, takes: None, gives: None, asks: None }
}

impl OperationDescription {
    const fn takes(mut self, body: AddSchema) -> Self {
        self.takes = Some(body);
        self
    }

    const fn gives(mut self, answer: AddSchema) -> Self {
        self.gives = Some(answer);
        self
    }

    const fn asks(mut self, query: AddSchema) -> Self {
        self.asks = Some(query);
        self
    }
}

/// Builds the table. The word for a method is axum's function for it and its name in `OpenAPI`.
macro_rules! operations {
    ($($method:ident $path:literal $access:ident $described:expr => $handler:path;)*) => {
        [$(Operation {
            method: stringify!($method),
            path: $path,
            fixed: fixed_length($path),
            access: $access,
            described: $described,
            handler: || $method($handler),
        }),*]
    };
}

/// Returns the length of a path before its first parameter.
#[expect(clippy::indexing_slicing, reason = "a constant function has no other way to read a byte")]
const fn fixed_length(path: &str) -> usize {
    let mut length = 0;
    while length < path.len() && path.as_bytes()[length] != b'{' {
        length += 1;
    }
    length
}

/// Short names for the access rules of the table.
const OPEN: OperationAccess = OperationAccess::Open;
const KNOWN: OperationAccess = OperationAccess::Known;
const RUN: OperationAccess = OperationAccess::Role(KeyRole::Run);
const FIGURES: OperationAccess = OperationAccess::KnownHistory;
const AUTHOR: OperationAccess = OperationAccess::Role(KeyRole::Author);
const PAST_RUNS: OperationAccess = OperationAccess::History(KeyRole::Run);
const REVIEW: OperationAccess = OperationAccess::Role(KeyRole::Review);

/// All operations. The router, the methods in `Allow`, span names and `/openapi.json` are derived from this table.
pub(crate) static OPERATIONS: [Operation; 48] = operations! {
    post "/api/run/{module}" RUN Some(describe_operation("startRun", "runs", "Run a module").takes(shape::<routes::InputBody>)) => routes::run_named;
    post "/v1/modules/{module}/execute" RUN Some(describe_operation("executeModule", "runs", "Run a module").takes(shape::<routes::InputBody>)) => routes::run_named;
    post "/run" RUN Some(describe_operation("startNamedRun", "runs", "Run the module that the body names")
        .takes(shape::<routes::NamedRunBody>)) => routes::run_in_body;
    delete "/v1/streams/{id}" RUN Some(describe_operation("endStream", "runs", "Cancel a streaming run").gives(shape::<routes::StreamEnd>)) => routes::end_stream;
    get "/api/modules" RUN Some(describe_operation("listModules", "catalog", "List the modules")
        .gives(shape::<pages::ModuleList<'_>>)) => pages::modules;
    get "/api/modules/{module}" RUN Some(describe_operation("getModule", "catalog", "Input, output and permissions of a module")
        .gives(shape::<pages::ModuleDetail<'_>>)) => pages::module;
    post "/v1/media/upload-url" RUN Some(describe_operation("announceUpload", "media", "Announce an upload")
        .takes(shape::<uploads::UploadRequest>).gives(shape::<uploads::UploadPlace>)) => uploads::announce;
    put "/v1/media/uploads/{id}" RUN Some(describe_operation("sendUpload", "media", "Send the bytes of an upload")
        .gives(shape::<uploads::UploadDone>)) => uploads::receive;
    get "/v1/media/files/{id}" RUN Some(describe_operation("getFile", "media", "The bytes of a media item of an answer")) => files::serve;
    get "/capabilities" KNOWN Some(describe_operation("getCapabilities", "catalog", "Capabilities of this runtime").gives(shape::<Declaration>)) => pages::capabilities;
    get "/health" OPEN Some(describe_operation("getHealth", "server", "Check that the server is alive").gives(shape::<pages::ServerHealth>)) => pages::health;
    get "/ready" OPEN Some(describe_operation("getReadiness", "server", "Check that the server is ready for requests")
        .gives(shape::<pages::Readiness>)) => pages::get_ready;
    get "/metrics" FIGURES Some(describe_operation("getMetrics", "server", "Counters in the text format of Prometheus")) => pages::metrics;
    get "/openapi.json" KNOWN Some(describe_operation("getDescription", "server", "This description")) => openapi::document;
    get "/ws" RUN Some(describe_operation("openSocket", "runs", "Several runs over one WebSocket")) => websocket::upgrade;
    post "/mcp" RUN None => mcp::serve;
    get "/mcp" RUN None => mcp::serve;
    delete "/mcp" RUN None => mcp::serve;
    get "/" OPEN None => pages::index;
    get "/docs" KNOWN None => pages::docs;
    get "/docs.js" KNOWN None => pages::docs_script;
    get "/login.js" OPEN None => assets::serve;
    get "/login.css" OPEN None => assets::serve;
    get "/icon.svg" KNOWN None => assets::serve;
    get "/assets/{file}" KNOWN None => assets::serve;
    post "/v1/session" OPEN Some(describe_operation("login", "studio", "Exchange a key for a login cookie of this browser")
        .takes(shape::<login::LoginBody>).gives(shape::<login::StudioSession<'_>>)) => login::begin;
    get "/v1/session" KNOWN Some(describe_operation("getSession", "studio", "The caller and their permissions").gives(shape::<login::StudioSession<'_>>)) => login::show;
    delete "/v1/session" KNOWN Some(describe_operation("logout", "studio", "End the login of this browser").gives(shape::<login::SessionEnd>)) => login::end;
    get "/v1/models" AUTHOR Some(describe_operation("listModels", "studio", "The models that a run may name").gives(shape::<models::ModelList>)) => models::list;
    post "/v1/modules/{module}/preview" AUTHOR Some(describe_operation("previewRun", "studio", "The prompt of a run and its maximum cost, without running it")
        .takes(shape::<routes::InputBody>).gives(shape::<preview::RunPreview>)) => preview::show;
    post "/v1/modules" AUTHOR Some(describe_operation("createModule", "studio", "Create a module from a template")
        .takes(shape::<module_files::CreateBody>).gives(shape::<SavedModule>)) => module_files::create;
    get "/v1/modules/{module}/files" AUTHOR Some(describe_operation("getFiles", "studio", "The files of a module, with validation findings")
        .gives(shape::<module_files::ShownFiles>)) => module_files::files;
    put "/v1/modules/{module}/files" AUTHOR Some(describe_operation("saveFiles", "studio", "Change files of a module, all or none")
        .takes(shape::<module_files::SaveBody>).gives(shape::<SavedModule>)) => module_files::save;
    post "/v1/modules/{module}/check" AUTHOR Some(describe_operation("checkFiles", "studio", "Validate a module with the given files")
        .takes(shape::<module_files::CheckBody>).gives(shape::<module_files::FindingList>)) => module_files::check;
    get "/v1/modules/{module}/versions" AUTHOR Some(describe_operation("listVersions", "studio", "Versions of a module that can be run")
        .gives(shape::<module_files::VersionList>)) => module_files::versions;
    get "/v1/modules/{module}/plan" RUN Some(describe_operation("getPlan", "studio", "Parts of a module, and the order in which they run")) => module_files::plan;
    get "/v1/modules/{module}/cases" AUTHOR Some(describe_operation("listCases", "studio", "Golden tests and labelled cases of a module")
        .gives(shape::<cases::CaseList>)) => cases::list;
    post "/v1/modules/{module}/cases" AUTHOR Some(describe_operation("keepCase", "studio", "Save an answer as a test, an example or a labelled case")
        .takes(shape::<cases::CaseBody>).gives(shape::<KeptCase>)) => cases::keep;
    post "/v1/modules/{module}/judge" AUTHOR Some(describe_operation("judgeAnswers", "studio", "Compare answers with the expectation of a case")
        .takes(shape::<cases::JudgeBody>).gives(shape::<cases::VerdictList>)) => cases::judge;
    get "/v1/runs" PAST_RUNS Some(describe_operation("listRuns", "studio", "Past runs, newest first: the caller's own, or all for an admin")
        .gives(shape::<RunPage>).asks(query::<runs::RunQuery>)) => runs::list;
    get "/v1/runs/stats" PAST_RUNS Some(describe_operation("getRunStats", "studio", "Statistics of past runs").gives(shape::<RunStats>).asks(query::<runs::RunQuery>)) => runs::stats;
    get "/v1/runs/{id}" PAST_RUNS Some(describe_operation("getRun", "studio", "Details of a run").gives(shape::<RunDetails>)) => runs::show;
    post "/v1/runs/{id}/replay" AUTHOR Some(describe_operation("replayRun", "studio", "Repeat a run, optionally with another model or a draft, and compare")
        .takes(shape::<replay::ReplayBody>).gives(shape::<replay::RunReplay>)) => replay::repeat_run;
    get "/v1/reviews" REVIEW Some(describe_operation("listReviews", "studio", "Pending and decided reviews")
        .gives(shape::<ReviewPage>).asks(query::<reviews::ListQuery>)) => reviews::list;
    get "/v1/reviews/calibration" REVIEW Some(describe_operation("getCalibration", "studio", "Accuracy of confidence, by decisions")
        .gives(shape::<reviews::CalibrationAnswer>).asks(query::<reviews::OfModule>)) => reviews::calibration;
    get "/v1/reviews/export" REVIEW Some(describe_operation("exportReviews", "studio", "Decisions, or labelled cases made of them, as JSON Lines")
        .asks(query::<reviews::ExportQuery>)) => reviews::export;
    get "/v1/reviews/{id}" REVIEW Some(describe_operation("getReview", "studio", "A run that waits for review, with input and answer")
        .gives(shape::<Review>)) => reviews::show;
    post "/v1/reviews/{id}/decision" REVIEW Some(describe_operation("decideReview", "studio", "Approve, reject or correct an answer")
        .takes(shape::<reviews::DecisionBody>).gives(shape::<Review>)) => reviews::decide;
};

/// Returns the operations at a path. If a fixed path and one with a parameter both match, the fixed one wins, as in
/// the router.
fn operations_at(path: &str) -> impl Iterator<Item = &'static Operation> {
    let fits = move |operation: &&Operation| {
        if path.get(..operation.fixed) != operation.path.get(..operation.fixed) {
            return false;
        }
        let (mut parts, mut asked) = (operation.path.split('/'), path.split('/'));
        parts.by_ref().all(|part| {
            asked.next().is_some_and(|asked| part == asked || (part.starts_with('{') && !asked.is_empty()))
        }) && asked.next().is_none()
    };
    let fixed = OPERATIONS.iter().any(|operation| operation.path == path);
    OPERATIONS.iter().filter(fits).filter(move |operation| !fixed || operation.path == path)
}

/// Returns the route template of a path.
pub(crate) fn route(path: &str) -> Option<&'static str> {
    operations_at(path).next().map(|operation| operation.path)
}

/// Returns the access rule of a request; `None` if it is not in the table. `HEAD` follows the rule of `GET`.
pub(crate) fn access(method: &Method, path: &str) -> Option<OperationAccess> {
    let method = if *method == Method::HEAD { "GET" } else { method.as_str() };
    let mut at = operations_at(path);
    at.find(|operation| operation.method.eq_ignore_ascii_case(method)).map(|operation| operation.access)
}

/// Returns the methods of a path for the `Allow` header. `GET` implies `HEAD`.
pub(crate) fn allowed_methods(path: &str) -> String {
    let methods = operations_at(path).map(|operation| match operation.method {
        "get" => "GET, HEAD".to_owned(),
        other => other.to_ascii_uppercase(),
    });
    methods.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_path_allows_follows_from_the_table() {
        for (path, methods) in [
            ("/run", "POST"),
            ("/api/run/a", "POST"),
            ("/v1/modules/a/execute", "POST"),
            ("/v1/streams/sess_1", "DELETE"),
            ("/v1/media/upload-url", "POST"),
            ("/v1/media/uploads/1", "PUT"),
            ("/v1/media/files/1", "GET, HEAD"),
            ("/api/modules", "GET, HEAD"),
            ("/api/modules/a", "GET, HEAD"),
            ("/docs", "GET, HEAD"),
            ("/docs.js", "GET, HEAD"),
            ("/ws", "GET, HEAD"),
            ("/nothing", ""),
        ] {
            assert_eq!(allowed_methods(path), methods, "{path}");
        }
    }

    #[test]
    fn a_path_is_told_by_its_route() {
        assert_eq!(route("/api/run/a"), Some("/api/run/{module}"));
        assert_eq!(route("/v1/modules/a/execute"), Some("/v1/modules/{module}/execute"));
        assert_eq!(route("/ws"), Some("/ws"));
        assert_eq!(route("/"), Some("/"));
        for none in ["", "/api/run", "/api/run/", "/api/run/a/b", "/v1/modules/a", "/secret"] {
            assert_eq!(route(none), None, "{none}");
        }
    }
}
