//! Lists every place that a schema names: the paths of its properties and the values of its enums.
//! Follows `$ref` within the module's own files. A recursive type is entered once, and a schema that nests or
//! branches without end is cut off at fixed limits.

use std::collections::{BTreeSet, HashMap};

use cognitive_schema::{SchemaFiles, SectionRef, file_of_ref};
use serde_json::Value;

use crate::expect::place::member;
use crate::expect::value::deep_equal;

/// The most schemas that are visited. Real modules stay below a thousand. Without this limit, a few lines
/// that double at each step would keep the walk busy for years.
const MAX_SCHEMAS: usize = 20_000;
/// The maximum nesting of schemas. No answer meant for people nests this deep.
const MAX_SCHEMA_DEPTH: usize = 100;

/// One place that a schema names.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SchemaField {
    /// The path as written for people: `issues[].type`.
    pub(super) path: String,
    /// The steps that lead to it.
    pub(super) steps: Vec<FieldStep>,
    /// True for a property; false for the items of a list and for the top level.
    pub(super) property: bool,
    /// The values it is limited to.
    pub(super) values: Vec<Value>,
}

/// One step into a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FieldStep {
    /// The member of this name.
    Member(String),
    /// Every member except these names.
    Others(BTreeSet<String>),
    /// Every item.
    Items,
}

impl SchemaField {
    /// Returns every part of a value that this place matches.
    pub(super) fn matching_parts<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        let mut reached = vec![value];
        for step in &self.steps {
            reached = reached.into_iter().flat_map(|each| step.take(each)).collect();
        }
        reached
    }
}

impl FieldStep {
    fn take<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match (self, value) {
            (Self::Member(name), Value::Object(members)) => members.get(name).into_iter().collect(),
            (Self::Others(known), Value::Object(members)) => {
                members.iter().filter(|(name, _)| !known.contains(*name)).map(|(_, value)| value).collect()
            }
            (Self::Items, Value::Array(items)) => items.iter().collect(),
            _ => Vec::new(),
        }
    }
}

/// Lists the places below a section. `refused` is the enum tag that a module with strict enums rejects.
pub(super) fn fields(files: &SchemaFiles, section: &SectionRef, refused: Option<&str>) -> Vec<SchemaField> {
    let mut walk = FieldWalk {
        files,
        refused,
        open: Vec::new(),
        fields: Vec::new(),
        known: HashMap::new(),
        left: MAX_SCHEMAS,
        depth: 0,
    };
    walk.enter(&section.file, &section.pointer, &SchemaPlace { path: String::new(), steps: Vec::new() });
    walk.fields
}

#[derive(Debug, Clone)]
struct SchemaPlace {
    path: String,
    steps: Vec<FieldStep>,
}

impl SchemaPlace {
    fn step(&self, step: FieldStep) -> Self {
        let path = match &step {
            FieldStep::Member(name) => member(&self.path, name),
            FieldStep::Others(_) => member(&self.path, "*").replace("[\"*\"]", ".*"),
            FieldStep::Items => format!("{}[]", self.path),
        };
        let steps = self.steps.iter().cloned().chain([step]).collect();
        Self { path: path.trim_start_matches('.').to_owned(), steps }
    }
}

struct FieldWalk<'a> {
    files: &'a SchemaFiles,
    refused: Option<&'a str>,
    /// The references that led here. Meeting one again means a cycle.
    open: Vec<(String, String)>,
    fields: Vec<SchemaField>,
    known: HashMap<String, usize>,
    /// The number of schemas that may still be visited.
    left: usize,
    depth: usize,
}

impl<'a> FieldWalk<'a> {
    fn enter(&mut self, file: &str, pointer: &str, place: &SchemaPlace) {
        let target = (file.to_owned(), pointer.to_owned());
        let Some(node) = self.files.get(file).and_then(|root| root.pointer(pointer)) else { return };
        if !self.open.contains(&target) {
            self.open.push(target);
            self.visit(node, file, place);
            self.open.pop();
        }
    }

    fn visit(&mut self, node: &'a Value, file: &str, place: &SchemaPlace) {
        if self.left > 0 && self.depth < MAX_SCHEMA_DEPTH {
            self.left -= 1;
            self.depth += 1;
            self.look_at(node, file, place);
            self.depth -= 1;
        }
    }

    fn look_at(&mut self, node: &'a Value, file: &str, place: &SchemaPlace) {
        let Value::Object(schema) = node else { return };
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            return self.follow(reference, file, place);
        }
        self.closed_list(schema.get("enum").and_then(Value::as_array).into_iter().flatten(), place);
        self.closed_list(schema.get("const"), place);
        let named = |keyword: &str| schema.get(keyword).and_then(Value::as_object).into_iter().flatten();
        for (name, child) in named("properties") {
            self.property(child, file, &place.step(FieldStep::Member(name.clone())));
        }
        let known: BTreeSet<String> = named("properties").map(|(name, _)| name.clone()).collect();
        let others = schema.get("additionalProperties").filter(|schema| schema.is_object()).into_iter();
        for child in others.chain(named("patternProperties").map(|(_, schema)| schema)) {
            self.property(child, file, &place.step(FieldStep::Others(known.clone())));
        }
        for keyword in ["items", "additionalItems"] {
            for child in one_or_many(schema.get(keyword)) {
                self.visit(child, file, &place.step(FieldStep::Items));
            }
        }
        // These keywords apply to the same value again.
        for keyword in ["allOf", "anyOf", "oneOf", "then", "else"] {
            for child in one_or_many(schema.get(keyword)) {
                if !self.is_refused(child) {
                    self.visit(child, file, place);
                }
            }
        }
        for (_, child) in named("dependencies") {
            self.visit(child, file, place);
        }
    }

    fn follow(&mut self, reference: &str, from: &str, place: &SchemaPlace) {
        let file = match file_of_ref(reference, from) {
            Ok(Some(file)) => file,
            Ok(None) => from.to_owned(),
            // A contract with such a reference does not compile.
            Err(_) => return,
        };
        let fragment = reference.split_once('#').map_or("", |(_, fragment)| fragment);
        self.enter(&file, &percent_decoded(fragment), place);
    }

    fn property(&mut self, schema: &'a Value, file: &str, place: &SchemaPlace) {
        // `false` forbids the member.
        if schema != &Value::Bool(false) && self.left > 0 {
            self.note(place, |field| field.property = true);
            self.visit(schema, file, place);
        }
    }

    fn closed_list<'v>(&mut self, values: impl IntoIterator<Item = &'v Value>, place: &SchemaPlace) {
        for value in values {
            self.note(place, |field| {
                if !field.values.iter().any(|known| deep_equal(known, value)) {
                    field.values.push(value.clone());
                }
            });
        }
    }

    /// Updates the entry of a place, which several branches may describe.
    fn note(&mut self, place: &SchemaPlace, note: impl FnOnce(&mut SchemaField)) {
        let SchemaPlace { path, steps } = place;
        let index = *self.known.entry(path.clone()).or_insert_with(|| {
            let (path, steps) = (path.clone(), steps.clone());
            self.fields.push(SchemaField { path, steps, property: false, values: Vec::new() });
            self.fields.len() - 1
        });
        if let Some(field) = self.fields.get_mut(index) {
            note(field);
        }
    }

    /// Returns whether this is the custom branch of an extensible enum, in a module with strict enums.
    fn is_refused(&self, branch: &Value) -> bool {
        let Some(tag) = self.refused else { return false };
        let required = branch.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|name| name == tag))
            && branch.get("properties").is_some_and(|properties| properties.get(tag).is_some())
    }
}

fn one_or_many(schema: Option<&Value>) -> impl Iterator<Item = &Value> {
    let (one, many) = match schema {
        Some(Value::Array(many)) => (None, many.as_slice()),
        other => (other, [].as_slice()),
    };
    one.into_iter().chain(many)
}

/// Decodes percent escapes: `%24defs` is another way to write `$defs`.
fn percent_decoded(fragment: &str) -> String {
    let mut parts = fragment.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let code = part.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (code, part.get(2..)) {
            (Some(code), Some(rest)) => {
                bytes.push(code);
                bytes.extend(rest.as_bytes());
            }
            _ => bytes.extend(format!("%{part}").as_bytes()),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field_names(schema: Value, refused: Option<&str>) -> Vec<String> {
        let files = SchemaFiles::from([
            ("schema.json".to_owned(), schema),
            ("types/word.json".to_owned(), json!({ "here": { "properties": { "w": { "enum": ["x"] } } } })),
        ]);
        let found = fields(&files, &SectionRef::parse("schema.json#/data"), refused);
        let line = |field: &SchemaField| {
            let name = if field.property { field.path.clone() } else { format!("- {}", field.path) };
            field.values.iter().fold(name, |line, value| format!("{line} {value}"))
        };
        found.iter().map(line).collect()
    }

    #[test]
    fn properties_are_found_behind_every_keyword() {
        let schema = json!({
            "data": {
                "properties": {
                    "a": { "enum": [1, 2] },
                    "list": { "items": { "properties": { "b": { "const": "c" }, "never": false } } },
                    "tags": { "items": [{ "enum": ["t"] }, { "enum": ["t", "u"] }] },
                    "map": { "properties": { "own": true }, "additionalProperties": { "properties": { "v": {} } } },
                    "either": { "oneOf": [{ "enum": ["w"] }, { "properties": { "custom": {} }, "required": ["custom"] }] },
                    "word": { "$ref": "types/word.json#/here" },
                    "coded": { "$ref": "#/%24defs/d" },
                },
                "allOf": [{ "then": { "properties": { "t": {} } }, "not": { "properties": { "n": {} } } }],
                "dependencies": { "a": { "properties": { "d": {} } }, "b": ["a"] },
            },
            "$defs": { "d": { "patternProperties": { "^x": { "type": "string" } } } },
        });
        let found = field_names(schema.clone(), None);
        let expected = [
            "a 1 2",
            "list",
            "list[].b \"c\"",
            "tags",
            "- tags[] \"t\" \"u\"",
            "map",
            "map.own",
            "map.*",
            "map.*.v",
            "either \"w\"",
            "either.custom",
            "word",
            "word.w \"x\"",
            "coded",
            "coded.*",
            "t",
            "d",
        ];
        assert_eq!(found, expected);
        assert!(
            !field_names(schema, Some("custom")).contains(&"either.custom".to_owned()),
            "strict enums take no custom value"
        );
    }

    #[test]
    fn a_type_that_contains_itself_is_entered_once() {
        let tree =
            json!({ "data": { "properties": { "name": {}, "kids": { "items": { "$ref": "#/data" } } } } });
        assert_eq!(field_names(tree, None), ["name", "kids"]);
    }

    #[test]
    fn a_schema_that_doubles_at_every_step_ends() {
        for double in [
            |next: &Value| json!({ "properties": { "a": next, "b": next } }),
            |next: &Value| json!({ "items": [next, next] }),
            |next: &Value| json!({ "anyOf": [{ "properties": { "a": next } }, { "properties": { "a": next } }] }),
        ] {
            let mut schema = json!({ "data": { "$ref": "#/d0" }, "d30": {} });
            for step in 0..30 {
                let next = json!({ "$ref": format!("#/d{}", step + 1) });
                schema[format!("d{step}")] = double(&next);
            }
            assert!(field_names(schema, None).len() <= MAX_SCHEMAS);
        }
    }

    #[test]
    fn a_schema_without_bottom_is_left() {
        let mut schema = json!({ "data": { "$ref": "#/d0" } });
        for step in 0..5_000 {
            let next = json!({ "$ref": format!("#/d{}", step + 1) });
            schema[format!("d{step}")] = json!({ "properties": { "a": next } });
        }
        assert!((1..=MAX_SCHEMA_DEPTH).contains(&field_names(schema, None).len()));
    }

    #[test]
    fn a_place_is_reached_in_a_value() {
        let known = BTreeSet::from(["own".to_owned()]);
        let steps = vec![FieldStep::Member("map".to_owned()), FieldStep::Others(known), FieldStep::Items];
        let field = SchemaField { path: String::new(), steps, property: true, values: Vec::new() };
        let value = json!({ "map": { "own": [1], "x": [2, 3], "y": 4 } });
        assert_eq!(field.matching_parts(&value), [&json!(2), &json!(3)]);
    }
}
