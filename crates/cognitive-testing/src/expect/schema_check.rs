//! A JSON Schema inside an expectation (`$validate`), validated by the same code that validates answers.
//! Refuses keywords that this code ignores: an expectation with one of them would look stricter than it is.

use cognitive_contract::code::ErrorCode;
use cognitive_schema::{Contract, Layout, SCHEMA_FILE, SchemaFiles};
use serde_json::{Map, Value, json};

use super::difference::Differences;
use super::place::{at_pointer, member};

/// The rule name for differences from a schema.
pub(crate) const RULE: &str = "$validate";

/// A schema for a part of an answer.
#[derive(Debug)]
pub(crate) struct SchemaCheck {
    contract: Contract,
}

/// Keywords whose value is a schema, or a list of schemas.
const SCHEMAS: [&str; 12] = [
    "items",
    "additionalItems",
    "contains",
    "additionalProperties",
    "propertyNames",
    "if",
    "then",
    "else",
    "not",
    "allOf",
    "anyOf",
    "oneOf",
];
/// Keywords whose value maps names to schemas.
const NAMED_SCHEMAS: [&str; 5] = ["properties", "patternProperties", "dependencies", "$defs", "definitions"];
/// Keywords that are checks without subschemas.
const PLAIN: [&str; 18] = [
    "type",
    "enum",
    "const",
    "multipleOf",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "maxProperties",
    "minProperties",
    "required",
    "$ref",
];
/// Keywords that only explain.
const NOTES: [&str; 8] =
    ["$schema", "$comment", "title", "description", "default", "examples", "readOnly", "writeOnly"];
/// Keywords that look like checks but are only annotations in Draft-07 as this runtime implements it.
const NOT_JUDGED: [&str; 3] = ["format", "contentEncoding", "contentMediaType"];

impl SchemaCheck {
    /// Compiles a schema; `at` is its place, for the error message.
    pub(crate) fn compile(schema: &Value, at: &str) -> Result<Self, String> {
        if schema == &Value::Bool(false) {
            return Err(format!("`{at}`: the schema `false` can never hold"));
        }
        check_keywords(schema, at)?;
        let mut root = Map::new();
        root.insert("input".to_owned(), json!({}));
        root.insert("data".to_owned(), schema.clone());
        // `#/$defs/x` is relative to the schema as written, so the definitions move to the new root.
        for name in ["$defs", "definitions"] {
            root.extend(schema.get(name).map(|definitions| (name.to_owned(), definitions.clone())));
        }
        let files = SchemaFiles::from([(SCHEMA_FILE.to_owned(), Value::Object(root))]);
        let contract = Contract::compile(&files, &Layout::default()).map_err(|problems| {
            let first = problems.into_iter().next().map(|problem| problem.message).unwrap_or_default();
            format!("`{at}`: {first}")
        })?;
        Ok(Self { contract })
    }

    /// Records where a value breaks the schema; `None` is a missing value.
    pub(crate) fn compare(&self, value: Option<&Value>, at: &str, found: &mut Differences) {
        let Some(value) = value else {
            found.add_broken(at, RULE, "a value that fits the schema", None);
            return;
        };
        let section = self.contract.data();
        if section.accepts(value) || spellings(at, value).iter().any(|other| section.accepts(other)) {
            return;
        }
        for violation in section.violations(value) {
            let place = at_pointer(at, value, &violation.path);
            found.add_broken(&place.at, RULE, violation.message, place.value);
        }
    }
}

/// Returns an error with its code in every spelling: `PARSE_ERROR` and `E1000` are the same code.
fn spellings(at: &str, value: &Value) -> Vec<Value> {
    let code = match at {
        "error" => value.get("code"),
        "error.code" => Some(value),
        _ => None,
    };
    let Some(code) = code.and_then(Value::as_str).and_then(ErrorCode::find) else { return Vec::new() };
    let spellings = [code.number(), code.name()].into_iter().chain(code.aliases().iter().copied());
    let respell = |spelling: &str| match value {
        Value::Object(members) => {
            let mut members = members.clone();
            members.insert("code".to_owned(), Value::from(spelling));
            Value::Object(members)
        }
        _ => Value::from(spelling),
    };
    spellings.map(respell).collect()
}

fn check_keywords(schema: &Value, at: &str) -> Result<(), String> {
    match schema {
        Value::Object(members) => {
            members.iter().try_for_each(|(keyword, value)| check_keyword(keyword, value, at))
        }
        Value::Array(items) => items.iter().try_for_each(|item| check_keywords(item, at)),
        // The compiler rejects a value that is not a schema.
        _ => Ok(()),
    }
}

fn check_keyword(keyword: &str, value: &Value, at: &str) -> Result<(), String> {
    let place = member(at, keyword);
    if SCHEMAS.contains(&keyword) {
        return check_keywords(value, &place);
    }
    if NAMED_SCHEMAS.contains(&keyword) {
        let named = value.as_object().into_iter().flatten();
        // A dependency may be a list of names, which has no keywords.
        let mut named = named.filter(|(_, schema)| schema.is_object());
        return named.try_for_each(|(name, schema)| check_keywords(schema, &member(&place, name)));
    }
    if NOT_JUDGED.contains(&keyword) {
        return Err(format!("`{place}`: `{keyword}` is not checked; use `pattern` instead"));
    }
    if !PLAIN.contains(&keyword) && !NOTES.contains(&keyword) {
        return Err(format!(
            "`{place}`: `{keyword}` is not a keyword of JSON Schema; the fields of an object belong below \
             `properties`"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(schema: Value, value: Option<&Value>, at: &str) -> Vec<String> {
        let mut found = Differences::default();
        SchemaCheck::compile(&schema, "s").unwrap().compare(value, at, &mut found);
        found.into_vec().into_iter().map(|each| format!("{} {}", each.path, each.expected)).collect()
    }

    #[test]
    fn a_schema_judges_and_points_at_the_place() {
        let schema = json!({
            "type": "object", "required": ["a"],
            "properties": { "list": { "items": { "$ref": "#/$defs/word" } } },
            "$defs": { "word": { "type": "string" } },
        });
        assert!(paths(schema.clone(), Some(&json!({ "a": 1, "list": ["x"] })), "data").is_empty());
        let wrong = paths(schema.clone(), Some(&json!({ "list": ["x", 1] })), "data");
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(wrong.iter().any(|each| each.starts_with("data.list[1] ")), "{wrong:?}");
        assert!(wrong.iter().any(|each| each.starts_with("data.a ")), "{wrong:?}");
        assert_eq!(paths(schema, None, "data"), ["data a value that fits the schema"]);
        assert_eq!(paths(json!(true), None, "data.x").len(), 1, "`true` asks for a value");
    }

    #[test]
    fn spellings_of_an_error_code_are_one_code_and_only_there() {
        let error = json!({ "code": "E1000", "message": "m" });
        let schema = json!({ "properties": { "code": { "const": "PARSE_ERROR" } } });
        assert!(paths(schema.clone(), Some(&error), "error").is_empty());
        assert_eq!(paths(schema, Some(&error), "data.error").len(), 1);
        assert!(paths(json!({ "const": "PARSE_ERROR" }), Some(&json!("E1000")), "error.code").is_empty());
        assert_eq!(paths(json!({ "const": "TIMEOUT" }), Some(&json!("E1000")), "error.code").len(), 1);
    }

    #[test]
    fn what_cannot_be_judged_is_refused() {
        for (schema, words) in [
            (json!({ "confidence_min": 0.8 }), "`s.confidence_min`"),
            (json!({ "properties": { "a": { "behavior": true } } }), "`s.properties.a.behavior`"),
            (json!({ "items": [{ "formatt": "x" }] }), "`s.items.formatt`"),
            (json!({ "anyOf": [{}, { "not": { "x": 1 } }] }), "`s.anyOf.not.x`"),
            (json!({ "format": "uri" }), "use `pattern`"),
            (json!({ "type": "strng" }), "not a Draft-07 schema"),
            (json!({ "$ref": "#/$defs/no" }), "points to nothing"),
            (json!(false), "can never hold"),
            (json!("string"), "not a Draft-07 schema"),
        ] {
            let error = SchemaCheck::compile(&schema, "s").unwrap_err();
            assert!(error.contains(words), "{schema}: {error}");
        }
        let lists =
            json!({ "dependencies": { "a": ["b"] }, "properties": { "format": { "type": "string" } } });
        assert!(SchemaCheck::compile(&lists, "s").is_ok());
    }
}
