//! Modules from memory: a single one for every name, or several by name.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use cognitive_contract::ports::ModuleSource;
use cognitive_contract::{ErrorCode, Failure, Module};
use cognitive_library::{Folder, ModuleLoadError, load};
use serde_json::{Value, json};

use super::lock;

/// The files of a module named `sample`.
#[must_use]
pub fn module_folder(manifest: &Value, schema: &Value, prompt: &str) -> Folder {
    let files = BTreeMap::from([
        ("module.yaml".to_owned(), manifest.to_string().into_bytes()),
        ("schema.json".to_owned(), schema.to_string().into_bytes()),
        ("prompt.md".to_owned(), prompt.as_bytes().to_vec()),
    ]);
    Folder::memory("sample", files)
}

/// A contract that takes any object, and demands no more of an answer than its rationale.
#[must_use]
pub fn open_schema() -> Value {
    json!({ "input": { "type": "object" }, "data": { "type": "object", "required": ["rationale"] } })
}

/// The loaded module.
///
/// # Panics
/// If it cannot be loaded.
#[expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]
#[must_use]
pub fn loaded_module(manifest: &Value, schema: &Value, prompt: &str) -> Arc<Module> {
    Arc::new(load(&module_folder(manifest, schema, prompt)).map_err(ModuleLoadError::into_failure).unwrap())
}

/// A folder that is loaded again for every run, so that a broken one fails the run.
#[derive(Debug)]
pub struct FolderModule(Mutex<Folder>);

impl FolderModule {
    /// The module in this folder.
    #[must_use]
    pub fn new(folder: Folder) -> Self {
        Self(Mutex::new(folder))
    }

    /// Replaces the folder.
    pub fn replace(&self, folder: Folder) {
        *lock(&self.0) = folder;
    }
}

impl ModuleSource for FolderModule {
    fn module(&self, _: &str) -> Result<Arc<Module>, Failure> {
        load(&lock(&self.0)).map(Arc::new).map_err(ModuleLoadError::into_failure)
    }
}

/// A module that was loaded once.
#[derive(Debug)]
pub struct LoadedModule(pub Arc<Module>);

impl ModuleSource for LoadedModule {
    fn module(&self, _: &str) -> Result<Arc<Module>, Failure> {
        Ok(Arc::clone(&self.0))
    }
}

/// Modules that were loaded once, by name.
#[derive(Debug, Clone, Default)]
pub struct NamedModules(pub BTreeMap<String, Arc<Module>>);

impl NamedModules {
    /// Adds a module. Its manifest needs no name.
    #[must_use]
    pub fn with(mut self, name: &str, mut manifest: Value, schema: &Value, prompt: &str) -> Self {
        if let Some(members) = manifest.as_object_mut() {
            members.insert("name".to_owned(), json!(name));
        }
        self.0.insert(name.to_owned(), loaded_module(&manifest, schema, prompt));
        self
    }
}

impl ModuleSource for NamedModules {
    fn module(&self, name: &str) -> Result<Arc<Module>, Failure> {
        let found = self.0.get(name).map(Arc::clone);
        found.ok_or_else(|| Failure::new(ErrorCode::ModuleNotFound, "no such module"))
    }

    fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
}
