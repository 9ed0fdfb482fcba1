//! The module files on this machine, for viewing, trying drafts and old versions, and editing. Only folders below those
//! that the operator names can be changed; all others are read-only. One change at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cognitive_contract::lock::Lock;
use cognitive_contract::manifest::{Manifest, Tier};
use cognitive_contract::text::cut;
use cognitive_contract::{ErrorCode, Failure, Module};
use cognitive_library::folder::TEXT_LIMIT;
use cognitive_library::init::{self, InitError, Template};
use cognitive_library::validate::{ExpectationReader, Mode};
use cognitive_library::{
    Finding, Folder, Library, ModuleLoadError, ValidationReport, ValidationSurroundings, change_folder,
    draft_hash, files_of, folder_hash, formats, load, validate_with,
};
use cognitive_ports::module_editor::{
    BeforeChange, ChangedFiles, ModuleEditor, ModuleFile, ModuleFiles, ModuleFinding, ModuleVersion,
    SavedModule, widened_right,
};
use serde_json::{Value, json};

/// The number of hash digits in the version of a draft. A draft is one of few, so a short version is unique enough.
const DRAFT_DIGITS: usize = 8;

/// The number of hash digits that identify a version.
const VERSION_DIGITS: usize = 12;
/// The maximum number of past states that are read. Each one is read with all of its files, so a long history would
/// make the list slow.
const MAX_STATES: usize = 20;
/// The origin of past versions.
const ORIGIN_GIT: &str = "git";

/// The history of module folders. Errors count as an empty history, because most folders have none.
pub trait FolderPast: Send + Sync {
    /// Returns its states, the newest first, up to `most`.
    fn states(&self, folder: &Path, most: usize) -> Vec<PastState>;

    /// Returns the files of one state by its id.
    fn files(&self, folder: &Path, id: &str) -> Option<BTreeMap<String, Vec<u8>>>;
}

/// A past state of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastState {
    /// The id.
    pub id: String,
    /// The time of its creation.
    pub at: String,
    /// Its description.
    pub about: String,
}

/// A version of a module, and its folder.
struct FoundVersion {
    told: ModuleVersion,
    folder: Folder,
}

/// The modules of a library, and the folders that may be changed.
pub struct FolderEditor {
    library: Library,
    editable: Vec<PathBuf>,
    expectations: Option<Arc<dyn ExpectationReader + Send + Sync>>,
    past: Option<Arc<dyn FolderPast>>,
    changing: Lock<()>,
}

impl FolderEditor {
    /// Creates an editor in which nothing may be changed yet.
    #[must_use]
    pub fn new(library: Library) -> Self {
        Self { library, editable: Vec::new(), expectations: None, past: None, changing: Lock::new(()) }
    }

    /// Allows changes to modules below these folders. Each folder must exist.
    pub fn with_editable(mut self, folders: &[PathBuf]) -> Result<Self, Failure> {
        for folder in folders {
            let real = folder.canonicalize().ok().filter(|real| real.is_dir()).ok_or_else(|| {
                let message = format!("no such folder for `--edit`: `{}`", folder.display());
                Failure::config_fault(message)
                    .suggest("Name an existing folder, such as `--edit cognitive/modules`")
            })?;
            self.editable.push(real);
        }
        Ok(self)
    }

    /// Sets the reader of golden test expectations.
    #[must_use]
    pub fn reading(mut self, expectations: Arc<dyn ExpectationReader + Send + Sync>) -> Self {
        self.expectations = Some(expectations);
        self
    }

    /// Sets the history of folders.
    #[must_use]
    pub fn with_history(mut self, past: Arc<dyn FolderPast>) -> Self {
        self.past = Some(past);
        self
    }

    /// Returns every version of a module: the one that runs, those that it shadows, and past ones. Versions with equal
    /// files count once. If `wanted` is set, only that past version is read.
    fn find_versions(&self, module: &str, wanted: Option<&str>) -> Result<Vec<FoundVersion>, Failure> {
        let current = self.library.find(module)?;
        let mut hashes = BTreeSet::new();
        let mut found = Vec::new();
        for each in self.library.all_of(module) {
            let Ok(files) = files_of(&each.folder) else { continue };
            let hash = folder_hash(&files);
            let id = hash.get(..VERSION_DIGITS).unwrap_or(&hash).to_owned();
            if hashes.insert(hash) {
                let (is_current, origin) = (found.is_empty(), each.origin.word());
                found.push(FoundVersion::new(id, origin, is_current, each.folder));
            }
        }
        let Some((past, path)) = self.past.as_deref().zip(current.folder.path()) else { return Ok(found) };
        for state in past.states(path, MAX_STATES) {
            // The caller needs only one version, so the others are skipped.
            if wanted.is_some_and(|wanted| wanted != state.id) {
                continue;
            }
            let files = past.files(path, &state.id);
            let Some(files) = files.filter(|files| hashes.insert(folder_hash(files))) else { continue };
            let folder = Folder::memory(&current.folder.name(), files);
            let mut version = FoundVersion::new(state.id, ORIGIN_GIT, false, folder);
            (version.told.at, version.told.about) = (Some(state.at), Some(state.about));
            found.push(version);
        }
        Ok(found)
    }

    /// Returns the folder of a module.
    pub fn folder(&self, module: &str) -> Result<Folder, Failure> {
        self.library.find(module).map(|found| found.folder)
    }

    /// Returns the real path of a module folder if it may be changed. A link cannot lead there from outside.
    fn editable(&self, folder: &Folder) -> Option<PathBuf> {
        let real = folder.path()?.canonicalize().ok()?;
        let is_below = |allowed: &PathBuf| real.starts_with(allowed) && real != *allowed;
        self.editable.iter().any(is_below).then_some(real)
    }

    /// Returns the manifest that limits a tried version: that of the installed module. A broken manifest limits by its
    /// readable part. If nothing is readable, only a caller who may change the module may try a fix.
    fn rights_limit(&self, folder: &Folder) -> Result<Option<Manifest>, Failure> {
        let broken = match load(folder) {
            Ok(installed) => return Ok(Some(installed.manifest)),
            Err(error) => error.into_failure(),
        };
        let readable = formats::read_manifest(folder)
            .and_then(|(format, written)| Manifest::from_value(&written, format).ok());
        if readable.is_none() && self.editable(folder).is_none() {
            return Err(broken);
        }
        Ok(readable)
    }

    fn findings(&self, folder: &Folder) -> Vec<ModuleFinding> {
        let expectations = self.expectations.as_deref().map(|reader| reader as &dyn ExpectationReader);
        let around = ValidationSurroundings { library: Some(&self.library), expectations };
        module_findings(&validate_with(around, folder, Mode::Standard))
    }
}

/// Returns the findings of a report, each with its location.
#[must_use]
pub fn module_findings(report: &ValidationReport) -> Vec<ModuleFinding> {
    let told = |finding: &Finding| {
        let place = report.sources.locate(finding);
        ModuleFinding {
            severity: finding.severity.word().to_owned(),
            file: finding.file.clone(),
            line: place.as_ref().map(|place| place.line),
            column: place.as_ref().map(|place| place.column),
            rule: finding.rule.to_owned(),
            message: finding.message.clone(),
            hint: finding.hint.clone(),
        }
    };
    report.findings.iter().map(told).collect()
}

impl FoundVersion {
    fn new(id: String, origin: &str, is_current: bool, folder: Folder) -> Self {
        let version =
            formats::read_manifest(&folder).and_then(|(_, manifest)| match manifest.get("version")? {
                Value::String(version) => Some(cut(version, 64).to_owned()),
                other => Some(other.to_string()),
            });
        let told =
            ModuleVersion { id, version, origin: origin.to_owned(), is_current, at: None, about: None };
        Self { told, folder }
    }
}

impl ModuleEditor for FolderEditor {
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

    fn check(&self, module: &str, files: &ChangedFiles) -> Result<Vec<ModuleFinding>, Failure> {
        Ok(self.findings(&self.folder(module)?.with_draft(files)?))
    }

    fn draft(&self, module: &str, files: &ChangedFiles) -> Result<Arc<Module>, Failure> {
        let folder = self.folder(module)?;
        let bound = self.rights_limit(&folder)?;
        let mut draft = load(&folder.with_draft(files)?).map_err(unusable)?;
        check_rights(bound.as_ref(), &draft.manifest, "draft")?;
        let hash = draft_hash(files);
        let digits = hash.get(..DRAFT_DIGITS).unwrap_or(&hash);
        mark(&mut draft.manifest.version, &format!("draft.{digits}"));
        Ok(Arc::new(draft))
    }

    fn versions(&self, module: &str) -> Result<Vec<ModuleVersion>, Failure> {
        let found = self.find_versions(module, None)?;
        Ok(found.into_iter().map(|each| each.told).collect())
    }

    fn version(&self, module: &str, id: &str) -> Result<Arc<Module>, Failure> {
        let found = self.find_versions(module, Some(id))?;
        let Some(FoundVersion { told, folder }) = found.into_iter().find(|each| each.told.id == id) else {
            let message = format!("unknown version of the module: `{}`", cut(id, 64));
            return Err(Failure::new(ErrorCode::InvalidInput, message)
                .suggest("`GET /v1/modules/{module}/versions` lists the versions"));
        };
        let mut past = load(&folder).map_err(ModuleLoadError::into_failure)?;
        if !told.is_current {
            check_rights(self.rights_limit(&self.folder(module)?)?.as_ref(), &past.manifest, "version")?;
            if told.origin == ORIGIN_GIT {
                mark(&mut past.manifest.version, &format!("git.{id}"));
            }
        }
        Ok(Arc::new(past))
    }

    fn create(&self, module: &str, tier: Tier, before: BeforeChange<'_>) -> Result<SavedModule, Failure> {
        let template = Template::new(module, tier);
        // Before anything is recorded: the name must follow the rules.
        init::files(&template).map_err(|error| create_failure(&error))?;
        let _one_at_a_time = self.changing.lock();
        if self.library.find(module).is_ok() {
            let message = format!("a module of this name exists: `{module}`");
            return Err(Failure::new(ErrorCode::InvalidInput, message).suggest("Choose another name"));
        }
        let is_editable = |place: &&PathBuf| {
            let real = place.canonicalize();
            real.is_ok_and(|real| self.editable.iter().any(|allowed| real.starts_with(allowed)))
        };
        let Some(place) = self.library.places().iter().map(|(_, place)| place).find(is_editable) else {
            let message = "no folder of modules may be changed on this server";
            return Err(Failure::new(ErrorCode::PermissionDenied, message)
                .suggest("Start the server with `--edit cognitive/modules`")
                .suggest_remotely("Ask the server operator to allow changes"));
        };
        before()?;
        init::create(place, &template).map_err(|error| create_failure(&error))?;
        let folder = self.folder(module)?;
        Ok(SavedModule { hash: folder_hash(&files_of(&folder)?), findings: self.findings(&folder) })
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
            return Err(Failure::new(ErrorCode::PermissionDenied, "this module is read-only on this server")
                .suggest("Start the server with `--edit DIR`, where DIR contains the module")
                .suggest_remotely("Ask the server operator to allow changes"));
        };
        // A panic under the lock leaves the folder either changed or unchanged, never in between.
        let _one_at_a_time = self.changing.lock();
        let hash = change_folder(&place, hash, files, before)?;
        Ok(SavedModule { hash, findings: self.findings(&folder) })
    }
}

/// The failure of a module that could not be created.
fn create_failure(error: &InitError) -> Failure {
    let code = match error {
        InitError::Write { .. } => ErrorCode::InternalError,
        _ => ErrorCode::InvalidInput,
    };
    Failure::new(code, error.to_string()).suggest(error.hint())
}

/// Adds a label to a version.
fn mark(version: &mut String, word: &str) {
    let between = if version.contains('+') { '.' } else { '+' };
    *version = format!("{version}{between}{word}");
}

/// Refuses a version that may do more than the installed module. (E4007)
fn check_rights(bound: Option<&Manifest>, tried: &Manifest, what: &str) -> Result<(), Failure> {
    let Some(member) = bound.and_then(|installed| widened_right(installed, tried)) else { return Ok(()) };
    let message = format!("the {what} has more permissions than the installed module: `{member}`");
    Err(Failure::new(ErrorCode::PermissionDenied, message)
        .with_detail("member", json!(member))
        .suggest("Keep the installed value, or save the module with the new value first"))
}

/// Reports a draft that is not a valid module. The caller's text is at fault, and each finding has its position.
fn unusable(error: ModuleLoadError) -> Failure {
    let shown = match &error {
        ModuleLoadError::NotAModule { .. } => "no manifest".to_owned(),
        ModuleLoadError::Invalid { findings, .. } => {
            findings.iter().take(3).map(Finding::summary).collect::<Vec<_>>().join("; ")
        }
        other => format!("{other:?}"),
    };
    Failure::new(ErrorCode::InvalidInput, format!("invalid draft: {shown}"))
        .with_detail("kind", json!("draft"))
        .suggest("`POST /v1/modules/{module}/check` lists every finding with its place")
}

#[cfg(test)]
mod tests;
