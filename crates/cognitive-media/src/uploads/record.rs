//! The record of an upload, stored next to its bytes. The owner is stored as a hash, so that the folder reveals nothing
//! about callers. An unreadable record counts as missing.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use cognitive_contract::media::{MediaType, NewUpload};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::checksum::hex;
use crate::platform;

/// The file of a record. Written once, before the id of the upload is returned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) owner: String,
    pub(super) filename: String,
    pub(super) media_type: String,
    pub(super) size_bytes: u64,
    /// The algorithm and the digits.
    pub(super) checksum: Option<(String, String)>,
    /// Seconds since 1970.
    pub(super) expires_at: u64,
}

impl Record {
    pub(super) fn new(owner: &str, upload: &NewUpload<'_>, expires_at: SystemTime) -> Self {
        let checksum = upload.checksum.map(|sum| (sum.algorithm.to_owned(), sum.value.to_owned()));
        Self {
            owner: owner_hash(owner),
            filename: upload.filename.chars().take(255).collect(),
            media_type: upload.media_type.mime().to_owned(),
            size_bytes: upload.size_bytes,
            checksum,
            expires_at: seconds(expires_at),
        }
    }

    pub(super) fn belongs_to(&self, owner: &str) -> bool {
        self.owner == owner_hash(owner)
    }

    pub(super) fn has_ended(&self, now: SystemTime) -> bool {
        seconds(now) >= self.expires_at
    }

    /// Returns whether it expired so long ago that its record can be deleted.
    pub(super) fn is_forgotten(&self, now: SystemTime, remembered: Duration) -> bool {
        seconds(now) >= self.expires_at.saturating_add(remembered.as_secs())
    }

    pub(super) fn media_type(&self) -> Option<MediaType> {
        MediaType::parse(&self.media_type)
    }

    /// Writes the record completely or not at all: other servers may read the folder at any moment.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        let staged = path.with_extension("new");
        let mut file = platform::create_private_file(&staged)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        fs::rename(&staged, path)
    }

    pub(super) fn read(path: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }
}

pub(super) fn owner_hash(owner: &str) -> String {
    hex(&Sha256::digest(owner))
}

pub(super) fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The files of one upload.
#[derive(Debug, Clone)]
pub(super) struct Paths {
    pub(super) record: PathBuf,
    pub(super) data: PathBuf,
    /// The bytes received so far.
    pub(super) part: PathBuf,
}

impl Paths {
    pub(super) fn new(folder: &Path, id: &str) -> Self {
        let file = |extension: &str| folder.join(format!("{id}.{extension}"));
        Self { record: file("json"), data: file("data"), part: file("part") }
    }

    /// Returns whether a text has the form of an id. Ids come from callers, so no other text may become a path.
    pub(super) fn is_id(text: &str) -> bool {
        text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    }
}
