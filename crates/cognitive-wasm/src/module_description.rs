//! Builds a module that can judge from its description at `GET /api/modules/{name}`. The most recently used modules are
//! cached, because compiling a contract takes longer than judging with it. Knows only `schema.json`: a module whose
//! contract is spread over more files is refused.

use std::cell::RefCell;
use std::rc::Rc;

use cognitive_contract::{Format, Manifest, Module};
use cognitive_schema::{Contract, SCHEMA_FILE, SchemaFiles};
use serde_json::Value;

/// The keys of a manifest that define the contract. A server returns more keys, some only for display.
pub(crate) const JUDGING: [&str; 12] = [
    "name",
    "version",
    "responsibility",
    "tier",
    "schema_strictness",
    "overflow",
    "enums",
    "failure",
    "io",
    "compat",
    "meta",
    "context",
];

/// The largest number of cached modules. A page that edits a module sends a new description each time, and the cache
/// must not grow with it.
const KEPT: usize = 32;

thread_local! {
    /// The most recently used one is last.
    static MODULES: RefCell<Vec<(String, Rc<Module>)>> = const { RefCell::new(Vec::new()) };
}

/// Returns the module of a description. The error explains why it is invalid.
pub(crate) fn module(description: &str) -> Result<Rc<Module>, String> {
    if let Some(known) = recall(description) {
        return Ok(known);
    }
    let module = Rc::new(read(description)?);
    MODULES.with_borrow_mut(|modules| {
        if modules.len() >= KEPT {
            modules.remove(0);
        }
        modules.push((description.to_owned(), Rc::clone(&module)));
    });
    Ok(module)
}

fn recall(description: &str) -> Option<Rc<Module>> {
    MODULES.with_borrow_mut(|modules| {
        let at = modules.iter().rposition(|(known, _)| known == description)?;
        let found = modules.remove(at);
        let module = Rc::clone(&found.1);
        modules.push(found);
        Some(module)
    })
}

fn read(description: &str) -> Result<Module, String> {
    let described = cognitive_contract::json::parse(description)
        .map_err(|error| format!("the description of the module is not JSON: {}", error.message))?;
    let manifest = described.get("manifest").ok_or("the description of the module has no `manifest`")?;
    let schema = described.get("schema").ok_or("the description of the module has no `schema`")?;
    let format = described.get("format").and_then(Value::as_str).and_then(format_of);
    let format = format.ok_or("the description of the module has no known `format`")?;
    let known = JUDGING.iter().filter_map(|key| Some(((*key).to_owned(), manifest.get(key)?.clone())));
    let manifest = Manifest::from_value(&Value::Object(known.collect()), format).map_err(|found| {
        let first = found.first().map(cognitive_contract::Violation::summary).unwrap_or_default();
        format!("the manifest of the module is invalid: {first}")
    })?;
    let files = SchemaFiles::from([(SCHEMA_FILE.to_owned(), schema.clone())]);
    let contract = Contract::compile(&files, &manifest.layout()).map_err(|found| {
        let first = found.first().map(|problem| format!("`{}`: {}", problem.pointer, problem.message));
        format!("the schema of the module is invalid: {}", first.unwrap_or_default())
    })?;
    Ok(Module::new(manifest, contract, String::new(), format))
}

fn format_of(word: &str) -> Option<Format> {
    [Format::V0, Format::V1, Format::V21, Format::V22, Format::V25]
        .into_iter()
        .find(|each| each.word() == word)
}
