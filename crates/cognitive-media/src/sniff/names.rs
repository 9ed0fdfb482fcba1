//! Names of unsupported types, for error messages, and the first bytes of supported ones. Gives names only: a type that
//! is found here is never accepted.

use cognitive_contract::media::MediaType;

/// The name of an unknown type.
pub(super) const UNKNOWN: &str = "application/octet-stream";

/// The first bytes of common files.
const OTHERS: [(&[u8], &str); 19] = [
    (b"PK\x03\x04", "application/zip"),
    (b"PK\x05\x06", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"BZh", "application/x-bzip2"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!", "application/vnd.rar"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"BM", "image/bmp"),
    (b"\0\0\x01\0", "image/x-icon"),
    (b"8BPS", "image/vnd.adobe.photoshop"),
    (b"\xff\x0a", "image/jxl"),
    (b"fLaC", "audio/flac"),
    (b"MThd", "audio/midi"),
    (b"#!AMR", "audio/amr"),
    (b"FLV\x01", "video/x-flv"),
    (b"\x7fELF", "application/x-elf"),
    (b"MZ", "application/x-msdownload"),
];

/// The starts of markup, in lower case.
const MARKUP: [(&str, &str); 5] = [
    ("<!doctype html", "text/html"),
    ("<html", "text/html"),
    ("<script", "text/html"),
    ("<svg", "image/svg+xml"),
    ("<?xml", "application/xml"),
];

/// Returns the name of an unsupported type.
pub(super) fn unsupported_name(bytes: &[u8]) -> &'static str {
    if let Some((_, name)) = OTHERS.iter().find(|(opening, _)| bytes.starts_with(opening)) {
        return name;
    }
    let start = String::from_utf8_lossy(bytes.get(..64).unwrap_or(bytes)).to_ascii_lowercase();
    let start = start.trim_start_matches('\u{feff}').trim_start();
    if let Some((_, name)) = MARKUP.iter().find(|(opening, _)| start.starts_with(opening)) {
        return name;
    }
    let plain = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~');
    if bytes.iter().take(64).all(plain) { "text/plain" } else { UNKNOWN }
}

/// The first bytes of files of a type. A shorter file may be a truncated one.
pub(super) fn openings(kind: MediaType) -> &'static [&'static [u8]] {
    match kind {
        MediaType::Png => &[b"\x89PNG\r\n\x1a\n"],
        MediaType::Jpeg => &[&[0xff, 0xd8, 0xff]],
        MediaType::Gif => &[b"GIF87a", b"GIF89a"],
        MediaType::Webp | MediaType::Wav => &[b"RIFF"],
        MediaType::Ogg => &[b"OggS"],
        MediaType::WebmAudio | MediaType::WebmVideo => &[&[0x1a, 0x45, 0xdf, 0xa3]],
        MediaType::Pdf => &[b"%PDF-1."],
        MediaType::Mp3 => &[b"ID3", &[0xff, 0xfb]],
        MediaType::Mp4 | MediaType::Quicktime => &[],
    }
}

/// The first bytes that identify a type even if the rest of the file is invalid.
pub(super) fn marks(kind: MediaType) -> &'static [&'static [u8]] {
    match kind {
        MediaType::WebmAudio | MediaType::WebmVideo | MediaType::Ogg | MediaType::Webp | MediaType::Wav => {
            openings(kind)
        }
        MediaType::Mp3 => &[b"ID3"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_by_mistake_has_a_name() {
        assert_eq!(unsupported_name(b"\xef\xbb\xbf  <!DOCTYPE HTML>"), "text/html");
        assert_eq!(unsupported_name(b"<svg xmlns="), "image/svg+xml");
        assert_eq!(unsupported_name(b"hello"), "text/plain");
        assert_eq!(unsupported_name(b"\0\x01\x02"), "application/octet-stream");
    }
}
