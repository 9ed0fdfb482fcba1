//! Schemas in the form that generators of clients read: every reference to a named component, no boolean where a schema
//! is expected, a type beside every list of values, items for every list. Describes the same values as before, or more:
//! what is sent and what is answered is judged by the contract alone.

use cognitive_contract::text::{hex, type_word};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::schemas::reference;

/// The component for a value that a list does not have.
pub(crate) const CUSTOM_VALUE: &str = "CustomValue";

/// Whether a schema is for what a caller sends or for what it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// A caller sends it.
    Sent,
    /// A caller gets it. No contract judges `format`, so a client that parsed dates by it could stumble over an answer.
    Received,
}

/// How the schemas of one module are named and read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientForm<'a> {
    /// What the names of its components begin with.
    pub(crate) prefix: &'a str,
    pub(crate) direction: Direction,
}

impl ClientForm<'_> {
    /// A schema in plain form as generators read it. One that nothing fits is described as anything.
    pub(crate) fn of(self, plain: &Value) -> Value {
        self.schema(plain).unwrap_or_else(|| json!({}))
    }

    /// `None` if nothing fits.
    fn schema(self, plain: &Value) -> Option<Value> {
        let members = match plain {
            Value::Bool(false) => return None,
            Value::Object(members) => members,
            _ => return Some(json!({})),
        };
        if let Some(target) = members.get("$ref").and_then(Value::as_str) {
            // What stands beside a reference is read by some generators and refused by others.
            let name = target.rsplit('/').next().unwrap_or_default();
            return Some(reference("schemas", &format!("{}{}", self.prefix, pascal(name))));
        }
        if is_custom_value(members) {
            return Some(reference("schemas", CUSTOM_VALUE));
        }
        if let Some(branches) = ["anyOf", "oneOf"].iter().find_map(|word| members.get(*word)?.as_array()) {
            return self.choice(branches, members.get("description"));
        }
        Some(typed(self.keywords(members)))
    }

    /// A choice. `anyOf`, because branches that are told apart by what is left out here may overlap.
    fn choice(self, branches: &[Value], description: Option<&Value>) -> Option<Value> {
        let mut kept: Vec<Value> = branches.iter().filter_map(|branch| self.schema(branch)).collect();
        kept.dedup();
        let mut members = match (kept.len(), kept.pop()) {
            (0, _) | (_, None) => return None,
            (1, Some(Value::Object(only))) => only,
            (_, Some(last)) => {
                kept.push(last);
                Map::from_iter([("anyOf".to_owned(), Value::Array(kept))])
            }
        };
        if let Some(description) = description.filter(|_| !members.contains_key("$ref")) {
            members.insert("description".to_owned(), description.clone());
        }
        Some(Value::Object(members))
    }

    fn keywords(self, members: &Map<String, Value>) -> Map<String, Value> {
        let mut form = Map::new();
        for (keyword, value) in members {
            let kept = match (keyword.as_str(), value) {
                ("properties", Value::Object(properties)) => {
                    let required = members.get("required").and_then(Value::as_array);
                    let is_required =
                        |name: &str| required.is_some_and(|names| names.iter().any(|each| each == name));
                    let member = |(name, schema): (&String, &Value)| {
                        let form = self.schema(schema)?;
                        let form = if is_required(name) { form } else { without_const(form) };
                        Some((name.clone(), form))
                    };
                    Value::Object(properties.iter().filter_map(member).collect())
                }
                ("items", items) => self.of(items),
                ("additionalProperties", Value::Object(_)) => self.of(value),
                ("format", _) if self.direction == Direction::Received => continue,
                // Two patterns of one text.
                ("allOf", _) => continue,
                (name, _) if name.starts_with("x-") || name.starts_with('$') => continue,
                (_, value) => value.clone(),
            };
            form.insert(keyword.clone(), kept);
        }
        form
    }
}

/// Whether this is the custom form of an extensible list of values under its usual name.
fn is_custom_value(members: &Map<String, Value>) -> bool {
    let names = ["custom", "reason"];
    let properties = members.get("properties").and_then(Value::as_object);
    let required = members.get("required").and_then(Value::as_array);
    properties
        .is_some_and(|known| known.len() == names.len() && names.iter().all(|name| known.contains_key(*name)))
        && required.is_some_and(|required| names.iter().all(|name| required.iter().any(|each| each == name)))
}

/// The same with the types that follow from the rest of it.
fn typed(mut form: Map<String, Value>) -> Value {
    if form.contains_key("const") {
        // With a type beside it, generators make that type of it and forget the value.
        form.shift_remove("type");
        return Value::Object(form);
    }
    if let Some(Value::Array(values)) = form.get("enum").cloned() {
        return listed(form, &values);
    }
    if !form.contains_key("type") {
        let word = if form.contains_key("properties") {
            Some("object")
        } else {
            form.contains_key("items").then_some("array")
        };
        if let Some(word) = word {
            form.shift_insert(0, "type".to_owned(), json!(word));
        }
    }
    let is_list = form.get("type").is_some_and(|word| {
        word == "array" || word.as_array().is_some_and(|words| words.iter().any(|each| each == "array"))
    });
    if is_list && !form.contains_key("items") {
        form.insert("items".to_owned(), json!({}));
    }
    Value::Object(form)
}

/// A member that may be absent. The usual generator for Python writes code that is none for a single value there, so it becomes
/// a list of one, or only its type.
fn without_const(mut form: Value) -> Value {
    let Some(members) = form.as_object_mut() else { return form };
    let Some(value) = members.shift_remove("const") else { return form };
    let word = type_word(&value);
    members.insert("type".to_owned(), json!(word));
    if matches!(word, "string" | "integer") {
        members.insert("enum".to_owned(), json!([value]));
    }
    form
}

/// A list of values. Generators take one type at a time, so values of several become a choice.
fn listed(mut form: Map<String, Value>, values: &[Value]) -> Value {
    let mut types: Vec<&str> = Vec::new();
    for value in values {
        let word = type_word(value);
        if !types.contains(&word) {
            types.push(word);
        }
    }
    if let [word] = types[..] {
        form.insert("type".to_owned(), json!(word));
        return Value::Object(form);
    }
    let of_type = |word: &&str| {
        let own: Vec<&Value> = values.iter().filter(|value| type_word(value) == *word).collect();
        if *word == "null" { json!({ "type": "null" }) } else { json!({ "type": word, "enum": own }) }
    };
    let mut choice = Map::from_iter([("anyOf".to_owned(), types.iter().map(of_type).collect())]);
    if let Some(description) = form.shift_remove("description") {
        choice.insert("description".to_owned(), description);
    }
    Value::Object(choice)
}

/// `text-classifier` → `TextClassifier`.
pub(crate) fn pascal(name: &str) -> String {
    let mut upper = true;
    let mut written = String::with_capacity(name.len());
    for letter in name.chars() {
        if letter.is_ascii_alphanumeric() {
            written.push(if upper { letter.to_ascii_uppercase() } else { letter });
        }
        upper = !letter.is_ascii_alphanumeric();
    }
    written
}

/// What the names of a module's components and operations are made of. Names that generators would write alike, such as
/// `a-b` and `a_b`, get a mark.
pub(crate) fn component_prefix(module: &str) -> String {
    let words: Vec<&str> = module.split('-').collect();
    let is_word = |word: &&str| {
        word.starts_with(|first: char| first.is_ascii_lowercase())
            && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let runs_together = words.windows(2).any(|pair| pair.iter().all(|word| word.len() == 1));
    let plain = pascal(module);
    if words.iter().all(is_word) && !runs_together {
        return plain;
    }
    let hash = hex(&Sha256::digest(module.as_bytes()));
    let mark: String = hash.chars().take(6).collect();
    // Generators make no name of what begins with a digit.
    format!("M{plain}X{mark}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(direction: Direction, plain: &Value) -> Value {
        ClientForm { prefix: "Tree", direction }.of(plain)
    }

    #[test]
    fn no_boolean_stands_where_a_schema_is_expected() {
        let plain = json!({
            "type": "object", "additionalProperties": false, "x-say": "low",
            "properties": { "any": true, "none": false, "list": { "type": "array" }, "free": { "items": true } },
        });
        let expected = json!({
            "type": "object", "additionalProperties": false,
            "properties": {
                "any": {}, "list": { "type": "array", "items": {} }, "free": { "type": "array", "items": {} },
            },
        });
        assert_eq!(form(Direction::Received, &plain), expected);
        assert_eq!(form(Direction::Sent, &json!(false)), json!({}));
        assert_eq!(
            form(Direction::Sent, &json!({ "anyOf": [false, { "type": "null" }] })),
            json!({ "type": "null" })
        );
    }

    #[test]
    fn values_have_the_type_that_generators_need() {
        for (plain, expected) in [
            (json!({ "enum": ["a", "b"] }), json!({ "enum": ["a", "b"], "type": "string" })),
            (json!({ "const": "a", "type": "string" }), json!({ "const": "a" })),
            (
                json!({ "enum": ["a", 1, null], "description": "d" }),
                json!({
                    "anyOf": [
                        { "type": "string", "enum": ["a"] }, { "type": "integer", "enum": [1] }, { "type": "null" },
                    ],
                    "description": "d",
                }),
            ),
            (json!({ "properties": {} }), json!({ "type": "object", "properties": {} })),
        ] {
            assert_eq!(form(Direction::Sent, &plain), expected);
        }
    }

    #[test]
    fn a_single_value_stays_one_only_where_it_is_required() {
        let plain = json!({
            "required": ["must"],
            "properties": { "must": { "const": true }, "may": { "const": true }, "word": { "const": "a" } },
        });
        let properties = form(Direction::Sent, &plain)["properties"].clone();
        assert_eq!(properties["must"], json!({ "const": true }));
        assert_eq!(properties["may"], json!({ "type": "boolean" }));
        assert_eq!(properties["word"], json!({ "type": "string", "enum": ["a"] }));
    }

    #[test]
    fn references_and_custom_values_have_names() {
        let plain = json!({ "$ref": "#/$defs/leaf_node", "description": "d" });
        assert_eq!(form(Direction::Sent, &plain), json!({ "$ref": "#/components/schemas/TreeLeafNode" }));
        let custom = json!({
            "type": "object", "required": ["custom", "reason"],
            "properties": { "custom": { "type": "string" }, "reason": { "type": "string" } },
        });
        let plain = json!({ "description": "d", "oneOf": [{ "type": "string", "enum": ["a"] }, custom] });
        let expected = json!({
            "anyOf": [{ "type": "string", "enum": ["a"] }, { "$ref": "#/components/schemas/CustomValue" }],
            "description": "d",
        });
        assert_eq!(form(Direction::Received, &plain), expected);
    }

    // A model may write any text where the contract says `format: date`.
    #[test]
    fn what_nobody_judges_is_promised_to_nobody() {
        let plain = json!({ "type": "string", "format": "date" });
        assert_eq!(form(Direction::Received, &plain), json!({ "type": "string" }));
        assert_eq!(form(Direction::Sent, &plain), plain);
    }

    #[test]
    fn two_modules_never_share_a_name() {
        assert_eq!(component_prefix("text-classifier"), "TextClassifier");
        assert_eq!(component_prefix("v2-reader"), "V2Reader");
        let names = ["a-b", "ab", "a_b", "A-b", "aB", "a-1", "a1", "1a", "a--b", "x-a1"];
        let mut seen: Vec<String> = names.iter().map(|name| component_prefix(name).to_lowercase()).collect();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), names.len(), "{seen:?}");
        assert!(seen.iter().all(|name| name.starts_with(|first: char| first.is_ascii_alphabetic())));
    }
}
