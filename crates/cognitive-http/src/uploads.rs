//! Media uploaded before a run: `POST /v1/media/upload-url` reserves space, `PUT /v1/media/uploads/{id}` receives the
//! bytes in pieces (EXT-MEDIA). Never holds a whole upload in memory. An upload is visible to its owner only.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::{Response, StatusCode, header};
use cognitive_contract::code::Blame;
use cognitive_contract::media::{Checksum, MediaType, NewUpload, UploadSink, UploadStore, too_large};
use cognitive_contract::{ErrorCode, Failure};
use futures_util::StreamExt;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::app::AppState;
use crate::auth::Client;
use crate::intake::body_of;
use crate::response;
use crate::routes::Name;
use crate::run::within_rate;

/// The path prefix of uploads.
const PLACE: &str = "/v1/media/uploads/";

/// The size limit of an announcement, in bytes. It holds only a name, a type, a size and a checksum.
const MAX_ANNOUNCEMENT_LENGTH: usize = 16 << 10;

/// The announcement of an upload.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "UploadRequest")]
pub(crate) struct UploadRequest {
    filename: String,
    #[schemars(extend("enum" = MediaType::all().map(MediaType::mime).collect::<Vec<_>>()))]
    media_type: String,
    #[schemars(range(min = 1))]
    size_bytes: u64,
    #[schemars(with = "Option<Checksum<'static>>")]
    checksum: Option<Value>,
}

/// The place for the bytes of an upload.
#[derive(Serialize, JsonSchema)]
pub(crate) struct UploadPlace {
    upload_id: String,
    upload_url: String,
    #[schemars(extend("const" = "PUT"))]
    method: &'static str,
    /// The headers to send with the bytes.
    headers: BTreeMap<&'static str, &'static str>,
    /// RFC 3339 in UTC.
    expires_at: String,
    max_size_bytes: u64,
}

/// A complete upload.
#[derive(Serialize, JsonSchema)]
pub(crate) struct UploadDone {
    upload_id: String,
    #[schemars(extend("const" = "complete"))]
    status: &'static str,
}

/// Reserves space for an upload.
pub(crate) async fn announce(
    State(shared): State<Arc<AppState>>,
    Extension(client): Extension<Arc<Client>>,
    request: Request,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let mut claim = shared.room.claim();
    let body = match body_of(&shared, &parts.headers, body, MAX_ANNOUNCEMENT_LENGTH, &mut claim).await {
        Ok(body) => body,
        Err(refusal) => return *refusal,
    };
    match try_announce(&shared, &client, &body) {
        Ok(announced) => response::json(StatusCode::OK, &announced),
        Err(failure) => response::failure(failure),
    }
}

fn try_announce(shared: &AppState, client: &Client, body: &[u8]) -> Result<UploadPlace, Failure> {
    let store = store(shared)?;
    within_rate(shared, client)?;
    let wish: UploadRequest = serde_json::from_slice(body).map_err(|error| {
        Failure::new(ErrorCode::InvalidInput, format!("invalid description of an upload: {error}"))
            .suggest(r#"Send {"filename": "cat.png", "media_type": "image/png", "size_bytes": 1024}"#)
    })?;
    let kind = MediaType::parse(&wish.media_type).ok_or_else(|| {
        let known: Vec<&str> = MediaType::all().map(MediaType::mime).collect();
        let message = format!("unknown media type: `{}`", wish.media_type);
        Failure::new(ErrorCode::UnsupportedMediaType, message)
            .suggest(format!("Send one of: {}", known.join(", ")))
    })?;
    if wish.size_bytes == 0 {
        let failure = Failure::new(ErrorCode::InvalidInput, "an upload needs at least one byte");
        return Err(failure.suggest("Set `size_bytes` to the size of the file"));
    }
    let most = shared.host.media_limits.bytes_of(kind.category());
    if wish.size_bytes > most {
        return Err(too_large(kind.category(), wish.size_bytes, most));
    }
    let mut upload = NewUpload::new(&wish.filename, kind, wish.size_bytes);
    if let Some(given) = &wish.checksum {
        // A checksum that cannot be computed would never be verified, so it is refused.
        let checksum = Checksum::read(given).map_err(|what| {
            Failure::new(ErrorCode::InvalidInput, format!("`checksum` {what}"))
                .suggest("Leave it out, or send the digest of the sent bytes")
        })?;
        upload = upload.with_checksum(checksum);
    }
    let announced = store.announce(client.uploader(), &upload)?;
    Ok(UploadPlace {
        upload_url: format!("{PLACE}{}", announced.id),
        upload_id: announced.id,
        method: "PUT",
        headers: BTreeMap::from([("Content-Type", kind.mime())]),
        expires_at: utc(announced.expires_at),
        max_size_bytes: announced.max_size_bytes,
    })
}

/// Receives the bytes of an upload.
pub(crate) async fn receive(
    State(shared): State<Arc<AppState>>,
    Extension(client): Extension<Arc<Client>>,
    Name(id): Name,
    request: Request,
) -> Response<Body> {
    // A part stored as the whole would be a damaged item that looks complete (RFC 9110, 14.4).
    if request.headers().contains_key(header::CONTENT_RANGE) {
        let failure =
            Failure::new(ErrorCode::InvalidInput, "an upload is sent as a whole, without `Content-Range`")
                .suggest("Send all bytes in one `PUT`");
        return response::failure(failure);
    }
    match try_receive(&shared, &client, &id, request.into_body()).await {
        Ok(()) => response::json(StatusCode::OK, &UploadDone { upload_id: id, status: "complete" }),
        Err(failure) => response::failure(failure),
    }
}

async fn try_receive(shared: &AppState, client: &Client, id: &str, body: Body) -> Result<(), Failure> {
    let mut sink: Box<dyn UploadSink> = store(shared)?.receive(client.uploader(), id).await?;
    let mut pieces = body.into_data_stream();
    loop {
        // The timeout is per piece: a video takes a while, and a client that sends nothing is gone.
        let piece = tokio::time::timeout(shared.config.read_timeout, pieces.next()).await.map_err(|_| {
            Failure::new(ErrorCode::Timeout, "the upload did not arrive in time")
                .with_blame(Blame::Runtime)
                .suggest("Send it again")
        })?;
        match piece {
            Some(Ok(piece)) => sink.piece(piece).await?,
            Some(Err(_)) => {
                let message = "the upload ended early or is not valid HTTP";
                return Err(Failure::new(ErrorCode::ParseError, message).suggest("Send it again"));
            }
            None => return sink.finish().await,
        }
    }
}

/// Returns the upload store; a failure if the server accepts no uploads.
pub(crate) fn store(shared: &AppState) -> Result<&Arc<dyn UploadStore>, Failure> {
    shared.config.uploads.as_ref().ok_or_else(|| {
        Failure::new(ErrorCode::MultimodalNotSupported, "this server does not accept uploads")
            .suggest("Send the item as base64, or by its URL")
    })
}

/// Formats a time as RFC 3339 in UTC, to the second.
pub(crate) fn utc(moment: SystemTime) -> String {
    let since = moment.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_019_moments_are_rfc_3339_in_utc() {
        let moment = SystemTime::UNIX_EPOCH + Duration::from_hours(500_000);
        assert_eq!(utc(moment), "2027-01-15T08:00:00Z");
    }
}
