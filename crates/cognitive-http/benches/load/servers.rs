//! The two servers under comparison: a handler of a few lines, and ours.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::response::Response;
use axum::routing::post;
use cognitive_contract::ports::AuditLog;
use cognitive_http::{App, ServerConfig};
use cognitive_library::{Library, ModuleCache};
use cognitive_net::{Kind, ProviderConfig, Secret};
use cognitive_runtime::Host;
use cognitive_store::{Background, Store};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

/// Waits until the parent process closes stdin.
async fn until_released() {
    let mut nothing = [0];
    let _ = tokio::io::stdin().read(&mut nothing).await;
}

/// The routes that forward a body to the stub and return its response, whole or streamed.
pub(crate) fn bare_router(upstream: &str) -> Router {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("{upstream}/v1/chat/completions");
    let (whole_client, whole_url) = (client.clone(), url.clone());
    let whole = move |body: Bytes| {
        let request = whole_client.post(&whole_url).header("content-type", "application/json").body(body);
        async move { request.send().await.unwrap().bytes().await.unwrap() }
    };
    let streamed = move |body: Bytes| {
        let request = client.post(&url).header("content-type", "application/json").body(body);
        async move {
            let response = request.send().await.unwrap();
            let pieces = futures_util::stream::unfold(response, |mut response| async move {
                let piece = response.chunk().await.ok()??;
                Some((Ok::<_, std::convert::Infallible>(piece), response))
            });
            Response::new(Body::from_stream(pieces))
        }
    };
    Router::new().route("/run", post(whole)).route("/stream", post(streamed))
}

/// Serves [`bare_router`].
pub(crate) async fn bare(upstream: &str) {
    let router = bare_router(upstream);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    let _ = axum::serve(listener, router).with_graceful_shutdown(until_released()).await;
}

const MANIFEST: &str = "name: words\nversion: 1.0.0\ntier: decision\nresponse:\n  mode: both\n";
const SCHEMA: &str = r#"{
  "input": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}},
  "data": {"type": "object", "required": ["rationale", "words"], "properties": {
    "rationale": {"type": "string"}, "words": {"type": "array", "items": {"type": "string"}}}}
}"#;

/// Our server with one module and without limits. Records its runs in `store`, if there is one.
pub(crate) async fn cogn(upstream: &str, store: Option<&str>) {
    let folder = tempfile::tempdir().unwrap();
    let module = folder.path().join("cognitive/modules/words");
    std::fs::create_dir_all(&module).unwrap();
    std::fs::write(module.join("module.yaml"), MANIFEST).unwrap();
    std::fs::write(module.join("prompt.md"), "Find the words.").unwrap();
    std::fs::write(module.join("schema.json"), SCHEMA).unwrap();
    let modules = Arc::new(
        ModuleCache::new(Library::new(folder.path(), None, &[]))
            .with_check_interval(Duration::from_millis(100)),
    );
    let provider = ProviderConfig::new(Kind::parse("openai").unwrap())
        .with_key(Secret::new("sk-test".to_owned()))
        .with_base_url(format!("{upstream}/v1"));
    let mut host = Host::new(modules, cognitive_net::provider(provider).unwrap());
    host.audit = store.map(|place| {
        let store: Arc<dyn AuditLog> = Arc::new(Store::open(Path::new(place)).unwrap());
        let complain = |reason| eprintln!("{reason}");
        Arc::new(Background::new(store, complain).unwrap()) as Arc<dyn AuditLog>
    });
    let mut config = ServerConfig::default();
    config.runs_per_minute = 0;
    config.streams_per_client = 0;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    cognitive_http::serve(App::new(host, config), listener, until_released()).await;
}
