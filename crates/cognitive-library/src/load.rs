//! From a folder to a [`Module`]: reads it, checks the manifest, compiles the contract. Missing values with a default
//! are accepted; only `validate` reports them.

use std::path::Path;

use cognitive_contract::module::Digest;
use cognitive_contract::text::hex;
use cognitive_contract::{Failure, Manifest, Module};
use cognitive_schema::{Contract, SCHEMA_FILE};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::examples;
use crate::finding::{Finding, FindingLocation, quote};
use crate::folder::{Folder, safe_relative};
use crate::formats::{self, ModuleParts};

/// The reason why a folder is not a usable module.
#[derive(Debug)]
#[non_exhaustive]
pub enum ModuleLoadError {
    /// The folder has no module file.
    NotAModule {
        /// The folder as shown to users.
        folder: String,
    },
    /// The folder has a module with faults.
    Invalid {
        /// The folder's name.
        name: String,
        /// All faults.
        findings: Vec<Finding>,
    },
}

impl ModuleLoadError {
    /// Converts the error into the one that the caller of a run receives.
    pub fn into_failure(self) -> Failure {
        match self {
            Self::NotAModule { folder } => not_a_module(&folder),
            Self::Invalid { name, findings } => {
                let shown: Vec<String> = findings.iter().take(3).map(Finding::summary).collect();
                Failure::module_invalid(format!("module `{name}`: {}", shown.join("; ")))
                    .suggest(format!("Run `cogn validate {name}` to see every finding with its place"))
            }
        }
    }
}

fn not_a_module(folder: &str) -> Failure {
    let code = cognitive_contract::ErrorCode::ModuleNotFound;
    Failure::new(code, format!("no `module.yaml`, `MODULE.md` or `module.md` in: `{folder}`"))
        .suggest("Create a module with `cogn init NAME`, or list modules with `cogn list`")
}

/// Loads a module from its folder.
pub fn load(folder: &Folder) -> Result<Module, ModuleLoadError> {
    let Some(parts) = formats::read(folder) else {
        return Err(ModuleLoadError::NotAModule { folder: folder.display() });
    };
    let mut module = assemble(parts, &folder.name())
        .map_err(|findings| ModuleLoadError::Invalid { name: folder.name(), findings })?;
    module.folder = folder.path().map(Path::to_path_buf);
    Ok(module)
}

/// Builds a module from the parts of a folder, or returns everything that is wrong with them.
pub(crate) fn assemble(parts: ModuleParts, folder_name: &str) -> Result<Module, Vec<Finding>> {
    let digest = digest(&parts);
    let mut findings = parts.findings;
    let manifest = if parts.manifest.is_null() && !findings.is_empty() {
        None
    } else {
        Manifest::from_value(&parts.manifest, parts.format)
            .map_err(|found| {
                findings.extend(found.into_iter().map(|violation| {
                    let hint = value_hint(parts.manifest.pointer(&violation.path), &violation.message);
                    Finding { hint, ..manifest_finding(parts.manifest_file, violation) }
                }));
            })
            .ok()
    };
    if let Some(manifest) = &manifest {
        findings.extend(wandering_paths(manifest, parts.manifest_file));
    }
    let contract = manifest.as_ref().filter(|_| findings.is_empty()).and_then(|manifest| {
        Contract::compile(&parts.schemas, &manifest.layout())
            .map_err(|problems| findings.extend(problems.into_iter().map(schema_finding)))
            .ok()
    });
    match (manifest, contract) {
        (Some(mut manifest), Some(contract)) => {
            // Users look a module up by its folder.
            if manifest.name.is_empty() {
                folder_name.clone_into(&mut manifest.name);
            }
            let mut module = Module::new(manifest, contract, parts.prompt, parts.format);
            module.digest = digest;
            module.trained = parts.trained.into();
            let findings = examples::add(&mut module, parts.examples);
            if findings.is_empty() { Ok(module) } else { Err(findings) }
        }
        _ => Err(findings),
    }
}

/// Finds paths in the manifest that lead out of the module. `io` is checked where its files are read.
fn wandering_paths(manifest: &Manifest, file: &str) -> Vec<Finding> {
    let tests = manifest.tests.iter().enumerate().flat_map(|(index, test)| {
        [&test.input, &test.expected].map(|path| (format!("/tests/{index}"), path.clone()))
    });
    let accepts = manifest.context.accepts.iter().map(|entry| &entry.schema).enumerate();
    let accepts = accepts.map(|(index, schema)| (format!("/context/accepts/{index}/schema"), schema.clone()));
    let emits = manifest.context.emits.iter().map(|entry| &entry.schema).enumerate();
    let emits = emits.map(|(index, schema)| (format!("/context/emits/{index}/schema"), schema.clone()));
    let schemas = accepts.chain(emits).filter_map(|(place, schema)| Some((place, schema?)));
    tests
        .chain(schemas)
        .filter(|(_, path)| safe_relative(path).is_none())
        .map(|(place, path)| {
            let message = format!("is outside the module: `{path}`");
            Finding::error(file, FindingLocation::Value(place), "manifest/path", message)
        })
        .collect()
}

/// Hashes every text that was read, with its name, and `schema.json` separately.
fn digest(parts: &ModuleParts) -> Digest {
    let mut all = Sha256::new();
    for (name, text) in parts.sources.iter() {
        // The lengths prevent two different sets of files from having the same digest.
        all.update(format!("{} {name} {} ", name.len(), text.len()));
        all.update(text);
    }
    let schema = parts.sources.get(SCHEMA_FILE).unwrap_or_default();
    Digest { module: hex(&all.finalize()), schema: hex(&Sha256::digest(schema)) }
}

pub(crate) fn manifest_finding(file: &str, violation: cognitive_contract::Violation) -> Finding {
    let rule = if violation.rule == "enum" { "manifest/closed-list" } else { "manifest/value" };
    let message = label(&violation.path, &violation.message);
    Finding::error(file, FindingLocation::Value(violation.path), rule, message)
}

/// Returns the remedy for a value of the wrong type, where YAML is easily misread.
fn value_hint(written: Option<&Value>, message: &str) -> Option<String> {
    let text = written?.as_str()?;
    let hint = match message {
        "expected boolean"
            if ["yes", "no", "on", "off", "true", "false"].contains(&text.to_lowercase().as_str()) =>
        {
            "Write `true` or `false`, without quotes".to_owned()
        }
        "expected array" if text.starts_with('-') => {
            "Put a space behind each dash, as in `- entry`".to_owned()
        }
        "expected array" => format!("Write a list: {}", quote(&format!("[{text}]"))),
        "expected integer" | "expected number" if text.parse::<f64>().is_ok() => {
            format!("Write the number without quotes: {}", quote(text))
        }
        _ => return None,
    };
    Some(hint)
}

/// Puts the field before the expectation, as in "`tier`: expected one of …".
fn label(path: &str, message: &str) -> String {
    let field = path.trim_start_matches('/').replace('/', ".");
    if field.is_empty() { message.to_owned() } else { format!("`{field}`: {message}") }
}

pub(crate) fn schema_finding(problem: cognitive_schema::SchemaProblem) -> Finding {
    let at = FindingLocation::Value(problem.pointer);
    let finding = Finding::error(&problem.file, at, "schema/contract", problem.message);
    Finding { hint: problem.hint.map(str::to_owned), ..finding }
}
