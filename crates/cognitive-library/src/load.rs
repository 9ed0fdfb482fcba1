//! From a folder to a [`Module`]: read, judge the manifest, compile the contract.
//! Loading is tolerant of what is missing and has a default; `validate` is where authors hear about that.

use cognitive_contract::{Contract, Failure, Manifest, Module};

use crate::finding::{At, Finding};
use crate::folder::Folder;
use crate::formats::{self, Parts};

/// Why a folder is not a usable module.
#[derive(Debug)]
pub enum LoadError {
    /// There is no module file in it.
    NotAModule {
        /// The folder as shown to people.
        folder: String,
    },
    /// There is one, but something is wrong.
    Invalid {
        /// The folder's name.
        name: String,
        /// Everything that is wrong.
        findings: Vec<Finding>,
    },
}

impl LoadError {
    /// The error as the caller of a run sees it.
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
        .suggest("Create a module with `cogn init NAME`, or see what is there with `cogn list`")
}

/// Loads a module from its folder.
pub fn load(folder: &Folder) -> Result<Module, LoadError> {
    let Some(parts) = formats::read(folder) else {
        return Err(LoadError::NotAModule { folder: folder.display() });
    };
    assemble(parts, &folder.name()).map_err(|findings| LoadError::Invalid { name: folder.name(), findings })
}

/// Puts the parts of a folder together, or says everything that is wrong with them.
pub(crate) fn assemble(parts: Parts, folder_name: &str) -> Result<Module, Vec<Finding>> {
    let mut findings = parts.findings;
    let manifest = if parts.manifest.is_null() && !findings.is_empty() {
        None
    } else {
        Manifest::from_value(&parts.manifest, parts.format)
            .map_err(|found| {
                findings.extend(
                    found.into_iter().map(|violation| manifest_finding(parts.manifest_file, violation)),
                );
            })
            .ok()
    };
    let contract = manifest.as_ref().filter(|_| findings.is_empty()).and_then(|manifest| {
        Contract::compile(&parts.schemas, &manifest.layout())
            .map_err(|problems| findings.extend(problems.into_iter().map(schema_finding)))
            .ok()
    });
    match (manifest, contract) {
        (Some(mut manifest), Some(contract)) => {
            // The folder is what people look a module up by.
            if manifest.name.is_empty() {
                folder_name.clone_into(&mut manifest.name);
            }
            Ok(Module::new(manifest, contract, parts.prompt, parts.format))
        }
        _ => Err(findings),
    }
}

pub(crate) fn manifest_finding(file: &str, violation: cognitive_contract::Violation) -> Finding {
    let rule = if violation.rule == "enum" { "manifest/closed-list" } else { "manifest/value" };
    Finding::error(file, At::Value(violation.path.clone()), rule, label(&violation.path, &violation.message))
}

/// Names the field before the expectation, as in "`tier`: expected one of …".
fn label(path: &str, message: &str) -> String {
    let field = path.trim_start_matches('/').replace('/', ".");
    if field.is_empty() { message.to_owned() } else { format!("`{field}`: {message}") }
}

pub(crate) fn schema_finding(problem: cognitive_contract::schema::SchemaProblem) -> Finding {
    Finding::error(&problem.file, At::Value(problem.pointer), "schema/contract", problem.message)
}
