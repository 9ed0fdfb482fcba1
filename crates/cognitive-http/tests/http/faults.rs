//! Faults of the server itself: a panic in one request ends in an envelope, and the next request is served.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cognitive_contract::ports::ModuleSource;
use cognitive_contract::{Failure, Module};
use cognitive_library::ModuleCache;
use futures_util::StreamExt;
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use crate::streams::{hear, say, socket};
use crate::support::{ANSWER, Script, Server, ask, client, json_of, module_cache, roomy};

/// A library that panics on demand.
struct Fragile(ModuleCache, AtomicBool);

impl ModuleSource for Fragile {
    fn module(&self, name: &str) -> Result<Arc<Module>, Failure> {
        assert!(!self.1.load(Ordering::SeqCst), "broken for the test");
        self.0.module(name)
    }

    fn names(&self) -> Vec<String> {
        assert!(!self.1.load(Ordering::SeqCst), "broken for the test");
        self.0.library().names()
    }
}

#[tokio::test]
async fn a_panic_ends_in_an_envelope_and_the_server_lives_on() {
    let (folder, module_cache) = module_cache("both");
    let fragile = Arc::new(Fragile(module_cache, AtomicBool::new(true)));
    let modules: Arc<dyn ModuleSource> = Arc::clone(&fragile) as Arc<dyn ModuleSource>;
    let server = Server::with_modules(folder, modules, &Script::free(&ANSWER), roomy()).await;
    for known in [false, true] {
        fragile.1.store(true, Ordering::SeqCst);
        for accept in ["application/json", "text/event-stream"] {
            let response = ask(&server, accept).send().await.unwrap();
            assert_eq!(response.status(), 500, "known: {known}");
            assert_eq!(json_of(response).await["error"]["code"], "E4000");
        }
        if !known {
            let health = client().get(server.url("/health")).send().await.unwrap();
            assert_eq!(json_of(health).await["error"]["code"], "E4000");
        }
        fragile.1.store(false, Ordering::SeqCst);
        assert_eq!(ask(&server, "application/json").send().await.unwrap().status(), 200);
    }
}

// S-17: close code 1011.
#[tokio::test]
async fn a_socket_is_closed_in_order_after_a_panic() {
    let (folder, module_cache) = module_cache("both");
    let fragile = Arc::new(Fragile(module_cache, AtomicBool::new(false)));
    let modules: Arc<dyn ModuleSource> = Arc::clone(&fragile) as Arc<dyn ModuleSource>;
    let server = Server::with_modules(folder, modules, &Script::free(&ANSWER), roomy()).await;
    let mut socket = socket(&server).await;
    let run = json!({ "type": "run", "id": 1, "module": "words", "input": { "text": "a" } });
    say(&mut socket, &run).await;
    while hear(&mut socket).await.get("final").is_none() {}
    fragile.1.store(true, Ordering::SeqCst);
    say(&mut socket, &run).await;
    let Message::Close(Some(goodbye)) = socket.next().await.unwrap().unwrap() else { panic!("no goodbye") };
    assert_eq!(u16::from(goodbye.code), 1011);
}
