//! Rewrites schemas for client generators: every reference names a component, no boolean is used as a schema, every
//! enum has a type and every array has items. The result accepts the same values or more: only the contract validates
//! inputs and outputs.

use cognitive_contract::text::{hex, type_word};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::schemas::reference;

/// The component for a custom value of an extensible enum.
pub(crate) const CUSTOM_VALUE: &str = "CustomValue";

/// Returns the schema of that component.
pub(crate) fn custom_value() -> Value {
    json!({
        "type": "object",
        "description": "A value outside the listed ones",
        "required": ["custom", "reason"],
        "properties": {
            "custom": { "type": "string", "minLength": 1, "maxLength": 32 },
            "reason": { "type": "string" },
        },
    })
}

/// The direction of the values that a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// A caller sends the value.
    Sent,
    /// A caller receives the value. No contract validates `format`, so a client that parsed dates by it could fail on
    /// an answer.
    Received,
}

/// The naming and direction of the schemas of one module.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientForm<'a> {
    /// The prefix of the component names.
    pub(crate) prefix: &'a str,
    pub(crate) direction: Direction,
}

impl ClientForm<'_> {
    /// Rewrites a schema. One that no value satisfies is described as anything.
    pub(crate) fn rewrite(self, plain: &Value) -> Value {
        self.schema(plain).unwrap_or_else(|| json!({}))
    }

    /// Rewrites a schema; `None` if no value satisfies it.
    fn schema(self, plain: &Value) -> Option<Value> {
        let members = match plain {
            Value::Bool(false) => return None,
            Value::Object(members) => members,
            _ => return Some(json!({})),
        };
        if let Some(target) = members.get("$ref").and_then(Value::as_str) {
            // Some generators read members next to a reference, others reject them.
            let name = target.rsplit('/').next().unwrap_or_default();
            return Some(reference("schemas", &format!("{}{}", self.prefix, pascal(name))));
        }
        if is_custom_value(members) {
            return Some(reference("schemas", CUSTOM_VALUE));
        }
        if let Some(branches) = ["anyOf", "oneOf"].iter().find_map(|word| members.get(*word)?.as_array()) {
            // Words with a description each.
            let words: Option<Vec<Value>> =
                branches.iter().map(|branch| branch.get("const").cloned()).collect();
            if let Some(words) = words.filter(|words| !words.is_empty()) {
                let listed = members.get("description").map(|text| ("description".to_owned(), text.clone()));
                return Some(with_implied_types(
                    listed.into_iter().chain([("enum".to_owned(), words.into())]).collect(),
                ));
            }
            return self.choice(branches, members.get("description"));
        }
        Some(with_implied_types(self.keywords(members)))
    }

    /// Rewrites a choice as `anyOf`: branches may overlap after the keywords that distinguish them are dropped.
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
                ("items", items) => self.rewrite(items),
                ("additionalProperties", Value::Object(_)) => self.rewrite(value),
                ("format", _) if self.direction == Direction::Received => continue,
                // Two patterns of one string.
                ("allOf", _) => continue,
                (name, _) if name.starts_with("x-") || name.starts_with('$') => continue,
                (_, value) => value.clone(),
            };
            form.insert(keyword.clone(), kept);
        }
        form
    }
}

/// Returns whether this is the custom form of an extensible enum with the usual property names.
fn is_custom_value(members: &Map<String, Value>) -> bool {
    let names = ["custom", "reason"];
    let properties = members.get("properties").and_then(Value::as_object);
    let required = members.get("required").and_then(Value::as_array);
    properties
        .is_some_and(|known| known.len() == names.len() && names.iter().all(|name| known.contains_key(*name)))
        && required.is_some_and(|required| names.iter().all(|name| required.iter().any(|each| each == name)))
}

/// Adds the types that follow from the other keywords.
fn with_implied_types(mut form: Map<String, Value>) -> Value {
    if form.contains_key("const") {
        // With an explicit type, generators use the type and ignore the value.
        form.shift_remove("type");
        return Value::Object(form);
    }
    if let Some(Value::Array(values)) = form.get("enum").cloned() {
        return enum_form(form, &values);
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

/// Rewrites the constant of an optional member as an enum of one value, or as its type only. The usual Python
/// generator writes invalid code for an optional constant.
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

/// Adds the type of an enum. Generators support one type at a time, so an enum of several types becomes a choice.
fn enum_form(mut form: Map<String, Value>, values: &[Value]) -> Value {
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

/// Returns the prefix for the components and operations of a module. Names that generators would write alike, such as
/// `a-b` and `a_b`, get a hash.
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
    // Generators reject names that start with a digit.
    format!("M{plain}X{mark}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(direction: Direction, plain: &Value) -> Value {
        ClientForm { prefix: "Tree", direction }.rewrite(plain)
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

    // A model may write any text where the contract declares `format: date`.
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
