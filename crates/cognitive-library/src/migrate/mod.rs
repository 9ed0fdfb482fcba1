//! Migration of old modules to v2.2: [`plan`] computes the new files, [`apply`] writes the folder completely or not at
//! all. Guesses nothing that only the author can know, and removes nothing that the author wrote.
//!
//! Planning only reads and computes; a dry run is a plan that is not applied. The plan of a module that is v2.2 or
//! newer is empty. Before a plan is returned, the resulting module is loaded, so that a migration cannot break a
//! working module.
//!
//! Decisions where the formats leave a choice:
//!
//! - `overflow`, `enums` and `tier` are written with their effective defaults, so that behaviour stays the same. For a
//!   module without `schema_strictness` that is `decision`, five insights, extensible enums.
//! - A missing `name` becomes that of the folder. Other gaps are reported, never filled: a missing `version` or
//!   `responsibility`, a version such as `1.0`, a `rationale` that is not a string, an answer that is not an object.
//! - A v1 module that has a `prompt.md` is refused: v1 ignores that file, and v2.2 would use it.
//!
//! ```
//! use cognitive_library::{Folder, migrate};
//!
//! let files = [
//!     ("MODULE.md", "---\nname: tidy\nversion: 1.0.0\nresponsibility: Tidy a text\n---\nTidy the text.\n"),
//!     ("schema.json", r#"{"input": {"type": "object"}, "output": {"type": "object"}}"#),
//! ];
//! let files = files.map(|(file, text)| (file.to_owned(), text.as_bytes().to_vec()));
//! let plan = migrate::plan(&Folder::memory("tidy", files.into())).unwrap();
//! assert_eq!(plan.files.keys().collect::<Vec<_>>(), ["module.yaml", "prompt.md", "schema.json"]);
//! ```

mod apply;
mod error;
mod held_folder;
mod manifest;
mod prompt;
mod refs;
mod schema;
mod sections;
mod tree;
mod yaml_text;

use std::collections::BTreeMap;

use cognitive_contract::{Format, Module};
use cognitive_schema::SchemaFiles;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::finding::{Finding, FindingLocation};
use crate::folder::{Folder, ReadError, TEXT_LIMIT};
use crate::formats::{self, ModuleParts};
use crate::validate::labels;
use crate::{json, load};

pub use apply::{AppliedMigration, ApplyOptions, Backup, Links, apply};
pub use error::MigrateError;

const MANIFEST: &str = "module.yaml";
const PROMPT: &str = "prompt.md";

/// The kind of change to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FileChange {
    /// The file did not exist.
    Created,
    /// The content of the file changes.
    Updated,
}

/// One change of a migration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MigrationChange {
    /// The path relative to the module.
    pub file: String,
    /// A description of the change for users.
    pub what: String,
    /// The kind of change to the file.
    pub kind: FileChange,
}

/// The changes that a migration would make.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MigrationPlan {
    /// The format of the folder.
    pub from: Format,
    /// The changes, in the order of the files. Empty if there is nothing to do.
    pub changes: Vec<MigrationChange>,
    /// The files to write, each with its complete new text.
    pub files: BTreeMap<String, String>,
    /// The files that were read. The plan is refused for a folder with other contents.
    read: BTreeMap<String, String>,
}

impl MigrationPlan {
    fn without_changes(from: Format) -> Self {
        Self { from, changes: Vec::new(), files: BTreeMap::new(), read: BTreeMap::new() }
    }

    /// Returns whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Adds a file to the plan, unless its text is unchanged.
    fn write(&mut self, file: &str, text: String, steps: impl IntoIterator<Item = String>) {
        let old = self.read.get(file);
        if old == Some(&text) {
            return;
        }
        let kind = if old.is_some() { FileChange::Updated } else { FileChange::Created };
        self.changes.extend(steps.into_iter().map(|what| MigrationChange {
            file: file.to_owned(),
            what,
            kind,
        }));
        self.files.insert(file.to_owned(), text);
    }
}

/// Computes the plan that turns a module into v2.2. Writes nothing.
pub fn plan(folder: &Folder) -> Result<MigrationPlan, MigrateError> {
    let Some(parts) = formats::read(folder) else {
        return Err(MigrateError::NotAModule { folder: folder.display() });
    };
    match parts.format {
        Format::V22 | Format::V25 => Ok(MigrationPlan::without_changes(parts.format)),
        Format::V0 => Err(MigrateError::ManualReview { name: folder.name() }),
        Format::V1 | Format::V21 => {
            let invalid = |findings| MigrateError::Invalid { name: folder.name(), findings };
            let old = OldModule::read(parts, &folder.name()).map_err(invalid)?;
            let plan = old.plan(folder).map_err(|finding| invalid(vec![finding]))?;
            check(&plan, &folder.name()).map_err(invalid)?;
            Ok(plan)
        }
    }
}

/// A v1 or v2.1 module that loads.
struct OldModule {
    /// The manifest as written.
    written: Map<String, Value>,
    manifest_file: &'static str,
    schemas: SchemaFiles,
    texts: BTreeMap<String, String>,
    module: Module,
}

impl OldModule {
    fn read(parts: ModuleParts, folder_name: &str) -> Result<Self, Vec<Finding>> {
        let manifest_file = parts.manifest_file;
        let written = parts.manifest.as_object().cloned().unwrap_or_default();
        let schemas = parts.schemas.clone();
        let files = [manifest_file, PROMPT].into_iter().chain(schemas.keys().map(String::as_str));
        let text = |file: &str| Some((file.to_owned(), parts.sources.get(file)?.to_owned()));
        let texts = files.filter_map(text).collect();
        let module = load::assemble(parts, folder_name)?;
        let old = Self { written, manifest_file, schemas, texts, module };
        let findings = old.check_name();
        if findings.is_empty() { Ok(old) } else { Err(findings) }
    }

    fn plan(&self, folder: &Folder) -> Result<MigrationPlan, Finding> {
        let effective = &self.module.manifest;
        let mut plan =
            MigrationPlan { read: self.texts.clone(), ..MigrationPlan::without_changes(self.module.format) };
        let contract = schema::migrate(&self.schemas, &self.module.contract, &effective.overflow)?;
        if self.module.format == Format::V1 {
            let manifest = manifest::migrate_v1(&self.written, effective, contract.renamed);
            let manifest = manifest.ok_or_else(|| self.unwritable())?;
            plan.write(MANIFEST, manifest.text, manifest.steps);
            self.plan_v1_prompt(folder, &mut plan)?;
        } else {
            let text = self.texts.get(MANIFEST).map_or("", String::as_str);
            let manifest = manifest::migrate_v21(text, &self.written, effective, contract.renamed);
            let manifest = manifest.ok_or_else(|| self.unwritable())?;
            plan.write(MANIFEST, manifest.text, manifest.steps);
            if let Some(prompt) = self.explain_envelope(&self.module.prompt) {
                plan.write(PROMPT, prompt, ["added a section that explains the envelope".to_owned()]);
            }
        }
        self.plan_contract(contract, &mut plan);
        Ok(plan)
    }

    /// Adds the missing explanation of the envelope to a prompt; `None` if it is complete.
    fn explain_envelope(&self, prompt: &str) -> Option<String> {
        let contract = &self.module.contract;
        let about = prompt::EnvelopeText {
            overflow: &self.module.manifest.overflow,
            data: contract.data().schema(),
            error: contract.error().map_or(&Value::Null, |section| section.schema()),
        };
        prompt::with_envelope(prompt, &about)
    }

    fn plan_v1_prompt(&self, folder: &Folder, plan: &mut MigrationPlan) -> Result<(), Finding> {
        let body = self.module.prompt.trim_start_matches(['\r', '\n']);
        let explained = self.explain_envelope(body);
        let mut steps = vec!["written from the text of `MODULE.md`".to_owned()];
        steps.extend(explained.is_some().then(|| "added a section that explains the envelope".to_owned()));
        let text = explained.unwrap_or_else(|| body.to_owned());
        let is_free = !folder.names().iter().any(|name| name == PROMPT);
        match folder.read(PROMPT, TEXT_LIMIT) {
            Err(ReadError::Missing) if is_free => plan.write(PROMPT, text, steps),
            Ok(there) if there == text => {
                plan.read.insert(PROMPT.to_owned(), there);
            }
            _ => {
                let message = "is in the way: the prompt of a v1 module is in `MODULE.md`";
                return Err(Finding::error(PROMPT, FindingLocation::File, "migrate/prompt", message)
                    .hint("Rename or remove `prompt.md`, then migrate again"));
            }
        }
        Ok(())
    }

    fn plan_contract(&self, contract: schema::MigratedSchema, plan: &mut MigrationPlan) {
        for (file, document) in contract.files {
            let old = self.texts.get(&file).map_or("", String::as_str);
            if self.schemas.get(&file) == Some(&document) {
                continue;
            }
            let mut steps: Vec<String> =
                contract.steps.iter().filter(|(of, _)| *of == file).map(|(_, what)| what.clone()).collect();
            steps.extend(json::index(old).repeated.into_iter().map(|at| {
                format!("`{at}` was written twice; only the last one, which was in effect, is left")
            }));
            plan.write(&file, json_text(&document, old), steps);
        }
    }

    /// The fields that describe the module must exist and be valid: only the author can write them. A missing name is
    /// taken from the folder, which may have any name.
    fn check_name(&self) -> Vec<Finding> {
        let mut named = self.written.clone();
        if !named.get("name").is_some_and(Value::is_string) {
            named.insert("name".to_owned(), Value::String(self.module.manifest.name.clone()));
        }
        labels(&Value::Object(named), self.manifest_file)
    }

    fn unwritable(&self) -> Finding {
        let message = "contains a value that cannot be written back unchanged";
        Finding::error(self.manifest_file, FindingLocation::File, "migrate/manifest", message)
    }
}

/// Serialises JSON with the indentation of the old text.
fn json_text(document: &Value, old: &str) -> String {
    let indented = old.lines().find(|line| line.starts_with([' ', '\t']) && !line.trim().is_empty());
    let indent = indented.and_then(|line| line.get(..line.len() - line.trim_start().len())).unwrap_or("  ");
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
    let mut writer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    // Neither a value nor a vector can fail here. If they did, the check of the plan would report an empty file.
    let written = document.serialize(&mut writer).is_ok();
    let text = String::from_utf8(bytes).unwrap_or_default();
    if written { format!("{text}\n").replace('\n', prompt::newline(old)) } else { String::new() }
}

/// Loads the module that a plan would produce.
fn check(plan: &MigrationPlan, name: &str) -> Result<(), Vec<Finding>> {
    let texts = plan.read.iter().chain(&plan.files);
    let files = texts.map(|(file, text)| (file.clone(), text.clone().into_bytes())).collect();
    let parts = formats::read(&Folder::memory(name, files));
    let module = parts.map_or_else(|| Err(Vec::new()), |parts| load::assemble(parts, name))?;
    if module.format < Format::V22 {
        let message = "would still be in the old format";
        return Err(vec![Finding::error(MANIFEST, FindingLocation::File, "migrate/check", message)]);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
