//! The files of modules on this machine, for those who look at them, try drafts of them or change them. Only folders below those
//! that the operator names are changed; all others can be read and tried. One change at a time.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use cognitive_contract::workshop::{
    BeforeChange, ChangedFiles, ModuleFile, ModuleFiles, ModuleWorkshop, SavedModule, widened,
};
use cognitive_contract::{ErrorCode, Failure, Module};
use cognitive_library::folder::TEXT_LIMIT;
use cognitive_library::validate::{ExpectationReader, Mode};
use cognitive_library::{
    Finding, Folder, Library, ModuleLoadError, ValidationSurroundings, change_folder, draft_hash, files_of,
    folder_hash, load, validate_with,
};
use serde_json::{Value, json};

/// How many digits of its hash stand in the version of a draft.
const DRAFT_DIGITS: usize = 8;

/// The modules of a library, and the folders below which they may be changed.
pub struct FolderWorkshop {
    library: Library,
    editable: Vec<PathBuf>,
    expectations: Option<Arc<dyn ExpectationReader + Send + Sync>>,
    changing: Mutex<()>,
}

impl FolderWorkshop {
    /// A workshop in which nothing can be changed yet.
    #[must_use]
    pub fn new(library: Library) -> Self {
        Self { library, editable: Vec::new(), expectations: None, changing: Mutex::new(()) }
    }

    /// Lets modules below these folders be changed. Each has to be there.
    pub fn editing(mut self, folders: &[PathBuf]) -> Result<Self, Failure> {
        for folder in folders {
            let real = folder.canonicalize().ok().filter(|real| real.is_dir()).ok_or_else(|| {
                let message = format!("there is no folder to edit modules in: `{}`", folder.display());
                Failure::misconfigured(message)
                    .suggest("Name a folder that is there, such as `--edit cognitive/modules`")
            })?;
            self.editable.push(real);
        }
        Ok(self)
    }

    /// With somebody who reads what golden tests expect.
    #[must_use]
    pub fn reading(mut self, expectations: Arc<dyn ExpectationReader + Send + Sync>) -> Self {
        self.expectations = Some(expectations);
        self
    }

    /// The folder of a module.
    pub fn folder(&self, module: &str) -> Result<Folder, Failure> {
        self.library.find(module).map(|found| found.folder)
    }

    /// Where a module may be changed, if it may: its own folder, which no link has led to from elsewhere.
    fn editable(&self, folder: &Folder) -> Option<PathBuf> {
        let real = folder.path()?.canonicalize().ok()?;
        let is_below = |allowed: &PathBuf| real.starts_with(allowed) && real != *allowed;
        self.editable.iter().any(is_below).then_some(real)
    }

    fn findings(&self, folder: &Folder) -> Vec<Value> {
        let expectations = self.expectations.as_deref().map(|reader| reader as &dyn ExpectationReader);
        let around = ValidationSurroundings { library: Some(&self.library), expectations };
        validate_with(around, folder, Mode::Standard).findings_json()
    }
}

impl ModuleWorkshop for FolderWorkshop {
    fn edits(&self) -> bool {
        !self.editable.is_empty()
    }

    fn files(&self, module: &str) -> Result<ModuleFiles, Failure> {
        let folder = self.folder(module)?;
        let files = files_of(&folder)?;
        let shown = |(path, bytes): (&String, &Vec<u8>)| ModuleFile {
            path: path.clone(),
            text: (bytes.len() as u64 <= TEXT_LIMIT).then(|| String::from_utf8(bytes.clone()).ok()).flatten(),
            bytes: bytes.len() as u64,
        };
        Ok(ModuleFiles {
            editable: self.editable(&folder).is_some(),
            hash: folder_hash(&files),
            files: files.iter().map(shown).collect(),
            findings: self.findings(&folder),
        })
    }

    fn check(&self, module: &str, files: &ChangedFiles) -> Result<Vec<Value>, Failure> {
        Ok(self.findings(&self.folder(module)?.with_draft(files)?))
    }

    fn draft(&self, module: &str, files: &ChangedFiles) -> Result<Arc<Module>, Failure> {
        let folder = self.folder(module)?;
        let installed = load(&folder).map_err(ModuleLoadError::into_failure)?;
        let mut draft = load(&folder.with_draft(files)?).map_err(unusable)?;
        if let Some(member) = widened(&installed.manifest, &draft.manifest) {
            let message = format!("the draft may do more than the module that is installed: `{member}`");
            return Err(Failure::new(ErrorCode::PermissionDenied, message)
                .with_detail("member", json!(member))
                .suggest(
                    "Leave it as it is in the draft; save the module first where it is meant to change",
                ));
        }
        let hash = draft_hash(files);
        let digits = hash.get(..DRAFT_DIGITS).unwrap_or(&hash);
        let version = &mut draft.manifest.version;
        let mark = if version.contains('+') { '.' } else { '+' };
        *version = format!("{version}{mark}draft.{digits}");
        Ok(Arc::new(draft))
    }

    fn save(
        &self,
        module: &str,
        hash: &str,
        files: &ChangedFiles,
        before: BeforeChange<'_>,
    ) -> Result<SavedModule, Failure> {
        let folder = self.folder(module)?;
        let Some(place) = self.editable(&folder) else {
            return Err(Failure::new(ErrorCode::PermissionDenied, "this module may not be changed here")
                .suggest("Start the server with `--edit DIR`, where DIR is the folder that the module is in")
                .suggest_remotely("Ask whoever runs this server to allow it"));
        };
        // A panic while the lock was held has changed a folder or not; both are whole.
        let _one_at_a_time = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let hash = change_folder(&place, hash, files, before)?;
        Ok(SavedModule { hash, findings: self.findings(&folder) })
    }
}

/// A draft that is no module: the caller's text is to blame, and every finding says where.
fn unusable(error: ModuleLoadError) -> Failure {
    let shown = match &error {
        ModuleLoadError::NotAModule { .. } => "it has no manifest".to_owned(),
        ModuleLoadError::Invalid { findings, .. } => {
            findings.iter().take(3).map(Finding::summary).collect::<Vec<_>>().join("; ")
        }
        other => format!("{other:?}"),
    };
    Failure::new(ErrorCode::InvalidInput, format!("the draft cannot be used: {shown}"))
        .with_detail("kind", json!("draft"))
        .suggest("`POST /v1/modules/{module}/check` says everything that is wrong, each with its place")
}

#[cfg(test)]
mod tests;
