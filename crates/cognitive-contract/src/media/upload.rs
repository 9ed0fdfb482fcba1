//! Uploads: media that a caller sends ahead of a run and refers to afterwards, and media of answers that wait for the
//! caller in the same place. (EXT-MEDIA, MEDIA-019)
//! A port and its words only; where the bytes wait, and for how long, is decided behind it.

use std::time::SystemTime;

use bytes::Bytes;

use super::item::Checksum;
use super::kind::MediaType;
use crate::failure::Failure;
use crate::port_future::PortFuture;

/// Someone who keeps uploads. Every upload belongs to the caller who announced it: to everybody else it does not exist.
pub trait UploadStore: Send + Sync {
    /// Makes room for an upload. Nothing is kept in reserve beyond what was announced. (E1011, E4002)
    fn announce(&self, owner: &str, upload: &NewUpload<'_>) -> Result<Announced, Failure>;

    /// Opens an announced upload for its bytes. An upload is received once; an attempt that broke off may be repeated.
    /// (E1018, E1019)
    fn receive<'a>(
        &'a self,
        owner: &'a str,
        id: &'a str,
    ) -> PortFuture<'a, Result<Box<dyn UploadSink>, Failure>>;

    /// Opens an upload that is complete, to give its bytes back. (E1018, E1019)
    fn open<'a>(&'a self, owner: &'a str, id: &'a str) -> PortFuture<'a, Result<KeptUpload, Failure>>;
}

/// Where the bytes of a kept upload come from.
pub trait UploadReader: Send {
    /// The next piece; `None` at the end.
    fn piece(&mut self) -> PortFuture<'_, Result<Option<Bytes>, Failure>>;
}

/// An upload that is complete, open for reading.
#[non_exhaustive]
pub struct KeptUpload {
    /// Its name, as it was announced.
    pub filename: String,
    /// What it is.
    pub media_type: MediaType,
    /// How many bytes it has.
    pub size_bytes: u64,
    /// The bytes.
    pub reader: Box<dyn UploadReader>,
}

impl KeptUpload {
    /// An upload that is complete.
    #[must_use]
    pub fn new(
        filename: String,
        media_type: MediaType,
        size_bytes: u64,
        reader: Box<dyn UploadReader>,
    ) -> Self {
        Self { filename, media_type, size_bytes, reader }
    }
}

impl std::fmt::Debug for KeptUpload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeptUpload").field("filename", &self.filename).finish_non_exhaustive()
    }
}

/// Where the bytes of one upload go. Dropped before the end, it leaves nothing behind.
pub trait UploadSink: Send {
    /// Takes the next piece. (E1011)
    fn piece(&mut self, piece: Bytes) -> PortFuture<'_, Result<(), Failure>>;

    /// Ends the upload: all of its bytes are there, and they are the announced ones. From now on it can be referred to.
    /// (E1013 for a wrong number of bytes, E1020)
    fn finish(self: Box<Self>) -> PortFuture<'static, Result<(), Failure>>;
}

/// What a caller says about an upload before sending it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewUpload<'a> {
    /// Its name, for people. Never a path here.
    pub filename: &'a str,
    /// What it is.
    pub media_type: MediaType,
    /// How many bytes it has.
    pub size_bytes: u64,
    /// What they hash to.
    pub checksum: Option<Checksum<'a>>,
}

impl<'a> NewUpload<'a> {
    /// An upload without a checksum.
    #[must_use]
    pub fn new(filename: &'a str, media_type: MediaType, size_bytes: u64) -> Self {
        Self { filename, media_type, size_bytes, checksum: None }
    }

    /// With a checksum that its bytes must have.
    #[must_use]
    pub fn checked(mut self, checksum: Checksum<'a>) -> Self {
        self.checksum = Some(checksum);
        self
    }
}

/// An upload that is expected.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Announced {
    /// Its id. Cannot be guessed, and is safe in a URL and in a file name.
    pub id: String,
    /// When it ends to exist, received or not.
    pub expires_at: SystemTime,
    /// The most bytes that are taken: what was announced.
    pub max_size_bytes: u64,
}

impl Announced {
    /// An upload that is expected.
    #[must_use]
    pub fn new(id: String, expires_at: SystemTime, max_size_bytes: u64) -> Self {
        Self { id, expires_at, max_size_bytes }
    }
}
