//! GIF: a canvas and blocks. A model sees only the first frame (MEDIA-014), so only that frame is stored.

use cognitive_contract::Failure;
use cognitive_contract::media::MediaType;

use super::{HeaderOrWalk, ImageLook, exceeds_limit};
use crate::fault::{broken_file, cut_short};
use crate::reader::ByteReader;

/// The byte at the end of a file.
pub(super) const TRAILER: u8 = 0x3b;
const EXTENSION: u8 = 0x21;
const PICTURE: u8 = 0x2c;
const CONTROL: u8 = 0xf9;
const APPLICATION: u8 = 0xff;

pub(super) fn walk(bytes: &[u8]) -> Result<HeaderOrWalk, Failure> {
    let mut reader = ByteReader::new(bytes);
    let canvas = canvas(&mut reader).ok_or_else(|| cut_short(MediaType::Gif))?;
    if canvas.0 == 0 || canvas.1 == 0 {
        return Err(broken_file(MediaType::Gif, "has no canvas"));
    }
    // Four bytes per pixel for the canvas, four for the frame being drawn, and one for its palette index.
    let mut look = ImageLook::new(canvas, 4, 9);
    look.keep(0..reader.at());
    let mut frames = 0_usize;
    loop {
        let start = reader.at();
        match reader.byte().ok_or_else(|| cut_short(MediaType::Gif))? {
            TRAILER => break,
            EXTENSION => {
                let needed = extension(&mut reader).ok_or_else(|| cut_short(MediaType::Gif))?;
                match needed {
                    ExtensionUse::Now if frames == 0 => look.keep(start..reader.at()),
                    ExtensionUse::Now | ExtensionUse::Movement => {}
                    ExtensionUse::Never => look.annotated = true,
                }
            }
            PICTURE => {
                let place = picture(&mut reader).ok_or_else(|| cut_short(MediaType::Gif))?;
                if frames == 0 {
                    check(place, canvas)?;
                    look.keep(start..reader.at());
                }
                frames += 1;
            }
            _ => return Err(broken_file(MediaType::Gif, "has an unknown block")),
        }
    }
    if frames == 0 {
        return Err(broken_file(MediaType::Gif, "has no picture"));
    }
    // Checked only after the walk: any text that begins with the mark has a canvas, and mostly a large one.
    if exceeds_limit(canvas) {
        return Ok(HeaderOrWalk::OnlySize(canvas));
    }
    look.animated = frames > 1;
    look.annotated |= reader.remaining_length() > 0;
    Ok(HeaderOrWalk::All(look))
}

/// Returns the size of the canvas, and moves past its colour table.
fn canvas(reader: &mut ByteReader<'_>) -> Option<(u32, u32)> {
    reader.take(6)?;
    let size = (u32::from(reader.le16()?), u32::from(reader.le16()?));
    let flags = reader.byte()?;
    reader.take(2)?;
    table(reader, flags)?;
    Some(size)
}

fn table(reader: &mut ByteReader<'_>, flags: u8) -> Option<()> {
    if flags & 0x80 != 0 {
        reader.take(3 << ((flags & 7) + 1))?;
    }
    Some(())
}

enum ExtensionUse {
    /// Needed for the next frame.
    Now,
    /// Needed for the animation: the number of repetitions.
    Movement,
    /// Not needed: comments and data of other programs.
    Never,
}

fn extension(reader: &mut ByteReader<'_>) -> Option<ExtensionUse> {
    let label = reader.byte()?;
    let repeats = reader.remainder().get(1..12).is_some_and(|name| name == b"NETSCAPE2.0");
    blocks(reader)?;
    Some(match label {
        CONTROL => ExtensionUse::Now,
        APPLICATION if repeats => ExtensionUse::Movement,
        _ => ExtensionUse::Never,
    })
}

/// Returns the position of a frame: left, top, width, height. Moves past its data.
fn picture(reader: &mut ByteReader<'_>) -> Option<[u32; 4]> {
    let mut side = || reader.le16().map(u32::from);
    let place = [side()?, side()?, side()?, side()?];
    let flags = reader.byte()?;
    table(reader, flags)?;
    let least_bits = reader.byte()?;
    let data = blocks(reader)?;
    // A frame without data, or with an invalid code size, is damaged.
    (data > 0 && (1..=11).contains(&least_bits)).then_some(place)
}

/// The decoder allocates memory for the frame, not for the canvas, so the frame must be inside it.
fn check([left, top, width, height]: [u32; 4], canvas: (u32, u32)) -> Result<(), Failure> {
    let inside = width > 0 && height > 0 && left + width <= canvas.0 && top + height <= canvas.1;
    if inside { Ok(()) } else { Err(broken_file(MediaType::Gif, "has a picture outside its canvas")) }
}

/// Moves past blocks and returns the number of their bytes.
fn blocks(reader: &mut ByteReader<'_>) -> Option<usize> {
    let mut sum = 0;
    loop {
        match usize::from(reader.byte()?) {
            0 => return Some(sum),
            length => sum += reader.take(length)?.len(),
        }
    }
}
