//! A stream as the body of an HTTP answer: server-sent events or one JSON object per line.
//! Both carry the same chunks, byte for byte; only the frame around them differs (STREAM-018, STREAM-019).

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Response, header};
use futures_util::stream;
use http_body::Frame;
use http_body_util::StreamBody;

use crate::response::{ROUTING, routing};
use crate::session::Reader;
use crate::stream_log::Sent;

/// How a client wants its chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// `text/event-stream`.
    Events,
    /// `application/x-ndjson`.
    Lines,
}

impl Framing {
    /// The name of the transport, as capabilities list it.
    pub(crate) fn transport(self) -> &'static str {
        match self {
            Self::Events => "sse",
            Self::Lines => "ndjson",
        }
    }
}

/// What a body sends next.
enum Next {
    Begin(Bytes),
    Chunks,
    Trailers(HeaderMap),
}

/// The answer that carries a stream. `opening`, an event id and a chunk, goes before
/// everything else, for a client that came back.
pub(crate) fn response(
    framing: Framing,
    reader: Reader,
    opening: Option<(String, Bytes)>,
    heartbeat: Duration,
    tier: &'static str,
    trailers: bool,
) -> Response<Body> {
    let frames =
        stream::unfold((reader, beginning(framing, opening)), move |(mut reader, next)| async move {
            let (frame, next) = match next {
                Next::Begin(bytes) => (Frame::data(bytes), Next::Chunks),
                Next::Chunks => {
                    let (bytes, last) = chunk(framing, &mut reader, heartbeat, tier).await?;
                    (Frame::data(bytes), last.filter(|_| trailers).map_or(Next::Chunks, Next::Trailers))
                }
                Next::Trailers(map) => (Frame::trailers(map), Next::Chunks),
            };
            Some((Ok::<_, Infallible>(frame), (reader, next)))
        });
    let mut response = Response::new(Body::new(StreamBody::new(frames)));
    let kind = match framing {
        Framing::Events => "text/event-stream",
        Framing::Lines => "application/x-ndjson",
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    // The rest of what middleware routes on is not known before the last chunk.
    headers.insert("cogn-tier", HeaderValue::from_static(tier));
    if trailers {
        headers.insert(header::TRAILER, HeaderValue::from_static(ROUTING));
    }
    response
}

/// What goes before the chunks: how fast an `EventSource` may come back, and the word for a client that did.
fn beginning(framing: Framing, opening: Option<(String, Bytes)>) -> Next {
    let opening = opening.map(|(id, json)| framed(framing, "meta", &id, &json));
    match (framing, opening) {
        (Framing::Lines, None) => Next::Chunks,
        (Framing::Lines, Some(opening)) => Next::Begin(opening),
        (Framing::Events, opening) => {
            let mut bytes = b"retry: 3000\n\n".to_vec();
            bytes.extend(opening.unwrap_or_default());
            Next::Begin(bytes.into())
        }
    }
}

/// The next chunk in its frame, or a heartbeat after a silence (STREAM-006). `None` after the last.
async fn chunk(
    framing: Framing,
    reader: &mut Reader,
    heartbeat: Duration,
    tier: &'static str,
) -> Option<(Bytes, Option<HeaderMap>)> {
    let Ok(next) = tokio::time::timeout(heartbeat, reader.next()).await else {
        return Some((Bytes::from_static(if framing == Framing::Events { b":\n\n" } else { b"{}\n" }), None));
    };
    let (place, Sent { kind, json, envelope, .. }) = next?;
    let trailers = envelope.map(|envelope| routing(&envelope, Some(tier)));
    let id = format!("{}:{place}", reader.session().id);
    Some((framed(framing, kind.event_name().unwrap_or("chunk"), &id, &json), trailers))
}

/// JSON never holds a raw line break, so one `data:` line is enough (S-16).
fn framed(framing: Framing, event: &str, id: &str, json: &[u8]) -> Bytes {
    let mut bytes = Vec::with_capacity(json.len() + event.len() + id.len() + 24);
    match framing {
        Framing::Events => {
            for part in [b"event: ", event.as_bytes(), b"\nid: ", id.as_bytes(), b"\ndata: ", json, b"\n\n"] {
                bytes.extend_from_slice(part);
            }
        }
        Framing::Lines => {
            bytes.extend_from_slice(json);
            bytes.push(b'\n');
        }
    }
    bytes.into()
}
