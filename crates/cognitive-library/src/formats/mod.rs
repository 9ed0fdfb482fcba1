//! Every historic format, turned into one shape. Past this folder nobody knows what a module looked like on disk.
//! Refuses contract files that are too large together, and member names without end.

mod v0;
mod v1;
mod v2;

use serde_json::Value;

use cognitive_contract::Format;
use cognitive_schema::SchemaFiles;

use crate::examples::{self, ExampleFile};
use crate::finding::{Finding, FindingLocation, Sources, quoted};
use crate::folder::{Budget, Folder, JSON_LIMIT, ReadError, TEXT_LIMIT, TOTAL_LIMIT};
use crate::json;
use crate::trained;
use crate::yaml::YamlError;
use cognitive_contract::trained::TrainedModel;

pub use v1::{front_matter, front_matter_text};

/// A module folder as it was read: everything there is, and what is wrong with it.
#[derive(Debug)]
pub struct ModuleParts {
    /// What kind of folder it is.
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
    /// What models have learned.
    pub(crate) trained: Vec<TrainedModel>,
    /// The texts, to point into.
    pub sources: Sources,
    /// What keeps the module from being loaded.
    pub findings: Vec<Finding>,
    /// What the files of the contract may still have.
    contract: Budget,
}

/// Reads a folder in whatever format it has; `None` if it is no module.
#[must_use]
pub fn read(folder: &Folder) -> Option<ModuleParts> {
    let names = folder.names();
    let mut parts = match Format::of_files(names.iter().map(String::as_str))? {
        Format::V0 => v0::read(folder),
        Format::V1 => v1::read(folder),
        Format::V21 | Format::V22 | Format::V25 => v2::read(folder),
    };
    parts.examples = examples::read(folder, &mut parts.sources, &mut parts.findings);
    parts.trained = trained::read(folder, &mut parts.sources, &mut parts.findings);
    Some(parts)
}

/// The manifest alone, as written, with the format it shows; `None` if it cannot be read. For lists of many modules.
#[must_use]
pub fn read_manifest(folder: &Folder) -> Option<(Format, Value)> {
    let names = folder.names();
    let format = Format::of_files(names.iter().map(String::as_str))?;
    if format <= Format::V1 {
        let file = if format == Format::V1 { "MODULE.md" } else { "module.md" };
        let text = folder.read(file, TEXT_LIMIT).ok()?;
        return Some((format, front_matter(&text).ok()?.0));
    }
    let manifest = crate::yaml::parse(&folder.read("module.yaml", TEXT_LIMIT).ok()?).ok()?;
    Some((Format::of_manifest(&manifest), manifest))
}

/// What is wrong with a YAML text, at its place and with a remedy.
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

    /// Reads a required text file; what goes wrong becomes a finding.
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
                let message = format!("{} is missing", quoted(file));
                self.findings.push(Finding::error(file, FindingLocation::File, "files/missing", message));
                None
            }
            Err(ReadError::Refused(reason)) => {
                let message = format!("{} {reason}", quoted(file));
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
