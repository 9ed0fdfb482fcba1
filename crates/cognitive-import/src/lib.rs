//! Prompts of other tools as Cognitive Modules: Agent Skills, Prompty, dotprompt, BAML and `TensorZero`.
//!
//! One file, or one function of it, becomes one module: its schema, its prompt and its examples, a golden test, and the list of
//! everything that is not as it was. [`import`] reads and returns files; whoever calls it writes them.
//!
//! Runs nothing, evaluates no template, opens no connection, and reads nothing outside the folder of the file that was named. What
//! is no single judgement (a procedure of an agent, a conversation, a loop of tools) is refused with the reason.

mod assemble;
mod baml;
mod contract;
mod dotprompt;
mod draft;
mod foreign_schema;
mod form;
mod front_matter;
mod loss;
mod made_up;
mod name;
mod picoschema;
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

/// How a file is imported.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// The name of the module, in place of what the file says.
    pub name: Option<String>,
    /// The function that is meant, where a file has several.
    pub function: Option<String>,
    /// Imports a skill although it has scripts, which are left out.
    pub without_scripts: bool,
}

/// A module that is not written yet.
#[derive(Debug, Clone)]
pub struct ImportedModule {
    /// Its name, which is also that of its folder.
    pub name: String,
    /// What it was.
    pub form: ImportForm,
    /// Path inside its folder → content.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Everything that is not as it was.
    pub losses: Vec<ImportLoss>,
    /// Whether it is a module of ours that came back unchanged.
    pub restored: bool,
}

impl ImportedModule {
    /// The same for programs, without the content of the files.
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

/// Reads what lies at a path as a module, or says why it cannot be one. Writes nothing.
pub fn import(path: &Path, form: ImportForm, options: &ImportOptions) -> Result<ImportedModule, Failure> {
    let has_functions = matches!(form, ImportForm::Baml | ImportForm::TensorZero);
    if options.function.is_some() && !has_functions {
        return Err(source::refuse(
            format!("a file of this form has no functions to choose from: {}", form.word()),
            "Leave out `--function`",
        ));
    }
    if options.without_scripts && form != ImportForm::Skill {
        return Err(source::refuse(
            format!("only skills have scripts, and this is: {}", form.word()),
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
