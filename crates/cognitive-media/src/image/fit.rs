//! Converts a picture to a form that a provider accepts, as cheaply as possible: unchanged, else with bytes removed,
//! else decoded and encoded again.

use bytes::Bytes;
use cognitive_contract::media::{AcceptedForm, FormedMedia, MediaType};
use cognitive_contract::{ErrorCode, Failure};
use image::metadata::Orientation;

use super::pixels::{Picture, decode};
use super::{HeaderOrWalk, ImageLook, cut, walk};
use crate::fault::too_much;

/// The memory limit for decoding one picture: four bytes for each pixel of the largest accepted one, and some rows.
/// Scaling takes up to 50 MiB more.
const MAX_MEMORY: u64 = 264 << 20;

/// The longest side of a picture that is encoded again. No provider uses more.
const MAX_SIDE_LENGTH: u32 = 3072;

/// The most pixels of a drawing that is encoded without loss. Larger ones rarely contain small text.
const DRAWING: u64 = 4_000_000;

/// The types that can be encoded. `WebP` is left out: its encoder has only a lossless form, which takes more memory
/// than decoding. Every provider accepts these two.
const WRITABLE: [MediaType; 2] = [MediaType::Png, MediaType::Jpeg];

/// The number of attempts to shrink a picture until its bytes fit. Each one decodes and encodes the picture again.
const ATTEMPTS: u32 = 8;

/// Converts a picture to a form. (E1011, E1013, E4011)
pub(crate) fn fit(bytes: &Bytes, kind: MediaType, form: &AcceptedForm) -> Result<FormedMedia, Failure> {
    let look = match walk(bytes, kind)? {
        HeaderOrWalk::All(look) => look,
        HeaderOrWalk::OnlySize(_) => return Err(too_much(kind, "has too many pixels to be decoded")),
    };
    if form.types.contains(&kind) && is_small(&look, form) && (is_upright(&look) || form.keep_metadata) {
        let whole = !look.animated && (form.keep_metadata || !look.annotated);
        if whole && is_light(bytes, form) {
            return Ok(FormedMedia::AsItIs);
        }
        // An animated WebP, or a picture whose metadata must stay, cannot be reduced to one frame by removing bytes.
        let must_be_decoded = kind == MediaType::Webp && look.animated;
        let can_be_cut = !whole && !form.keep_metadata && !must_be_decoded;
        if let Some(cut) = can_be_cut.then(|| cut(bytes, kind, &look)).filter(|cut| is_light(cut, form)) {
            return Ok(FormedMedia::Changed { media_type: kind, bytes: cut });
        }
    }
    convert(bytes, kind, &look, form)
}

fn is_small(look: &ImageLook, form: &AcceptedForm) -> bool {
    form.longest_side.is_none_or(|longest| look.size.0.max(look.size.1) <= longest)
}

fn is_upright(look: &ImageLook) -> bool {
    look.orientation == Orientation::NoTransforms
}

fn is_light(bytes: &Bytes, form: &AcceptedForm) -> bool {
    form.largest.is_none_or(|largest| u64::try_from(bytes.len()).is_ok_and(|length| length <= largest))
}

fn convert(
    bytes: &Bytes,
    kind: MediaType,
    look: &ImageLook,
    form: &AcceptedForm,
) -> Result<FormedMedia, Failure> {
    if look.needed > MAX_MEMORY {
        let what = format!("would take {} MiB of memory to be decoded", look.needed >> 20);
        return Err(too_much(kind, &what));
    }
    // Checked before decoding, which is expensive.
    if !WRITABLE.iter().any(|kind| form.types.contains(kind)) {
        let message = format!("{kind} cannot be converted to a type that the model accepts");
        return Err(Failure::new(ErrorCode::MultimodalNotSupported, message));
    }
    // The decoder gets the picture without metadata: some metadata unpacks to more than the picture.
    let bare = if look.annotated && kind == MediaType::Png { cut(bytes, kind, look) } else { bytes.clone() };
    let mut picture = decode(&bare, kind, MAX_MEMORY)?;
    let longest = form.longest_side.unwrap_or(MAX_SIDE_LENGTH).clamp(1, MAX_SIDE_LENGTH);
    picture.shrink(longest);
    picture.turn(look.orientation);
    let mut side = picture.longest_side();
    for _ in 0..ATTEMPTS {
        let media_type = choose(&picture, look, form);
        let written = picture.write(media_type)?;
        if is_light(&written, form) {
            return Ok(FormedMedia::Changed { media_type, bytes: written });
        }
        side = (side * 7 / 10).max(1);
        picture.shrink(side);
    }
    Err(too_much(kind, "is too large for the model even at the smallest size"))
}

/// Chooses the type: lossless for transparency and drawings, otherwise JPEG.
fn choose(picture: &Picture, look: &ImageLook, form: &AcceptedForm) -> MediaType {
    let exact = picture.is_transparent() || (look.drawn && picture.pixels() <= DRAWING);
    let [first, second] = if exact { WRITABLE } else { [MediaType::Jpeg, MediaType::Png] };
    if form.types.contains(&first) { first } else { second }
}
