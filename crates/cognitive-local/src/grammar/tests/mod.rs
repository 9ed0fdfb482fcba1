//! Random documents through random grammars: for every choice of a model, the result obeys the contract.

mod documents;
mod real;
mod schemas;
mod suite;

use std::sync::Arc;

use cognitive_contract::{Enforcement, Format, Manifest, Module};
use cognitive_schema::SchemaTarget;
use cognitive_schema::{Contract, SCHEMA_FILE, SchemaFiles};
use serde_json::{Value, json};

use super::*;
use crate::decide::Decisions;
use crate::generate::{GenerateRequest, GenerationResult, Halt, compose};
use crate::sample::TokenRandom;
use crate::toy::Toy;

/// A module with this data schema; `None` if it is not a valid contract.
pub(crate) fn module(data: &Value) -> Option<Module> {
    module_of(json!({ "input": {}, "data": data }))
}

/// A module with this `schema.json`; `None` if it is not a valid contract.
fn module_of(schema: Value) -> Option<Module> {
    let manifest = Manifest::from_value(&json!({ "name": "sample" }), Format::V22).unwrap();
    let files = SchemaFiles::from([(SCHEMA_FILE.to_owned(), schema)]);
    let contract = Contract::compile(&files, &manifest.layout()).ok()?;
    Some(Module::new(manifest, contract, String::new(), Format::V22))
}

/// Vocabularies that need no weights.
fn toys() -> [Arc<dyn LanguageModel>; 2] {
    [Arc::new(Toy::default()), Arc::new(Toy::wordy())]
}

/// A random document: every choice is random.
fn document(
    weights: &Arc<dyn LanguageModel>,
    grammar: &Grammar,
    budget: usize,
    seed: u64,
) -> Result<(String, GenerationResult), Halt> {
    let mut dice = TokenRandom::new(seed);
    let prompt: Vec<u32> = (0..8).map(|_| u32::try_from(dice.next() % 256).unwrap()).collect();
    let vocabulary = weights.vocabulary();
    let order = GenerateRequest {
        grammar,
        vocabulary,
        prompt: &prompt,
        input: "",
        decisions: &Decisions::default(),
        budget,
        temperature: 0.0,
        seed,
    };
    let mut text = Vec::new();
    let mut session = Arc::clone(weights).session();
    let written = compose(&mut *session, &order, &|| false, &mut |bytes| text.extend_from_slice(bytes))?;
    Ok((String::from_utf8(text).unwrap(), written))
}

/// The violations of the contract in a document.
fn complaints(module: &Module, text: &str) -> Option<String> {
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => return Some(format!("not JSON: {error}: {text}")),
    };
    module.accept(value, Enforcement::Full).err().map(|(value, found)| format!("{found:?} in {value}"))
}

fn lowered(module: &Module) -> Value {
    module.provider_schema(SchemaTarget::Grammar).schema.clone()
}
