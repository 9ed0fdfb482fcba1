//! Loaded modules, kept until their files change, so that many runs share one compiled contract.
//! A change in the middle of a run has no effect on it: the run holds its own reference.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use cognitive_contract::{Failure, Module};

use crate::find::Library;
use crate::load::{LoadError, load};

/// More modules than this are not kept; the next one starts the shelf anew.
const MOST: usize = 1_000;

type Stamp = Vec<(String, u64, Option<SystemTime>)>;

/// A module on the shelf.
#[derive(Debug)]
struct Kept {
    stamp: Stamp,
    looked_at: Instant,
    module: Arc<Module>,
}

/// A library that remembers what it loaded.
#[derive(Debug, Default)]
pub struct Shelf {
    library: Library,
    /// For how long a look at the files counts.
    patience: Duration,
    loaded: Mutex<HashMap<String, Kept>>,
}

impl Shelf {
    /// An empty shelf in front of a library.
    #[must_use]
    pub fn new(library: Library) -> Self {
        Self { library, patience: Duration::ZERO, loaded: Mutex::default() }
    }

    /// The same, looking at the files of a module at most once in this time. For a server that answers thousands of
    /// requests a second, where each look costs as much as the rest of a run.
    #[must_use]
    pub fn looking_every(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The library behind it.
    #[must_use]
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// A module, ready to run. Its files are looked at and read only when they changed.
    pub fn module(&self, name: &str) -> Result<Arc<Module>, Failure> {
        if let Some(kept) = self.lock().get(name)
            && kept.looked_at.elapsed() < self.patience
        {
            return Ok(Arc::clone(&kept.module));
        }
        let found = self.library.find(name)?;
        let stamp = found.folder.stamp();
        let looked_at = Instant::now();
        if let Some(kept) = self.lock().get_mut(name)
            && kept.stamp == stamp
        {
            kept.looked_at = looked_at;
            return Ok(Arc::clone(&kept.module));
        }
        let module = Arc::new(load(&found.folder).map_err(LoadError::into_failure)?);
        let mut loaded = self.lock();
        if loaded.len() >= MOST {
            loaded.clear();
        }
        loaded.insert(name.to_owned(), Kept { stamp, looked_at, module: Arc::clone(&module) });
        Ok(module)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Kept>> {
        // A panic while the lock was held leaves at worst a missing entry.
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    /// A project with one module, and the folder of the module.
    fn project() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("cognitive/modules/m");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("module.yaml"), "name: m\nversion: 1.0.0\ntier: exec\n").unwrap();
        fs::write(folder.join("prompt.md"), "p").unwrap();
        fs::write(folder.join("schema.json"), r#"{"input": {}, "data": {}}"#).unwrap();
        (dir, folder)
    }

    #[test]
    fn a_module_is_compiled_once_and_again_when_its_files_change() {
        let (dir, folder) = project();
        let shelf = Shelf::new(Library::new(dir.path(), None, &[]));
        let first = shelf.module("m").unwrap();
        assert!(Arc::ptr_eq(&first, &shelf.module("m").unwrap()));
        fs::write(folder.join("module.yaml"), "name: m\nversion: 1.0.1-longer\ntier: exec\n").unwrap();
        let second = shelf.module("m").unwrap();
        assert_eq!(second.manifest.version, "1.0.1-longer");
        assert_ne!(first.digest.module, second.digest.module);
        assert_eq!(first.digest.schema, second.digest.schema);
        assert!(Arc::ptr_eq(&shelf.module("summarizer").unwrap(), &shelf.module("summarizer").unwrap()));
    }

    #[test]
    fn a_patient_shelf_does_not_look_again_until_its_time_has_come() {
        let (dir, folder) = project();
        let library = || Library::new(dir.path(), None, &[]);
        let (patient, eager) =
            (Shelf::new(library()).looking_every(Duration::from_hours(1)), Shelf::new(library()));
        patient.module("m").unwrap();
        eager.module("m").unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert!(patient.module("m").is_ok());
        assert!(eager.module("m").is_err());
    }
}
