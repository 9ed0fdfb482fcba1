//! Stage 5b: checks the bytes of media in an answer like those of an input: decodable, of the named type, with the
//! right checksum and within the limits. (D-15, MEDIA-017, SEC-003) Minimum sizes do not apply. Does not fetch
//! addresses or files; their references were checked before.

use bytes::Bytes;
use cognitive_contract::media::{
    Checksum, MediaLimits, MediaSource, MediaType, ProducedMedia, decoded_length, find_output, inline, judge,
    too_large, unfit_bytes,
};
use cognitive_contract::{Envelope, Failure, Module, Violation};
use serde_json::Value;

use super::check::decode;
use crate::host::Host;

/// Returns the faults in the bytes of the media of an answer. Without a media source, it only checks that they can be
/// decoded.
pub(crate) async fn unfit_media(host: &Host, module: &Module, envelope: &Envelope) -> Vec<Violation> {
    let mut found = Vec::new();
    let Some(data) = envelope.data().filter(|_| module.manifest.modalities.declared) else { return found };
    let limits = host.media_limits.for_answers();
    for medium in find_output(data) {
        let Some((member, text)) = bytes_of(&medium) else { continue };
        if let Err(failure) = judge_bytes(host.media.as_deref(), &limits, &medium, text).await {
            found.push(unfit_bytes(&medium.place, member, failure.message()));
        }
    }
    found
}

/// The member that contains the bytes of a medium, and its text, if the answer contains them.
fn bytes_of<'a>(medium: &ProducedMedia<'a>) -> Option<(&'static str, &'a str)> {
    let member = |name: &str| medium.members.get(name).and_then(Value::as_str);
    match member("type")? {
        "base64" => Some(("data", member("data")?)),
        "url" => member("url").filter(|url| inline(url).is_some()).map(|url| ("url", url)),
        _ => None,
    }
}

async fn judge_bytes(
    source: Option<&dyn MediaSource>,
    limits: &MediaLimits,
    medium: &ProducedMedia<'_>,
    text: &str,
) -> Result<(), Failure> {
    // An unknown type was refused before.
    let Some(kind) = MediaType::parse(medium.media_type) else { return Ok(()) };
    let text = match inline(text) {
        Some((named, _)) if MediaType::parse(named) != Some(kind) => return Err(other_type(kind)),
        Some((_, text)) => text,
        None => text,
    };
    let (length, most) = (decoded_length(text), limits.bytes_of(kind.category()));
    if length > most {
        return Err(too_large(kind.category(), length, most));
    }
    let bytes = decode(text)?;
    let checksum = medium.members.get("checksum").and_then(|given| Checksum::read(given).ok());
    match source {
        Some(source) => examine_bytes(source, &bytes, kind, checksum.as_ref(), limits).await,
        None => Ok(()),
    }
}

/// Checks checksum, type and limits of bytes.
async fn examine_bytes(
    source: &dyn MediaSource,
    bytes: &Bytes,
    kind: MediaType,
    checksum: Option<&Checksum<'_>>,
    limits: &MediaLimits,
) -> Result<(), Failure> {
    if let Some(checksum) = checksum {
        source.verify(bytes.clone(), checksum).await?;
    }
    judge(&source.examine(bytes.clone(), kind).await?, limits)
}

fn other_type(kind: MediaType) -> Failure {
    let message = format!("the file extension of the address is not of the type `{kind}`");
    Failure::new(cognitive_contract::ErrorCode::MediaTypeMismatch, message)
}
