//! JPEG: segments, with pixel data between them in which only markers are recognised. Of the application segments, only
//! those about colours stay. (S-30)

use cognitive_contract::Failure;
use cognitive_contract::media::MediaType;
use image::metadata::Orientation;

use super::{HeaderOrWalk, ImageLook, exceeds_limit};
use crate::fault::{broken_file, cut_short, too_much};
use crate::reader::ByteReader;

const START: u8 = 0xd8;
const END: u8 = 0xd9;
const SCAN: u8 = 0xda;
const COMMENT: u8 = 0xfe;
const LATER_HEIGHT: u8 = 0xdc;

/// The most pixels times scans. Each scan of a progressive picture visits all of its pixels, so a small file could take
/// years.
const MAX_SCANNED: u64 = 1_000_000_000;

pub(super) fn walk(bytes: &[u8]) -> Result<HeaderOrWalk, Failure> {
    let kind = MediaType::Jpeg;
    let mut reader = ByteReader::new(bytes);
    reader.take(2).ok_or_else(|| cut_short(kind))?;
    let mut look: Option<ImageLook> = None;
    let mut notes = Notes { kept: std::iter::once(0..2).collect(), ..Notes::default() };
    loop {
        let start = reader.at();
        let marker = marker(&mut reader)?;
        if marker == END {
            notes.kept.push(start..reader.at());
            break;
        }
        let content = segment(&mut reader, marker)?;
        match marker {
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                let frame = frame(marker, content)?;
                if look.is_some() {
                    return Err(broken_file(kind, "has two headers"));
                }
                if exceeds_limit(frame.size) {
                    return Ok(HeaderOrWalk::OnlySize(frame.size));
                }
                look = Some(frame);
            }
            SCAN => {
                skip_pixels(&mut reader);
                notes.scans += 1;
            }
            LATER_HEIGHT => return Err(broken_file(kind, "declares its height too late")),
            _ => {}
        }
        notes.take(marker, content, start..reader.at());
    }
    let Some(look) = look.filter(|_| notes.scans > 0) else { return Err(broken_file(kind, "has no pixels")) };
    if look.pixels().saturating_mul(notes.scans) > MAX_SCANNED {
        return Err(too_much(kind, "has too many scans"));
    }
    Ok(HeaderOrWalk::All(notes.into_look(look, reader.remaining_length() > 0)))
}

/// The segments other than pixel data.
#[derive(Default)]
struct Notes {
    kept: Vec<std::ops::Range<usize>>,
    orientation: Option<Orientation>,
    dropped: bool,
    scans: u64,
}

impl Notes {
    fn take(&mut self, marker: u8, content: &[u8], place: std::ops::Range<usize>) {
        if let (0xe1, Some(exif)) = (marker, content.strip_prefix(b"Exif\0\0")) {
            self.orientation = self.orientation.or_else(|| Orientation::from_exif_chunk(exif));
        }
        let stays = match marker {
            0xe0 => content.starts_with(b"JFIF\0"),
            0xe2 => content.starts_with(b"ICC_PROFILE\0"),
            0xee => content.starts_with(b"Adobe"),
            0xe1..=0xef | COMMENT => false,
            _ => true,
        };
        if stays {
            self.kept.push(place);
        } else {
            self.dropped = true;
        }
    }

    fn into_look(self, mut look: ImageLook, more_follows: bool) -> ImageLook {
        self.kept.into_iter().for_each(|range| look.keep(range));
        look.orientation = self.orientation.unwrap_or(Orientation::NoTransforms);
        look.annotated = self.dropped || more_follows;
        look
    }
}

/// Reads the next marker; any number of 0xff bytes may precede it.
fn marker(reader: &mut ByteReader<'_>) -> Result<u8, Failure> {
    let cut = || cut_short(MediaType::Jpeg);
    if reader.byte().ok_or_else(cut)? != 0xff {
        return Err(broken_file(MediaType::Jpeg, "has bytes where a marker should be"));
    }
    loop {
        match reader.byte().ok_or_else(cut)? {
            0xff => {}
            0x00 | 0x01 | 0xd0..=START => {
                return Err(broken_file(MediaType::Jpeg, "has a marker out of place"));
            }
            marker => return Ok(marker),
        }
    }
}

fn segment<'a>(reader: &mut ByteReader<'a>, marker: u8) -> Result<&'a [u8], Failure> {
    let cut = || cut_short(MediaType::Jpeg);
    let length = reader.be16().ok_or_else(cut)?;
    let length = length.checked_sub(2).ok_or_else(|| broken_file(MediaType::Jpeg, "has an empty segment"))?;
    if marker == SCAN && length < 6 {
        return Err(broken_file(MediaType::Jpeg, "has an empty scan"));
    }
    reader.take(usize::from(length)).ok_or_else(cut)
}

/// Moves to the marker after the pixels: a 0xff that is neither escaped nor a restart.
fn skip_pixels(reader: &mut ByteReader<'_>) {
    loop {
        let rest = reader.remainder();
        let Some(at) = rest.iter().position(|byte| *byte == 0xff) else {
            let _to_the_end = reader.take(rest.len());
            return;
        };
        let _there = reader.take(at);
        match rest.get(at + 1) {
            Some(0x00 | 0xd0..=0xd7) => {
                let _past_it = reader.take(2);
            }
            Some(0xff) => {
                let _fill_byte = reader.take(1);
            }
            _ => return,
        }
    }
}

fn frame(marker: u8, content: &[u8]) -> Result<ImageLook, Failure> {
    let senseless = || broken_file(MediaType::Jpeg, "has an invalid header");
    let mut reader = ByteReader::new(content);
    let (Some(8 | 12), Some(height), Some(width), Some(components)) =
        (reader.byte(), reader.be16(), reader.be16(), reader.byte())
    else {
        return Err(senseless());
    };
    if width == 0 || height == 0 || !(1..=4).contains(&components) {
        return Err(senseless());
    }
    let depth = if components == 1 { 1 } else { 3 };
    let mut look = ImageLook::new((u32::from(width), u32::from(height)), depth, depth);
    // A progressive picture stores two bytes of each coefficient until the last scan.
    let samples = samples(&mut reader, components).ok_or_else(senseless)?;
    if !matches!(marker, 0xc0 | 0xc1) {
        look.needed += look.pixels() * 2 * samples.0 / samples.1;
    }
    look.drawn = false;
    Ok(look)
}

/// The average number of samples per pixel, as a fraction: colours are often stored for every second pixel only.
fn samples(reader: &mut ByteReader<'_>, components: u8) -> Option<(u64, u64)> {
    let (mut sum, mut across, mut down) = (0, 1, 1);
    for _ in 0..components {
        let [_, factors, _] = *reader.take(3)?.first_chunk::<3>()?;
        let (wide, high) = (u64::from(factors >> 4), u64::from(factors & 15));
        if !(1..=4).contains(&wide) || !(1..=4).contains(&high) {
            return None;
        }
        sum += wide * high;
        (across, down) = (wide.max(across), high.max(down));
    }
    Some((sum, across * down))
}
