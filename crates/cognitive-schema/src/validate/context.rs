//! The context part of a contract: the schemas that `accepts` and `emits` name, and the types below `_context` in the
//! input schema. Validates nothing itself.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use super::refs::{file_of_ref, target};
use super::{Layout, SchemaFiles, SchemaProblem, Section, SectionRef, exists, find};

/// The context schemas, compiled once like all sections.
#[derive(Debug)]
pub(super) struct ContextSchemas {
    pub(super) sections: Vec<Section>,
    pub(super) of_input: Option<BTreeSet<String>>,
}

/// The locations of context schemas, without duplicates. Reports a missing one as a problem.
pub(super) fn places(
    files: &SchemaFiles,
    layout: &Layout,
    problems: &mut Vec<SchemaProblem>,
) -> Vec<SectionRef> {
    let mut places: Vec<SectionRef> = Vec::new();
    for place in &layout.context {
        if !exists(files, place) {
            let message =
                format!("a `schema` of `context` points to nothing: `{}#{}`", place.file, place.pointer);
            problems.push(SchemaProblem::new(&place.file, "", message));
        } else if !places.contains(place) {
            places.push(place.clone());
        }
    }
    places
}

/// The types below `_context` of the input schema, through references and branches; `None` if it is not mentioned.
pub(super) fn kinds_of(files: &SchemaFiles, input: &SectionRef) -> Option<BTreeSet<String>> {
    let mut search = ContextSearch { files, seen: HashSet::new(), contexts: Vec::new() };
    search.contexts(find(files, input)?, &input.file);
    if search.contexts.is_empty() {
        return None;
    }
    let mut kinds = BTreeSet::new();
    search.seen.clear();
    for (context, file) in std::mem::take(&mut search.contexts) {
        search.kinds(context, &file, &mut kinds);
    }
    Some(kinds)
}

struct ContextSearch<'a> {
    files: &'a SchemaFiles,
    /// Visited schemas; references may lead back to them.
    seen: HashSet<*const Value>,
    /// The schemas of `_context`, each with its file.
    contexts: Vec<(&'a Value, String)>,
}

impl<'a> ContextSearch<'a> {
    fn contexts(&mut self, schema: &'a Value, file: &str) {
        if let Some(context) = schema.pointer("/properties/_context") {
            self.contexts.push((context, file.to_owned()));
        }
        self.visit_schemas(schema, file, &mut Self::contexts);
    }

    fn kinds(&mut self, context: &'a Value, file: &str, kinds: &mut BTreeSet<String>) {
        let named = context.get("properties").and_then(Value::as_object);
        kinds.extend(named.into_iter().flat_map(|named| named.keys().cloned()));
        self.visit_schemas(context, file, &mut |search, schema, file| search.kinds(schema, file, kinds));
    }

    /// Continues with further schemas that validate the same value. Visits each schema once, so that cycles end.
    fn visit_schemas(
        &mut self,
        schema: &'a Value,
        file: &str,
        each: &mut dyn FnMut(&mut Self, &'a Value, &str),
    ) {
        if !self.seen.insert(std::ptr::from_ref(schema)) {
            return;
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str)
            && let Ok(next) = target(self.files, file, reference)
        {
            let file = file_of_ref(reference, file).ok().flatten().unwrap_or_else(|| file.to_owned());
            each(self, next, &file);
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            for branch in schema.get(keyword).and_then(Value::as_array).into_iter().flatten() {
                each(self, branch, file);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::validate::{Contract, SCHEMA_FILE};

    fn files(schema: Value) -> SchemaFiles {
        SchemaFiles::from([(SCHEMA_FILE.to_owned(), schema)])
    }

    fn kinds(input: Value) -> Option<Vec<String>> {
        let files = files(json!({
            "input": input, "data": {},
            "$defs": { "context": { "properties": { "deep": {} } }, "wrap": { "properties": { "_context": { "$ref": "#/$defs/context" } } } },
        }));
        let contract = Contract::compile(&files, &Layout::default()).unwrap();
        contract.context_kinds().map(|kinds| kinds.iter().cloned().collect())
    }

    // CTX-001, CTX-005: the names below `_context` in the input schema also count as declared.
    #[test]
    fn ctx_001_005_the_input_schema_declares_types_through_references_and_branches() {
        assert_eq!(kinds(json!({ "type": "object" })), None);
        assert_eq!(kinds(json!({ "properties": { "_context": { "type": "object" } } })), Some(vec![]));
        let direct = json!({ "properties": { "_context": { "properties": { "a": {} }, "allOf": [{ "properties": { "b": {} } }] } } });
        assert_eq!(kinds(direct), Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(kinds(json!({ "$ref": "#/$defs/wrap" })), Some(vec!["deep".to_owned()]));
        assert_eq!(
            kinds(json!({ "allOf": [{}, { "$ref": "#/$defs/wrap" }] })),
            Some(vec!["deep".to_owned()])
        );
    }

    #[test]
    fn ctx_004_schemas_of_context_are_compiled_with_the_contract() {
        let mut files = files(json!({ "input": {}, "data": {} }));
        let layout = Layout { context: vec![SectionRef::parse("./c/s.json"); 2], ..Layout::default() };
        let problems = Contract::compile(&files, &layout).unwrap_err();
        assert!(problems[0].message.contains("points to nothing: `c/s.json#`"), "{problems:?}");
        files.insert("c/s.json".to_owned(), json!({ "type": "object" }));
        let contract = Contract::compile(&files, &layout).unwrap();
        assert!(contract.context("c/s.json").unwrap().accepts(&json!({})));
        assert!(!contract.context("./c/s.json").unwrap().accepts(&json!(1)));
        assert!(contract.context("other.json").is_none());
        files.insert("c/s.json".to_owned(), json!({ "type": "no such type" }));
        assert!(Contract::compile(&files, &layout).is_err());
    }
}
