//! Validation of a module folder: reports everything an author should know, with its location in the file. Standard
//! mode requires a usable module; strict mode (`--v22`) requires a complete v2.2 contract. Changes nothing. Reports at
//! most 200 findings: an author starts with the first of them.

mod composition;
mod embedded_model;
mod enums;
mod examples;
mod golden_tests;
mod keywords;
mod manifest;
mod media_members;
mod members;
mod nearest_name;
mod parts;
mod placeholders;
mod prompt_members;
mod schema;

pub use examples::has_examples;
pub use golden_tests::{ExpectationFault, ExpectationReader, NamedPlace, ReadExpectation};
pub(crate) use manifest::labels;

use examples::Examples;
use parts::{ComposedModule, ContractView};

use std::borrow::Cow;

use cognitive_contract::{Format, Manifest, Module};
use cognitive_schema::{SCHEMA_FILE, SchemaFiles, in_draft_07};
use serde_json::Value;

use crate::find::Library;
use crate::finding::{Finding, FindingLocation, Findings, Severity, Sources};
use crate::folder::Folder;
use crate::formats::{self, ModuleParts};
use crate::load;

/// The strictness of validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Requires a module that loads, describes itself, and has valid examples.
    #[default]
    Standard,
    /// Also requires everything that v2.2 wants written down.
    Strict,
}

/// The result of a validation.
#[derive(Debug)]
pub struct ValidationReport {
    /// The name of the module, which is that of its folder.
    pub name: String,
    /// The folder as shown to users.
    pub folder: String,
    /// The format; `None` if the folder is not a module, or its manifest cannot be read.
    pub format: Option<Format>,
    /// The strictness that was used.
    pub mode: Mode,
    /// Errors first, then warnings; each list in the order of the files. The last one counts omitted findings.
    pub findings: Vec<Finding>,
    /// The texts that the findings point into.
    pub sources: Sources,
}

impl ValidationReport {
    /// Returns whether the module passes: warnings are allowed, errors are not.
    #[must_use]
    pub fn valid(&self) -> bool {
        self.count(Severity::Error) == 0
    }

    /// Returns the number of findings with a severity.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }
}

/// The input of the single checks.
struct CheckedModule<'a> {
    mode: Mode,
    folder: &'a Folder,
    format: Format,
    manifest_file: &'static str,
    /// The manifest as written.
    written: &'a Value,
    /// The manifest with defaults; `None` if it is not valid.
    effective: Option<Manifest>,
    prompt: &'a str,
    /// `schema.json` in Draft-07, whatever dialect it declares; null if it is not JSON.
    root: &'a Value,
    /// True if a file declares another dialect than Draft-07.
    declares_dialect: bool,
    /// All files of the contract, in the same form.
    schemas: &'a SchemaFiles,
}

impl CheckedModule<'_> {
    fn strict(&self) -> bool {
        self.mode == Mode::Strict
    }

    /// Creates a finding that is an error in strict mode and a warning otherwise.
    fn stricter(
        &self,
        file: &str,
        at: FindingLocation,
        rule: &'static str,
        message: impl Into<String>,
    ) -> Finding {
        let severity = if self.strict() { Severity::Error } else { Severity::Warning };
        Finding { severity, ..Finding::error(file, at, rule, message) }
    }
}

/// Optional context for a validation. Each missing part disables its checks.
#[derive(Clone, Copy, Default)]
pub struct ValidationSurroundings<'a> {
    /// The library with the modules that a composition uses.
    pub library: Option<&'a Library>,
    /// The parser for the expectations of golden tests.
    pub expectations: Option<&'a dyn ExpectationReader>,
}

/// Validates a folder alone, without checks of its parts and of test expectations.
#[must_use]
pub fn validate(folder: &Folder, mode: Mode) -> ValidationReport {
    validate_with(ValidationSurroundings::default(), folder, mode)
}

/// Validates a folder together with the modules that it uses.
#[must_use]
pub fn validate_in(library: &Library, folder: &Folder, mode: Mode) -> ValidationReport {
    validate_with(ValidationSurroundings { library: Some(library), expectations: None }, folder, mode)
}

/// Validates a folder with the given context.
#[must_use]
pub fn validate_with(around: ValidationSurroundings<'_>, folder: &Folder, mode: Mode) -> ValidationReport {
    let mut report = ValidationReport {
        name: folder.name(),
        folder: folder.display(),
        format: None,
        mode,
        findings: Vec::new(),
        sources: Sources::default(),
    };
    let Some(parts) = formats::read(folder) else {
        let message = "no `module.yaml`, `MODULE.md` or `module.md` here";
        let finding = Finding::error("module.yaml", FindingLocation::File, "files/missing", message);
        report.findings.push(finding.hint("Create a module with `cogn init NAME`"));
        return report;
    };
    // The manifest determines the format.
    report.format = (!parts.manifest.is_null()).then_some(parts.format);
    report.sources = parts.sources.clone();
    report.findings = findings(folder, mode, parts, around, &mut report.sources);
    report
}

fn findings(
    folder: &Folder,
    mode: Mode,
    parts: ModuleParts,
    around: ValidationSurroundings<'_>,
    sources: &mut Sources,
) -> Vec<Finding> {
    let manifest_file = parts.manifest_file;
    let is_composed = parts.manifest.get("composition").is_some() || parts.prompt.contains("@call:");
    let composed = around.library.filter(|_| is_composed).map(|library| (library, parts.schemas.clone()));
    let reader = around.expectations.filter(|_| examples::has_tests(folder, &parts.manifest));
    let expected = reader.map(|reader| (reader, parts.schemas.clone()));
    let tests = parts.manifest.get("tests").cloned();
    // Contracts can be large: they are checked in place, before loading consumes them.
    let checked = check_folder(folder, mode, &parts, sources);
    let mut found = Findings::default();
    // Loading and the single checks can find the same fault. The first wording is stored, which is that of loading.
    let module: Option<Module> =
        load::assemble(parts, &folder.name()).map_err(|load_findings| found.extend(load_findings)).ok();
    found.append(checked);
    if let Some(module) = &module {
        if let Some((library, files)) = composed {
            parts::check(ComposedModule { module, files, manifest_file, library }, &mut found);
        }
        embedded_model::check(module, &mut found);
        found.extend(crate::trained_models::outdated_heads(module));
        let expected = expected.map(|(reader, files)| (reader, ContractView::new(files, module)));
        Examples::new(folder, module, manifest_file, sources, &mut found).check(tests.as_ref(), expected);
    }
    found.finish(manifest_file)
}

fn check_folder(folder: &Folder, mode: Mode, parts: &ModuleParts, sources: &Sources) -> Findings {
    let schemas = in_draft_07(&parts.schemas);
    let subject = CheckedModule {
        mode,
        folder,
        format: parts.format,
        manifest_file: parts.manifest_file,
        written: &parts.manifest,
        effective: Manifest::from_value(&parts.manifest, parts.format).ok(),
        prompt: &parts.prompt,
        root: schemas.get(SCHEMA_FILE).unwrap_or(&Value::Null),
        declares_dialect: matches!(schemas, Cow::Owned(_)),
        schemas: &schemas,
    };
    let mut found = Findings::default();
    if subject.written.is_object() {
        manifest::check(&subject, &mut found);
        composition::check(&subject, &mut found);
    }
    if subject.root.is_object() {
        schema::check(&subject, sources, &mut found);
        keywords::check(&subject, &mut found);
        schema::foreign_keywords(&subject, &parts.schemas, &mut found);
        if subject.format >= Format::V21 {
            members::check(&subject, &mut found);
            media_members::check(&subject, &mut found);
            placeholders::check(&subject, &mut found);
            prompt_members::check(&subject, &mut found);
            enums::check(&subject, &mut found);
        }
    }
    found
}

#[cfg(test)]
mod tests;
