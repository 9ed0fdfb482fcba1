//! PNG: a list of chunks, each with its length and a checksum. Drops chunks that are not needed to show the picture:
//! `KEPT` lists the others.

use cognitive_contract::Failure;
use cognitive_contract::media::MediaType;
use image::metadata::Orientation;

use super::{HeaderOrWalk, ImageLook, exceeds_limit};
use crate::fault::{broken_file, cut_short, too_much};
use crate::reader::{ByteReader, size};

/// Chunks with pixels and the meaning of their colours. (S-30)
const KEPT: [&[u8; 4]; 15] = [
    b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"iCCP", b"cICP", b"sBIT",
    b"bKGD", b"pHYs", b"mDCV", b"cLLI",
];

/// Chunks of further frames. They are removed together with the animation.
const MOVING: [&[u8; 4]; 3] = [b"acTL", b"fcTL", b"fdAT"];

const SIGNATURE: usize = 8;

/// The largest compressed profile. Larger ones unpack to more than a colour profile has.
const MAX_PROFILE_SIZE: usize = 16 << 10;

/// The most `IDAT` chunks. The decoder takes time for each one, and encoders write chunks of some kilobytes.
const MAX_PIECES: usize = 20_000;

pub(super) fn walk(bytes: &[u8]) -> Result<HeaderOrWalk, Failure> {
    let kind = MediaType::Png;
    let mut reader = ByteReader::new(bytes);
    reader.take(SIGNATURE).ok_or_else(|| cut_short(kind))?;
    let mut look: Option<ImageLook> = None;
    let (mut ended, mut pieces) = (false, 0_usize);
    while !ended {
        let start = reader.at();
        let (name, content) = chunk(&mut reader)?;
        let look = match &mut look {
            None => {
                let header = header(name, content)?;
                if exceeds_limit(header.size) {
                    return Ok(HeaderOrWalk::OnlySize(header.size));
                }
                look.get_or_insert(ImageLook { kept: std::iter::once(0..SIGNATURE).collect(), ..header })
            }
            Some(_) if name == b"IHDR" => return Err(broken_file(kind, "has two headers")),
            Some(look) => look,
        };
        match name {
            b"IDAT" => pieces += 1,
            b"IEND" => ended = true,
            b"acTL" => look.animated = true,
            b"eXIf" => {
                look.orientation = Orientation::from_exif_chunk(content).unwrap_or(look.orientation);
            }
            _ => {}
        }
        let unusual = name == b"iCCP" && content.len() > MAX_PROFILE_SIZE;
        if !unusual && KEPT.iter().any(|kept| *kept == name) {
            look.keep(start..reader.at());
        } else if !MOVING.iter().any(|moving| *moving == name) {
            look.annotated = true;
        }
    }
    if pieces > MAX_PIECES {
        return Err(too_much(kind, "has too many parts"));
    }
    match look {
        Some(mut look) if pieces > 0 => {
            look.annotated |= reader.remaining_length() > 0;
            Ok(HeaderOrWalk::All(look))
        }
        _ => Err(broken_file(kind, "has no pixels")),
    }
}

/// Reads the next chunk. A wrong checksum is damage: no viewer shows what follows.
fn chunk<'a>(reader: &mut ByteReader<'a>) -> Result<(&'a [u8], &'a [u8]), Failure> {
    let cut = || cut_short(MediaType::Png);
    let length = size(reader.be32().ok_or_else(cut)?);
    let whole = reader.take(length.saturating_add(4)).ok_or_else(cut)?;
    let (name, content) = whole.split_at_checked(4).ok_or_else(cut)?;
    let sum = reader.be32().ok_or_else(cut)?;
    if crc32fast::hash(whole) != sum {
        return Err(broken_file(MediaType::Png, "is damaged"));
    }
    Ok((name, content))
}

fn header(name: &[u8], content: &[u8]) -> Result<ImageLook, Failure> {
    let senseless = || broken_file(MediaType::Png, "has an invalid header");
    if name != b"IHDR" || content.len() != 13 {
        return Err(senseless());
    }
    let mut reader = ByteReader::new(content);
    let mut field = || reader.be32().filter(|side| (1..=0x7fff_ffff).contains(side)).ok_or_else(senseless);
    let size = (field()?, field()?);
    let (Some(bits), Some(colours), Some(0), Some(0), Some(0..=1)) =
        (reader.byte(), reader.byte(), reader.byte(), reader.byte(), reader.byte())
    else {
        return Err(senseless());
    };
    // Palettes and small depths are expanded to whole bytes, and a transparent colour adds a channel.
    let depth = match (colours, bits) {
        (0, 1 | 2 | 4 | 8) | (4, 8) => 2,
        (0 | 4, 16) | (3, 1 | 2 | 4 | 8) | (2 | 6, 8) => 4,
        (2 | 6, 16) => 8,
        _ => return Err(senseless()),
    };
    // Sixteen bits are reduced to eight after decoding, so both exist for a moment.
    let peak = if bits == 16 { depth * 3 / 2 } else { depth };
    Ok(ImageLook::new(size, depth, peak))
}
