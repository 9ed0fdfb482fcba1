//! The requests of each scenario, on one thread. With an audit, sixteen runs are in flight at once, as in a server.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use cognitive_contract::ports::{
    AuditLog, CallSink, DecodeMode, ModelCall, ModelEnd, NullSink, PortFuture, Provider, ProviderError,
};
use cognitive_http::{App, ServerConfig};
use cognitive_net::{Kind, ProviderConfig, Secret};
use cognitive_runtime::{Host, RunRequest, run, stream};
use cognitive_store::{Background, Store};
use cognitive_testkit::{LoadedModule, loaded_module};
use futures_util::future::join_all;
use http_body_util::BodyExt as _;
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tower_service::Service as _;

use crate::servers;
use crate::stub::PIECES;

/// The scenarios, in the order of the table.
pub(crate) const NAMES: [&str; 10] = [
    "runtime",
    "runtime, stream",
    "http",
    "http, stream",
    "net",
    "net, stream",
    "http and net",
    "bare",
    "runtime, SQLite",
    "runtime, PostgreSQL",
];

/// Returns whether a scenario records its runs, which takes a second thread.
pub(crate) fn has_audit(name: &str) -> bool {
    matches!(name, "runtime, SQLite" | "runtime, PostgreSQL")
}

/// The runs in flight with an audit.
const IN_FLIGHT: usize = 16;

/// A model in this process that answers at once.
struct InProcess;

impl Provider for InProcess {
    fn name(&self) -> &'static str {
        "stub"
    }

    fn ask<'a>(
        &'a self,
        _: &'a ModelCall,
        sink: &'a mut dyn CallSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>> {
        Box::pin(async move {
            for piece in PIECES {
                sink.piece(piece);
            }
            Ok(ModelEnd::complete("stub", DecodeMode::Prompt))
        })
    }
}

/// Waits until the parent process closes stdin.
pub(crate) async fn until_released() {
    let mut nothing = [0];
    let _ = tokio::io::stdin().read(&mut nothing).await;
}

/// Makes this many requests of a scenario. `place` is the address of the model or the store.
pub(crate) fn repeat(name: &str, count: usize, place: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(requests(name, count, place));
}

async fn requests(name: &str, count: usize, place: &str) {
    if name == "bare" {
        return serve(servers::bare_router(place), count, ("/run", "application/json"), "finish_reason")
            .await;
    }
    let provider: Arc<dyn Provider> = match name {
        "net" | "net, stream" | "http and net" => {
            let provider = ProviderConfig::new(Kind::parse("openai").unwrap())
                .with_key(Secret::new("sk-test".to_owned()))
                .with_base_url(format!("{place}/v1"));
            cognitive_net::provider(provider).unwrap()
        }
        _ => Arc::new(InProcess),
    };
    let schema = json!({
        "input": { "type": "object", "required": ["text"], "properties": { "text": { "type": "string" } } },
        "data": { "type": "object", "required": ["rationale", "words"], "properties": {
            "rationale": { "type": "string" }, "words": { "type": "array", "items": { "type": "string" } } } },
    });
    let manifest =
        json!({ "name": "words", "version": "1.0.0", "tier": "decision", "response": { "mode": "both" } });
    let module = loaded_module(&manifest, &schema, "Find the words.");
    let mut host = Host::new(Arc::new(LoadedModule(module)), provider);
    match name {
        "runtime" | "net" => {
            for _ in 0..count {
                assert!(run(&host, ask(), &mut NullSink).await.ok());
            }
        }
        "runtime, stream" | "net, stream" => {
            for _ in 0..count {
                assert!(stream(&host, ask(), drop).await.envelope().ok());
            }
        }
        "http" | "http and net" => serve(router(host), count, (RUN, "application/json"), "\"ok\":true").await,
        "http, stream" => serve(router(host), count, (RUN, "text/event-stream"), "event: final").await,
        _ => {
            let store: Arc<dyn AuditLog> = Arc::new(Store::open(Path::new(place)).unwrap());
            host.audit =
                Some(Arc::new(Background::new(store, |reason| eprintln!("not recorded: {reason}")).unwrap()));
            assert!(has_audit(name), "unknown scenario: {name}");
            for _ in 0..count / IN_FLIGHT {
                let runs = (0..IN_FLIGHT).map(|_| async {
                    assert!(run(&host, ask(), &mut NullSink).await.ok());
                });
                join_all(runs).await;
            }
        }
    }
}

fn ask() -> RunRequest {
    RunRequest::new("words", json!({ "text": "winter snow" }))
}

/// The path of a run.
const RUN: &str = "/api/run/words";

/// The routes of a server without limits.
fn router(host: Host) -> Router {
    let mut config = ServerConfig::default();
    config.runs_per_minute = 0;
    config.streams_per_client = 0;
    App::new(host, config).router()
}

/// Passes requests to a router, without a socket.
async fn serve(mut router: Router, count: usize, (path, accept): (&str, &str), expected: &str) {
    for _ in 0..count {
        let request = Request::post(path)
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", accept)
            .body(Body::from(r#"{"text": "winter snow"}"#))
            .unwrap();
        let response: Result<_, Infallible> = router.call(request).await;
        let body = response.unwrap_or_else(|never| match never {}).into_body().collect().await.unwrap();
        let text = String::from_utf8(body.to_bytes().to_vec()).unwrap();
        assert!(text.contains(expected), "{text}");
    }
}
