//! Uploads: media that a caller sends before a run and then refers to, and media of answers that wait in the same
//! store. (EXT-MEDIA, MEDIA-019)
//! Contains only the port and its types. The implementation decides the location and lifetime of the bytes.

use std::time::SystemTime;

use bytes::Bytes;

use super::item::Checksum;
use super::kind::MediaType;
use crate::failure::Failure;
use crate::port_future::PortFuture;

/// A store for uploads. Every upload belongs to the caller who announced it, and does not exist for other callers.
pub trait UploadStore: Send + Sync {
    /// Reserves space for an upload, and no more than announced. (E1011, E4002)
    fn announce(&self, owner: &str, upload: &NewUpload<'_>) -> Result<AnnouncedUpload, Failure>;

    /// Opens an announced upload to receive its bytes. An upload is received once; an interrupted attempt may be
    /// repeated. (E1018, E1019)
    fn receive<'a>(
        &'a self,
        owner: &'a str,
        id: &'a str,
    ) -> PortFuture<'a, Result<Box<dyn UploadSink>, Failure>>;

    /// Opens a complete upload for reading. (E1018, E1019)
    fn open<'a>(&'a self, owner: &'a str, id: &'a str) -> PortFuture<'a, Result<KeptUpload, Failure>>;
}

/// A reader for the bytes of a stored upload.
pub trait UploadReader: Send {
    /// Returns the next piece; `None` at the end.
    fn piece(&mut self) -> PortFuture<'_, Result<Option<Bytes>, Failure>>;
}

/// A complete upload, open for reading.
#[non_exhaustive]
pub struct KeptUpload {
    /// Its name, as it was announced.
    pub filename: String,
    /// Its type.
    pub media_type: MediaType,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// The bytes.
    pub reader: Box<dyn UploadReader>,
}

impl KeptUpload {
    /// A complete upload.
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

/// A writer for the bytes of one upload. If dropped before the end, it leaves nothing behind.
pub trait UploadSink: Send {
    /// Writes the next piece. (E1011)
    fn piece(&mut self, piece: Bytes) -> PortFuture<'_, Result<(), Failure>>;

    /// Completes the upload after checking that its bytes match the announcement. From now on, inputs can refer to it.
    /// (E1013 for a wrong number of bytes, E1020)
    fn finish(self: Box<Self>) -> PortFuture<'static, Result<(), Failure>>;
}

/// The announcement of an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewUpload<'a> {
    /// Its name, for display. Never used as a path here.
    pub filename: &'a str,
    /// Its type.
    pub media_type: MediaType,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// The expected checksum of its bytes.
    pub checksum: Option<Checksum<'a>>,
}

impl<'a> NewUpload<'a> {
    /// An upload without a checksum.
    #[must_use]
    pub fn new(filename: &'a str, media_type: MediaType, size_bytes: u64) -> Self {
        Self { filename, media_type, size_bytes, checksum: None }
    }

    /// Adds a checksum that its bytes must match.
    #[must_use]
    pub fn with_checksum(mut self, checksum: Checksum<'a>) -> Self {
        self.checksum = Some(checksum);
        self
    }
}

/// An announced upload that has not arrived yet.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnnouncedUpload {
    /// Its id. It cannot be guessed, and is safe in a URL and a file name.
    pub id: String,
    /// The time of expiry, whether received or not.
    pub expires_at: SystemTime,
    /// The maximum size in bytes: the announced size.
    pub max_size_bytes: u64,
}

impl AnnouncedUpload {
    /// An announced upload.
    #[must_use]
    pub fn new(id: String, expires_at: SystemTime, max_size_bytes: u64) -> Self {
        Self { id, expires_at, max_size_bytes }
    }
}
