//! Imports prompts of other tools as Cognitive Modules: Agent Skills, Prompty, dotprompt, BAML and `TensorZero`.
//!
//! One file, or one function in it, becomes one module: its schema, prompt and examples, a golden test, and a list of
//! all losses. [`import`] reads and returns files; the caller writes them.
//!
//! Runs nothing, evaluates no template, opens no connection, and reads nothing outside the folder of the named file.
//! Refuses sources that are not a single judgement (an agent procedure, a conversation, a tool loop), and gives the
//! reason.
//!
//! # Modules
//!
//! - Sources: `form` (detects the form of a file), `source` (reads it within limits), `front_matter`.
//! - One reader per form: `skill`, `prompty`, `dotprompt` (with `picoschema`), `baml`, `tensorzero`. Each returns the
//!   intermediate form in `draft`.
//! - Templates: `template` reads templates of other tools as text and rewrites them in words, `prompt_text` escapes
//!   untrusted text.
//! - The module: `assemble` makes its files, `contract` and `foreign_schema` its schema, `example_value` a golden test,
//!   `name` its name, `pretty_json` writes JSON for people.
//! - `loss` lists every difference from the source.

mod assemble;
mod baml;
mod contract;
mod dotprompt;
mod draft;
mod example_value;
mod foreign_schema;
mod form;
mod front_matter;
mod loss;
mod name;
mod picoschema;
mod pretty_json;
mod prompt_text;
mod prompty;
mod skill;
mod source;
mod template;
mod tensorzero;

use std::collections::BTreeMap;
use std::path::Path;

use cognitive_contract::Failure;
use serde_json::{Value, json};

pub use form::ImportForm;
pub use loss::{ImportLoss, LossKind};

/// The options of an import.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// The name of the module. It overrides the name in the file.
    pub name: Option<String>,
    /// The function to import, if a file has several.
    pub function: Option<String>,
    /// Imports a skill even if it has scripts, and leaves them out.
    pub without_scripts: bool,
}

/// A module that is not yet written to disk.
#[derive(Debug, Clone)]
pub struct ImportedModule {
    /// The name of the module and of its folder.
    pub name: String,
    /// The original form.
    pub form: ImportForm,
    /// Path inside its folder → content.
    pub files: BTreeMap<String, Vec<u8>>,
    /// All losses and changes.
    pub losses: Vec<ImportLoss>,
    /// True if the source was an exported Cognitive Module and was restored unchanged.
    pub restored: bool,
}

impl ImportedModule {
    /// The result as JSON, without the content of the files.
    #[must_use]
    pub fn to_value(&self) -> Value {
        json!({
            "name": self.name,
            "form": self.form.word(),
            "restored": self.restored,
            "files": self.files.keys().collect::<Vec<_>>(),
            "losses": self.losses.iter().map(ImportLoss::to_value).collect::<Vec<_>>(),
        })
    }
}

/// Reads the file or folder at a path as a module. The error says why it cannot be imported. Writes nothing.
pub fn import(path: &Path, form: ImportForm, options: &ImportOptions) -> Result<ImportedModule, Failure> {
    let has_functions = matches!(form, ImportForm::Baml | ImportForm::TensorZero);
    if options.function.is_some() && !has_functions {
        return Err(source::refuse(
            format!("a file of this format has no functions to choose from: {}", form.word()),
            "Leave out `--function`",
        ));
    }
    if options.without_scripts && form != ImportForm::Skill {
        return Err(source::refuse(
            format!("only skills have scripts, but this is: {}", form.word()),
            "Leave out `--without-scripts`",
        ));
    }
    match form {
        ImportForm::Skill => skill::import(path, options),
        ImportForm::Prompty => assemble::assemble(prompty::read(path)?, options),
        ImportForm::Dotprompt => assemble::assemble(dotprompt::read(path)?, options),
        ImportForm::Baml => assemble::assemble(baml::read(path, options)?, options),
        ImportForm::TensorZero => assemble::assemble(tensorzero::read(path, options)?, options),
    }
}
