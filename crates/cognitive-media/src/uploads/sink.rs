//! Receives one upload and writes it to the disk. Counts the bytes as they arrive; only an upload with the announced
//! size and checksum gets its final name.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use bytes::Bytes;
use cognitive_contract::media::UploadSink;
use cognitive_contract::ports::PortFuture;
use cognitive_contract::{ErrorCode, Failure};

use super::record::{Paths, Record};
use super::{UploadState, Uploads};
use crate::checksum::{Hasher, compare};
use crate::fault::{server_failure, too_many_bytes};
use crate::platform;

pub(super) struct Sink {
    uploads: Uploads,
    id: String,
    paths: Paths,
    record: Record,
    /// `None` while a chunk is being written.
    open: Option<OpenUpload>,
    done: bool,
}

struct OpenUpload {
    file: File,
    hasher: Option<Hasher>,
    length: u64,
}

impl Sink {
    pub(super) fn open(uploads: Uploads, id: &str, record: Record) -> Result<Self, Failure> {
        let paths = Paths::new(&uploads.0.folder, id);
        let hasher = record.checksum.as_ref().and_then(|(algorithm, _)| Hasher::new(algorithm));
        // From here on, dropping the sink restores the state, even if the file cannot be created.
        let mut sink = Self { id: id.to_owned(), paths, record, open: None, done: false, uploads };
        // Removes the leftovers of an earlier attempt that could not clean up.
        remove_abandoned(&sink.paths.part);
        let file = match platform::create_private_file(&sink.paths.part) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                // The file belongs to another server, which is still receiving it.
                sink.done = true;
                sink.uploads.0.set(id, UploadState::Announced);
                return Err(upload_in_use());
            }
            created => created.map_err(|error| server_failure("the upload cannot be stored", &error))?,
        };
        // After this, no other server removes the file. One may have done so just now, which the check finds. File
        // systems without locks are used by one server only.
        if matches!(file.try_lock(), Err(TryLockError::WouldBlock))
            || !platform::is_at(&file, &sink.paths.part)
        {
            sink.done = true;
            sink.uploads.0.set(id, UploadState::Announced);
            return Err(upload_in_use());
        }
        sink.open = Some(OpenUpload { file, hasher, length: 0 });
        Ok(sink)
    }

    fn end(&mut self) -> Result<(), Failure> {
        let Some(open) = self.open.take() else { return Err(interrupted_upload()) };
        if open.length != self.record.size_bytes {
            let message = format!("{} bytes were announced, {} arrived", self.record.size_bytes, open.length);
            return Err(Failure::new(ErrorCode::MediaDecodeFailed, message).suggest("Send the whole file"));
        }
        if let (Some(hasher), Some((algorithm, digits))) = (open.hasher, &self.record.checksum) {
            compare(hasher, algorithm, digits)?;
        }
        fs::rename(&self.paths.part, &self.paths.data)
            .map_err(|error| server_failure("the upload cannot be stored", &error))?;
        drop(open.file);
        self.done = true;
        self.uploads.0.set(&self.id, UploadState::Complete);
        Ok(())
    }
}

impl UploadSink for Sink {
    fn piece(&mut self, piece: Bytes) -> PortFuture<'_, Result<(), Failure>> {
        Box::pin(async move {
            let Some(mut open) = self.open.take() else { return Err(interrupted_upload()) };
            let length = open.length.saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
            if length > self.record.size_bytes {
                return Err(too_many_bytes(self.record.size_bytes));
            }
            let written = tokio::task::spawn_blocking(move || {
                open.file.write_all(&piece)?;
                if let Some(hasher) = &mut open.hasher {
                    hasher.update(&piece);
                }
                open.length = length;
                Ok(open)
            });
            let written = written.await.map_err(|_| interrupted_upload())?;
            self.open = Some(written.map_err(|error| server_failure("the upload cannot be stored", &error))?);
            Ok(())
        })
    }

    fn finish(mut self: Box<Self>) -> PortFuture<'static, Result<(), Failure>> {
        Box::pin(async move { self.end() })
    }
}

impl Drop for Sink {
    /// Resets an unfinished upload to announced.
    fn drop(&mut self) {
        if !self.done {
            self.open = None;
            let _was_never_created = fs::remove_file(&self.paths.part);
            self.uploads.0.set(&self.id, UploadState::Announced);
        }
    }
}

/// Removes a partial file that no server is receiving.
pub(super) fn remove_abandoned(part: &Path) {
    let Ok(file) = OpenOptions::new().write(true).open(part) else { return };
    // Only the holder of the lock on the current file may remove it.
    if !matches!(file.try_lock(), Err(TryLockError::WouldBlock)) && platform::is_at(&file, part) {
        let _tried = fs::remove_file(part);
    }
}

/// The error for an upload whose bytes are complete or being received.
pub(super) fn upload_in_use() -> Failure {
    Failure::new(ErrorCode::InvalidInput, "the upload is complete or in progress")
}

fn interrupted_upload() -> Failure {
    Failure::new(ErrorCode::InternalError, "the upload was interrupted").suggest("Send it again")
}
