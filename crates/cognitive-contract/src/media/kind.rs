//! The media types of the specification, their categories and their names. (§19.1, §19.2)
//! Supports no other types: unknown ones are rejected before their bytes are read.

use std::fmt;

use crate::manifest::{InputModality, OutputModality};

/// A category of media, named as in `modalities`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Category {
    Image,
    Audio,
    Video,
    Document,
}

impl Category {
    /// All categories.
    pub const ALL: [Self; 4] = [Self::Image, Self::Audio, Self::Video, Self::Document];

    /// The name in `modalities`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Audio => "audio",
            Self::Video => "video",
            Self::Document => "document",
        }
    }

    /// Returns whether a module with these modalities accepts the category.
    #[must_use]
    pub fn is_in(self, taken: &[InputModality]) -> bool {
        taken.iter().any(|modality| modality.word() == self.word())
    }

    /// Returns whether a module with these modalities emits the category.
    #[must_use]
    pub fn is_given(self, given: &[OutputModality]) -> bool {
        given.iter().any(|modality| modality.word() == self.word())
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A supported media type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "`mime` says what each is")]
pub enum MediaType {
    Jpeg,
    Png,
    Webp,
    Gif,
    Mp3,
    Wav,
    Ogg,
    WebmAudio,
    Mp4,
    WebmVideo,
    Quicktime,
    Pdf,
}

/// Every type with its name, category and file extensions (MEDIA-013). The extension `webm` is ambiguous and resolved
/// separately.
const TABLE: [(MediaType, &str, Category, &[&str]); 12] = [
    (MediaType::Jpeg, "image/jpeg", Category::Image, &["jpg", "jpeg"]),
    (MediaType::Png, "image/png", Category::Image, &["png"]),
    (MediaType::Webp, "image/webp", Category::Image, &["webp"]),
    (MediaType::Gif, "image/gif", Category::Image, &["gif"]),
    (MediaType::Mp3, "audio/mpeg", Category::Audio, &["mp3"]),
    (MediaType::Wav, "audio/wav", Category::Audio, &["wav"]),
    (MediaType::Ogg, "audio/ogg", Category::Audio, &["ogg"]),
    (MediaType::WebmAudio, "audio/webm", Category::Audio, &[]),
    (MediaType::Mp4, "video/mp4", Category::Video, &["mp4"]),
    (MediaType::WebmVideo, "video/webm", Category::Video, &[]),
    (MediaType::Quicktime, "video/quicktime", Category::Video, &["mov"]),
    (MediaType::Pdf, "application/pdf", Category::Document, &["pdf"]),
];

/// Common aliases of these types.
const ALIASES: [(&str, MediaType); 9] = [
    ("image/jpg", MediaType::Jpeg),
    ("image/pjpeg", MediaType::Jpeg),
    ("image/x-png", MediaType::Png),
    ("audio/mp3", MediaType::Mp3),
    ("audio/x-wav", MediaType::Wav),
    ("audio/wave", MediaType::Wav),
    ("audio/vnd.wave", MediaType::Wav),
    ("application/ogg", MediaType::Ogg),
    ("application/x-pdf", MediaType::Pdf),
];

impl MediaType {
    /// Returns every supported type.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|(kind, ..)| *kind)
    }

    /// Parses a type name or a common alias. Ignores case and parameters.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let essence = name.split(';').next().unwrap_or_default().trim();
        let same = |known: &str| known.eq_ignore_ascii_case(essence);
        let proper = TABLE.iter().find(|(_, known, ..)| same(known)).map(|(kind, ..)| *kind);
        proper.or_else(|| ALIASES.iter().find(|(known, _)| same(known)).map(|(_, kind)| *kind))
    }

    /// Returns the type for a file name (MEDIA-013). `webm` is video, unless the module accepts audio and no video.
    #[must_use]
    pub fn from_file_name(name: &str, taken: &[InputModality]) -> Option<Self> {
        let (_, extension) = name.rsplit_once('.')?;
        if extension.eq_ignore_ascii_case("webm") {
            let only_audio = Category::Audio.is_in(taken) && !Category::Video.is_in(taken);
            return Some(if only_audio { Self::WebmAudio } else { Self::WebmVideo });
        }
        let known =
            |extensions: &[&str]| extensions.iter().any(|known| known.eq_ignore_ascii_case(extension));
        TABLE.iter().find(|(.., extensions)| known(extensions)).map(|(kind, ..)| *kind)
    }

    fn row(self) -> (&'static str, Category, &'static [&'static str]) {
        let row = TABLE.iter().find(|(kind, ..)| *kind == self);
        row.map_or(
            ("application/octet-stream", Category::Document, &[]),
            |(_, mime, category, extensions)| (*mime, *category, *extensions),
        )
    }

    /// The name in the specification.
    #[must_use]
    pub fn mime(self) -> &'static str {
        self.row().0
    }

    /// Returns the category.
    #[must_use]
    pub fn category(self) -> Category {
        self.row().1
    }

    /// The usual file extension.
    #[must_use]
    pub fn extension(self) -> &'static str {
        self.row().2.first().copied().unwrap_or("webm")
    }

    /// Returns whether an answer may contain it. (§19.2)
    #[must_use]
    pub fn is_output_type(self) -> bool {
        matches!(self, Self::Png | Self::Jpeg | Self::Webp | Self::Mp3 | Self::Wav | Self::Mp4)
    }
}

impl fmt::Display for MediaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.mime())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_003_the_table_and_nothing_else() {
        for kind in MediaType::all() {
            assert_eq!(MediaType::parse(kind.mime()), Some(kind));
        }
        assert_eq!(MediaType::parse("Image/PNG; charset=x"), Some(MediaType::Png));
        assert_eq!(MediaType::parse("audio/x-wav"), Some(MediaType::Wav));
        for unknown in ["image/tiff", "image/svg+xml", "text/html", "image", "", "video/x-msvideo"] {
            assert_eq!(MediaType::parse(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn media_013_a_file_is_what_its_name_says() {
        let of = |name| MediaType::from_file_name(name, &[InputModality::Text, InputModality::Image]);
        assert_eq!(of("a.mov"), Some(MediaType::Quicktime));
        assert_eq!(of("b/c.JPG"), Some(MediaType::Jpeg));
        assert_eq!(of("a.png.exe"), None);
        assert_eq!(of("png"), None);
        assert_eq!(of("a.webm"), Some(MediaType::WebmVideo));
        assert_eq!(MediaType::from_file_name("a.webm", &[InputModality::Audio]), Some(MediaType::WebmAudio));
        let both = [InputModality::Audio, InputModality::Video];
        assert_eq!(MediaType::from_file_name("a.webm", &both), Some(MediaType::WebmVideo));
    }

    #[test]
    fn media_018_few_types_can_be_produced() {
        let produced: Vec<&str> =
            MediaType::all().filter(|kind| kind.is_output_type()).map(MediaType::mime).collect();
        assert_eq!(
            produced,
            ["image/jpeg", "image/png", "image/webp", "audio/mpeg", "audio/wav", "video/mp4"]
        );
    }
}
