//! A stream as the body of an HTTP answer: server-sent events or one JSON object per line.
//! Both carry the same chunks, byte for byte; only the frame around them differs (STREAM-018, STREAM-019).

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Response, header};
use futures_util::stream;
use http_body::Frame;
use http_body_util::StreamBody;

use crate::header_names;
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

/// How fast an `EventSource` may come back. It goes with the first event: as an event of its own it would have no data, and
/// clients that read JSON from every event would stumble over it.
const RETRY: &[u8] = b"retry: 3000\n";

/// What a body sends next.
enum Next {
    Begin(Bytes),
    FirstChunk,
    Chunks,
    Trailers(HeaderMap),
}

/// What a stream has to say: a chunk, with the trailers if it is the last, or that it is still there.
enum FramedPiece {
    Chunk(Bytes, Option<HeaderMap>),
    Heartbeat(Bytes),
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
    let session = HeaderValue::from_str(reader.session().id.as_str()).ok();
    let frames =
        stream::unfold((reader, beginning(framing, opening)), move |(mut reader, next)| async move {
            let (frame, next) = match next {
                Next::Begin(bytes) => (Frame::data(bytes), Next::Chunks),
                Next::FirstChunk | Next::Chunks => {
                    let is_first = matches!(next, Next::FirstChunk);
                    match chunk(framing, &mut reader, heartbeat, tier).await? {
                        FramedPiece::Heartbeat(bytes) => (Frame::data(bytes), next),
                        FramedPiece::Chunk(bytes, last) => {
                            let bytes = if is_first { begun(framing, bytes) } else { bytes };
                            let then = last.filter(|_| trailers).map_or(Next::Chunks, Next::Trailers);
                            (Frame::data(bytes), then)
                        }
                    }
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
    // So that also who loses the connection before the first chunk can come back.
    if let Some(session) = session {
        headers.insert(header_names::RECOVERY_SESSION.clone(), session);
    }
    // The rest of what middleware routes on is not known before the last chunk.
    headers.insert("cogn-tier", HeaderValue::from_static(tier));
    if trailers {
        headers.insert(header::TRAILER, HeaderValue::from_static(ROUTING));
    }
    response
}

/// What goes before the chunks: the word for a client that came back.
fn beginning(framing: Framing, opening: Option<(String, Bytes)>) -> Next {
    match opening {
        Some((id, json)) => Next::Begin(begun(framing, framed(framing, "meta", &id, &json))),
        None => Next::FirstChunk,
    }
}

/// The first frame of a stream.
fn begun(framing: Framing, frame: Bytes) -> Bytes {
    match framing {
        Framing::Lines => frame,
        Framing::Events => [RETRY, &frame].concat().into(),
    }
}

/// The next chunk in its frame, or a heartbeat after a silence (STREAM-006). `None` after the last.
async fn chunk(
    framing: Framing,
    reader: &mut Reader,
    heartbeat: Duration,
    tier: &'static str,
) -> Option<FramedPiece> {
    let Ok(next) = tokio::time::timeout(heartbeat, reader.next()).await else {
        let nothing: &[u8] = if framing == Framing::Events { b":\n\n" } else { b"{}\n" };
        return Some(FramedPiece::Heartbeat(Bytes::from_static(nothing)));
    };
    let (place, Sent { kind, json, envelope, .. }) = next?;
    let trailers = envelope.map(|envelope| routing(&envelope, Some(tier)));
    let id = format!("{}:{place}", reader.session().id);
    let frame = framed(framing, kind.event_name().unwrap_or("chunk"), &id, &json);
    Some(FramedPiece::Chunk(frame, trailers))
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
