//! Access to Studio: roles, logins, cookies, and the view of an unauthenticated client.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cognitive_http::{ApiKey, App, KeyRole, Roles, ServerConfig};
use cognitive_runtime::Host;
use cognitive_testkit::MemoryAuditLog;
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};
use tower_service::Service as _;

use crate::support::{ANSWER, Script, SendJson as _, Server, client, json_of, module_cache, roomy};

/// Returns the key of a role; its client has the same name as the role.
pub(crate) fn key_of(role: KeyRole) -> String {
    format!("the-key-of-{}-0123456789", role.word())
}

pub(crate) fn keyed() -> ServerConfig {
    let mut config = roomy();
    let key = |role: KeyRole| {
        ApiKey::new(role.word(), &key_of(role)).unwrap().with_roles(Roles::from_roles([role]))
    };
    config.keys = KeyRole::ALL.map(key).to_vec();
    config
}

async fn server() -> Server {
    Server::start(&Script::free(&ANSWER), "both", keyed()).await
}

/// Every described operation and the role that it requires. A new operation has to be added here.
const NEEDS: &[(&str, &str, Need)] = &[
    ("post", "/api/run/{module}", Need::Of(KeyRole::Run)),
    ("post", "/v1/modules/{module}/execute", Need::Of(KeyRole::Run)),
    ("post", "/run", Need::Of(KeyRole::Run)),
    ("delete", "/v1/streams/{id}", Need::Of(KeyRole::Run)),
    ("get", "/api/modules", Need::Of(KeyRole::Run)),
    ("get", "/api/modules/{module}", Need::Of(KeyRole::Run)),
    ("post", "/v1/media/upload-url", Need::Of(KeyRole::Run)),
    ("put", "/v1/media/uploads/{id}", Need::Of(KeyRole::Run)),
    ("get", "/v1/media/files/{id}", Need::Of(KeyRole::Run)),
    ("get", "/capabilities", Need::AnyKey),
    ("get", "/health", Need::Nothing),
    ("get", "/ready", Need::Nothing),
    ("get", "/metrics", Need::AnyKey),
    ("get", "/openapi.json", Need::AnyKey),
    ("get", "/ws", Need::Of(KeyRole::Run)),
    ("post", "/v1/session", Need::Nothing),
    ("get", "/v1/session", Need::AnyKey),
    ("delete", "/v1/session", Need::AnyKey),
    ("get", "/v1/models", Need::Of(KeyRole::Author)),
    ("post", "/v1/modules/{module}/preview", Need::Of(KeyRole::Author)),
    ("post", "/v1/modules", Need::Of(KeyRole::Author)),
    ("get", "/v1/modules/{module}/files", Need::Of(KeyRole::Author)),
    ("put", "/v1/modules/{module}/files", Need::Of(KeyRole::Author)),
    ("post", "/v1/modules/{module}/check", Need::Of(KeyRole::Author)),
    ("get", "/v1/modules/{module}/versions", Need::Of(KeyRole::Author)),
    ("get", "/v1/modules/{module}/plan", Need::Of(KeyRole::Run)),
    ("get", "/v1/modules/{module}/cases", Need::Of(KeyRole::Author)),
    ("post", "/v1/modules/{module}/cases", Need::Of(KeyRole::Author)),
    ("post", "/v1/modules/{module}/judge", Need::Of(KeyRole::Author)),
    ("get", "/v1/runs", Need::Of(KeyRole::Run)),
    ("get", "/v1/runs/stats", Need::Of(KeyRole::Run)),
    ("get", "/v1/runs/{id}", Need::Of(KeyRole::Run)),
    ("post", "/v1/runs/{id}/replay", Need::Of(KeyRole::Author)),
    ("get", "/v1/reviews", Need::Of(KeyRole::Review)),
    ("get", "/v1/reviews/calibration", Need::Of(KeyRole::Review)),
    ("get", "/v1/reviews/export", Need::Of(KeyRole::Review)),
    ("get", "/v1/reviews/{id}", Need::Of(KeyRole::Review)),
    ("post", "/v1/reviews/{id}/decision", Need::Of(KeyRole::Review)),
];

#[derive(Clone, Copy, PartialEq, Debug)]
enum Need {
    Nothing,
    AnyKey,
    Of(KeyRole),
}

fn send(server: &Server, method: &str, path: &str) -> RequestBuilder {
    let path = path.replace("{module}", "words").replace("{id}", "x");
    let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
    let request = client().request(method.clone(), server.url(&path));
    if method == Method::GET {
        request
    } else {
        request.header("content-type", "application/json").body("{}")
    }
}

/// Returns the missing role that a response reports, if any.
async fn missing_role(response: Response) -> Option<String> {
    let status = response.status();
    let answer: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap_or_default();
    let role = answer["error"]["details"]["role"].as_str().map(str::to_owned);
    assert_eq!(role.is_some(), status == 403 && answer["error"]["code"] == "E4007" && role.is_some());
    role
}

// Every operation requires a role, and no other role grants access.
#[tokio::test]
async fn every_operation_needs_its_role_and_no_other() {
    let server = server().await;
    let described =
        client().get(server.url("/openapi.json")).bearer_auth(key_of(KeyRole::Admin)).send().await.unwrap();
    let described = json_of(described).await;
    let mut known: BTreeMap<(String, String), Need> =
        NEEDS.iter().map(|(method, path, need)| ((path.to_string(), method.to_string()), *need)).collect();
    for (path, operations) in described["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            if path == "/api/run/words" || path.starts_with("/api/run/") && !path.contains('{') {
                continue;
            }
            let need = known.remove(&(path.clone(), method.clone()));
            assert!(need.is_some(), "say in this test which role `{method} {path}` needs");
            check(&server, method, path, need.unwrap()).await;
        }
    }
    assert!(known.is_empty(), "no longer there: {known:?}");
}

async fn check(server: &Server, method: &str, path: &str, need: Need) {
    let stranger = send(server, method, path).send().await.unwrap().status();
    // A wrong key at the login is 401 as well.
    let is_login = (method, path) == ("post", "/v1/session");
    assert_eq!(stranger == 401, need != Need::Nothing || is_login, "{method} {path}: {stranger}");
    for role in KeyRole::ALL {
        let response = send(server, method, path).bearer_auth(key_of(role)).send().await.unwrap();
        assert!(response.status() != 401 || is_login, "{method} {path} as {role:?}");
        let missing = missing_role(response).await;
        let expected = match need {
            Need::Of(needed) if role != needed && role != KeyRole::Admin => Some(needed.word().to_owned()),
            _ => None,
        };
        assert_eq!(missing, expected, "{method} {path} as {role:?}");
    }
}

// Author options require the role on every transport.
#[tokio::test]
async fn a_model_or_a_draft_is_for_authors() {
    let server = server().await;
    for options in [
        json!({ "model": "script" }),
        json!({ "draft": { "prompt.md": "x" } }),
        json!({ "version": "0123456789ab" }),
        json!({ "record": true }),
    ] {
        for path in ["/api/run/words", "/v1/modules/words/execute"] {
            let body = json!({ "input": { "text": "a" }, "_options": options });
            let run = client().post(server.url(path)).bearer_auth(key_of(KeyRole::Run)).json(&body);
            let answer = json_of(run.send().await.unwrap()).await;
            assert_eq!(answer["error"]["details"]["role"], "author", "{answer}");
        }
    }
}

fn cookie_of(response: &Response) -> String {
    let set = response.headers()["set-cookie"].to_str().unwrap();
    set.split(';').next().unwrap().to_owned()
}

async fn login(server: &Server, key: &str) -> Response {
    client().post(server.url("/v1/session")).json(&json!({ "key": key })).send().await.unwrap()
}

#[tokio::test]
async fn a_login_gives_a_cookie_that_only_browsers_hold_and_a_logout_takes_it() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let mut config = keyed();
    let lines = Arc::clone(&log);
    config.log =
        Some(Arc::new(move |record| lines.lock().unwrap().push(serde_json::to_string(record).unwrap())));
    let audit = Arc::new(MemoryAuditLog::default());
    let (folder, module_cache) = module_cache("both");
    let mut host = Host::new(Arc::new(module_cache), Script::free(&ANSWER));
    host.audit = Some(Arc::clone(&audit) as _);
    let server = Server::with_host(folder, host, config).await;
    let key = key_of(KeyRole::Review);
    let response = login(&server, &key).await;
    let set = response.headers()["set-cookie"].to_str().unwrap().to_owned();
    for part in ["cogn_session=", "; Path=/", "; HttpOnly", "; SameSite=Strict", "; Max-Age=43200"] {
        assert!(set.contains(part), "{set}");
    }
    assert!(!set.contains("Secure"), "on this machine nobody listens: {set}");
    let cookie = cookie_of(&response);
    let session = json_of(response).await;
    assert_eq!(session["name"], "review");
    assert_eq!(session["roles"], json!(["review"]));
    assert_eq!((&session["keyed"], &session["studio"]), (&json!(true), &json!(1)));
    let show =
        |cookie: &str| client().get(server.url("/v1/session")).header("cookie", cookie.to_owned()).send();
    assert_eq!(json_of(show(&cookie).await.unwrap()).await["name"], "review");
    let refused = show("cogn_session=0123").await.unwrap();
    assert_eq!(refused.status(), 401);
    let out =
        client().delete(server.url("/v1/session")).header("cookie", &cookie).header("x-cogn-studio", "1");
    let out = out.header("sec-fetch-site", "same-origin").send().await.unwrap();
    assert!(out.status() == 200 && out.headers()["set-cookie"].to_str().unwrap().contains("Max-Age=0"));
    assert_eq!(show(&cookie).await.unwrap().status(), 401, "a cookie that was kept is worth nothing");
    let records = audit.records();
    assert_eq!(records.iter().map(|record| record.event).collect::<Vec<_>>(), ["login"]);
    assert_eq!(records[0].key.as_deref(), Some("review"));
    let all = format!("{:?} {records:?}", log.lock().unwrap());
    assert!(!all.contains(&key) && !all.contains(cookie.split_once('=').unwrap().1), "no secret is logged");
}

// A client cannot choose the secret of a login, and the previous login ends.
#[tokio::test]
async fn a_login_gives_a_new_secret_and_ends_the_one_before() {
    let server = server().await;
    let begin = |cookie: String| {
        let request = client().post(server.url("/v1/session")).header("cookie", cookie);
        let request = request.header("x-cogn-studio", "1").header("sec-fetch-site", "same-origin");
        request.json(&json!({ "key": key_of(KeyRole::Run) })).send()
    };
    let planted = "cogn_session=0123456789abcdef0123456789abcdef".to_owned();
    let first = cookie_of(&begin(planted.clone()).await.unwrap());
    let second = cookie_of(&begin(first.clone()).await.unwrap());
    assert!(first != planted && second != first);
    let status = |cookie: String| client().get(server.url("/v1/session")).header("cookie", cookie).send();
    for (cookie, expected) in [(planted, 401), (first, 401), (second, 200)] {
        assert_eq!(status(cookie).await.unwrap().status(), expected);
    }
    // A foreign page cannot log in a browser under another identity.
    let forged = client().post(server.url("/v1/session")).header("origin", "https://evil.example");
    let forged = forged.json(&json!({ "key": key_of(KeyRole::Run) })).send().await.unwrap();
    assert!(forged.status() == 403 && !forged.headers().contains_key("set-cookie"));
}

#[tokio::test]
async fn elsewhere_the_cookie_travels_only_protected() {
    let server = server().await;
    let request = client().post(server.url("/v1/session")).header("host", "studio.example");
    let response = request.json(&json!({ "key": key_of(KeyRole::Run) })).send().await.unwrap();
    assert!(response.headers()["set-cookie"].to_str().unwrap().ends_with("; Secure"));
}

// Many clients may share an address, so the right key of one never waits for the wrong keys of another.
#[tokio::test(start_paused = true)]
async fn many_wrong_keys_are_slowed_and_right_ones_never() {
    let (_folder, modules) = module_cache("both");
    let host = Host::new(Arc::new(modules), Script::free(&ANSWER));
    let mut routes = App::new(host, keyed()).router();
    let mut ask = async |path: &str, bearer: &str, body: String| {
        let request = axum::http::Request::post(path).header("content-type", "application/json");
        let request = if bearer.is_empty() {
            request
        } else {
            request.header("authorization", format!("Bearer {bearer}"))
        };
        let started = tokio::time::Instant::now();
        let response = routes.call(request.body(axum::body::Body::from(body)).unwrap()).await.unwrap();
        (response.status().as_u16(), started.elapsed())
    };
    let login = |key: &str| json!({ "key": key }).to_string();
    let wrong = "no-key-that-anybody-has";
    assert_eq!(ask("/api/run/words", wrong, "{}".to_owned()).await, (401, Duration::ZERO), "the first");
    for _ in 0..40 {
        ask("/api/run/words", wrong, "{}".to_owned()).await;
    }
    let pause = Duration::from_secs(1);
    assert_eq!(ask("/api/run/words", wrong, "{}".to_owned()).await, (401, pause));
    assert_eq!(ask("/v1/session", "", login(wrong)).await, (401, pause));
    assert_eq!(ask("/v1/session", "", login(&key_of(KeyRole::Admin))).await, (200, Duration::ZERO));
    let run = ask("/api/run/words", &key_of(KeyRole::Run), r#"{"text": "hello"}"#.to_owned()).await;
    assert_eq!(run, (200, Duration::ZERO));
}

// Clients without a key may send this body, so it is small.
#[tokio::test]
async fn a_login_needs_no_large_body() {
    let server = server().await;
    let long = login(&server, &"x".repeat(8 << 10)).await;
    assert_eq!(long.status(), 413);
}

#[tokio::test]
async fn a_wrong_key_at_the_login_is_not_repeated() {
    let server = server().await;
    let response = login(&server, "no-key-that-anybody-has").await;
    assert!(response.status() == 401 && !response.headers().contains_key("set-cookie"));
    assert!(!response.text().await.unwrap().contains("no-key-that"));
}

// A foreign page cannot use the cookie, whatever it sends.
#[tokio::test]
async fn a_cookie_changes_something_only_for_our_own_page() {
    let server = server().await;
    let cookie = cookie_of(&login(&server, &key_of(KeyRole::Run)).await);
    let own = server.base.clone();
    let run = |headers: &[(&'static str, &str)]| {
        let mut request = client()
            .post(server.url("/api/run/words"))
            .json(&json!({ "text": "a" }))
            .header("cookie", &cookie);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.send()
    };
    for (headers, status) in [
        (&[("x-cogn-studio", "1"), ("origin", own.as_str())][..], 200),
        (&[("x-cogn-studio", "1"), ("sec-fetch-site", "same-origin")], 200),
        (&[("x-cogn-studio", "1"), ("sec-fetch-site", "same-origin"), ("origin", own.as_str())], 200),
        (&[("origin", own.as_str())], 403),
        (&[("x-cogn-studio", "0"), ("origin", own.as_str())], 403),
        (&[("x-cogn-studio", "1")], 403),
        (&[("x-cogn-studio", "1"), ("sec-fetch-site", "cross-site")], 403),
        (&[("x-cogn-studio", "1"), ("sec-fetch-site", "same-site"), ("origin", own.as_str())], 403),
        (&[("x-cogn-studio", "1"), ("origin", "https://evil.example")], 403),
        (&[("x-cogn-studio", "1"), ("origin", "null"), ("sec-fetch-site", "same-origin")], 403),
    ] {
        assert_eq!(run(headers).await.unwrap().status(), status, "{headers:?}");
    }
    let agent = client().post(server.url("/mcp")).header("cookie", &cookie).header("x-cogn-studio", "1");
    let agent = agent.header("origin", &own).json(&json!({})).send().await.unwrap();
    assert_eq!(agent.status(), 401, "agents have keys");
}

// A page listed for CORS is not our own page.
#[tokio::test]
async fn a_listed_origin_has_no_use_of_the_cookie() {
    let mut config = keyed();
    config.cors = vec!["https://app.example".to_owned()];
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    let cookie = cookie_of(&login(&server, &key_of(KeyRole::Run)).await);
    let request =
        client().post(server.url("/api/run/words")).json(&json!({ "text": "a" })).header("cookie", &cookie);
    let request = request.header("x-cogn-studio", "1").header("origin", "https://app.example");
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 403);
    assert!(!response.headers().contains_key("access-control-allow-credentials"));
}

/// All Studio files, as they were built into the server.
static FILES: &[(&str, &str, &[u8])] = include!("../../../../studio/dist/assets.rs");

/// Returns their paths.
fn assets() -> Vec<String> {
    FILES.iter().map(|(name, ..)| format!("/{name}")).collect()
}

#[tokio::test]
async fn without_a_key_nothing_but_the_login_can_be_read() {
    let server = server().await;
    let page = |path: String| client().get(server.url(&path)).header("accept", "text/html").send();
    let login = page("/".to_owned()).await.unwrap();
    assert_eq!(login.status(), 200);
    assert_eq!(login.headers()["content-type"], "text/html; charset=utf-8");
    strict(&login);
    assert!(unpacked(login).await.contains("Log in"));
    assert!(assets().len() > 5);
    for path in assets() {
        let response = page(path.clone()).await.unwrap();
        let open = matches!(path.as_str(), "/login.js" | "/login.css");
        assert_eq!(response.status(), if open { 200 } else { 401 }, "{path}");
        let known =
            client().get(server.url(&path)).bearer_auth(key_of(KeyRole::Review)).send().await.unwrap();
        let is_given = open || path.starts_with("/assets/") || path == "/icon.svg";
        assert_eq!(known.status(), if is_given { 200 } else { 404 }, "{path}");
        if is_given {
            strict(&known);
            let kept = known.headers()["cache-control"].to_str().unwrap();
            assert_eq!(kept.contains("immutable"), path.starts_with("/assets/"), "{path}");
        }
    }
    for path in ["/assets/none.js", "/assets/..%2f..%2fCargo.toml", "/index.html", "/nothing"] {
        assert_eq!(page(path.to_owned()).await.unwrap().status(), 401, "{path}");
    }
    let home = client()
        .get(server.url("/"))
        .header("accept", "text/html")
        .bearer_auth(key_of(KeyRole::Run))
        .send()
        .await
        .unwrap();
    strict(&home);
    let home = unpacked(home).await;
    assert!(!home.contains("Log in") && !home.contains("=\"/"), "its links hold below any path: {home}");
    let program = json_of(client().get(server.url("/")).send().await.unwrap()).await;
    assert_eq!(program["name"], "cogn", "a program is told what it always was");
}

/// Asserts the security headers of every Studio page.
fn strict(response: &Response) {
    let headers = response.headers();
    let policy = headers["content-security-policy"].to_str().unwrap();
    for rule in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "form-action 'none'"] {
        assert!(policy.contains(rule) && !policy.contains("unsafe"), "{policy}");
    }
    assert_eq!(headers["x-content-type-options"], "nosniff");
    assert_eq!(headers["referrer-policy"], "no-referrer");
    assert_eq!(headers["cross-origin-opener-policy"], "same-origin");
    assert_eq!(headers["content-encoding"], "gzip");
}

async fn unpacked(response: Response) -> String {
    use std::io::Read;
    let bytes = response.bytes().await.unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
    text
}

#[tokio::test]
async fn an_operator_may_want_no_page() {
    let mut config = keyed();
    config.studio = false;
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    let home = client().get(server.url("/")).header("accept", "text/html");
    assert_eq!(home.send().await.unwrap().status(), 401, "there is no login either");
    let home = client().get(server.url("/")).header("accept", "text/html");
    let home = home.bearer_auth(key_of(KeyRole::Run)).send().await.unwrap();
    assert!(home.text().await.unwrap().contains("src=\"docs.js\""));
    for path in ["/login.js", "/icon.svg"] {
        let response =
            client().get(server.url(path)).bearer_auth(key_of(KeyRole::Admin)).send().await.unwrap();
        assert_eq!(response.status(), 404, "{path}");
    }
}

// Only this machine reaches a server without keys, so all callers have every role.
#[tokio::test]
async fn a_server_without_keys_gives_every_role() {
    let server = Server::start(&Script::free(&ANSWER), "both", roomy()).await;
    let session = json_of(client().get(server.url("/v1/session")).send().await.unwrap()).await;
    assert_eq!((&session["name"], &session["keyed"]), (&Value::Null, &json!(false)));
    assert_eq!(session["roles"], json!(["run", "author", "review", "admin"]));
    let login = login(&server, "").await;
    assert!(login.status() == 200 && !login.headers().contains_key("set-cookie"));
    let models = client().get(server.url("/v1/models")).send().await.unwrap();
    assert_eq!(models.status(), 200);
    let evil =
        client().get(server.url("/v1/models")).header("origin", "https://evil.example").send().await.unwrap();
    assert_eq!(evil.status(), 403);
    let mut config = roomy();
    config.cors = vec!["https://app.example".to_owned()];
    let listed = Server::start(&Script::free(&ANSWER), "both", config).await;
    let page = |path: &str| client().get(listed.url(path)).header("origin", "https://app.example").send();
    assert_eq!(json_of(page("/v1/session").await.unwrap()).await["roles"], json!(["run"]));
    assert_eq!(page("/v1/models").await.unwrap().status(), 403);
    assert_eq!(page("/api/modules").await.unwrap().status(), 200);
    let rebound = client().get(server.url("/v1/models")).header("host", "evil.example").send().await.unwrap();
    assert_eq!(rebound.status(), 403);
}
