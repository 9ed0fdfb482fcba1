//! Sends requests to the server of a test, one connection each.

use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// Sends JSON, or an empty body for null. Returns status and JSON.
pub async fn send(method: &str, url: &str, body: &Value) -> (u16, Value) {
    let place = url.strip_prefix("http://").unwrap();
    let (host, path) = place.split_once('/').unwrap();
    let stream = TcpStream::connect(host).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    let driven = tokio::spawn(connection);
    let text = if body.is_null() { String::new() } else { body.to_string() };
    let mut request = Request::builder().method(method).uri(format!("/{path}")).header("host", host);
    if !text.is_empty() {
        request = request.header("content-type", "application/json");
    }
    let answer = sender.send_request(request.body(Full::new(Bytes::from(text))).unwrap()).await.unwrap();
    let status = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    driven.abort();
    (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

/// Sends a POST request that must succeed.
pub async fn post(url: &str, body: &Value) -> Value {
    let (status, value) = send("POST", url, body).await;
    assert!((200..300).contains(&status), "{url}: {status} {value}");
    value
}
