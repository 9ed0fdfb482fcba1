//! The properties of a media item that were read from its bytes, and the check of the limits. (E1011, E1015–E1017)
//! Does not read bytes itself.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::kind::{Category, MediaType};
use super::limits::MediaLimits;
use crate::code::ErrorCode;
use crate::failure::Failure;

/// The properties of an item, as read from its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MediaFacts {
    /// The detected type.
    pub media_type: MediaType,
    /// The size in bytes.
    pub bytes: u64,
    /// The width and height in pixels, as displayed.
    pub size: Option<(u32, u32)>,
    /// The duration.
    pub duration: Option<Duration>,
    /// The number of pages.
    pub pages: Option<u32>,
    /// True if animated; only the first frame is sent to a model. (MEDIA-014)
    pub animated: bool,
    /// True if a viewer must rotate or mirror it first.
    pub turned: bool,
    /// True if it contains metadata, such as the location.
    pub annotated: bool,
}

impl MediaFacts {
    /// The properties that every item has.
    #[must_use]
    pub fn new(media_type: MediaType, bytes: u64) -> Self {
        Self {
            media_type,
            bytes,
            size: None,
            duration: None,
            pages: None,
            animated: false,
            turned: false,
            annotated: false,
        }
    }

    /// The entry of `meta.media_validation.validated`. (EXT-MEDIA)
    #[must_use]
    pub fn to_value(&self, index: usize) -> Value {
        let mut entry = Map::new();
        entry.insert("index".to_owned(), json!(index));
        entry.insert("media_type".to_owned(), json!(self.media_type.mime()));
        entry.insert("size_bytes".to_owned(), json!(self.bytes));
        if let Some((width, height)) = self.size {
            entry.insert("dimensions".to_owned(), json!({ "width": width, "height": height }));
        }
        if let Some(duration) = self.duration {
            let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
            entry.insert("duration_ms".to_owned(), json!(milliseconds));
        }
        if let Some(pages) = self.pages {
            entry.insert("pages".to_owned(), json!(pages));
        }
        entry.insert("valid".to_owned(), Value::Bool(true));
        Value::Object(entry)
    }
}

/// Checks an item against the limits.
pub fn judge(facts: &MediaFacts, limits: &MediaLimits) -> Result<(), Failure> {
    let category = facts.media_type.category();
    let most = limits.bytes_of(category);
    if facts.bytes > most {
        return Err(too_large(category, facts.bytes, most));
    }
    if let (Some(length), Some(longest)) = (facts.duration, MediaLimits::length_of(category))
        && length > longest
    {
        let message =
            format!("the {category} lasts {} s, the limit is {} s", length.as_secs(), longest.as_secs());
        return Err(
            Failure::new(ErrorCode::MediaTooLarge, message).suggest("Shorten it, or split it into parts")
        );
    }
    if let Some(pages) = facts.pages.filter(|pages| *pages > limits.most_pages) {
        let message = format!("the document has {pages} pages, the limit is {}", limits.most_pages);
        return Err(Failure::new(ErrorCode::MediaTooLarge, message).suggest("Send only the relevant pages"));
    }
    match (category, facts.size) {
        (Category::Image, Some(size)) => judge_image(size, limits),
        (Category::Video, Some(size)) => judge_video(size, limits),
        (Category::Image | Category::Video, None) | (Category::Audio | Category::Document, _) => Ok(()),
    }
}

fn judge_image((width, height): (u32, u32), limits: &MediaLimits) -> Result<(), Failure> {
    let pixels = u64::from(width) * u64::from(height);
    let (longest, shortest) = (width.max(height), width.min(height));
    let (code, limit) = if pixels > limits.most_pixels {
        (ErrorCode::MediaPixelLimit, format!("{} pixels", limits.most_pixels))
    } else if longest > limits.longest_side {
        (ErrorCode::MediaDimensionExceeded, format!("{} pixels per side", limits.longest_side))
    } else if shortest < limits.shortest_side {
        let message =
            format!("the image is {width}×{height}, the minimum is {} pixels per side", limits.shortest_side);
        return Err(Failure::new(ErrorCode::MediaDimensionTooSmall, message).suggest("Send a larger image"));
    } else {
        return Ok(());
    };
    let message = format!("the image is {width}×{height}, the limit is {limit}");
    Err(Failure::new(code, message).suggest("Scale the image down"))
}

fn judge_video((width, height): (u32, u32), limits: &MediaLimits) -> Result<(), Failure> {
    let (longer, shorter) = limits.video_sides;
    if width.max(height) <= longer && width.min(height) <= shorter {
        return Ok(());
    }
    let message = format!("the video is {width}×{height}, the limit is {longer}×{shorter}");
    Err(Failure::new(ErrorCode::MediaDimensionExceeded, message).suggest("Scale the video down"))
}

/// The failure for an item that has too many bytes. (MEDIA-004)
pub fn too_large(category: Category, bytes: u64, most: u64) -> Failure {
    Failure::new(ErrorCode::MediaTooLarge, format!("the {category} has {bytes} bytes, the limit is {most}"))
        .with_detail("limit_bytes", json!(most))
        .with_detail("size_bytes", json!(bytes))
        .suggest(format!("Send a smaller {category}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(facts: MediaFacts) -> Option<&'static str> {
        judge(&facts, &MediaLimits::default()).err().map(|failure| failure.code().number())
    }

    fn image(width: u32, height: u32) -> MediaFacts {
        MediaFacts { size: Some((width, height)), ..MediaFacts::new(MediaType::Png, 1_000) }
    }

    #[test]
    fn media_004_exactly_at_the_limit_passes() {
        assert_eq!(code(MediaFacts::new(MediaType::Png, 20 << 20)), None);
        assert_eq!(code(MediaFacts::new(MediaType::Png, (20 << 20) + 1)), Some("E1011"));
        assert_eq!(code(MediaFacts::new(MediaType::Pdf, (20 << 20) + 1)), None);
    }

    #[test]
    fn media_006_ten_minutes_of_sound_and_five_of_film() {
        let plays = |kind, seconds| {
            code(MediaFacts { duration: Some(Duration::from_secs(seconds)), ..MediaFacts::new(kind, 9) })
        };
        assert_eq!(plays(MediaType::Wav, 600), None);
        assert_eq!(plays(MediaType::Wav, 660), Some("E1011"));
        assert_eq!(plays(MediaType::Mp4, 300), None);
        assert_eq!(plays(MediaType::Mp4, 301), Some("E1011"));
    }

    #[test]
    fn ext_media_each_size_has_its_code() {
        assert_eq!(code(image(1, 1)), None);
        assert_eq!(code(image(8193, 100)), Some("E1015"));
        assert_eq!(code(image(65_535, 65_535)), Some("E1017"));
        let strict = MediaLimits { shortest_side: 10, ..MediaLimits::default() };
        assert_eq!(judge(&image(9, 100), &strict).unwrap_err().code().number(), "E1016");
        let film = |width, height| {
            code(MediaFacts { size: Some((width, height)), ..MediaFacts::new(MediaType::Mp4, 9) })
        };
        assert_eq!(film(3840, 2160), None);
        assert_eq!(film(2160, 3840), None);
        assert_eq!(film(3840, 2161), Some("E1015"));
    }

    // EXT-MEDIA: 67,108,864 pixels are accepted and one more is E1017; S-32 has no separate lower limit.
    #[test]
    fn pixels_are_counted_as_the_extensions_say() {
        assert_eq!(code(image(7_100, 7_100)), None);
        assert_eq!(code(image(8_192, 8_192)), None);
        assert_eq!(code(image(8_193, 8_193)), Some("E1017"));
    }

    #[test]
    fn a_document_has_an_end() {
        let pages = |pages| code(MediaFacts { pages: Some(pages), ..MediaFacts::new(MediaType::Pdf, 9) });
        assert_eq!(pages(500), None);
        assert_eq!(pages(501), Some("E1011"));
    }
}
