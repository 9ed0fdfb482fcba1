//! The ports for external media: loading bytes, examining them, and converting them to a form that a provider accepts.
//! Implementations guard addresses, paths and decoders; the runtime only decides when to call them.

use std::path::Path;

use bytes::Bytes;

use super::facts::MediaFacts;
use super::item::Checksum;
use super::kind::{Category, MediaType};
use crate::failure::Failure;
use crate::port_future::PortFuture;

/// Loads and examines media. Failures carry one of the codes E1010–E1020, or E4007.
pub trait MediaSource: Send + Sync {
    /// Loads the bytes that an item refers to, up to the limit. (E1011, E1012, E1018, E1019, E4007)
    fn load<'a>(&'a self, wanted: &'a WantedMedia<'a>) -> PortFuture<'a, Result<LoadedMedia, Failure>>;

    /// Verifies the checksum of an item's bytes; slow for large items. (E1020)
    fn verify<'a>(&'a self, bytes: Bytes, checksum: &'a Checksum<'a>) -> PortFuture<'a, Result<(), Failure>>;

    /// Examines the bytes of an item: checks that they have the claimed type, and reads their dimensions. Decodes
    /// nothing beyond the limits of a header. (E1011, E1013, E1014)
    fn examine(&self, bytes: Bytes, claimed: MediaType) -> PortFuture<'_, Result<MediaFacts, Failure>>;

    /// Converts an item to a form that a provider accepts: smaller, upright, one frame, without metadata. Without a
    /// form, extracts its text. (E1011, E1013)
    fn fit<'a>(
        &'a self,
        bytes: Bytes,
        facts: &'a MediaFacts,
        form: Option<&'a AcceptedForm>,
    ) -> PortFuture<'a, Result<FormedMedia, Failure>>;
}

/// Fetches URLs, after verifying that the address is on the public network.
pub trait UrlFetch: Send + Sync {
    /// Fetches the bytes at a URL, up to the maximum size of an item. (E1011, E1012)
    fn fetch<'a>(&'a self, url: &'a str, largest: u64) -> PortFuture<'a, Result<LoadedMedia, Failure>>;
}

/// A request for the bytes of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WantedMedia<'a> {
    /// The location.
    pub reference: Reference<'a>,
    /// The maximum number of bytes to read.
    pub largest: u64,
    /// True if the caller is remote. A remote caller's file paths do not refer to this machine. (SEC-010)
    pub remote: bool,
    /// The caller, for access to uploads.
    pub owner: Option<&'a str>,
    /// The base folder of relative paths; a module without a folder has none. (MEDIA-012)
    pub folder: Option<&'a Path>,
}

impl<'a> WantedMedia<'a> {
    /// A request from a local caller.
    #[must_use]
    pub fn new(reference: Reference<'a>, largest: u64) -> Self {
        Self { reference, largest, remote: false, owner: None, folder: None }
    }
}

/// The location of bytes that are outside the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reference<'a> {
    /// At a URL.
    Url(&'a str),
    /// In a file.
    File(&'a str),
    /// Previously uploaded, under this id.
    Upload(&'a str),
}

/// Bytes, and the type that their source reported.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadedMedia {
    /// All bytes.
    pub bytes: Bytes,
    /// The type that the source reported.
    pub media_type: Option<String>,
}

impl LoadedMedia {
    /// Bytes with the type that their source reported, if any.
    #[must_use]
    pub fn new(bytes: Bytes, media_type: Option<String>) -> Self {
        Self { bytes, media_type }
    }
}

/// The form in which a provider accepts one category.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AcceptedForm {
    /// The accepted types; the first one is the target of conversion.
    pub types: &'static [MediaType],
    /// The maximum useful side length of an image; the provider would scale larger ones down anyway.
    pub longest_side: Option<u32>,
    /// The maximum bytes of one item.
    pub largest: Option<u64>,
    /// True if metadata of an image is preserved. (S-30)
    pub keep_metadata: bool,
}

impl AcceptedForm {
    /// The accepted types, without further limits.
    #[must_use]
    pub fn from_types(types: &'static [MediaType]) -> Self {
        Self { types, longest_side: None, largest: None, keep_metadata: false }
    }

    /// Sets the maximum side length of images.
    #[must_use]
    pub fn with_longest_side(mut self, longest_side: u32) -> Self {
        self.longest_side = Some(longest_side);
        self
    }

    /// Sets the maximum bytes of one item.
    #[must_use]
    pub fn up_to(mut self, largest: u64) -> Self {
        self.largest = Some(largest);
        self
    }
}

/// An item in the requested form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FormedMedia {
    /// Already in this form; the original can be passed on unchanged.
    AsItIs,
    /// Converted.
    Changed {
        /// The new type.
        media_type: MediaType,
        /// All bytes.
        bytes: Bytes,
    },
    /// The text of a document.
    Text(String),
}

/// One item as a provider sends it. The base64 text is shared, never copied: it can be most of a gigabyte.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MediaPart {
    /// Its number among the items of the input.
    pub index: usize,
    /// Its type.
    pub media_type: MediaType,
    /// Its bytes as base64, with padding and without line breaks.
    pub base64: Bytes,
}

impl MediaPart {
    /// One item.
    #[must_use]
    pub fn new(index: usize, media_type: MediaType, base64: Bytes) -> Self {
        Self { index, media_type, base64 }
    }

    /// Returns its category.
    #[must_use]
    pub fn category(&self) -> Category {
        self.media_type.category()
    }
}

/// A media item that a model produced in addition to its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedMedia {
    /// The type as reported by the provider.
    pub media_type: String,
    /// Its bytes as base64.
    pub base64: String,
}
