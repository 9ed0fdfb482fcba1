//! A cache of loaded modules, valid until their files change, so that many runs share one compiled contract. A change
//! has no effect on a run in progress: the run holds its own reference.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use cognitive_contract::lock::Lock;
use cognitive_contract::ports::ModuleSource;
use cognitive_contract::{Failure, Module};

use crate::find::{FoundModule, Library};
use crate::load::{ModuleLoadError, load};

/// The capacity of the cache. Beyond it, the least recently used module is evicted. Without it, a long-running server
/// would hold every module that it ever loaded.
const MAX_COUNT: usize = 4_000;

type Stamp = Vec<(String, u64, Option<SystemTime>)>;

/// A cached module.
#[derive(Debug)]
struct CachedModule {
    stamp: Stamp,
    looked_at: Instant,
    asked_for: Instant,
    module: Arc<Module>,
}

/// A library with a cache of loaded modules.
#[derive(Debug)]
pub struct ModuleCache {
    library: Library,
    /// The time during which a check of the files stays valid.
    patience: Duration,
    most: usize,
    loaded: Lock<HashMap<String, CachedModule>>,
}

impl Default for ModuleCache {
    fn default() -> Self {
        Self::new(Library::default())
    }
}

impl ModuleCache {
    /// Creates an empty cache in front of a library.
    #[must_use]
    pub fn new(library: Library) -> Self {
        Self { library, patience: Duration::ZERO, most: MAX_COUNT, loaded: Lock::default() }
    }

    /// Limits the checks of a module's files to one in this time. For a server with thousands of requests a second,
    /// where a check costs as much as the rest of a run.
    #[must_use]
    pub fn with_check_interval(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The library behind the cache.
    #[must_use]
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// Returns a module, ready to run. Reloads it only if its files have changed.
    pub fn module(&self, name: &str) -> Result<Arc<Module>, Failure> {
        let now = Instant::now();
        if let Some(kept) = self.loaded.lock().get_mut(name)
            && kept.looked_at.elapsed() < self.patience
        {
            kept.asked_for = now;
            return Ok(Arc::clone(&kept.module));
        }
        let found = self.library.find(name)?;
        let stamp = found.folder.stamp();
        if let Some(kept) = self.loaded.lock().get_mut(name)
            && kept.stamp == stamp
        {
            (kept.looked_at, kept.asked_for) = (now, now);
            return Ok(Arc::clone(&kept.module));
        }
        let module = Arc::new(load(&found.folder).map_err(ModuleLoadError::into_failure)?);
        let kept = CachedModule { stamp, looked_at: now, asked_for: now, module: Arc::clone(&module) };
        let mut loaded = self.loaded.lock();
        if loaded.len() >= self.most && !loaded.contains_key(name) {
            let oldest = loaded.iter().min_by_key(|(_, kept)| kept.asked_for).map(|(name, _)| name.clone());
            oldest.and_then(|oldest| loaded.remove(&oldest));
        }
        loaded.insert(name.to_owned(), kept);
        Ok(module)
    }

    /// Returns a module without adding it to the cache, for callers that list all modules: a list must not evict the
    /// modules that run.
    pub fn glance(&self, name: &str) -> Result<Arc<Module>, Failure> {
        let found = self.library.find(name)?;
        let stamp = found.folder.stamp();
        if let Some(kept) = self.loaded.lock().get(name)
            && kept.stamp == stamp
        {
            return Ok(Arc::clone(&kept.module));
        }
        load(&found.folder).map(Arc::new).map_err(ModuleLoadError::into_failure)
    }

    /// All modules by name, each with a hash that changes with its files.
    #[must_use]
    pub fn marks(&self) -> Vec<(String, u64)> {
        let mark = |found: FoundModule| {
            let mut hasher = DefaultHasher::new();
            (found.origin.word(), found.folder.stamp()).hash(&mut hasher);
            (found.name, hasher.finish())
        };
        self.library.list().into_iter().map(mark).collect()
    }
}

impl ModuleSource for ModuleCache {
    fn module(&self, name: &str) -> Result<Arc<Module>, Failure> {
        Self::module(self, name)
    }

    fn names(&self) -> Vec<String> {
        self.library().names()
    }

    fn marks(&self) -> Vec<(String, Option<u64>)> {
        Self::marks(self).into_iter().map(|(name, mark)| (name, Some(mark))).collect()
    }

    fn glance(&self, name: &str) -> Result<Arc<Module>, Failure> {
        Self::glance(self, name)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    /// Creates a project with one module; returns it with the folder of the module.
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
        let module_cache = ModuleCache::new(Library::new(dir.path(), None, &[]));
        let first = module_cache.module("m").unwrap();
        assert!(Arc::ptr_eq(&first, &module_cache.module("m").unwrap()));
        fs::write(folder.join("module.yaml"), "name: m\nversion: 1.0.1-longer\ntier: exec\n").unwrap();
        let second = module_cache.module("m").unwrap();
        assert_eq!(second.manifest.version, "1.0.1-longer");
        assert_ne!(first.digest.module, second.digest.module);
        assert_eq!(first.digest.schema, second.digest.schema);
        assert!(Arc::ptr_eq(
            &module_cache.module("summarizer").unwrap(),
            &module_cache.module("summarizer").unwrap()
        ));
    }

    // Growth B: one module above the capacity evicts one other, not all of them, and listing all modules evicts none.
    #[test]
    fn a_full_shelf_gives_up_the_module_that_nobody_asked_for() {
        let (dir, folder) = project();
        for name in ["n", "o", "p"] {
            let other = folder.with_file_name(name);
            fs::create_dir_all(&other).unwrap();
            for file in ["module.yaml", "prompt.md", "schema.json"] {
                let text = fs::read_to_string(folder.join(file)).unwrap();
                fs::write(other.join(file), text.replace("name: m", &format!("name: {name}"))).unwrap();
            }
        }
        let module_cache = ModuleCache { most: 3, ..ModuleCache::new(Library::new(dir.path(), None, &[])) };
        let [first, second, third] = ["m", "n", "o"].map(|name| module_cache.module(name).unwrap());
        let same =
            |module: &Arc<Module>, name: &str| Arc::ptr_eq(module, &module_cache.glance(name).unwrap());
        for (name, _) in module_cache.marks() {
            module_cache.glance(&name).unwrap();
        }
        assert!(same(&first, "m") && same(&second, "n") && same(&third, "o"), "a look displaces nothing");
        module_cache.module("m").unwrap();
        let fourth = module_cache.module("p").unwrap();
        assert!(!same(&second, "n"), "nobody has asked for it for the longest time");
        assert!(same(&first, "m") && same(&third, "o") && same(&fourth, "p"));
    }

    #[test]
    fn a_mark_changes_with_the_files_of_its_module_alone() {
        let (dir, folder) = project();
        let module_cache = ModuleCache::new(Library::new(dir.path(), None, &[]));
        let before = module_cache.marks();
        assert_eq!(before, module_cache.marks());
        fs::write(folder.join("prompt.md"), "longer").unwrap();
        let changed: Vec<String> =
            module_cache.marks().into_iter().zip(before).filter(|(a, b)| a != b).map(|(a, _)| a.0).collect();
        assert_eq!(changed, ["m"]);
    }

    #[test]
    fn a_patient_shelf_does_not_look_again_until_its_time_has_come() {
        let (dir, folder) = project();
        let library = || Library::new(dir.path(), None, &[]);
        let (patient, eager) = (
            ModuleCache::new(library()).with_check_interval(Duration::from_hours(1)),
            ModuleCache::new(library()),
        );
        patient.module("m").unwrap();
        eager.module("m").unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert!(patient.module("m").is_ok());
        assert!(eager.module("m").is_err());
    }
}
