//! Authentication, rate limits and origins.

use cognitive_http::ApiKey;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::support::{ANSWER, Script, Server, ask, client, json_of, roomy};

const KEY: &str = "a-key-of-some-length";

// S-19: without a key only the health check answers, and the refusal explains how to send one.
#[tokio::test]
async fn a_key_opens_the_server_and_nothing_else_does() {
    let mut config = roomy();
    config.keys = vec![ApiKey::new("anna", KEY).unwrap()];
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    for wrong in [None, Some("Bearer no-such-key-at-all"), Some("Basic YTpi"), Some("Bearer ")] {
        let mut request = ask(&server, "application/json");
        if let Some(wrong) = wrong {
            request = request.header("authorization", wrong);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 401);
        assert_eq!(response.headers()["www-authenticate"], "Bearer");
        let envelope = json_of(response).await;
        assert_eq!(envelope["error"]["code"], "E4007");
        assert!(!envelope.to_string().contains("no-such-key"), "what was shown is not repeated");
    }
    let right = ask(&server, "application/json").header("authorization", format!("Bearer {KEY}"));
    assert_eq!(right.send().await.unwrap().status(), 200);
    assert_eq!(client().get(server.url("/health")).send().await.unwrap().status(), 200);
    assert_eq!(client().get(server.url("/metrics")).send().await.unwrap().status(), 401);
    let stream = tokio_tungstenite::connect_async(format!("ws://{}/ws", server.address)).await;
    assert!(stream.is_err(), "a socket needs the key too");
}

#[tokio::test]
async fn a_page_from_elsewhere_is_refused_unless_listed() {
    let mut config = roomy();
    config.cors = vec!["https://app.example".to_owned()];
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    let refused =
        ask(&server, "application/json").header("origin", "https://evil.example").send().await.unwrap();
    assert_eq!(refused.status(), 403);
    assert!(!refused.headers().contains_key("access-control-allow-origin"));
    let listed =
        ask(&server, "application/json").header("origin", "https://app.example").send().await.unwrap();
    assert_eq!(listed.headers()["access-control-allow-origin"], "https://app.example");
    assert!(listed.headers()["access-control-expose-headers"].to_str().unwrap().contains("cogn-risk"));
    let preflight = client().request(reqwest::Method::OPTIONS, server.url("/api/run/words"));
    let preflight = preflight.header("origin", "https://app.example").send().await.unwrap();
    assert_eq!(preflight.status(), 204);
    let rebound = ask(&server, "application/json").header("host", "evil.example").send().await.unwrap();
    assert_eq!(rebound.status(), 403, "a name that was made to point here");
    let mut request = format!("ws://{}/ws", server.address).into_client_request().unwrap();
    request.headers_mut().insert("origin", "https://evil.example".parse().unwrap());
    assert!(tokio_tungstenite::connect_async(request).await.is_err(), "sockets are not exempt");
}

// S-29: runs per minute are limited, and the response says when to retry.
#[tokio::test]
async fn too_many_runs_are_told_when_to_come_back() {
    let mut config = roomy();
    config.runs_per_minute = 2;
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    for expected in [200, 200, 429] {
        let response = ask(&server, "application/json").send().await.unwrap();
        assert_eq!(response.status(), expected);
        if expected == 429 {
            let wait: u64 = response.headers()["retry-after"].to_str().unwrap().parse().unwrap();
            assert!((1..=30).contains(&wait), "{wait}");
            assert_eq!(json_of(response).await["error"]["code"], "E4002");
        }
    }
}

// Local callers are not limited unless the operator configured it; proxied requests are.
#[tokio::test]
async fn callers_on_this_machine_are_limited_only_behind_a_proxy() {
    let mut config = roomy();
    config.runs_per_minute = 1;
    config.limit_local_callers = false;
    let server = Server::start(&Script::free(&ANSWER), "both", config.clone()).await;
    let runs = async |server: &Server, header: Option<(&str, &str)>| {
        let mut request = ask(server, "application/json").bearer_auth("a-key-of-some-length");
        if let Some((name, value)) = header {
            request = request.header(name, value);
        }
        request.send().await.unwrap().status().as_u16()
    };
    for _ in 0..3 {
        assert_eq!(runs(&server, None).await, 200);
    }
    assert_eq!(runs(&server, Some(("x-forwarded-for", "203.0.113.7"))).await, 200);
    for header in [("x-forwarded-for", "203.0.113.8"), ("forwarded", "for=192.0.2.1"), ("via", "1.1 p")] {
        assert_eq!(runs(&server, Some(header)).await, 429, "{header:?}");
    }
    assert_eq!(runs(&server, None).await, 200);
    config.keys = vec![ApiKey::new("anna", "a-key-of-some-length").unwrap()];
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    assert_eq!(
        (runs(&server, None).await, runs(&server, None).await),
        (200, 429),
        "with keys there is a limit"
    );
}

// A module that is not offered does not exist for callers: not for runs, not in the list, not in the description.
#[tokio::test]
async fn only_what_is_offered_can_be_seen_and_run() {
    let mut config = roomy();
    config.offers = Some(std::sync::Arc::new(|name: &str| name == "summarizer"));
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    let refused = ask(&server, "application/json").send().await.unwrap();
    assert_eq!(refused.status(), 404);
    let absent = client().post(server.url("/api/run/absent")).header("content-type", "application/json");
    let absent = absent.body("{}").send().await.unwrap();
    let same = |error: Value| error["error"]["suggestion"].clone();
    assert_eq!(same(json_of(refused).await), same(json_of(absent).await));
    let told = async |path: &str| json_of(client().get(server.url(path)).send().await.unwrap()).await;
    assert_eq!(told("/api/modules").await["modules"].as_array().unwrap().len(), 1);
    assert_eq!(told("/health").await["modules_count"], 1);
    let paths = told("/openapi.json").await["paths"].clone();
    assert!(paths["/api/run/summarizer"].is_object() && paths["/api/run/words"].is_null());
}

// Suggestions for HTTP callers name requests, not commands of a program that they do not have.
#[tokio::test]
async fn suggestions_over_http_speak_http() {
    let server = Server::start(&Script::free(&ANSWER), "both", roomy()).await;
    for (path, body, expected) in [
        ("/api/run/words", "{}", "`GET /api/modules/words`"),
        ("/api/run/words", "{", "Send a JSON object"),
        ("/api/run/word", "{}", "`GET /api/modules`"),
    ] {
        let request = client().post(server.url(path)).header("content-type", "application/json");
        let error = json_of(request.body(body).send().await.unwrap()).await["error"].clone();
        let hint = error["suggestion"].as_str().unwrap();
        assert!(hint.contains(expected) && !hint.contains("`cogn ") && !hint.contains("`--"), "{error}");
    }
}

// STREAM-023, SEC-005
#[tokio::test]
async fn stream_023_one_client_has_only_so_many_streams() {
    let script = Script::with_leave(&ANSWER, 2);
    let mut config = roomy();
    config.streams_per_client = 2;
    let server = Server::start(&script, "both", config).await;
    let first = ask(&server, "text/event-stream").send().await.unwrap();
    let second = ask(&server, "text/event-stream").send().await.unwrap();
    let third = ask(&server, "text/event-stream").send().await.unwrap();
    assert_eq!(third.status(), 429);
    let third = json_of(third).await;
    assert_eq!(third["error"]["code"], "E4002");
    // ERR-008: the server is at its limit, not the provider.
    assert_eq!(third["meta"]["explain"], "Runtime refused or failed: too many streams at once", "{third}");
    script.allow(2 * ANSWER.len());
    assert!(first.text().await.unwrap().contains("event: final"));
    assert!(second.text().await.unwrap().contains("event: final"));
    // A client that has received the last chunk can start its next stream at once.
    assert_eq!(ask(&server, "text/event-stream").send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn every_answer_is_one_line_in_the_log() {
    use std::sync::{Arc, Mutex};
    let lines = Arc::new(Mutex::new(Vec::new()));
    let mut config = roomy();
    let heard = Arc::clone(&lines);
    config.log = Some(Arc::new(move |record| heard.lock().unwrap().push(json!(record))));
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    let response = ask(&server, "application/json").send().await.unwrap();
    let trace = response.headers()["cogn-trace-id"].to_str().unwrap().to_owned();
    client().get(server.url("/nothing?secret=1")).send().await.unwrap();
    let lines = lines.lock().unwrap();
    assert_eq!((&lines[0]["path"], &lines[0]["status"]), (&json!("/api/run/words"), &json!(200)));
    assert_eq!(lines[0]["trace_id"], json!(trace));
    assert_eq!(
        (&lines[1]["path"], &lines[1]["status"]),
        (&json!("/nothing"), &json!(404)),
        "without the query"
    );
}
