//! Requests every operation of the table without sufficient rights: without a key, from foreign pages with a cookie,
//! and from pages of listed origins. A new operation is covered automatically.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{Response, StatusCode, header};
use cognitive_runtime::Host;
use cognitive_testkit::{FolderModule, ScriptedProvider, module_folder};
use serde_json::json;

use crate::app::{App, AppState};
use crate::auth::{Peer, guard};
use crate::config::{ApiKey, ServerConfig};
use crate::operations::{OPERATIONS, Operation, OperationAccess};
use crate::roles::{KeyRole, Roles};
use crate::{header_names, routes};

fn app(set_up: impl FnOnce(&mut ServerConfig)) -> Arc<AppState> {
    let folder = module_folder(&json!({}), &json!({}), "");
    let host = Host::new(Arc::new(FolderModule::new(folder)), Arc::new(ScriptedProvider::new([""])));
    let mut config = ServerConfig::default();
    set_up(&mut config);
    App::new(host, config).0
}

fn keyed() -> (Arc<AppState>, ApiKey) {
    let key = ApiKey::new("admin", "the-key-of-the-admin-0123").unwrap().with_roles(Roles::ALL);
    (app(|config| config.keys = vec![key.clone()]), key)
}

async fn ask(shared: &Arc<AppState>, operation: &Operation, headers: &[(&str, &str)]) -> Response<Body> {
    let path = operation.path.replace(['{', '}'], "");
    let mut request = Request::builder().method(&*operation.method.to_uppercase()).uri(&path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.header(header::HOST, "localhost").header(header::CONTENT_TYPE, "application/json");
    let request = request.body(Body::from("{}")).unwrap();
    guard(Arc::clone(shared), routes::router(Arc::clone(shared)), Peer::new(None), request).await
}

// Without a key only the health checks and the login respond. Every other operation requires a key.
#[tokio::test]
async fn without_a_key_nothing_answers_but_probes_and_the_login() {
    let (shared, _) = keyed();
    let mut open = Vec::new();
    for operation in &OPERATIONS {
        for accept in ["text/html", "application/json"] {
            let response = ask(&shared, operation, &[("accept", accept)]).await;
            let is_refused = response.status() == StatusCode::UNAUTHORIZED;
            let is_login = (operation.method, operation.path) == ("post", "/v1/session");
            assert_eq!(
                is_refused,
                operation.access != OperationAccess::Open || is_login,
                "{} {}",
                operation.method,
                operation.path
            );
        }
        if operation.access == OperationAccess::Open {
            open.push((operation.method, operation.path));
        }
    }
    let expected = [
        ("get", "/health"),
        ("get", "/ready"),
        ("get", "/"),
        ("get", "/login.js"),
        ("get", "/login.css"),
        ("post", "/v1/session"),
    ];
    assert_eq!(open, expected, "what is open says nothing of what is here");
    let none = app(|config| (config.keys, config.studio) = (keyed().0.config.keys.clone(), false));
    let first = OPERATIONS.iter().find(|operation| operation.path == "/").unwrap();
    let response = ask(&none, first, &[("accept", "text/html")]).await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "no page at all");
}

// A cookie is worthless unless our own page sent the request, for every operation that changes something.
#[tokio::test]
async fn a_cookie_alone_changes_nothing_anywhere() {
    let (shared, key) = keyed();
    let secret = shared.logins.begin(&key, std::time::Instant::now());
    let cookie = format!("cogn_session={secret}");
    let changing = OPERATIONS.iter().filter(|operation| operation.method != "get");
    for operation in changing.filter(|operation| operation.access != OperationAccess::Open) {
        for (name, value) in [
            ("origin", "http://localhost"),
            ("sec-fetch-site", "same-origin"),
            ("sec-fetch-site", "cross-site"),
            ("x-unknown", "1"),
        ] {
            let response = ask(&shared, operation, &[("cookie", &cookie), (name, value)]).await;
            let status = response.status();
            assert!(
                status == StatusCode::FORBIDDEN || status == StatusCode::UNAUTHORIZED,
                "{} {} with {name}: {status}",
                operation.method,
                operation.path
            );
        }
    }
    for path in ["/ws", "/mcp"] {
        for operation in OPERATIONS.iter().filter(|operation| operation.path == path) {
            let own = [("cookie", &*cookie), ("origin", "http://localhost"), ("x-cogn-studio", "1")];
            assert_eq!(ask(&shared, operation, &own).await.status(), StatusCode::UNAUTHORIZED, "{path}");
        }
    }
    let mark = header_names::STUDIO.as_str();
    let out = OPERATIONS.iter().find(|each| (each.method, each.path) == ("delete", "/v1/session")).unwrap();
    let own = [("cookie", &*cookie), ("origin", "http://localhost"), (mark, "1")];
    assert_eq!(ask(&shared, out, &own).await.status(), StatusCode::OK, "our own page may");
}

// A page that the operator lists on a server without keys may run modules, and nothing else.
#[tokio::test]
async fn a_listed_origin_runs_modules_and_nothing_else() {
    let shared = app(|config| config.cors = vec!["https://app.example".to_owned()]);
    let needs_more = |operation: &&Operation| matches!(operation.access, OperationAccess::Role(role) if role != KeyRole::Run);
    for operation in OPERATIONS.iter().filter(needs_more) {
        let listed = ask(&shared, operation, &[("origin", "https://app.example")]).await;
        assert_eq!(listed.status(), StatusCode::FORBIDDEN, "{} {}", operation.method, operation.path);
        assert!(lacks_role(listed).await, "{} {}", operation.method, operation.path);
        let own = ask(&shared, operation, &[("origin", "http://localhost")]).await;
        assert!(!lacks_role(own).await, "{} {}", operation.method, operation.path);
    }
    // It does not see past runs either: they belong to all users of this machine.
    let mut history = Vec::new();
    for operation in &OPERATIONS {
        if !matches!(operation.access, OperationAccess::History(_) | OperationAccess::KnownHistory) {
            continue;
        }
        history.push(operation.path);
        for (origin, may) in [("https://app.example", false), ("http://localhost", true)] {
            let response = ask(&shared, operation, &[("origin", origin)]).await;
            let told = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
            let is_refused = String::from_utf8_lossy(&told).contains("may not read past runs");
            assert_eq!(is_refused, !may, "{} from {origin}", operation.path);
        }
    }
    assert_eq!(history, ["/metrics", "/v1/runs", "/v1/runs/stats", "/v1/runs/{id}"]);
    let runs = OPERATIONS.iter().find(|operation| operation.path == "/api/modules").unwrap();
    assert_eq!(ask(&shared, runs, &[("origin", "https://app.example")]).await.status(), StatusCode::OK);
    // It cannot use the options for authors either.
    for options in [json!({ "draft": { "prompt.md": "x" } }), json!({ "version": "x" })] {
        let body = json!({ "input": {}, "_options": options }).to_string();
        let request = Request::builder().method("POST").uri("/api/run/m").header(header::HOST, "localhost");
        let request = request.header(header::CONTENT_TYPE, "application/json");
        let request = request.header(header::ORIGIN, "https://app.example").body(Body::from(body)).unwrap();
        let table = routes::router(Arc::clone(&shared));
        let response = guard(Arc::clone(&shared), table, Peer::new(None), request).await;
        assert!(lacks_role(response).await, "{options}");
    }
}

async fn lacks_role(response: Response<Body>) -> bool {
    if response.status() != StatusCode::FORBIDDEN {
        return false;
    }
    let told = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
    String::from_utf8_lossy(&told).contains("does not have the role")
}

// Every operation with every set of roles: refused exactly if the set lacks the role of the operation.
#[tokio::test(start_paused = true)]
async fn every_operation_is_open_to_its_role_alone() {
    let sets: Vec<Roles> = (0..1_usize << KeyRole::ALL.len())
        .map(|bits| {
            let of_bits = KeyRole::ALL.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1);
            Roles::from_roles(of_bits.map(|(_, role)| *role))
        })
        .collect();
    let secret = |at: usize| format!("the-key-of-the-set-{at:04}");
    let key = |(at, roles): (usize, &Roles)| {
        ApiKey::new(&format!("set-{at}"), &secret(at)).unwrap().with_roles(*roles)
    };
    let keys: Vec<ApiKey> = sets.iter().enumerate().map(key).collect();
    let shared = app(|config| config.keys = keys);
    let keyless = app(|config| config.cors = vec!["https://app.example".to_owned()]);
    let mut cells = 0;
    for operation in &OPERATIONS {
        let name = format!("{} {}", operation.method, operation.path);
        let needed = match operation.access {
            OperationAccess::Role(role) | OperationAccess::History(role) => Some(role),
            OperationAccess::Open | OperationAccess::Known | OperationAccess::KnownHistory => None,
        };
        for (at, roles) in sets.iter().enumerate() {
            let bearer = format!("Bearer {}", secret(at));
            let response = ask(&shared, operation, &[("authorization", &bearer)]).await;
            let is_unknown = response.status() == StatusCode::UNAUTHORIZED;
            assert!(!is_unknown || operation.path == "/v1/session", "{name} with {roles:?}");
            let is_refused = needed.is_some_and(|role| !roles.has(role));
            assert_eq!(lacks_role(response).await, is_refused, "{name} with {roles:?}");
            cells += 1;
        }
        for wrong in ["", "Bearer", "Bearer the-key-of-the-set-9999", "Basic dGhlLWtleQ=="] {
            let response = ask(&shared, operation, &[("authorization", wrong)]).await;
            let is_open = operation.access == OperationAccess::Open && operation.path != "/v1/session";
            assert_eq!(response.status() != StatusCode::UNAUTHORIZED, is_open, "{name} with {wrong:?}");
            cells += 1;
        }
        let is_past = matches!(operation.access, OperationAccess::History(_) | OperationAccess::KnownHistory);
        for (origin, is_known) in
            [("https://app.example", true), ("https://evil.example", false), ("null", false)]
        {
            let response = ask(&keyless, operation, &[("origin", origin)]).await;
            let status = response.status();
            if !is_known {
                assert_eq!(status, StatusCode::FORBIDDEN, "{name} from {origin}");
            } else if needed.is_some_and(|role| role != KeyRole::Run) {
                assert!(lacks_role(response).await, "{name} from {origin}");
            } else {
                assert_eq!(status == StatusCode::FORBIDDEN, is_past, "{name} from {origin}");
            }
            cells += 1;
        }
    }
    assert!(cells > 1_000, "only {cells} cells; has the check gone blind?");
}
