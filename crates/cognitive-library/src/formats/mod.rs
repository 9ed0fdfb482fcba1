//! Readers for all module formats, which produce one common structure. Code outside this folder does not know the
//! format on disk. Refuses contract files that are too large together, and member names that are too long.

mod v0;
mod v1;
mod v2;

use serde_json::Value;

use cognitive_contract::Format;
use cognitive_schema::SchemaFiles;

use crate::examples::{self, ExampleFile};
use crate::finding::{Finding, FindingLocation, Sources, quote};
use crate::folder::{Budget, Folder, JSON_LIMIT, ReadError, TEXT_LIMIT, TOTAL_LIMIT};
use crate::json;
use crate::trained_models;
use crate::yaml::YamlError;
use cognitive_contract::trained_model::TrainedModel;

pub use v1::{front_matter, front_matter_text};

/// The contents of a module folder as read, with all faults found so far.
#[derive(Debug)]
pub struct ModuleParts {
    /// The format of the folder.
    pub format: Format,
    /// The file that the manifest was read from.
    pub manifest_file: &'static str,
    /// The manifest as written; null if it could not be read.
    pub manifest: Value,
    /// The contract files.
    pub schemas: SchemaFiles,
    /// The prompt.
    pub prompt: String,
    /// The worked examples.
    pub(crate) examples: Vec<ExampleFile>,
    /// The trained heads, one entry per model.
    pub(crate) trained: Vec<TrainedModel>,
    /// The texts that findings point into.
    pub sources: Sources,
    /// The findings that prevent loading.
    pub findings: Vec<Finding>,
    /// The remaining read budget of the contract files.
    contract: Budget,
}

/// Reads a folder in any format; `None` if it is not a module.
#[must_use]
pub fn read(folder: &Folder) -> Option<ModuleParts> {
    let names = folder.names();
    let mut parts = match Format::from_files(names.iter().map(String::as_str))? {
        Format::V0 => v0::read(folder),
        Format::V1 => v1::read(folder),
        Format::V21 | Format::V22 | Format::V25 => v2::read(folder),
    };
    parts.examples = examples::read(folder, &mut parts.sources, &mut parts.findings);
    parts.trained = trained_models::read(folder, &mut parts.sources, &mut parts.findings);
    Some(parts)
}

/// Reads only the manifest and its format, for lists of many modules; `None` if it cannot be read.
#[must_use]
pub fn read_manifest(folder: &Folder) -> Option<(Format, Value)> {
    let names = folder.names();
    let format = Format::from_files(names.iter().map(String::as_str))?;
    if format <= Format::V1 {
        let file = if format == Format::V1 { "MODULE.md" } else { "module.md" };
        let text = folder.read(file, TEXT_LIMIT).ok()?;
        return Some((format, front_matter(&text).ok()?.0));
    }
    let manifest = crate::yaml::parse(&folder.read("module.yaml", TEXT_LIMIT).ok()?).ok()?;
    Some((Format::from_manifest(&manifest), manifest))
}

/// Turns a YAML error into a finding with its location and remedy.
fn syntax_finding(file: &str, error: YamlError) -> Finding {
    let at = error.offset.map_or(FindingLocation::File, FindingLocation::Offset);
    Finding { hint: error.hint, ..Finding::error(file, at, "manifest/syntax", error.message) }
}

impl ModuleParts {
    fn new(format: Format, manifest_file: &'static str) -> Self {
        Self {
            format,
            manifest_file,
            manifest: Value::Null,
            schemas: SchemaFiles::new(),
            prompt: String::new(),
            examples: Vec::new(),
            trained: Vec::new(),
            sources: Sources::default(),
            findings: Vec::new(),
            contract: Budget::new(JSON_LIMIT, TOTAL_LIMIT),
        }
    }

    /// Reads a required text file; a failure becomes a finding.
    fn text(&mut self, folder: &Folder, file: &str) -> Option<String> {
        self.keep(file, folder.read(file, TEXT_LIMIT))
    }

    fn keep(&mut self, file: &str, read: Result<String, ReadError>) -> Option<String> {
        match read {
            Ok(text) => {
                self.sources.insert(file, text.clone());
                Some(text)
            }
            Err(ReadError::Missing) => {
                let message = format!("{} is missing", quote(file));
                self.findings.push(Finding::error(file, FindingLocation::File, "files/missing", message));
                None
            }
            Err(ReadError::Refused(reason)) => {
                let message = format!("{} {reason}", quote(file));
                self.findings.push(Finding::error(file, FindingLocation::File, "files/unreadable", message));
                None
            }
        }
    }

    fn prompt_text(&mut self, folder: &Folder, file: &str) {
        self.prompt = self.text(folder, file).unwrap_or_default();
    }

    /// Reads a JSON file of the contract.
    fn schema(&mut self, folder: &Folder, file: &str) -> Option<Value> {
        let read = folder.read_within(file, &mut self.contract);
        let text = self.keep(file, read)?;
        match json::parse_file(&text) {
            Ok(value) => Some(value),
            Err(error) => {
                let at = FindingLocation::Offset(error.offset);
                self.findings.push(Finding::error(file, at, "schema/syntax", error.message));
                None
            }
        }
    }
}
