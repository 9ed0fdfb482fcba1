//! What the runtime needs for media from outside: bytes that are elsewhere, a look into them, and a form that a provider
//! takes. Implementations guard addresses, paths and decoders; the runtime only knows when to ask.

use std::path::Path;

use bytes::Bytes;

use super::facts::MediaFacts;
use super::item::Checksum;
use super::kind::{Category, MediaType};
use crate::failure::Failure;
use crate::port_future::PortFuture;

/// Someone who gets media and looks into them. Failures carry one of the codes E1010–E1020, or E4007.
pub trait MediaSource: Send + Sync {
    /// Gets the bytes that an item refers to, and no more of them than wanted. (E1011, E1012, E1018, E1019, E4007)
    fn load<'a>(&'a self, wanted: &'a WantedMedia<'a>) -> PortFuture<'a, Result<LoadedMedia, Failure>>;

    /// Whether the bytes of an item hash to what it says; takes time for large ones. (E1020)
    fn verify<'a>(&'a self, bytes: Bytes, checksum: &'a Checksum<'a>) -> PortFuture<'a, Result<(), Failure>>;

    /// Looks into the bytes of an item: are they what it claims to be, and how large is what they show? Nothing beyond
    /// the limits of a header is decoded. (E1011, E1013, E1014)
    fn examine(&self, bytes: Bytes, claimed: MediaType) -> PortFuture<'_, Result<MediaFacts, Failure>>;

    /// Brings an item into a form that a provider takes: smaller, upright, one frame, without notes about itself.
    /// Without a form, its text is asked for. (E1011, E1013)
    fn fit<'a>(
        &'a self,
        bytes: Bytes,
        facts: &'a MediaFacts,
        form: Option<&'a AcceptedForm>,
    ) -> PortFuture<'a, Result<Fitted, Failure>>;
}

/// Someone who gets what stands at an address, after having made sure that the address is one of the public network.
pub trait UrlFetch: Send + Sync {
    /// Gets the bytes at an address, and no more of them than the largest item may have. (E1011, E1012)
    fn fetch<'a>(&'a self, url: &'a str, largest: u64) -> PortFuture<'a, Result<LoadedMedia, Failure>>;
}

/// The bytes that are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WantedMedia<'a> {
    /// Where they are.
    pub reference: Reference<'a>,
    /// The most that may be read.
    pub largest: u64,
    /// Whether the one who asks is at the other end of a network. Their files are not those of this machine. (SEC-010)
    pub remote: bool,
    /// Who asks, for what was uploaded.
    pub owner: Option<&'a str>,
    /// What a relative path is relative to; a module that came from no folder has none. (MEDIA-012)
    pub folder: Option<&'a Path>,
}

impl<'a> WantedMedia<'a> {
    /// Bytes for somebody on this machine.
    #[must_use]
    pub fn new(reference: Reference<'a>, largest: u64) -> Self {
        Self { reference, largest, remote: false, owner: None, folder: None }
    }
}

/// Where bytes are that are not in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reference<'a> {
    /// At an address.
    Url(&'a str),
    /// In a file.
    File(&'a str),
    /// Uploaded before, under this id.
    Upload(&'a str),
}

/// Bytes, and what their source said about them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadedMedia {
    /// All of them.
    pub bytes: Bytes,
    /// The type that the source named.
    pub media_type: Option<String>,
}

impl LoadedMedia {
    /// Bytes with a type, if their source named one.
    #[must_use]
    pub fn new(bytes: Bytes, media_type: Option<String>) -> Self {
        Self { bytes, media_type }
    }
}

/// What a provider takes of one category.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AcceptedForm {
    /// The types, the one to convert to first.
    pub types: &'static [MediaType],
    /// The longest side of an image that makes sense to send; the service would scale it down anyway.
    pub longest_side: Option<u32>,
    /// The most bytes of one item.
    pub largest: Option<u64>,
    /// Whether notes about an image stay in it. (S-30)
    pub keep_metadata: bool,
}

impl AcceptedForm {
    /// Types without further limits.
    #[must_use]
    pub fn of(types: &'static [MediaType]) -> Self {
        Self { types, longest_side: None, largest: None, keep_metadata: false }
    }

    /// With a longest side for images.
    #[must_use]
    pub fn sized(mut self, longest_side: u32) -> Self {
        self.longest_side = Some(longest_side);
        self
    }

    /// With a most for the bytes of one item.
    #[must_use]
    pub fn up_to(mut self, largest: u64) -> Self {
        self.largest = Some(largest);
        self
    }
}

/// An item in the form that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fitted {
    /// It had it already; what the caller sent can be passed on untouched.
    AsItIs,
    /// Other bytes.
    Changed {
        /// What they are.
        media_type: MediaType,
        /// All of them.
        bytes: Bytes,
    },
    /// The text of a document.
    Text(String),
}

/// One item as a provider sends it. The text is shared, never copied: it can be most of a gigabyte.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MediaPart {
    /// Its number among the items of the input.
    pub index: usize,
    /// What it is.
    pub media_type: MediaType,
    /// Its bytes as base64, with padding and without line breaks.
    pub base64: Bytes,
}

impl MediaPart {
    /// A part.
    #[must_use]
    pub fn new(index: usize, media_type: MediaType, base64: Bytes) -> Self {
        Self { index, media_type, base64 }
    }

    /// What kind of media it is.
    #[must_use]
    pub fn category(&self) -> Category {
        self.media_type.category()
    }
}

/// A medium that a model produced beside its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reported {
    /// What the service calls it.
    pub media_type: String,
    /// Its bytes as base64.
    pub base64: String,
}
