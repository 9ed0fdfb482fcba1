//! Generates types of modules for programs in other languages: input, output and the envelope, from the contracts that
//! the runtime enforces.
//!
//! [`TypeSet::new`] reads the contracts of modules into one small model of types, and [`TypeSet::print`] writes it in a
//! [`TypeLanguage`]. The same modules always give the same text, so that `--check` can compare. Does no I/O. Rules that
//! no type system here can express (lengths, patterns, ranges) are left to the runtime, which checks every answer in
//! full.
//!
//! # Modules
//!
//! - `type_reader` reads contracts into the types of `model`, `naming` names them.
//! - `python`, `typescript` and `rust` write them.

mod model;
mod naming;
mod python;
mod rust;
mod type_reader;
mod typescript;

use std::sync::Arc;

use cognitive_contract::Module;
use serde_json::{Map, Value};

pub use model::{ObjectField, ObjectType, TypeDefinition, TypeExpr};

/// A language for generated types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TypeLanguage {
    /// Python 3.11 and later, as `TypedDict`: plain dictionaries, no dependency.
    Python,
    /// Python as classes of pydantic 2.
    Pydantic,
    /// TypeScript as interfaces and unions.
    TypeScript,
    /// Rust as structs and enums of serde.
    Rust,
}

/// The types of one or more modules.
#[derive(Debug, Clone, PartialEq)]
pub struct TypeSet {
    /// The types that all modules share: `Meta`, `ErrorInfo`, `Custom` and the types of their members.
    pub shared: Vec<TypeDefinition>,
    /// The types of each module, by name of the module.
    pub modules: Vec<ModuleTypes>,
}

/// The types of one module.
#[derive(Debug, Clone, PartialEq)]
pub struct ModuleTypes {
    /// The name of the module.
    pub module: String,
    /// The version of the module.
    pub version: String,
    /// The prefix of its type names.
    pub prefix: String,
    /// The types, including `…Input` and `…Data`.
    pub types: Vec<TypeDefinition>,
}

impl TypeSet {
    /// Creates the types of modules, sorted by module name.
    #[must_use]
    pub fn new(modules: &[Arc<Module>]) -> Self {
        let mut modules: Vec<&Module> = modules.iter().map(AsRef::as_ref).collect();
        modules.sort_by(|one, other| one.manifest.name.cmp(&other.manifest.name));
        let mut names = naming::TypeNames::default();
        let shared = type_reader::shared_types(&mut names);
        let modules =
            modules.into_iter().map(|module| type_reader::module_types(module, &mut names)).collect();
        Self { shared, modules }
    }

    /// Returns the text of a file with all of these types.
    #[must_use]
    pub fn print(&self, language: TypeLanguage) -> String {
        match language {
            TypeLanguage::Python => python::print(self, python::PythonStyle::TypedDict),
            TypeLanguage::Pydantic => python::print(self, python::PythonStyle::Pydantic),
            TypeLanguage::TypeScript => typescript::print(self),
            TypeLanguage::Rust => rust::print(self),
        }
    }
}

/// Returns the text of a file with the types of named schemas in TypeScript. References lead into `$defs`; `heading` is
/// the comment of the file.
#[must_use]
pub fn typescript_types(schemas: &Map<String, Value>, heading: &str) -> String {
    typescript::print_types(&type_reader::named_types(schemas), heading)
}

/// The first line of every file, without the marks of a comment.
pub(crate) const HEADING: &str = "Written by `cogn types`. Do not edit: change schema.json and run it again.";
