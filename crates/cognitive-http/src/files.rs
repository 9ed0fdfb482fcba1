//! Media of answers at temporary URLs: a client that wants no base64 receives `/v1/media/files/{id}` instead. The
//! files are stored like the client's uploads (MEDIA-017, MEDIA-019). Only their owner can read them, until they
//! expire. An item that cannot be stored stays in the answer with a warning, so a full disk loses no data.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Extension, State};
use axum::http::{HeaderValue, Response, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cognitive_contract::media::{
    EmbeddedMedia, KeptUpload, MediaLocation, MediaType, NewUpload, UploadReader, embedded_media, refer,
};
use cognitive_contract::{Envelope, ErrorCode, Failure, Warning};
use serde_json::{Value, json};

use crate::app::AppState;
use crate::auth::Client;
use crate::request::MediaOut;
use crate::response;
use crate::routes::Name;
use crate::uploads::{store, utc};

/// The path prefix of media files.
const PLACE: &str = "/v1/media/files/";

/// The length limit of a file name in a header. A header of any length could be refused by a proxy.
const MAX_NAME_LENGTH: usize = 100;

/// A media item taken from an answer.
struct Medium {
    place: String,
    name: String,
    kind: MediaType,
    bytes: Result<Bytes, Failure>,
}

impl Medium {
    fn decode(found: &EmbeddedMedia<'_>) -> Self {
        let bytes = STANDARD.decode(found.text).map(Bytes::from);
        let bytes =
            bytes.map_err(|_| Failure::new(ErrorCode::MediaDecodeFailed, "the text is not valid base64"));
        Self { place: found.place.clone(), name: found.file_name(), kind: found.media_type, bytes }
    }
}

/// Replaces the media of an answer with URLs, if the client asked for that.
pub(crate) async fn publish(shared: &AppState, owner: &str, asked: MediaOut, envelope: &mut Envelope) {
    if asked != MediaOut::Url {
        return;
    }
    let media: Vec<Medium> = embedded_media(envelope).iter().map(Medium::decode).collect();
    for medium in media {
        let place = medium.place.clone();
        match keep(shared, owner, medium).await {
            Ok(moved) => refer(envelope, &place, moved),
            Err(failure) => {
                let message = format!("`/data{place}` stays base64: {}", failure.message());
                envelope.meta_mut().warn(&Warning::new(failure.code().number(), message));
            }
        }
    }
}

/// Stores an item as if its owner had uploaded it, with the same quota and expiry. (E4002, E4011)
async fn keep(shared: &AppState, owner: &str, medium: Medium) -> Result<MediaLocation, Failure> {
    let bytes = medium.bytes?;
    let store = store(shared)?;
    let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let announced = store.announce(owner, &NewUpload::new(&medium.name, medium.kind, size))?;
    let mut sink = store.receive(owner, &announced.id).await?;
    sink.piece(bytes).await?;
    sink.finish().await?;
    Ok(MediaLocation::Url { url: format!("{PLACE}{}", announced.id), expires_at: utc(announced.expires_at) })
}

/// `GET /v1/media/files/{id}`: returns the bytes to their owner.
pub(crate) async fn serve(
    State(shared): State<Arc<AppState>>,
    Extension(client): Extension<Arc<Client>>,
    Name(id): Name,
) -> Response<Body> {
    let opened = match store(&shared) {
        Ok(store) => store.open(client.uploader(), &id).await,
        // Without a store no file can exist.
        Err(_) => Err(Failure::new(ErrorCode::UploadNotFound, "this server stores no files")),
    };
    match opened {
        Ok(kept) => response(kept),
        Err(failure) => response::failure(as_file(failure)),
    }
}

/// Rewords a failure of the upload store for a client that never uploaded anything.
fn as_file(failure: Failure) -> Failure {
    match failure.code() {
        code @ ErrorCode::UploadExpired => Failure::new(code, "the file has expired")
            .suggest("Run the module again, and fetch the file sooner"),
        code @ ErrorCode::UploadNotFound => {
            Failure::new(code, "unknown file id").suggest("Use the `url` of an answer, with the same key")
        }
        _ => failure,
    }
}

fn response(kept: KeptUpload) -> Response<Body> {
    let KeptUpload { filename, media_type, size_bytes, reader, .. } = kept;
    let mut response = Response::new(Body::from_stream(pieces(reader)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type.mime()));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(size_bytes));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // The bytes are untrusted. The guard adds headers against type sniffing and cross-origin use.
    let policy = HeaderValue::from_static("default-src 'none'; sandbox");
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    // A plain name is always a valid header value.
    if let Ok(name) = HeaderValue::from_str(&format!("inline; filename=\"{}\"", plain(&filename))) {
        headers.insert(header::CONTENT_DISPOSITION, name);
    }
    response
}

fn pieces(reader: Box<dyn UploadReader>) -> impl futures_util::Stream<Item = Result<Bytes, std::io::Error>> {
    futures_util::stream::unfold(Some(reader), async |reader| {
        let mut reader = reader?;
        match reader.piece().await {
            Ok(piece) => Some((Ok(piece?), Some(reader))),
            // The client has the announced length and therefore notices the truncation.
            Err(failure) => Some((Err(std::io::Error::other(failure.message().to_owned())), None)),
        }
    })
}

/// Replaces all characters that could end a header or lead to another folder.
fn plain(name: &str) -> String {
    let safe = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_');
    name.chars().take(MAX_NAME_LENGTH).map(|letter| if safe(letter) { letter } else { '_' }).collect()
}

/// Returns the content types of the response for its description.
pub(crate) fn content() -> Value {
    let bytes = json!({ "schema": { "type": "string", "format": "binary" } });
    // Client generators without media types use this one.
    let kinds = std::iter::once("application/octet-stream").chain(MediaType::all().map(MediaType::mime));
    Value::Object(kinds.map(|kind| (kind.to_owned(), bytes.clone())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_safe_in_a_header_and_in_a_folder() {
        assert_eq!(plain("images-0.png"), "images-0.png");
        assert_eq!(plain("../a\r\nset-cookie: b\"ä.png"), ".._a__set-cookie__b__.png");
        assert_eq!(plain(&"x".repeat(10_000)).len(), MAX_NAME_LENGTH);
    }
}
