//! Loaded modules, kept until their files change, so that many runs share one compiled contract.
//! A change in the middle of a run has no effect on it: the run holds its own reference.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use cognitive_contract::{Failure, Module};

use crate::find::Library;
use crate::load::{LoadError, load};

/// More modules than this are not kept; the next one starts the shelf anew.
const MOST: usize = 1_000;

type Stamp = Vec<(String, u64, Option<SystemTime>)>;

/// A library that remembers what it loaded.
#[derive(Debug, Default)]
pub struct Shelf {
    library: Library,
    loaded: Mutex<HashMap<String, (Stamp, Arc<Module>)>>,
}

impl Shelf {
    /// An empty shelf in front of a library.
    #[must_use]
    pub fn new(library: Library) -> Self {
        Self { library, loaded: Mutex::default() }
    }

    /// The library behind it.
    #[must_use]
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// A module, ready to run. The files are looked at every time and read only when they changed.
    pub fn module(&self, name: &str) -> Result<Arc<Module>, Failure> {
        let found = self.library.find(name)?;
        let stamp = found.folder.stamp();
        if let Some((known, module)) = self.lock().get(name)
            && *known == stamp
        {
            return Ok(Arc::clone(module));
        }
        let module = Arc::new(load(&found.folder).map_err(LoadError::into_failure)?);
        let mut loaded = self.lock();
        if loaded.len() >= MOST {
            loaded.clear();
        }
        loaded.insert(name.to_owned(), (stamp, Arc::clone(&module)));
        Ok(module)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, (Stamp, Arc<Module>)>> {
        // A panic while the lock was held leaves at worst a missing entry.
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_module_is_compiled_once_and_again_when_its_files_change() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("cognitive/modules/m");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("module.yaml"), "name: m\nversion: 1.0.0\ntier: exec\n").unwrap();
        fs::write(folder.join("prompt.md"), "p").unwrap();
        fs::write(folder.join("schema.json"), r#"{"input": {}, "data": {}}"#).unwrap();
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
}
