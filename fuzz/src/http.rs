//! What clients send to a server: bodies of runs and messages over `/ws`, over connections that need no network.
//! Every answer is an envelope, and none of them is an internal error of the server.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use cognitive_contract::Envelope;
use cognitive_http::{App, ServerConfig};
use cognitive_runtime::{Host, Replay};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;
use tower_service::Service;

use super::reply::{One, module};

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime"));

static APP: LazyLock<App> = LazyLock::new(|| {
    let answer = json!({ "ok": true, "meta": { "confidence": 0.9, "risk": "low", "explain": "e" },
                         "data": { "rationale": "r", "answer": "a" } });
    let host = Host::new(
        Arc::new(One(module(&json!({ "tier": "decision" })))),
        Arc::new(Replay::text(answer.to_string())),
    );
    let mut config = ServerConfig::default();
    config.runs_per_minute = 0;
    config.streams_per_client = 0;
    App::new(host, config)
});

const PATHS: [&str; 4] =
    ["/api/run/sample", "/run", "/v1/modules/sample/execute", "/api/run/sample?response_mode=streaming"];
const ACCEPTED: [&str; 4] = ["application/json", "text/event-stream", "application/x-ndjson", "*/*;q=0"];

/// Any body of a run. The first byte chooses the path and what is accepted.
pub fn body(data: &[u8]) {
    let Some((choice, body)) = data.split_first() else { return };
    let choice = usize::from(*choice);
    let request = Request::post(PATHS[choice % 4])
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", ACCEPTED[choice / 4 % 4])
        .body(Body::from(body.to_vec()))
        .expect("a request");
    RUNTIME.block_on(async {
        let Ok(response) = APP.router().call(request).await;
        let status = response.status();
        let streams = response.headers().get("content-type").is_some_and(|kind| kind != "application/json");
        let answer = to_bytes(response.into_body(), usize::MAX).await.expect("a body");
        assert_ne!(status, StatusCode::INTERNAL_SERVER_ERROR, "{}", String::from_utf8_lossy(&answer));
        if !streams {
            let value: Value = serde_json::from_slice(&answer).expect("JSON");
            assert!(Envelope::from_value(value).is_ok(), "{}", String::from_utf8_lossy(&answer));
        }
    });
}

/// Any message of an agent. The first byte chooses the revision of the protocol.
pub fn agent(data: &[u8]) {
    let Some((choice, body)) = data.split_first() else { return };
    let revision = ["2025-06-18", "2025-11-25", "2026-07-28", "x"][usize::from(*choice) % 4];
    let request = Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", revision)
        .body(Body::from(body.to_vec()))
        .expect("a request");
    RUNTIME.block_on(async {
        let Ok(response) = APP.router().call(request).await;
        let status = response.status();
        assert_ne!(status, StatusCode::INTERNAL_SERVER_ERROR, "{}", String::from_utf8_lossy(body));
        // The stream of a session stays open, so only what comes at once is read.
        let read = to_bytes(response.into_body(), usize::MAX);
        let _ = tokio::time::timeout(Duration::from_millis(1), read).await;
    });
}

const HANDSHAKE: &str = "GET /ws HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
    sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// Any messages over a WebSocket. With an even first byte the rest is frames as they are; otherwise each part up to a
/// byte 0xFF is the text of one message.
pub fn websocket(data: &[u8]) {
    let Some((choice, rest)) = data.split_first() else { return };
    let frames = if choice % 2 == 0 {
        rest.to_vec()
    } else {
        rest.split(|byte| *byte == 0xFF).flat_map(message).collect()
    };
    RUNTIME.block_on(async {
        let (mut client, server) = tokio::io::duplex(1 << 20);
        let service = TowerToHyperService::new(APP.router());
        let connection = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(server), service)
            .with_upgrades();
        let serving = tokio::spawn(async move {
            let _ = connection.await;
        });
        client.write_all(HANDSHAKE.as_bytes()).await.expect("room");
        let mut heard = Vec::new();
        let talk = async {
            let _ = client.write_all(&frames).await;
            let _ = client.write_all(&close()).await;
            let _ = client.shutdown().await;
            let _ = client.read_to_end(&mut heard).await;
        };
        assert!(
            tokio::time::timeout(Duration::from_secs(20), talk).await.is_ok(),
            "the server does not close"
        );
        let said = String::from_utf8_lossy(&heard);
        assert!(said.starts_with("HTTP/1.1 101"), "{said}");
        assert!(!said.contains("\"E4000\""), "{said}");
        let _ = serving.await;
    });
}

/// A masked text frame. The mask is zero, so that the text stands in it as it is.
fn message(text: &[u8]) -> Vec<u8> {
    frame(0x81, text)
}

fn close() -> Vec<u8> {
    frame(0x88, &1000_u16.to_be_bytes())
}

fn frame(opening: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![opening];
    match u16::try_from(payload.len()) {
        Ok(length @ 0..=125) => frame.push(0x80 | u8::try_from(length).unwrap_or_default()),
        Ok(length) => {
            frame.push(0x80 | 0x7E);
            frame.extend(length.to_be_bytes());
        }
        Err(_) => {
            frame.push(0x80 | 0x7F);
            frame.extend((payload.len() as u64).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend_from_slice(payload);
    frame
}
