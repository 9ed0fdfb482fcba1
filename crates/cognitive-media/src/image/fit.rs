//! A picture in the form that a provider takes. The cheapest way that does it: as it is, else with bytes cut out, else
//! decoded and written anew.

use bytes::Bytes;
use cognitive_contract::media::{AcceptedForm, Fitted, MediaType};
use cognitive_contract::{ErrorCode, Failure};
use image::metadata::Orientation;

use super::pixels::{Picture, decode};
use super::{HeaderOrWalk, ImageLook, cut, walk};
use crate::fault::too_much;

/// The most memory that decoding one picture may take: four bytes for each pixel of the largest that is taken, and some
/// rows on top. Making it smaller takes up to 40 MiB more.
const MAX_MEMORY: u64 = 264 << 20;

/// What has to be written anew anyway is not written larger than this: no service looks at more.
const MAX_SIDE_LENGTH: u32 = 3072;

/// Up to so many pixels a drawing stays free of loss; larger ones are rarely read letter by letter.
const DRAWING: u64 = 4_000_000;

/// What can be written. `WebP` only without loss, which takes more memory than decoding; every service takes the others.
const WRITABLE: [MediaType; 2] = [MediaType::Png, MediaType::Jpeg];

/// How often a picture is made smaller until its bytes fit.
const ATTEMPTS: u32 = 8;

/// Brings a picture into a form. (E1011, E1013, E4011)
pub(crate) fn fit(bytes: &Bytes, kind: MediaType, form: &AcceptedForm) -> Result<Fitted, Failure> {
    let look = match walk(bytes, kind)? {
        HeaderOrWalk::All(look) => look,
        HeaderOrWalk::OnlySize(_) => return Err(too_much(kind, "has too many pixels to be decoded")),
    };
    if form.types.contains(&kind) && is_small(&look, form) && (is_upright(&look) || form.keep_metadata) {
        let whole = !look.animated && (form.keep_metadata || !look.annotated);
        if whole && is_light(bytes, form) {
            return Ok(Fitted::AsItIs);
        }
        // A film of WebP or with notes that must stay cannot be cut into one frame.
        let must_be_decoded = kind == MediaType::Webp && look.animated;
        let can_be_cut = !whole && !form.keep_metadata && !must_be_decoded;
        if let Some(cut) = can_be_cut.then(|| cut(bytes, kind, &look)).filter(|cut| is_light(cut, form)) {
            return Ok(Fitted::Changed { media_type: kind, bytes: cut });
        }
    }
    write_anew(bytes, kind, &look, form)
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

fn write_anew(
    bytes: &Bytes,
    kind: MediaType,
    look: &ImageLook,
    form: &AcceptedForm,
) -> Result<Fitted, Failure> {
    if look.needed > MAX_MEMORY {
        let what = format!("would take {} MiB of memory to be decoded", look.needed >> 20);
        return Err(too_much(kind, &what));
    }
    // Before anything is decoded: is there a type to write?
    if !WRITABLE.iter().any(|kind| form.types.contains(kind)) {
        let message = format!("{kind} cannot be turned into a type that the model takes");
        return Err(Failure::new(ErrorCode::MultimodalNotSupported, message));
    }
    // The decoder gets the picture without its notes: some of them unpack to more than the picture.
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
            return Ok(Fitted::Changed { media_type, bytes: written });
        }
        side = (side * 7 / 10).max(1);
        picture.shrink(side);
    }
    Err(too_much(kind, "is too large for the model even at the smallest size"))
}

/// The type that suits: no loss for what shows through and for drawings, else a photograph.
fn choose(picture: &Picture, look: &ImageLook, form: &AcceptedForm) -> MediaType {
    let exact = picture.shows_through() || (look.drawn && picture.pixels() <= DRAWING);
    let [first, second] = if exact { WRITABLE } else { [MediaType::Jpeg, MediaType::Png] };
    if form.types.contains(&first) { first } else { second }
}
