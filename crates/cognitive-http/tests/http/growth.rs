//! Costs that must not grow with the number of modules: scans for health checks, loads for lists, and descriptions of
//! unchanged modules.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cognitive_contract::ports::ModuleSource;
use cognitive_contract::{Failure, Module};
use cognitive_library::ModuleCache;
use serde_json::Value;

use crate::support::{ANSWER, Script, Server, client, json_of, module_cache, roomy, time_passes};

/// A module source that counts its calls.
struct Counted {
    module_cache: ModuleCache,
    looks: AtomicUsize,
    glances: AtomicUsize,
    loads: AtomicUsize,
}

impl ModuleSource for Counted {
    fn module(&self, name: &str) -> Result<Arc<Module>, Failure> {
        self.loads.fetch_add(1, Ordering::SeqCst);
        self.module_cache.module(name)
    }

    fn names(&self) -> Vec<String> {
        ModuleSource::names(&self.module_cache)
    }

    fn marks(&self) -> Vec<(String, Option<u64>)> {
        self.looks.fetch_add(1, Ordering::SeqCst);
        ModuleSource::marks(&self.module_cache)
    }

    fn glance(&self, name: &str) -> Result<Arc<Module>, Failure> {
        self.glances.fetch_add(1, Ordering::SeqCst);
        self.module_cache.glance(name)
    }
}

async fn server() -> (Server, Arc<Counted>) {
    let (folder, module_cache) = module_cache("both");
    let [looks, glances, loads] = [(); 3].map(|()| AtomicUsize::new(0));
    let counted = Arc::new(Counted { module_cache, looks, glances, loads });
    let modules: Arc<dyn ModuleSource> = Arc::clone(&counted) as Arc<dyn ModuleSource>;
    (Server::with_modules(folder, modules, &Script::free(&ANSWER), roomy()).await, counted)
}

async fn told(server: &Server, path: &str) -> Value {
    json_of(client().get(server.url(path)).send().await.unwrap()).await
}

/// Lets the last scan expire, so that the next request scans again. A scan is valid for a second, or for ten times
/// its duration.
async fn wait_until_stale() {
    time_passes(std::time::Duration::from_mins(10)).await;
}

// Growth B, C: each module is read once for the list and once for the description, and again only after a change.
// None of them enters the module cache for that.
#[tokio::test]
async fn only_what_changed_is_described_anew() {
    let (server, counted) = server().await;
    let count = told(&server, "/health").await["modules_count"].as_u64().unwrap();
    let list = told(&server, "/api/modules").await;
    assert_eq!(list["modules"].as_array().unwrap().len() as u64, count);
    let description = told(&server, "/openapi.json").await;
    assert!(description["paths"]["/api/run/words"]["post"].is_object());
    assert!(description["components"]["schemas"]["WordsOk"].is_object());
    assert_eq!(description["components"]["securitySchemes"]["key"]["scheme"], "bearer");
    let read = counted.glances.load(Ordering::SeqCst) as u64;
    assert_eq!(read, 2 * count);
    let looks = counted.looks.load(Ordering::SeqCst);
    wait_until_stale().await;
    told(&server, "/api/modules").await;
    assert_eq!(counted.looks.load(Ordering::SeqCst), looks + 1);
    assert_eq!(told(&server, "/openapi.json").await, description);
    assert_eq!(counted.glances.load(Ordering::SeqCst) as u64, read, "nothing changed");
    let manifest = server.folder.path().join("cognitive/modules/words/module.yaml");
    let text = std::fs::read_to_string(&manifest).unwrap().replace("Find words", "Find every word");
    std::fs::write(manifest, text).unwrap();
    let operation = "/paths/~1api~1run~1words/post/summary";
    wait_until_stale().await;
    assert_eq!(told(&server, "/openapi.json").await.pointer(operation).unwrap(), "Find every word");
    assert_eq!(counted.glances.load(Ordering::SeqCst) as u64, read + 1, "one module changed");
    assert_eq!(counted.loads.load(Ordering::SeqCst), 0, "and none was put where runs are served from");
}

// A client with the current version is not sent it again.
#[tokio::test]
async fn what_a_client_has_is_not_sent_again() {
    let (server, _) = server().await;
    for path in ["/openapi.json", "/api/modules"] {
        let first = client().get(server.url(path)).send().await.unwrap();
        let mark = first.headers()["etag"].clone();
        let again = client().get(server.url(path)).header("if-none-match", &mark).send().await.unwrap();
        assert_eq!((again.status().as_u16(), &again.headers()["etag"]), (304, &mark), "{path}");
        assert!(again.text().await.unwrap().is_empty());
        let other = client().get(server.url(path)).header("if-none-match", "\"0\"").send().await.unwrap();
        assert_eq!(other.status(), 200);
    }
}

/// Modules whose folders cannot be scanned a second time until the test allows it.
struct Stuck {
    looks: AtomicUsize,
    begun: tokio::sync::Notify,
    go_on: std::sync::Mutex<std::sync::mpsc::Receiver<()>>,
}

impl ModuleSource for Stuck {
    fn module(&self, name: &str) -> Result<Arc<Module>, Failure> {
        ModuleCache::default().module(name)
    }

    fn names(&self) -> Vec<String> {
        if self.looks.fetch_add(1, Ordering::SeqCst) > 0 {
            self.begun.notify_one();
            // Ends at the latest when the test drops the other side.
            let _ = self.go_on.lock().unwrap().recv();
        }
        vec!["a".to_owned(), "b".to_owned()]
    }
}

// Growth D: a health check does not wait for a folder scan, however long it takes.
#[tokio::test]
async fn the_health_never_waits_for_the_folders() {
    let (release, go_on) = std::sync::mpsc::channel();
    let stuck = Arc::new(Stuck {
        looks: AtomicUsize::new(0),
        begun: tokio::sync::Notify::new(),
        go_on: std::sync::Mutex::new(go_on),
    });
    let modules: Arc<dyn ModuleSource> = Arc::clone(&stuck) as Arc<dyn ModuleSource>;
    let folder = tempfile::tempdir().unwrap();
    let server = Server::with_modules(folder, modules, &Script::free(&ANSWER), roomy()).await;
    assert_eq!(told(&server, "/health").await["modules_count"], 2);
    wait_until_stale().await;
    assert_eq!(told(&server, "/health").await["modules_count"], 2, "it only starts the next look");
    stuck.begun.notified().await;
    for _ in 0..3 {
        assert_eq!(told(&server, "/health").await["modules_count"], 2, "the look is still going on");
    }
    drop(release);
}
