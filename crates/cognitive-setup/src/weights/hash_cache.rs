//! A cache of weight hashes. An entry is valid while device, inode, length and times of the file are unchanged. It is
//! one small file in the user's cache; without it every file is hashed again.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::{KnownWeights, WeightsState, digest, look};
use crate::{out_file, platform};

/// The maximum number of entries; the oldest is evicted. Each lookup reads the whole file.
const MAX_REMEMBERED: usize = 32;

/// A file that changed this recently could change again within the resolution of its timestamps.
const UNSETTLED: Duration = Duration::from_secs(2);

/// The identity of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    /// Nanoseconds since 1970. `changed` also covers attributes on systems that report it.
    modified: i128,
    changed: i128,
}

impl Stamp {
    pub(super) fn from_metadata(meta: &Metadata) -> Self {
        let (device, inode, modified, changed) = platform::file_identity(meta);
        Self { device, inode, bytes: meta.len(), modified, changed }
    }

    /// Returns whether the content is the same. Renaming a file or changing its mode does not change its content.
    #[cfg(feature = "local")]
    pub(super) fn has_same_content(&self, other: &Self) -> bool {
        Self { changed: 0, ..*self } == Self { changed: 0, ..*other }
    }

    fn is_settled(&self, now: SystemTime) -> bool {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(UNSETTLED);
        let now = i128::try_from(now.as_nanos()).unwrap_or(i128::MAX);
        self.modified < now && self.changed < now
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct RememberedHash {
    stamp: Stamp,
    sha256: String,
}

/// The path of the remembered hashes, in a folder of the user's cache.
#[derive(Debug, Clone)]
pub(super) struct HashMemory(PathBuf);

impl HashMemory {
    pub(super) fn in_folder(folder: &Path) -> Self {
        Self(folder.join("hashes.json"))
    }

    pub(super) fn path(&self) -> PathBuf {
        self.0.clone()
    }

    pub(super) fn recall(&self, stamp: &Stamp) -> Option<String> {
        self.read().into_iter().find(|entry| entry.stamp == *stamp).map(|entry| entry.sha256)
    }

    pub(super) fn remember(&self, stamp: Stamp, sha256: &str) {
        if !stamp.is_settled(SystemTime::now()) || self.recall(&stamp).as_deref() == Some(sha256) {
            return;
        }
        let place = |entry: &RememberedHash| (entry.stamp.device, entry.stamp.inode);
        let entry = RememberedHash { stamp, sha256: sha256.to_owned() };
        let mut entries = self.read();
        entries.retain(|other| place(other) != place(&entry));
        entries.push(entry);
        let surplus = entries.len().saturating_sub(MAX_REMEMBERED);
        entries.drain(..surplus);
        let text = serde_json::to_string(&entries).unwrap_or_default();
        let folder = self.0.parent().map_or(Ok(()), fs::create_dir_all);
        // If writing fails, the file is hashed again next time.
        let _only_time_is_lost = folder.and_then(|()| out_file::write(&self.0, text.as_bytes()));
    }

    fn read(&self) -> Vec<RememberedHash> {
        // Our file is small; a larger one is ignored.
        let small = fs::metadata(&self.0).is_ok_and(|meta| meta.is_file() && meta.len() <= 64 << 10);
        let text = if small { fs::read_to_string(&self.0).ok() } else { None };
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }
}

/// Checks a file by its length and hash, and reuses a remembered hash.
#[must_use]
pub(super) fn check_remembered(known: &KnownWeights, path: &Path, memory: &HashMemory) -> WeightsState {
    let found = look(known, path);
    if found != WeightsState::Right {
        return found;
    }
    match hash_of(path, Some(memory)) {
        Err(error) => WeightsState::Wrong(format!("it cannot be read: {error}")),
        Ok(sha256) => known.judge(&sha256),
    }
}

/// Returns the hash of a file without an expected hash, and remembers it.
pub(super) fn hash_of(path: &Path, memory: Option<&HashMemory>) -> io::Result<String> {
    let file = File::open(path)?;
    let stamp = Stamp::from_metadata(&file.metadata()?);
    if let Some(sha256) = memory.and_then(|memory| memory.recall(&stamp)) {
        return Ok(sha256);
    }
    let sha256 = digest(&file)?;
    if let Some(memory) =
        memory.filter(|_| file.metadata().is_ok_and(|meta| Stamp::from_metadata(&meta) == stamp))
    {
        memory.remember(stamp, &sha256);
    }
    Ok(sha256)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a file and returns its stamp with an old time, as if it had not changed for a while.
    fn settled(path: &Path, text: &str) -> Stamp {
        fs::write(path, text).unwrap();
        Stamp { changed: 0, modified: 0, ..Stamp::from_metadata(&fs::metadata(path).unwrap()) }
    }

    #[test]
    fn a_hash_is_remembered_until_anything_about_the_file_changes() {
        let dir = tempfile::tempdir().unwrap();
        let memory = HashMemory::in_folder(&dir.path().join("cache"));
        let stamp = settled(&dir.path().join("w"), "abc");
        memory.remember(stamp, "h");
        assert_eq!(memory.recall(&stamp).as_deref(), Some("h"));
        for other in [
            Stamp { inode: stamp.inode + 1, ..stamp },
            Stamp { bytes: 4, ..stamp },
            Stamp { modified: 1, ..stamp },
            Stamp { changed: 1, ..stamp },
        ] {
            assert_eq!(memory.recall(&other), None, "{other:?}");
        }
        let fresh = Stamp::from_metadata(&fs::metadata(dir.path().join("w")).unwrap());
        memory.remember(fresh, "h");
        assert_eq!(memory.recall(&fresh), None, "it could change again within the same moment");
    }

    #[test]
    fn little_is_remembered_and_nonsense_is_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let memory = HashMemory::in_folder(dir.path());
        let stamp = settled(&dir.path().join("w"), "abc");
        for inode in 0..100 {
            memory.remember(Stamp { inode, ..stamp }, "h");
        }
        assert_eq!(memory.read().len(), MAX_REMEMBERED);
        assert_eq!(memory.recall(&Stamp { inode: 99, ..stamp }).as_deref(), Some("h"));
        fs::write(dir.path().join("hashes.json"), "{").unwrap();
        assert_eq!(memory.recall(&stamp), None);
    }
}
