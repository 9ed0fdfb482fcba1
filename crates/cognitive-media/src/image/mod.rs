//! Inspects pictures without decoding them: size, orientation, animation, and the bytes that belong to the picture.
//! Walks through the whole file, so that a truncated one is found here and not at the provider. (E1013)

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

/// The decoded size above which `MAX_RATIO` applies. 20 million colour pixels stay below it.
const LARGE: u64 = 80 << 20;
/// The ratio of decoded size to file size above which a large picture counts as a bomb. (S-32)
const MAX_RATIO: u64 = 100;

/// The result of a walk through a picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImageLook {
    /// Width and height as stored, before rotation.
    size: (u32, u32),
    /// The transformation that a viewer applies first.
    orientation: Orientation,
    /// True if it has more than one frame.
    animated: bool,
    /// True if the file has bytes outside the picture: metadata, thumbnails, trailing bytes.
    annotated: bool,
    /// The size of one decoded pixel in bytes.
    depth: u64,
    /// The peak memory of the decoder in bytes, including the result.
    needed: u64,
    /// True for lossless formats: their pictures count as drawings, not as photographs.
    drawn: bool,
    /// The bytes of the picture, with one frame.
    kept: Vec<Range<usize>>,
}

impl ImageLook {
    /// Creates a result. `depth` is the size of a decoded pixel in bytes, `peak` the decoder's peak memory per pixel.
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

    /// Returns whether the orientation swaps width and height.
    fn swaps_sides(&self) -> bool {
        use Orientation::{Rotate90, Rotate90FlipH, Rotate270, Rotate270FlipH};

        matches!(self.orientation, Rotate90 | Rotate270 | Rotate90FlipH | Rotate270FlipH)
    }

    /// Marks bytes as part of the picture. Merges adjacent ranges, so that most pictures have few.
    fn keep(&mut self, range: Range<usize>) {
        match self.kept.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.kept.push(range),
        }
    }
}

/// The result of a walk. `OnlySize`: the header has a size above the limit, so the walk ended there.
enum HeaderOrWalk {
    All(ImageLook),
    OnlySize((u32, u32)),
}

fn exceeds_limit(size: (u32, u32)) -> bool {
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

/// Returns the facts about a picture. (S-32: E1011; E1013)
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
    facts.size = Some(if look.swaps_sides() { (height, width) } else { (width, height) });
    facts.turned = look.orientation != Orientation::NoTransforms;
    facts.animated = look.animated;
    facts.annotated = look.annotated;
    Ok(facts)
}

/// Returns only the bytes of the picture, without decoding and without loss.
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
