//! Uploads on disk: announced, received in chunks, stored until they expire. Each has two files, in one folder that is
//! closed to other users. A restart finds them again. (EXT-MEDIA)
//!
//! Several servers may share the folder and need no other coordination: an upload announced at one can be received by
//! any and found by all. The receiving server locks the partial file, so no other server removes it or receives the
//! same upload.
//!
//! An upload belongs to the owner that announced it, and its id cannot be guessed. For other owners it does not exist.

mod reader;
mod record;
mod sink;
#[cfg(test)]
#[cfg(unix)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use cognitive_contract::code::Blame;
use cognitive_contract::lock::Lock;
use cognitive_contract::media::{
    AnnouncedUpload, KeptUpload, LoadedMedia, NewUpload, UploadSink, UploadStore,
};
use cognitive_contract::ports::PortFuture;
use cognitive_contract::{ErrorCode, Failure};

use crate::fault::{server_failure, too_many_bytes};
use crate::platform;
use reader::StoredUpload;
use record::{Paths, Record, owner_hash};
use sink::Sink;

/// The time after which an expired upload is forgotten. Until then, it is reported as expired.
const REMEMBERED: Duration = Duration::from_hours(24);

/// The limits for uploads.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UploadLimits {
    /// The time until an upload expires.
    pub lifetime: Duration,
    /// The most bytes of one owner.
    pub bytes_per_owner: u64,
    /// The most uploads of one owner.
    pub uploads_per_owner: usize,
    /// The most bytes of all owners together.
    pub bytes_together: u64,
}

impl Default for UploadLimits {
    fn default() -> Self {
        Self {
            lifetime: Duration::from_hours(1),
            bytes_per_owner: 1 << 30,
            uploads_per_owner: 100,
            bytes_together: 8 << 30,
        }
    }
}

/// The source of the current time.
type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// The uploads in one folder. Cheap to clone; all clones share one store.
#[derive(Clone)]
pub struct Uploads(Arc<UploadIndex>);

struct UploadIndex {
    folder: PathBuf,
    limits: UploadLimits,
    clock: Clock,
    known: Lock<HashMap<String, KnownUpload>>,
    /// True if other servers accept uploads too, possibly in other folders.
    has_others: AtomicBool,
}

struct KnownUpload {
    record: Record,
    state: UploadState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UploadState {
    Announced,
    Receiving,
    Complete,
    /// The upload has expired and its bytes are deleted; only its record exists.
    Ended,
}

impl KnownUpload {
    /// Restores an upload from the folder.
    fn on_disk(record: Record, paths: &Paths) -> Self {
        let mut upload = Self { record, state: UploadState::Announced };
        upload.refresh_completion(paths);
        upload
    }

    /// Marks the upload as complete if another server that shares the folder has received all bytes.
    fn refresh_completion(&mut self, paths: &Paths) {
        let is_whole = || fs::metadata(&paths.data).is_ok_and(|found| found.len() == self.record.size_bytes);
        if self.state == UploadState::Announced && is_whole() {
            self.state = UploadState::Complete;
        }
    }

    /// Returns whether the upload has expired, and deletes its bytes unless they are being received.
    fn end_in_time(&mut self, paths: &Paths, now: SystemTime) -> bool {
        if self.state == UploadState::Ended || !self.record.has_ended(now) {
            return self.state == UploadState::Ended;
        }
        if self.state != UploadState::Receiving {
            let _was_never_received = fs::remove_file(&paths.data);
            self.state = UploadState::Ended;
        }
        true
    }
}

impl fmt::Debug for Uploads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Uploads").field("folder", &self.0.folder).finish_non_exhaustive()
    }
}

impl Uploads {
    /// Opens a folder, creates it if needed, and loads the uploads in it.
    pub fn open(
        folder: PathBuf,
        limits: UploadLimits,
        clock: impl Fn() -> SystemTime + Send + Sync + 'static,
    ) -> Result<Self, Failure> {
        let failed = |error: &std::io::Error| server_failure("the upload folder is unavailable", error);
        platform::create_private_folder(&folder).map_err(|error| failed(&error))?;
        let mut known = HashMap::new();
        for entry in fs::read_dir(&folder).map_err(|error| failed(&error))?.flatten() {
            let path = entry.path();
            let (Some(id), Some(extension)) = (
                path.file_stem().and_then(|stem| stem.to_str()).filter(|stem| Paths::is_id(stem)),
                path.extension().and_then(|extension| extension.to_str()),
            ) else {
                continue;
            };
            let paths = Paths::new(&folder, id);
            match extension {
                "part" => sink::remove_abandoned(&path),
                "json" => match Record::read(&path) {
                    Some(record) => drop(known.insert(id.to_owned(), KnownUpload::on_disk(record, &paths))),
                    None => drop(fs::remove_file(&path)),
                },
                "data" if !paths.record.exists() => drop(fs::remove_file(&path)),
                _ => {}
            }
        }
        let (clock, known) = (Arc::new(clock), Lock::new(known));
        let uploads =
            Self(Arc::new(UploadIndex { folder, limits, clock, known, has_others: AtomicBool::new(false) }));
        uploads.collect();
        Ok(uploads)
    }

    /// Records that other servers accept uploads too. The error for an unknown id then mentions them.
    pub fn note_other_servers(&self) {
        self.0.has_others.store(true, Ordering::Relaxed);
    }

    /// Removes expired uploads. Every announcement calls it; an idle server may call it from time to time.
    pub fn collect(&self) {
        let now = (self.0.clock)();
        let mut known = self.0.known.lock();
        if self.0.has_others.load(Ordering::Relaxed) {
            self.0.load_foreign_uploads(&mut known);
        }
        known.retain(|id, upload| {
            let paths = Paths::new(&self.0.folder, id);
            upload.end_in_time(&paths, now);
            let forgotten = upload.record.is_forgotten(now, REMEMBERED) && upload.state == UploadState::Ended;
            if forgotten {
                let _gone_anyway = fs::remove_file(&paths.record);
            }
            !forgotten
        });
    }

    /// Returns the bytes of a complete upload. (E1011, E1018, E1019)
    pub(crate) fn load(&self, owner: &str, id: &str, largest: u64) -> Result<LoadedMedia, Failure> {
        let record = self.0.complete(owner, id)?;
        if record.size_bytes > largest {
            return Err(too_many_bytes(largest));
        }
        let bytes = fs::read(Paths::new(&self.0.folder, id).data).map_err(|_| upload_gone())?;
        Ok(LoadedMedia::new(Bytes::from(bytes), record.media_type().map(|kind| kind.mime().to_owned())))
    }

    fn open_complete(&self, owner: &str, id: &str) -> Result<KeptUpload, Failure> {
        let record = self.0.complete(owner, id)?;
        let kind = record.media_type().ok_or_else(upload_gone)?;
        let reader = StoredUpload::open(&Paths::new(&self.0.folder, id)).map_err(|_| upload_gone())?;
        Ok(KeptUpload::new(record.filename, kind, record.size_bytes, Box::new(reader)))
    }
}

impl UploadIndex {
    /// Finds an upload of this owner. Once it has expired it stays expired, even if the clock is set back. (E1018,
    /// E1019)
    fn find<'a>(
        &self,
        known: &'a mut HashMap<String, KnownUpload>,
        owner: &str,
        id: &str,
    ) -> Result<&'a mut KnownUpload, Failure> {
        if !known.contains_key(id)
            && let Some(other) = self.load_foreign(id)
        {
            known.insert(id.to_owned(), other);
        }
        let upload = known.get_mut(id).filter(|upload| upload.record.belongs_to(owner));
        let upload = upload.ok_or_else(|| self.unknown_upload())?;
        if upload.end_in_time(&Paths::new(&self.folder, id), (self.clock)()) {
            return Err(Failure::new(ErrorCode::UploadExpired, "the upload has expired")
                .suggest("Upload it again and use the new id"));
        }
        upload.refresh_completion(&Paths::new(&self.folder, id));
        Ok(upload)
    }

    /// Loads uploads that were announced to other servers with the same folder: they count here too, and expire here.
    fn load_foreign_uploads(&self, known: &mut HashMap<String, KnownUpload>) {
        for path in fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            let id = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let is_record = path.extension().is_some_and(|extension| extension == "json");
            if is_record
                && !known.contains_key(id)
                && let Some(other) = self.load_foreign(id)
            {
                known.insert(id.to_owned(), other);
            }
        }
    }

    /// The error for an unknown id. (E1019)
    fn unknown_upload(&self) -> Failure {
        if !self.has_others.load(Ordering::Relaxed) {
            return missing("unknown upload id");
        }
        missing("unknown upload id on this server; another server may have it").suggest(
            "Upload it here; the operator can share the upload folder among all servers (`media: {uploads: …}`)",
        )
    }

    /// Loads an upload that was announced to another server with the same folder.
    fn load_foreign(&self, id: &str) -> Option<KnownUpload> {
        if !Paths::is_id(id) {
            return None;
        }
        let paths = Paths::new(&self.folder, id);
        Some(KnownUpload::on_disk(Record::read(&paths.record)?, &paths))
    }

    /// Returns the record of a complete upload of this owner. (E1018, E1019)
    fn complete(&self, owner: &str, id: &str) -> Result<Record, Failure> {
        let mut known = self.known.lock();
        let upload = self.find(&mut known, owner, id)?;
        match upload.state {
            UploadState::Complete => Ok(upload.record.clone()),
            _ => Err(missing("the upload has not been received yet")),
        }
    }

    fn set(&self, id: &str, state: UploadState) {
        if let Some(upload) = self.known.lock().get_mut(id) {
            upload.state = state;
        }
    }

    /// Checks that the limits allow so many more bytes. (E4002)
    fn admit(&self, known: &HashMap<String, KnownUpload>, owner: &str, bytes: u64) -> Result<(), Failure> {
        let owner = owner_hash(owner);
        let living = || known.values().filter(|upload| upload.state != UploadState::Ended);
        let sum = |uploads: &mut dyn Iterator<Item = &KnownUpload>| -> u64 {
            uploads.map(|upload| upload.record.size_bytes).fold(bytes, u64::saturating_add)
        };
        let of_owner = || living().filter(|upload| upload.record.owner == owner);
        let message = if of_owner().count() >= self.limits.uploads_per_owner {
            format!("the limit of uploads is reached: {}", self.limits.uploads_per_owner)
        } else if sum(&mut of_owner()) > self.limits.bytes_per_owner {
            format!("the uploads would exceed {} bytes", self.limits.bytes_per_owner)
        } else if sum(&mut living()) > self.limits.bytes_together {
            "the uploads would exceed the limit of all owners".to_owned()
        } else {
            return Ok(());
        };
        let minutes = self.limits.lifetime.as_secs() / 60;
        Err(Failure::new(ErrorCode::RateLimited, message)
            .with_blame(Blame::Caller)
            .suggest(format!("Wait until some expire, at most {minutes} minutes")))
    }
}

impl UploadStore for Uploads {
    fn announce(&self, owner: &str, upload: &NewUpload<'_>) -> Result<AnnouncedUpload, Failure> {
        self.collect();
        let most = cognitive_contract::media::MediaLimits::default().bytes_of(upload.media_type.category());
        if upload.size_bytes > most {
            return Err(too_many_bytes(most));
        }
        let expires_at = (self.0.clock)() + self.0.limits.lifetime;
        let id = uuid::Uuid::new_v4().simple().to_string();
        let record = Record::new(owner, upload, expires_at);
        let mut known = self.0.known.lock();
        self.0.admit(&known, owner, upload.size_bytes)?;
        record
            .write(&Paths::new(&self.0.folder, &id).record)
            .map_err(|error| server_failure("the upload cannot be recorded", &error))?;
        known.insert(id.clone(), KnownUpload { record, state: UploadState::Announced });
        Ok(AnnouncedUpload::new(id, expires_at, upload.size_bytes))
    }

    fn receive<'a>(
        &'a self,
        owner: &'a str,
        id: &'a str,
    ) -> PortFuture<'a, Result<Box<dyn UploadSink>, Failure>> {
        Box::pin(async move {
            let record = {
                let mut known = self.0.known.lock();
                let upload = self.0.find(&mut known, owner, id)?;
                if upload.state != UploadState::Announced {
                    return Err(sink::upload_in_use());
                }
                upload.state = UploadState::Receiving;
                upload.record.clone()
            };
            let sink = Sink::open(self.clone(), id, record)?;
            Ok(Box::new(sink) as Box<dyn UploadSink>)
        })
    }

    fn open<'a>(&'a self, owner: &'a str, id: &'a str) -> PortFuture<'a, Result<KeptUpload, Failure>> {
        Box::pin(async move { self.open_complete(owner, id) })
    }
}

fn upload_gone() -> Failure {
    missing("the upload no longer exists")
}

/// (E1019)
fn missing(message: &str) -> Failure {
    Failure::new(ErrorCode::UploadNotFound, message)
        .suggest("Upload it, and use the id once all bytes are sent")
}
