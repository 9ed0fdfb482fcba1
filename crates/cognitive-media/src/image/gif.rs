//! GIF: a canvas and blocks. Only the first picture is shown to a model (MEDIA-014), so only that one is kept.

use cognitive_contract::Failure;
use cognitive_contract::media::MediaType;

use super::{HeaderOrWalk, ImageLook, is_beyond};
use crate::fault::{broken, cut_short};
use crate::reader::ByteReader;

/// The byte that ends a file.
pub(super) const TRAILER: u8 = 0x3b;
const EXTENSION: u8 = 0x21;
const PICTURE: u8 = 0x2c;
const CONTROL: u8 = 0xf9;
const APPLICATION: u8 = 0xff;

pub(super) fn walk(bytes: &[u8]) -> Result<HeaderOrWalk, Failure> {
    let mut reader = ByteReader::new(bytes);
    let canvas = canvas(&mut reader).ok_or_else(|| cut_short(MediaType::Gif))?;
    if canvas.0 == 0 || canvas.1 == 0 {
        return Err(broken(MediaType::Gif, "has no canvas"));
    }
    // Four bytes of colour on the canvas, as many for the frame while it is being placed, and its palette indices.
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
                    Needed::Now if frames == 0 => look.keep(start..reader.at()),
                    Needed::Now | Needed::Movement => {}
                    Needed::Never => look.annotated = true,
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
            _ => return Err(broken(MediaType::Gif, "has an unknown block")),
        }
    }
    if frames == 0 {
        return Err(broken(MediaType::Gif, "has no picture"));
    }
    // Only here: any text that begins with the mark has a canvas, and most of them a large one.
    if is_beyond(canvas) {
        return Ok(HeaderOrWalk::OnlySize(canvas));
    }
    look.animated = frames > 1;
    look.annotated |= reader.left() > 0;
    Ok(HeaderOrWalk::All(look))
}

/// The size of the canvas; moves past its table of colours.
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

enum Needed {
    /// How the next picture is shown.
    Now,
    /// How often the film is shown.
    Movement,
    /// Comments, and whatever programs noted.
    Never,
}

fn extension(reader: &mut ByteReader<'_>) -> Option<Needed> {
    let label = reader.byte()?;
    let repeats = reader.rest().get(1..12).is_some_and(|name| name == b"NETSCAPE2.0");
    blocks(reader)?;
    Some(match label {
        CONTROL => Needed::Now,
        APPLICATION if repeats => Needed::Movement,
        _ => Needed::Never,
    })
}

/// Where a picture is placed: left, top, width, height. Moves past its data.
fn picture(reader: &mut ByteReader<'_>) -> Option<[u32; 4]> {
    let mut side = || reader.le16().map(u32::from);
    let place = [side()?, side()?, side()?, side()?];
    let flags = reader.byte()?;
    table(reader, flags)?;
    let least_bits = reader.byte()?;
    let data = blocks(reader)?;
    // A picture without data, or with codes that cannot be, has never been one.
    (data > 0 && (1..=11).contains(&least_bits)).then_some(place)
}

/// The decoder makes room for the picture, not for the canvas, so it must lie within.
fn check([left, top, width, height]: [u32; 4], canvas: (u32, u32)) -> Result<(), Failure> {
    let inside = width > 0 && height > 0 && left + width <= canvas.0 && top + height <= canvas.1;
    if inside { Ok(()) } else { Err(broken(MediaType::Gif, "has a picture outside of its canvas")) }
}

/// Moves past blocks, and says how many bytes were in them.
fn blocks(reader: &mut ByteReader<'_>) -> Option<usize> {
    let mut sum = 0;
    loop {
        match usize::from(reader.byte()?) {
            0 => return Some(sum),
            length => sum += reader.take(length)?.len(),
        }
    }
}
