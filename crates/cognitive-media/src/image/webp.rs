//! WebP: RIFF chunks with one picture or an animation. Metadata has its own chunks. Header flags announce them, and are
//! cleared when the chunks are removed.

use bytes::BytesMut;
use cognitive_contract::Failure;
use cognitive_contract::media::MediaType;
use image::metadata::Orientation;

use super::{HeaderOrWalk, ImageLook, exceeds_limit};
use crate::fault::{broken_file, cut_short};
use crate::reader::{ByteReader, size};

const KEPT: [&[u8; 4]; 7] = [b"VP8X", b"VP8 ", b"VP8L", b"ALPH", b"ICCP", b"ANIM", b"ANMF"];

/// The bits for EXIF and XMP in the flags of `VP8X`.
const NOTES: u8 = 0x0c;
const MOVES: u8 = 0x02;
/// The length of `RIFF`, the file length and `WEBP`.
const HEADER: usize = 12;

pub(super) fn walk(bytes: &[u8]) -> Result<HeaderOrWalk, Failure> {
    let cut = || cut_short(MediaType::Webp);
    let mut outer = ByteReader::new(bytes);
    outer.take(4).ok_or_else(cut)?;
    let length = size(outer.le32().ok_or_else(cut)?);
    // The length excludes the first eight bytes.
    let end = length.saturating_add(8);
    let file = bytes.get(..end).ok_or_else(cut)?;
    let mut reader = ByteReader::new(file);
    reader.take(HEADER).ok_or_else(cut)?;
    let mut look = first(&reader)?;
    if exceeds_limit(look.size) {
        return Ok(HeaderOrWalk::OnlySize(look.size));
    }
    look.keep(0..HEADER);
    let mut pictures = 0_usize;
    while reader.remaining_length() > 0 {
        let start = reader.at();
        let (name, content) = chunk(&mut reader).ok_or_else(cut)?;
        match name {
            b"VP8 " | b"VP8L" => {
                pictures += 1;
                check_still_image(name, content, look.size)?;
            }
            b"ANMF" => pictures += 1,
            b"EXIF" => {
                let plain = content.strip_prefix(b"Exif\0\0").unwrap_or(content);
                look.orientation = Orientation::from_exif_chunk(plain).unwrap_or(look.orientation);
            }
            _ => {}
        }
        if KEPT.iter().any(|kept| *kept == name) {
            look.keep(start..reader.at());
        } else {
            look.annotated = true;
        }
    }
    if pictures == 0 {
        return Err(broken_file(MediaType::Webp, "has no picture"));
    }
    look.animated |= pictures > 1;
    look.annotated |= bytes.len() > end + (end & 1);
    Ok(HeaderOrWalk::All(look))
}

/// Reads a chunk with its padding. In some files the last chunk has none.
fn chunk<'a>(reader: &mut ByteReader<'a>) -> Option<(&'a [u8], &'a [u8])> {
    let name = reader.take(4)?;
    let length = size(reader.le32()?);
    let content = reader.take(length)?;
    if length & 1 == 1 {
        reader.take(1.min(reader.remaining_length()))?;
    }
    Some((name, content))
}

/// Reads the size from the first chunk.
fn first(reader: &ByteReader<'_>) -> Result<ImageLook, Failure> {
    let (name, content) = chunk(&mut reader.clone()).ok_or_else(|| cut_short(MediaType::Webp))?;
    if name != b"VP8X" {
        let side = measure(name, content).ok_or_else(invalid_header)?;
        let mut look = ImageLook::new(side, 4, if name == b"VP8L" { 8 } else { 6 });
        look.drawn = name == b"VP8L";
        return Ok(look);
    }
    let mut reader = ByteReader::new(content);
    let flags = reader.byte().ok_or_else(invalid_header)?;
    let mut field = || reader.le24().map(|less| less + 1).ok_or_else(invalid_header);
    let _reserved = field()?;
    let mut look = ImageLook::new((field()?, field()?), 4, 10);
    look.animated = flags & MOVES != 0;
    look.drawn = false;
    Ok(look)
}

/// Returns width and height from the picture's own header.
fn measure(name: &[u8], content: &[u8]) -> Option<(u32, u32)> {
    let mut reader = ByteReader::new(content);
    if name == b"VP8 " {
        let tag = reader.le24()?;
        let key = tag & 1 == 0 && reader.take(3)? == [0x9d, 0x01, 0x2a];
        let plain = |raw: u16| u32::from(raw & 0x3fff);
        let size = (plain(reader.le16()?), plain(reader.le16()?));
        (key && size.0 > 0 && size.1 > 0).then_some(size)
    } else if name == b"VP8L" {
        let marked = reader.byte()? == 0x2f;
        let bits = reader.le32()?;
        let version = bits >> 29;
        (marked && version == 0).then_some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
    } else {
        None
    }
}

fn check_still_image(name: &[u8], content: &[u8], canvas: (u32, u32)) -> Result<(), Failure> {
    if measure(name, content) == Some(canvas) { Ok(()) } else { Err(invalid_header()) }
}

fn invalid_header() -> Failure {
    broken_file(MediaType::Webp, "has an invalid header")
}

/// Corrects length and flags after chunks were removed.
pub(super) fn mend(bytes: &mut BytesMut) {
    let length = u32::try_from(bytes.len().saturating_sub(8)).unwrap_or(u32::MAX);
    if let Some(field) = bytes.get_mut(4..8) {
        field.copy_from_slice(&length.to_le_bytes());
    }
    let extended = bytes.get(HEADER..HEADER + 4) == Some(b"VP8X");
    if let Some(flags) = bytes.get_mut(HEADER + 8).filter(|_| extended) {
        *flags &= !NOTES;
    }
}
