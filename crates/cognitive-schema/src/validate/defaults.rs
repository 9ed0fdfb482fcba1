//! Members that a caller may leave out: what the input schema says with `default` stands in their place. Only members
//! that `properties` describe are looked at, also inside of objects that are there; nothing that was sent is changed.

use serde_json::{Map, Value};

use super::Contract;
use crate::text::pointer;

/// References that lead to references are followed this far.
const MAX_STEPS: usize = 16;

impl Contract {
    /// Whether a member is missing that the input schema has a default for.
    #[must_use]
    pub fn is_incomplete(&self, input: &Value) -> bool {
        !missing(self.input().schema(), self.root(), input, "").is_empty()
    }

    /// Puts the defaults of the input schema where a member is missing, and says whether there were any. Defaults that
    /// would make an input unfit are an author's mistake, so then the input stays as it was sent.
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

/// Where a member is missing that has a default: the object, the name and the value.
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
            // As deep as what was sent, and that has a limit.
            Some(there) => found.extend(missing(member, root, there, &pointer(at, name))),
            None => found.extend(resolved(member, root).get("default").map(|it| (at.to_owned(), name, it))),
        }
    }
    found
}

fn properties<'a>(schema: &'a Value, root: &'a Value) -> Option<&'a Map<String, Value>> {
    resolved(schema, root).get("properties")?.as_object()
}

/// A schema, or the one in the same file that it refers to.
fn resolved<'a>(mut schema: &'a Value, root: &'a Value) -> &'a Value {
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
