//! Fills in `default` values of the input schema for members that the caller left out. Only members under `properties`
//! are considered, including those in nested objects that exist; nothing that was sent is changed.

use serde_json::{Map, Value};

use super::Contract;
use crate::text::pointer;

/// The most references that are followed in a row. References may form a circle.
const MAX_STEPS: usize = 16;

impl Contract {
    /// Returns whether a member is missing for which the input schema has a default.
    #[must_use]
    pub fn is_incomplete(&self, input: &Value) -> bool {
        !missing(self.input().schema(), self.root(), input, "").is_empty()
    }

    /// Inserts the defaults of the input schema for missing members, and returns whether it inserted any. Defaults that
    /// would make a valid input invalid are an author's mistake; the input then stays as sent.
    pub fn fill_in(&self, input: &mut Value) -> bool {
        let missing = missing(self.input().schema(), self.root(), input, "");
        if missing.is_empty() {
            return false;
        }
        let was_fit = self.input().accepts(input);
        for (object, name, default) in &missing {
            if let Some(Value::Object(members)) = input.pointer_mut(object) {
                members.insert((*name).clone(), (*default).clone());
            }
        }
        if !was_fit || self.input().accepts(input) {
            return true;
        }
        for (object, name, _) in &missing {
            if let Some(Value::Object(members)) = input.pointer_mut(object) {
                members.shift_remove(*name);
            }
        }
        false
    }
}

/// The missing members with a default: the object, the name and the value.
fn missing<'a>(
    schema: &'a Value,
    root: &'a Value,
    value: &Value,
    at: &str,
) -> Vec<(String, &'a String, &'a Value)> {
    let (Some(described), Value::Object(members)) = (properties(schema, root), value) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (name, member) in described {
        match members.get(name) {
            // Recurses as deep as the sent value, whose depth is limited.
            Some(there) => found.extend(missing(member, root, there, &pointer(at, name))),
            None => found
                .extend(resolve_reference(member, root).get("default").map(|it| (at.to_owned(), name, it))),
        }
    }
    found
}

fn properties<'a>(schema: &'a Value, root: &'a Value) -> Option<&'a Map<String, Value>> {
    resolve_reference(schema, root).get("properties")?.as_object()
}

/// The schema itself, or the target of its references within the same file.
fn resolve_reference<'a>(mut schema: &'a Value, root: &'a Value) -> &'a Value {
    for _ in 0..MAX_STEPS {
        let reference = schema.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'));
        match reference.and_then(|pointer| root.pointer(pointer)) {
            Some(target) => schema = target,
            None => break,
        }
    }
    schema
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Layout, SchemaFiles};
    use super::*;

    fn filled(input_schema: Value, mut input: Value) -> Option<Value> {
        let files = SchemaFiles::from([(
            "schema.json".to_owned(),
            json!({
                "definitions": { "tone": { "type": "string", "default": "plain" } },
                "input": input_schema, "data": { "type": "object" },
            }),
        )]);
        let contract = Contract::compile(&files, &Layout::default()).unwrap();
        contract.fill_in(&mut input).then_some(input)
    }

    fn schema() -> Value {
        json!({ "type": "object", "properties": {
            "want": { "type": "array", "items": { "enum": ["a", "b"] }, "default": ["a", "b"] },
            "tone": { "$ref": "#/definitions/tone" },
            "deep": { "type": "object", "properties": { "n": { "type": "integer", "default": 3 } } },
        } })
    }

    #[test]
    fn missing_members_get_their_default_also_inside_of_objects_that_are_there() {
        let all = json!({ "deep": { "n": 3 }, "want": ["a", "b"], "tone": "plain" });
        assert_eq!(filled(schema(), json!({ "deep": {} })), Some(all));
        let without = json!({ "want": ["a", "b"], "tone": "plain" });
        assert_eq!(filled(schema(), json!({})), Some(without), "an object that is missing stays missing");
    }

    #[test]
    fn what_was_sent_stays_and_nothing_happens_without_defaults() {
        let sent = json!({ "want": ["b"], "tone": "loud" });
        assert_eq!(filled(schema(), sent), None);
        assert_eq!(filled(json!({ "properties": { "a": { "type": "string" } } }), json!({})), None);
    }

    #[test]
    fn a_default_that_the_schema_itself_refuses_is_not_used() {
        let schema = json!({ "properties": { "n": { "type": "integer", "default": "three" } } });
        assert_eq!(filled(schema, json!({})), None);
    }
}
