//! Pictures without decoding them: how large, which way up, moving or not, and which of their bytes are the picture.
//! Walks through the whole file, so one that ends too early is found here and not at the provider. (E1013)

mod fit;
mod gif;
mod jpeg;
mod pixels;
mod png;
mod webp;

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use cognitive_contract::Failure;
use cognitive_contract::media::{MediaFacts, MediaLimits, MediaType};
use image::metadata::Orientation;

use crate::fault::{cut_short, too_much};

pub(crate) use fit::fit;

/// A picture that gets larger than this by being decoded, which 20 million pixels in colour do not ...
const LARGE: u64 = 80 << 20;
/// ... and by more than this factor is a bomb, whatever it shows. (S-32)
const MAX_RATIO: u64 = 100;

/// What a walk through a picture found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImageLook {
    /// Width and height as they are stored.
    size: (u32, u32),
    /// What a viewer does to it first.
    orientation: Orientation,
    /// Whether there is more than one frame.
    animated: bool,
    /// Whether something is in the file that is no part of the picture: notes, thumbnails, whatever follows its end.
    annotated: bool,
    /// Bytes of one decoded pixel.
    depth: u64,
    /// Bytes that the decoder needs at its peak, the result included.
    needed: u64,
    /// Whether it is drawn rather than photographed: the formats without loss.
    drawn: bool,
    /// The bytes that are the picture, one frame of it.
    kept: Vec<Range<usize>>,
}

impl ImageLook {
    /// With the bytes of a decoded pixel, and those that the decoder needs for one at its peak.
    fn new(size: (u32, u32), depth: u64, peak: u64) -> Self {
        Self {
            size,
            orientation: Orientation::NoTransforms,
            animated: false,
            annotated: false,
            depth,
            needed: (u64::from(size.0) * u64::from(size.1)).saturating_mul(peak),
            drawn: true,
            kept: Vec::new(),
        }
    }

    fn pixels(&self) -> u64 {
        u64::from(self.size.0) * u64::from(self.size.1)
    }

    /// Whether width and height change places.
    fn lies(&self) -> bool {
        use Orientation::{Rotate90, Rotate90FlipH, Rotate270, Rotate270FlipH};

        matches!(self.orientation, Rotate90 | Rotate270 | Rotate90FlipH | Rotate270FlipH)
    }

    /// Marks bytes as part of the picture. Neighbours become one range, so that most pictures have few.
    fn keep(&mut self, range: Range<usize>) {
        match self.kept.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.kept.push(range),
        }
    }
}

/// A size beyond any limit is known from the header, and then the rest is not worth a walk.
enum HeaderOrWalk {
    All(ImageLook),
    OnlySize((u32, u32)),
}

fn is_beyond(size: (u32, u32)) -> bool {
    u64::from(size.0) * u64::from(size.1) > MediaLimits::default().most_pixels
}

fn walk(bytes: &[u8], kind: MediaType) -> Result<HeaderOrWalk, Failure> {
    match kind {
        MediaType::Png => png::walk(bytes),
        MediaType::Jpeg => jpeg::walk(bytes),
        MediaType::Gif => gif::walk(bytes),
        MediaType::Webp => webp::walk(bytes),
        _ => Err(cut_short(kind)),
    }
}

/// The facts about a picture. (S-32: E1011; E1013)
pub(crate) fn examine(bytes: &[u8], kind: MediaType) -> Result<MediaFacts, Failure> {
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let mut facts = MediaFacts::new(kind, length);
    let look = match walk(bytes, kind)? {
        HeaderOrWalk::All(look) => look,
        HeaderOrWalk::OnlySize(size) => {
            facts.size = Some(size);
            return Ok(facts);
        }
    };
    let decoded = look.pixels() * look.depth;
    if decoded > LARGE && decoded / length.max(1) > MAX_RATIO {
        return Err(too_much(kind, "grows more than a hundredfold when it is decoded"));
    }
    let (width, height) = look.size;
    facts.size = Some(if look.lies() { (height, width) } else { (width, height) });
    facts.turned = look.orientation != Orientation::NoTransforms;
    facts.animated = look.animated;
    facts.annotated = look.annotated;
    Ok(facts)
}

/// The bytes of the picture and no others. Nothing is decoded, nothing is lost.
fn cut(bytes: &Bytes, kind: MediaType, look: &ImageLook) -> Bytes {
    let parts = look.kept.iter().filter_map(|range| bytes.get(range.clone()));
    let mut cut = BytesMut::with_capacity(look.kept.iter().map(|range| range.end - range.start).sum());
    parts.for_each(|part| cut.extend_from_slice(part));
    match kind {
        MediaType::Gif => cut.extend_from_slice(&[gif::TRAILER]),
        MediaType::Webp => webp::mend(&mut cut),
        _ => {}
    }
    cut.freeze()
}
