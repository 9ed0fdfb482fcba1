//! Verifies a file of weights while the engine loads it: it must not change during the load, and must have the expected
//! hash. Remembers the hash of the file.

use std::fs::File;

use cognitive_contract::lock::Lock;

use super::hash_cache::{HashMemory, Stamp};
use super::packed_weights::PackedPlace;

/// The expectations for one file while it is loaded.
#[derive(Debug)]
pub(crate) struct ExpectedWeights {
    memory: Option<HashMemory>,
    /// The expected hash; `None` for a user file, which may be anything.
    sha256: Option<String>,
    begun: Lock<Option<Stamp>>,
    /// The hash of the last file that was read.
    found: Lock<Option<String>>,
    /// The place of its packed form.
    packed: Option<PackedPlace>,
}

impl ExpectedWeights {
    pub(super) fn new(memory: Option<HashMemory>, sha256: Option<String>) -> Self {
        Self { memory, sha256, begun: Lock::new(None), found: Lock::new(None), packed: None }
    }

    /// Sets the place of the packed form.
    pub(super) fn with_packed(self, packed: Option<PackedPlace>) -> Self {
        Self { packed, ..self }
    }

    /// Returns the hash of the last file, if it was read completely.
    pub(super) fn file_hash(&self) -> Option<String> {
        self.found.lock().clone()
    }

    /// Returns the remembered hash of a file that is about to be read.
    fn remembered_hash(&self, file: &File) -> Option<String> {
        let stamp = file.metadata().ok().map(|meta| Stamp::from_metadata(&meta));
        *self.begun.lock() = stamp;
        self.memory.as_ref()?.recall(&stamp?)
    }

    /// Verifies a file after it was read. The error is the reason.
    fn confirm(&self, file: &File, sha256: &str) -> Result<(), String> {
        let now = file.metadata().ok().map(|meta| Stamp::from_metadata(&meta));
        let (Some(begun), Some(now)) = (*self.begun.lock(), now) else {
            return Err("the file cannot be read".to_owned());
        };
        if !begun.has_same_content(&now) {
            return Err("the file changed while it was read".to_owned());
        }
        if let Some(memory) = self.memory.as_ref().filter(|_| begun == now) {
            memory.remember(now, sha256);
        }
        *self.found.lock() = Some(sha256.to_owned());
        match &self.sha256 {
            Some(expected) if expected != sha256 => Err(format!("its sha256 is {sha256}")),
            _ => Ok(()),
        }
    }
}

impl cognitive_local::KnownHashes for ExpectedWeights {
    fn recall(&self, file: &File) -> Option<String> {
        self.remembered_hash(file)
    }

    fn confirm(&self, file: &File, sha256: &str) -> Result<(), String> {
        self.confirm(file, sha256)
    }

    fn packed_weights(&self) -> Option<&dyn cognitive_local::PackedWeights> {
        self.packed.as_ref().map(|packed| packed as &dyn cognitive_local::PackedWeights)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_that_changes_while_it_is_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("w");
        fs::write(&path, "abc").unwrap();
        let expectation = ExpectedWeights::new(Some(HashMemory::in_folder(dir.path())), None);
        let file = File::open(&path).unwrap();
        assert_eq!(expectation.remembered_hash(&file), None);
        assert_eq!(expectation.confirm(&file, "h"), Ok(()));
        fs::write(&path, "abcd").unwrap();
        assert!(expectation.confirm(&file, "h").unwrap_err().contains("changed while it was read"));
        let strict = ExpectedWeights::new(None, Some("other".to_owned()));
        assert_eq!(strict.remembered_hash(&file), None);
        assert_eq!(strict.confirm(&file, "h").unwrap_err(), "its sha256 is h");
    }
}
