//! Containers with several kinds of content: ISO media (MP4, `QuickTime`, HEIC), EBML (`WebM`, Matroska), Ogg; and MP3,
//! which has no magic bytes. Reads headers only, a bounded number of them.

use cognitive_contract::media::MediaType;

use super::{SniffedType, names};
use crate::reader::{ByteReader, size};

const UNKNOWN: SniffedType = SniffedType::Other(names::UNKNOWN);

/// The brands of plain MP4 video.
const MP4: [&[u8; 4]; 14] = [
    b"isom", b"iso2", b"iso3", b"iso4", b"iso5", b"iso6", b"iso7", b"iso8", b"iso9", b"mp41", b"mp42",
    b"avc1", b"dash", b"MSNV",
];

/// The brands of other types.
const BRANDS: [(&[u8], &str); 11] = [
    (b"heic", "image/heic"),
    (b"heix", "image/heic"),
    (b"hevc", "image/heic"),
    (b"mif1", "image/heif"),
    (b"msf1", "image/heif"),
    (b"avif", "image/avif"),
    (b"avis", "image/avif"),
    (b"M4A ", "audio/mp4"),
    (b"M4B ", "audio/mp4"),
    (b"3gp", "video/3gpp"),
    (b"3g2", "video/3gpp2"),
];

/// The type of ISO media, from the brand; `None` for other bytes.
pub(super) fn iso(bytes: &[u8]) -> Option<SniffedType> {
    let mut reader = ByteReader::new(bytes);
    let length = size(reader.be32()?);
    match reader.take(4)? {
        b"ftyp" => {}
        // QuickTime files from before brands existed.
        b"moov" | b"mdat" | b"wide" | b"pnot" if length >= 8 => {
            return Some(SniffedType::Known(MediaType::Quicktime));
        }
        _ => return None,
    }
    let major = reader.take(4)?;
    if let Some((_, name)) = BRANDS.iter().find(|(brand, _)| major.starts_with(brand)) {
        return Some(SniffedType::Other(name));
    }
    if major == b"qt  " {
        return Some(SniffedType::Known(MediaType::Quicktime));
    }
    let plain = |brand: &[u8]| MP4.iter().any(|known| *known == brand) || brand == b"M4V ";
    let others = reader.remainder().get(4..length.saturating_sub(16).min(256)).unwrap_or_default();
    let film = plain(major) || others.chunks_exact(4).any(plain);
    Some(if film { SniffedType::Known(MediaType::Mp4) } else { UNKNOWN })
}

/// The type of an Ogg file, from the codec of its first stream.
pub(super) fn ogg(bytes: &[u8]) -> SniffedType {
    let segments = bytes.get(26).copied().map_or(0, usize::from);
    let first = bytes.get(27 + segments..).unwrap_or_default();
    if first.starts_with(b"\x80theora") || first.starts_with(b"BBCD") {
        return SniffedType::Other("video/ogg");
    }
    if bytes.len() < 28 { UNKNOWN } else { SniffedType::Known(MediaType::Ogg) }
}

/// The most elements that are read before the tracks. A file of tiny elements would otherwise take seconds.
const MAX_ELEMENTS: usize = 4096;

const EBML: u32 = 0x1a45_dfa3;
const DOC_TYPE: u32 = 0x4282;
const SEGMENT: u32 = 0x1853_8067;
const TRACKS: u32 = 0x1654_ae6b;
const TRACK: u32 = 0xae;
const TRACK_TYPE: u32 = 0x83;
const CLUSTER: u32 = 0x1f43_b675;

/// The type of a `WebM` file, audio or video. Sniffers that read only the first bytes report video for both.
pub(super) fn ebml(bytes: &[u8]) -> SniffedType {
    let mut reader = ByteReader::new(bytes);
    let Some((EBML, Some(length))) = element(&mut reader) else { return UNKNOWN };
    let Some(header) = reader.take(length) else { return UNKNOWN };
    match child(header, DOC_TYPE) {
        Some(name) if name.strip_suffix(b"\0").unwrap_or(name) == b"webm" => {}
        Some(name) if name.starts_with(b"matroska") => return SniffedType::Other("video/x-matroska"),
        _ => return UNKNOWN,
    }
    match tracks(&mut reader) {
        Some(tracks) if has_film(tracks) => SniffedType::Known(MediaType::WebmVideo),
        Some(_) => SniffedType::Known(MediaType::WebmAudio),
        None => UNKNOWN,
    }
}

/// The list of tracks, which precedes the first cluster.
fn tracks<'a>(reader: &mut ByteReader<'a>) -> Option<&'a [u8]> {
    for _ in 0..MAX_ELEMENTS {
        match element(reader)? {
            (SEGMENT, _) => {}
            (TRACKS, Some(length)) => return reader.take(length.min(reader.remaining_length())),
            (CLUSTER, _) | (_, None) => return None,
            (_, Some(length)) => reader.take(length).map(drop)?,
        }
    }
    None
}

fn has_film(tracks: &[u8]) -> bool {
    let mut reader = ByteReader::new(tracks);
    while let Some((id, Some(length))) = element(&mut reader) {
        let Some(content) = reader.take(length) else { return false };
        if id == TRACK && child(content, TRACK_TYPE) == Some(&[1]) {
            return true;
        }
    }
    false
}

fn child(content: &[u8], wanted: u32) -> Option<&[u8]> {
    let mut reader = ByteReader::new(content);
    loop {
        let (id, length) = element(&mut reader)?;
        let content = reader.take(length?)?;
        if id == wanted {
            return Some(content);
        }
    }
}

/// Reads the id of an element, and its length unless that is unknown.
fn element(reader: &mut ByteReader<'_>) -> Option<(u32, Option<usize>)> {
    let first = reader.byte()?;
    let more = usize::try_from(first.leading_zeros()).ok().filter(|more| *more < 4)?;
    let id = reader.take(more)?.iter().fold(u32::from(first), |id, byte| id << 8 | u32::from(*byte));
    let first = reader.byte()?;
    let more = usize::try_from(first.leading_zeros()).ok().filter(|more| *more < 8)?;
    let mask = 0xff_u16.unbounded_shr(u32::try_from(more).ok()? + 1);
    let head = u64::from(u16::from(first) & mask);
    let length = reader.take(more)?.iter().fold(head, |sum, byte| sum << 8 | u64::from(*byte));
    let unknown = (1_u64 << (7 * (more + 1))) - 1;
    let length = if length == unknown { None } else { Some(usize::try_from(length).ok()?) };
    Some((id, length))
}

/// The length of an ID3 tag at the start, in bytes; 0 without a tag.
pub(crate) fn id3_length(bytes: &[u8]) -> usize {
    let Some([b'I', b'D', b'3', _, _, flags, a, b, c, d]) = bytes.first_chunk::<10>() else { return 0 };
    if [a, b, c, d].into_iter().any(|byte| *byte > 0x7f) {
        return 0;
    }
    let length = [a, b, c, d].into_iter().fold(0_usize, |sum, byte| sum << 7 | usize::from(*byte));
    length + if flags & 0x10 == 0 { 10 } else { 20 }
}

/// The header of an MP3 frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mp3Frame {
    /// The length in bytes, header included.
    pub(crate) length: usize,
}

/// The bit rates of layer III in kilobits per second, for MPEG 1 and for MPEG 2 and 2.5.
const RATES: [[usize; 16]; 2] = [
    [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0],
    [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0],
];

impl Mp3Frame {
    /// Parses a header. Returns `None` unless every field is valid.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let [sync, kind, rates, _] = *bytes.first_chunk::<4>()?;
        if sync != 0xff || kind & 0xe0 != 0xe0 || kind & 0x06 != 0x02 {
            return None;
        }
        let (old, divisor) = match kind >> 3 & 3 {
            3 => (true, 1),
            2 => (false, 2),
            0 => (false, 4),
            _ => return None,
        };
        let hertz = [44_100, 48_000, 32_000].get(usize::from(rates >> 2 & 3))? / divisor;
        let kilobits = *RATES.get(usize::from(!old))?.get(usize::from(rates >> 4))?;
        let factor = if old { 144_000 } else { 72_000 };
        let length = factor * kilobits / hertz + usize::from(rates >> 1 & 1);
        (kilobits > 0).then_some(Self { length })
    }
}

/// Returns whether the bytes are MP3. The mark of a frame is weak, so the next frame must follow at the stated
/// position, or the file must end there.
pub(super) fn is_mp3(bytes: &[u8]) -> bool {
    let tag = id3_length(bytes);
    let sound = bytes.get(tag..).unwrap_or_default();
    let padding = sound.iter().take(4096).take_while(|byte| tag > 0 && **byte == 0).count();
    let sound = sound.get(padding..).unwrap_or_default();
    let Some(first) = Mp3Frame::read(sound) else { return false };
    let next = sound.get(first.length..).unwrap_or_default();
    next.is_empty() || next.starts_with(b"TAG") || Mp3Frame::read(next).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_013_brands_tell_film_from_the_rest() {
        let file = |major: &[u8; 4], minor: &[u8]| {
            let length = u32::try_from(16 + minor.len()).unwrap();
            [&length.to_be_bytes()[..], b"ftyp", major, &[0; 4], minor].concat()
        };
        let video = Some(SniffedType::Known(MediaType::Mp4));
        assert_eq!(iso(&file(b"isom", b"")), video);
        assert_eq!(iso(&file(b"XAVC", b"mp42iso2")), video);
        assert_eq!(iso(&file(b"qt  ", b"")), Some(SniffedType::Known(MediaType::Quicktime)));
        assert_eq!(iso(&file(b"heic", b"mif1")), Some(SniffedType::Other("image/heic")));
        assert_eq!(iso(&file(b"M4A ", b"isom")), Some(SniffedType::Other("audio/mp4")));
        assert_eq!(iso(&file(b"XXXX", b"")), Some(UNKNOWN));
        assert_eq!(iso(b"\0\0\0\x08moov"), Some(SniffedType::Known(MediaType::Quicktime)));
        assert_eq!(iso(b"%PDF-1.7"), None);
    }

    #[test]
    fn one_frame_mark_does_not_make_sound() {
        let frame = [&[0xff, 0xfb, 0x90, 0x00][..], &[0; 413]].concat();
        assert_eq!(Mp3Frame::read(&frame), Some(Mp3Frame { length: 417 }));
        assert!(is_mp3(&[frame.clone(), frame.clone()].concat()));
        assert!(is_mp3(&[b"ID3\x04\0\0\0\0\0\x02xx", &frame[..]].concat()));
        assert!(!is_mp3(&[&frame[..], b"<html>"].concat()));
        assert!(!is_mp3(&[0xff, 0xff, 0xff, 0xff]));
        assert!(!is_mp3(b"ID3\x04\0\0\xff\xff\xff\xff"));
    }
}
