//! Writes a stream as an HTTP body: server-sent events or one JSON object per line. Both carry the same chunks, byte
//! for byte; only the framing differs (STREAM-018, STREAM-019).

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
use crate::stream_log::SentChunk;

/// The framing of chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// `text/event-stream`.
    Events,
    /// `application/x-ndjson`.
    Lines,
}

impl Framing {
    /// Returns the name of the transport, as capabilities list it.
    pub(crate) fn transport(self) -> &'static str {
        match self {
            Self::Events => "sse",
            Self::Lines => "ndjson",
        }
    }
}

/// The reconnection delay of an `EventSource`. Sent within the first event: as a separate event it would have no
/// data, and clients that parse JSON from every event would fail.
const RETRY: &[u8] = b"retry: 3000\n";

/// The next part of a body.
enum NextPart {
    Begin(Bytes),
    FirstChunk,
    Chunks,
    Trailers(HeaderMap),
}

/// A framed part of a stream: a chunk, with the trailers if it is the last, or a heartbeat.
enum FramedPiece {
    Chunk(Bytes, Option<HeaderMap>),
    Heartbeat(Bytes),
}

/// Returns the response that carries a stream. `opening`, an event id and a chunk, is sent first to a client that
/// resumes.
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
                NextPart::Begin(bytes) => (Frame::data(bytes), NextPart::Chunks),
                NextPart::FirstChunk | NextPart::Chunks => {
                    let is_first = matches!(next, NextPart::FirstChunk);
                    match chunk(framing, &mut reader, heartbeat, tier).await? {
                        FramedPiece::Heartbeat(bytes) => (Frame::data(bytes), next),
                        FramedPiece::Chunk(bytes, last) => {
                            let bytes = if is_first { with_retry_delay(framing, bytes) } else { bytes };
                            let then = last.filter(|_| trailers).map_or(NextPart::Chunks, NextPart::Trailers);
                            (Frame::data(bytes), then)
                        }
                    }
                }
                NextPart::Trailers(map) => (Frame::trailers(map), NextPart::Chunks),
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
    // A client that loses the connection before the first chunk can resume too.
    if let Some(session) = session {
        headers.insert(header_names::RECOVERY_SESSION.clone(), session);
    }
    // The other routing headers are not known before the last chunk.
    headers.insert("cogn-tier", HeaderValue::from_static(tier));
    if trailers {
        headers.insert(header::TRAILER, HeaderValue::from_static(ROUTING));
    }
    response
}

/// Returns the first part of a body: the opening for a client that resumes, otherwise the first chunk.
fn beginning(framing: Framing, opening: Option<(String, Bytes)>) -> NextPart {
    match opening {
        Some((id, json)) => {
            NextPart::Begin(with_retry_delay(framing, frame_event(framing, "meta", &id, &json)))
        }
        None => NextPart::FirstChunk,
    }
}

/// Adds the reconnection delay to the first frame of an event stream.
fn with_retry_delay(framing: Framing, frame: Bytes) -> Bytes {
    match framing {
        Framing::Lines => frame,
        Framing::Events => [RETRY, &frame].concat().into(),
    }
}

/// Returns the next framed chunk, or a heartbeat after a silence (STREAM-006). `None` after the last.
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
    let (place, SentChunk { kind, json, envelope, .. }) = next?;
    let trailers = envelope.map(|envelope| routing(&envelope, Some(tier)));
    let id = format!("{}:{place}", reader.session().id);
    let frame = frame_event(framing, kind.event_name().unwrap_or("chunk"), &id, &json);
    Some(FramedPiece::Chunk(frame, trailers))
}

/// JSON never contains a raw line break, so one `data:` line is enough (S-16).
fn frame_event(framing: Framing, event: &str, id: &str, json: &[u8]) -> Bytes {
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
