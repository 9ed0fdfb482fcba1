//! `/mcp`: agents pass the same guard as all other clients and receive the same envelope.

use std::sync::Arc;

use cognitive_http::config::ToolSurface;
use cognitive_http::redis::RedisState;
use cognitive_http::{ApiKey, ServerConfig};
use cognitive_testkit::TestRedis;
use serde_json::{Value, json};

use crate::support::{ANSWER, Script, Server, client};

const KEY: &str = "a-key-that-is-long-enough";

/// A request of the newest protocol revision, which needs no session.
fn stateless(server: &Server, method: &str, mut params: Value) -> reqwest::RequestBuilder {
    params.as_object_mut().unwrap().insert(
        "_meta".to_owned(),
        json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        }),
    );
    let name = params.get("name").and_then(Value::as_str).map(str::to_owned);
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let request = client()
        .post(server.url("/mcp"))
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method)
        .body(body.to_string());
    match name {
        Some(name) => request.header("mcp-name", name),
        None => request,
    }
}

/// Returns the last message of a response, which is a stream or one document.
fn last_message(text: &str) -> Value {
    let mut lines =
        text.lines().filter_map(|line| line.strip_prefix("data:")).filter(|data| !data.trim().is_empty());
    serde_json::from_str(lines.next_back().unwrap_or(text)).unwrap_or_else(|_| panic!("{text}"))
}

async fn call(server: &Server, arguments: Value) -> Value {
    let asked = stateless(server, "tools/call", json!({ "name": "words", "arguments": arguments }));
    let answer = asked.bearer_auth(KEY).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    last_message(&answer.text().await.unwrap())["result"].clone()
}

fn keyed() -> ServerConfig {
    let mut config = ServerConfig::default();
    config.tools = ToolSurface::from("words");
    config.keys = vec![ApiKey::new("agent", KEY).unwrap()];
    config
}

#[tokio::test]
async fn an_agent_gets_the_envelope_that_everybody_gets() {
    let script = Script::free(&ANSWER);
    let server = Server::start(&script, "sync", keyed()).await;
    let result = call(&server, json!({ "text": "hello" })).await;
    let sent = client()
        .post(server.url("/api/run/words"))
        .bearer_auth(KEY)
        .header("content-type", "application/json")
        .body(r#"{"text": "hello"}"#);
    let mut plain: Value = serde_json::from_str(&sent.send().await.unwrap().text().await.unwrap()).unwrap();
    let mut told = result["structuredContent"].clone();
    for envelope in [&mut plain, &mut told] {
        for varying in ["trace_id", "latency_ms", "processing_time_ms"] {
            envelope["meta"].as_object_mut().unwrap().shift_remove(varying);
        }
    }
    assert_eq!(told, plain);
    assert_eq!(told["data"]["words"][0]["text"], "winter");
}

#[tokio::test]
async fn sec_020_keys_and_limits_hold_for_agents_too() {
    let script = Script::free(&ANSWER);
    let mut config = keyed();
    config.runs_per_minute = 1;
    config.body_limit = 4 << 10;
    let server = Server::start(&script, "sync", config).await;
    let listed = stateless(&server, "tools/list", json!({})).send().await.unwrap();
    assert_eq!(listed.status(), 401, "without a key");
    let large = stateless(
        &server,
        "tools/call",
        json!({ "name": "words", "arguments": { "text": "x".repeat(9_000) } }),
    );
    assert_eq!(large.bearer_auth(KEY).send().await.unwrap().status(), 413);
    assert_eq!(call(&server, json!({ "text": "one" })).await["isError"], false);
    let second = call(&server, json!({ "text": "two" })).await;
    assert_eq!(second["structuredContent"]["error"]["code"], "E4002");
    assert_eq!(script.calls(), 1);
    let metrics = client().get(server.url("/metrics")).bearer_auth(KEY).send().await.unwrap();
    let metrics = metrics.text().await.unwrap();
    assert!(metrics.contains(r#"module="words""#), "runs of agents are counted: {metrics}");
}

#[tokio::test]
async fn an_agent_that_hangs_up_leaves_the_model() {
    let script = Script::with_leave(&ANSWER, 1);
    let server = Server::start(&script, "sync", keyed()).await;
    let asked =
        stateless(&server, "tools/call", json!({ "name": "words", "arguments": { "text": "hello" } }));
    let call = tokio::spawn(asked.bearer_auth(KEY).send());
    script.until_open(1).await;
    call.abort();
    script.until_open(0).await;
}

#[tokio::test]
async fn a_session_of_an_older_client_can_be_ended_and_a_call_in_it_cancelled() {
    let script = Script::with_leave(&ANSWER, 1);
    let server = Server::start(&script, "sync", keyed()).await;
    let send = |session: Option<String>, body: Value| {
        let mut request = client()
            .post(server.url("/mcp"))
            .bearer_auth(KEY)
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .body(body.to_string());
        if let Some(session) = session {
            request = request.header("mcp-session-id", session).header("mcp-protocol-version", "2025-11-25");
        }
        request.send()
    };
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    let opened = send(None, hello).await.unwrap();
    let session = opened.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    drop(opened.text().await);
    let named = || Some(session.clone());
    send(named(), json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await.unwrap();
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "words", "arguments": { "text": "hello" } } });
    let waiting = tokio::spawn(send(named(), call));
    script.until_open(1).await;
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 } });
    send(named(), cancel).await.unwrap();
    script.until_open(0).await;
    waiting.abort();
    let ended = client()
        .delete(server.url("/mcp"))
        .bearer_auth(KEY)
        .header("mcp-session-id", &session)
        .header("mcp-protocol-version", "2025-11-25");
    assert!(ended.send().await.unwrap().status().is_success());
    let gone = send(named(), json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" })).await.unwrap();
    assert_eq!(gone.status(), 404);
}

// A session id is no secret that protects by itself: proxies and logs see it.
#[tokio::test]
async fn a_session_belongs_to_the_key_that_opened_it() {
    const OTHER: &str = "another-key-that-is-long-enough";
    let mut config = keyed();
    config.keys.push(ApiKey::new("bob", OTHER).unwrap());
    let server = Server::start(&Script::free(&ANSWER), "sync", config).await;
    let send = async |method: reqwest::Method, key: &str, session: Option<&str>, body: Value| {
        let mut request = client()
            .request(method, server.url("/mcp"))
            .bearer_auth(key)
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .body(body.to_string());
        if let Some(session) = session {
            request = request.header("mcp-session-id", session).header("mcp-protocol-version", "2025-11-25");
        }
        request.send().await.unwrap()
    };
    let (post, delete) = (reqwest::Method::POST, reqwest::Method::DELETE);
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    let ping = json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" });
    let opened = send(post.clone(), KEY, None, hello.clone()).await;
    let session = opened.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    drop(opened.text().await);
    let started = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(send(post.clone(), KEY, Some(&session), started).await.status(), 202);
    let unknown = send(post.clone(), OTHER, Some("never-opened"), ping.clone()).await.status();
    assert_eq!(send(post.clone(), OTHER, Some(&session), ping.clone()).await.status(), unknown);
    send(delete.clone(), OTHER, Some(&session), json!({})).await;
    assert_eq!(send(post.clone(), KEY, Some(&session), ping.clone()).await.status(), 200, "it is still open");
    // One key cannot keep the others out, and its own oldest session ends.
    let mut last = String::new();
    for number in 0..=200 {
        let opened = send(post.clone(), OTHER, None, hello.clone()).await;
        assert_eq!(opened.status(), 200, "{number}");
        if number == 0 {
            last = opened.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        }
    }
    assert_eq!(
        send(post.clone(), OTHER, Some(&last), ping.clone()).await.status(),
        404,
        "its first one ended"
    );
    assert_eq!(
        send(post.clone(), KEY, Some(&session), ping).await.status(),
        200,
        "the one of the other key did not"
    );
    assert_eq!(send(delete, KEY, Some(&session), json!({})).await.status(), 204);
}

/// A request of an older protocol revision, without a session.
async fn older(server: &Server, method: &str, params: Value) -> (u16, bool, Value) {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let request = client()
        .post(server.url("/mcp"))
        .bearer_auth(KEY)
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .header("mcp-protocol-version", "2025-06-18")
        .body(body.to_string());
    let response = request.send().await.unwrap();
    let (status, has_session) =
        (response.status().as_u16(), response.headers().contains_key("mcp-session-id"));
    (status, has_session, last_message(&response.text().await.unwrap()))
}

// Behind a balancer each request of an agent may reach another server, and all of them count together.
#[tokio::test]
async fn agents_of_older_revisions_use_several_servers_as_one() {
    let Some(redis) = TestRedis::start() else { return };
    let mut servers = Vec::new();
    for _ in 0..2 {
        let mut config = keyed();
        config.runs_per_minute = 3;
        config.shared = Some(Arc::new(RedisState::connect(&redis.address(), None).await.unwrap()));
        servers.push(Server::start(&Script::free(&ANSWER), "sync", config).await);
    }
    let hello = json!({
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" },
    });
    let (status, has_session, answer) = older(&servers[0], "initialize", hello).await;
    assert_eq!((status, has_session), (200, false), "{answer}");
    assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
    let (_, _, listed) = older(&servers[1], "tools/list", json!({})).await;
    assert_eq!(listed["result"]["tools"][0]["name"], "words", "{listed}");
    let mut ran = 0;
    for number in 0..8 {
        let call = json!({ "name": "words", "arguments": { "text": format!("text {number}") } });
        let (status, _, answer) = older(&servers[number % 2], "tools/call", call).await;
        assert_eq!(status, 200, "{answer}");
        ran += u32::from(answer["result"]["structuredContent"]["ok"] == true);
    }
    assert_eq!(ran, 3, "one rate for both servers");
}
