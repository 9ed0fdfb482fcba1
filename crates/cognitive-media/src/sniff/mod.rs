//! Recognises a type from the bytes alone. A name, a header or a claim never counts. Returns a type only if the start
//! of the file is unambiguous; later code that reads the whole file checks the rest.

mod containers;
mod names;

use cognitive_contract::media::MediaType;
use cognitive_contract::{ErrorCode, Failure};
use serde_json::json;

use crate::checksum::hex;
use crate::fault::broken_file;
use crate::reader::ByteReader;

pub(crate) use containers::id3_length;

/// The number of leading bytes that a failure shows.
const SHOWN: usize = 16;

/// A recognised type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SniffedType {
    /// A supported type.
    Known(MediaType),
    /// Another type, by its usual name.
    Other(&'static str),
}

/// Recognises the type of bytes.
pub(crate) fn sniff(bytes: &[u8]) -> SniffedType {
    let known = |kind| SniffedType::Known(kind);
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        known(MediaType::Png)
    } else if bytes.starts_with(&[0xff, 0xd8, 0xff]) {
        known(MediaType::Jpeg)
    } else if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
        known(MediaType::Gif)
    } else if bytes.starts_with(b"RIFF") {
        riff(bytes)
    } else if bytes.starts_with(b"OggS") {
        containers::ogg(bytes)
    } else if bytes.starts_with(&[0x1a, 0x45, 0xdf, 0xa3]) {
        containers::ebml(bytes)
    } else if is_pdf(bytes) {
        known(MediaType::Pdf)
    } else if let Some(found) = containers::iso(bytes) {
        found
    } else if containers::is_mp3(bytes) {
        known(MediaType::Mp3)
    } else {
        SniffedType::Other(names::unsupported_name(bytes))
    }
}

fn riff(bytes: &[u8]) -> SniffedType {
    match bytes.get(8..12) {
        Some(b"WEBP") => SniffedType::Known(MediaType::Webp),
        Some(b"WAVE") => SniffedType::Known(MediaType::Wav),
        Some(b"AVI ") => SniffedType::Other("video/x-msvideo"),
        Some(_) => SniffedType::Other("application/x-riff"),
        None => SniffedType::Other(names::UNKNOWN),
    }
}

/// Returns whether the bytes start with a PDF header. Readers allow a kilobyte before it, and polyglot files use that.
/// Here only a byte order mark and white space may precede it.
fn is_pdf(bytes: &[u8]) -> bool {
    let start = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let blank = start.iter().take(SHOWN).take_while(|byte| byte.is_ascii_whitespace()).count();
    let mut reader = ByteReader::new(start.get(blank..).unwrap_or_default());
    let version = reader.take(5).filter(|mark| *mark == b"%PDF-").and_then(|_| reader.take(2));
    matches!(version, Some(b"1." | b"2."))
}

/// Checks that the bytes have the claimed type. (SEC-003, E1013, E1014)
pub(crate) fn check(bytes: &[u8], claimed: MediaType) -> Result<(), Failure> {
    if bytes.is_empty() {
        return Err(broken_file(claimed, "is empty"));
    }
    let found = sniff(bytes);
    if found == SniffedType::Known(claimed) {
        return Ok(());
    }
    if names::openings(claimed).iter().any(|opening| opening.starts_with(bytes)) {
        return Err(broken_file(claimed, "ends within its first bytes"));
    }
    // The mark is right and the rest is not: this is damage, not another type.
    if found == SniffedType::Other(names::UNKNOWN)
        && names::marks(claimed).iter().any(|mark| bytes.starts_with(mark))
    {
        return Err(broken_file(claimed, "cannot be read"));
    }
    let detected = match found {
        SniffedType::Known(kind) => kind.mime(),
        SniffedType::Other(name) => name,
    };
    let message = format!("the media item is declared as `{claimed}`, but its content is: `{detected}`");
    Err(Failure::new(ErrorCode::MediaTypeMismatch, message)
        .with_detail("declared_type", json!(claimed.mime()))
        .with_detail("detected_type", json!(detected))
        .with_detail("magic_bytes", json!(hex(bytes.get(..SHOWN).unwrap_or(bytes))))
        .suggest("Set `media_type` to the type of the content, or convert the file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(bytes: &[u8], claimed: MediaType) -> &'static str {
        check(bytes, claimed).map_or_else(|failure| failure.code().number(), |()| "ok")
    }

    #[test]
    fn sec_003_a_claim_that_the_bytes_deny_is_e1014() {
        let gif = b"GIF89a\x01\0\x01\0";
        assert_eq!(code(gif, MediaType::Gif), "ok");
        assert_eq!(code(gif, MediaType::Png), "E1014");
        assert_eq!(code(b"PK\x03\x04 and so on", MediaType::Png), "E1014");
        assert_eq!(code(b"<html></html>", MediaType::Jpeg), "E1014");
        assert_eq!(code(b"", MediaType::Png), "E1013");
        assert_eq!(code(b"\x89PN", MediaType::Png), "E1013");
        assert_eq!(code(b"\x89PN", MediaType::Gif), "E1014");
    }

    #[test]
    fn ext_media_a_mismatch_says_what_was_there() {
        let failure = check(b"%PDF-1.7 0123456789", MediaType::Png).unwrap_err();
        let envelope = serde_json::to_value(failure.into_envelope()).unwrap();
        assert_eq!(
            envelope["error"]["details"],
            json!({
                "declared_type": "image/png", "detected_type": "application/pdf",
                "magic_bytes": "255044462d312e372030313233343536",
            })
        );
    }

    #[test]
    fn a_document_begins_at_its_beginning() {
        assert_eq!(sniff(b"\xef\xbb\xbf\n %PDF-1.4\n"), SniffedType::Known(MediaType::Pdf));
        assert_eq!(sniff(b"PK\x03\x04....%PDF-1.4\n"), SniffedType::Other("application/zip"));
        assert_eq!(sniff(b"<html>%PDF-1.4"), SniffedType::Other("text/html"));
        assert_eq!(sniff(b"%PDF-9.4"), SniffedType::Other("text/plain"));
    }

    #[test]
    fn riff_is_not_enough() {
        assert_eq!(sniff(b"RIFF\0\0\0\0WAVEfmt "), SniffedType::Known(MediaType::Wav));
        assert_eq!(sniff(b"RIFF\0\0\0\0WEBPVP8 "), SniffedType::Known(MediaType::Webp));
        assert_eq!(sniff(b"RIFF\0\0\0\0AVI LIST"), SniffedType::Other("video/x-msvideo"));
        assert_eq!(sniff(b"RIFF\0\0\0\0HTML"), SniffedType::Other("application/x-riff"));
        assert_eq!(code(b"RIFF\0\0", MediaType::Wav), "E1013");
    }
}
