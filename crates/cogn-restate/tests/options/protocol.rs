//! The side of the Restate server in the protocol with its services, as far as one invocation needs it: it sends the input, records
//! each step that the worker proposes, and takes the output. Messages have a header of eight bytes and a body in Protocol Buffers.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use http_body_util::BodyExt as _;
use hyper::Request;
use hyper::body::{Body, Bytes, Frame};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::mpsc;

const CONTENT_TYPE: &str = "application/vnd.restate.invocation.v5";

/// The types of messages.
mod kind {
    pub const START: u16 = 0x0000;
    pub const ERROR: u16 = 0x0002;
    pub const PROPOSE_RUN: u16 = 0x0005;
    pub const INPUT: u16 = 0x0400;
    pub const OUTPUT: u16 = 0x0401;
    pub const RUN_COMPLETION: u16 = 0x8011;
}

/// A request body that stays open while the worker runs.
struct OpenBody(mpsc::UnboundedReceiver<Bytes>);

impl Body for OpenBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// Invokes a handler and returns the JSON of its output.
pub async fn invoke(address: &str, path: &str, key: &str, input: &Value) -> Value {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    let driven = tokio::spawn(connection);
    let (messages, body) = mpsc::unbounded_channel();
    let text = input.to_string();
    messages.send(message(kind::START, &start(key))).unwrap();
    // A value is a message of its own, with the content in its first member.
    messages.send(message(kind::INPUT, &bytes(14, &bytes(1, text.as_bytes())))).unwrap();
    let request =
        Request::post(format!("http://{address}/invoke/{path}")).header("content-type", CONTENT_TYPE);
    let answer = sender.send_request(request.body(OpenBody(body)).unwrap()).await.unwrap();
    assert_eq!(answer.status(), 200, "{answer:?}");
    let (mut answer, mut received) = (answer.into_body(), Vec::new());
    loop {
        while let Some((kind, body)) = next(&mut received) {
            match kind {
                kind::PROPOSE_RUN => {
                    let completion = number(1, member_number(&body, 1).unwrap());
                    let value = bytes(5, &bytes(1, member(&body, 14).unwrap()));
                    messages.send(message(kind::RUN_COMPLETION, &[completion, value].concat())).unwrap();
                }
                kind::OUTPUT => {
                    driven.abort();
                    let value = member(&body, 14).and_then(|value| member(value, 1)).unwrap();
                    return serde_json::from_slice(value).unwrap();
                }
                kind::ERROR => panic!("{}", String::from_utf8_lossy(&body)),
                _ => {}
            }
        }
        let frame = answer.frame().await.unwrap_or_else(|| panic!("no output: {received:?}"));
        received.extend_from_slice(&frame.unwrap().into_data().unwrap_or_default());
    }
}

/// The start of an invocation whose journal holds the input alone.
fn start(key: &str) -> Vec<u8> {
    let id = "inv_1matrix";
    [bytes(1, id.as_bytes()), bytes(2, id.as_bytes()), number(3, 1), bytes(6, key.as_bytes())].concat()
}

fn message(kind: u16, body: &[u8]) -> Bytes {
    let length = u32::try_from(body.len()).unwrap();
    [&kind.to_be_bytes()[..], &[0; 2], &length.to_be_bytes(), body].concat().into()
}

/// Takes the next whole message out of the received bytes.
fn next(received: &mut Vec<u8>) -> Option<(u16, Vec<u8>)> {
    let length = u32::from_be_bytes(received.get(4..8)?.try_into().unwrap());
    let end = 8 + usize::try_from(length).unwrap();
    let kind = u16::from_be_bytes([received[0], received[1]]);
    let body = received.get(8..end)?.to_vec();
    received.drain(..end);
    Some((kind, body))
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(u8::try_from(value & 0x7f).unwrap() | 0x80);
        value >>= 7;
    }
    bytes.push(u8::try_from(value).unwrap());
    bytes
}

fn number(member: u64, value: u64) -> Vec<u8> {
    [varint(member << 3), varint(value)].concat()
}

fn bytes(member: u64, value: &[u8]) -> Vec<u8> {
    [varint(member << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

/// A member of a message: a number, or bytes.
enum Member<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn find(mut body: &[u8], wanted: u64) -> Option<Member<'_>> {
    while !body.is_empty() {
        let tag = read_varint(&mut body);
        let value = read_varint(&mut body);
        let found = match tag & 7 {
            0 => Member::Number(value),
            2 => {
                let (value, rest) = body.split_at(usize::try_from(value).unwrap());
                body = rest;
                Member::Bytes(value)
            }
            other => panic!("wire type {other}"),
        };
        if tag >> 3 == wanted {
            return Some(found);
        }
    }
    None
}

fn member(body: &[u8], wanted: u64) -> Option<&[u8]> {
    match find(body, wanted)? {
        Member::Bytes(value) => Some(value),
        Member::Number(_) => None,
    }
}

fn member_number(body: &[u8], wanted: u64) -> Option<u64> {
    match find(body, wanted)? {
        Member::Number(value) => Some(value),
        Member::Bytes(_) => None,
    }
}

fn read_varint(body: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (byte, rest) = body.split_first().unwrap();
        *body = rest;
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return value;
        }
    }
}
