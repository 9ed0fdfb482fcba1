//! Builds the sections of `schema.json`: the drafted input, and the data with a rationale. An answer that is not an
//! object, or whose schema has no room for a rationale, becomes the member `result` of one.

use cognitive_contract::manifest::{InputModality, Tier};
use cognitive_library::init::{Feature, Template, files};
use serde_json::{Map, Value, json};

use crate::draft::{DraftOutput, ImportDraft, as_map};
use crate::foreign_schema::{is_recursive, move_schema};
use crate::loss::LossList;

/// The location of a wrapped answer.
const RESULT: &str = "/data/properties/result";

/// The complete `schema.json`.
pub(crate) fn schema_file(draft: &mut ImportDraft) -> Value {
    let data = data_section(draft);
    let mut definitions = draft.definitions.clone();
    if let Some(kind) = draft.input.media.first() {
        definitions.extend(media_item(*kind).map(|(schema, _)| ("MediaInput".to_owned(), schema)));
    }
    let mut file = json!({
        "input": draft.input.schema,
        "data": data,
        "meta": {
            "type": "object",
            "required": ["confidence", "risk", "explain"],
            "properties": {
                "confidence": { "type": "number", "minimum": 0, "maximum": 1 },
                "risk": { "type": "string", "enum": ["none", "low", "medium", "high"] },
                "explain": { "type": "string", "minLength": 1, "maxLength": 280 }
            }
        }
    });
    if let (Value::Object(file), false) = (&mut file, definitions.is_empty()) {
        file.insert("$defs".to_owned(), Value::Object(definitions));
    }
    file
}

fn data_section(draft: &mut ImportDraft) -> Value {
    let losses = &mut draft.losses;
    let (schema, file, defined) = match &draft.output {
        DraftOutput::Text => {
            let why = "the answer of a module is an object with a rationale; the text is its member `result`";
            losses.add_changed("an answer in plain text", &draft.source, why);
            return result_schema(json!({ "type": "string", "minLength": 1 }));
        }
        DraftOutput::Result(schema) => return result_schema(schema.clone()),
        DraftOutput::Schema { schema, file } => (schema, file.as_str(), false),
        DraftOutput::Defined(schema) => (schema, draft.source.as_str(), true),
    };
    let base = |place: &'static str| if defined { "" } else { place };
    // First without recording losses, to see whether the schema has room for a rationale.
    let mut members = as_map(move_schema(schema, base("/data"), file, &mut LossList::default()));
    if has_room(&members) && (defined || !is_recursive(schema)) {
        move_schema(schema, base("/data"), file, losses);
        if add_rationale(&mut members) {
            losses.add_invented(
                "`rationale` in the answer",
                file,
                "every answer of a module has a rationale",
            );
        }
        return Value::Object(members);
    }
    let inner = move_schema(schema, base(RESULT), file, losses);
    let why = "the answer of a module is an object with a rationale; the answer of the file is its member \
         `result`";
    losses.add_changed("the form of the answer, now `result`", file, why);
    result_schema(inner)
}

/// Returns whether the schema is an object with named members, in which a `rationale`, if declared, is a string.
fn has_room(members: &Map<String, Value>) -> bool {
    let plain = ["oneOf", "anyOf", "allOf", "not", "if", "$ref", "patternProperties", "maxProperties"]
        .iter()
        .all(|word| !members.contains_key(*word));
    let rationale = members.get("properties").and_then(|members| members.get("rationale"));
    plain
        && members.get("type").is_some_and(|kind| kind == "object")
        && members.get("properties").is_some_and(Value::is_object)
        && rationale.is_none_or(|schema| schema.get("type").is_some_and(|kind| kind == "string"))
}

/// Puts the rationale first. Returns whether it was missing.
fn add_rationale(members: &mut Map<String, Value>) -> bool {
    let mut properties = members.shift_remove("properties").map(as_map).unwrap_or_default();
    let own = properties.shift_remove("rationale");
    let mut all = Map::from_iter([("rationale".to_owned(), own.clone().unwrap_or_else(rationale))]);
    all.extend(properties);
    members.insert("properties".to_owned(), Value::Object(all));
    let mut required = vec![Value::from("rationale")];
    if let Some(Value::Array(names)) = members.shift_remove("required") {
        required.extend(names.into_iter().filter(|name| name != "rationale"));
    }
    members.insert("required".to_owned(), Value::Array(required));
    own.is_none()
}

fn rationale() -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": 2000, "description": "Why the answer is what it is" })
}

fn result_schema(result: Value) -> Value {
    json!({
        "type": "object",
        "required": ["rationale", "result"],
        "additionalProperties": false,
        "properties": { "rationale": rationale(), "result": result }
    })
}

/// The schema of a media item and an example item of that kind, as `cogn init` writes them.
pub(crate) fn media_item(kind: InputModality) -> Option<(Value, Value)> {
    let template = Template::new("m", Tier::Decision).in_full().with(Feature::Media(kind));
    let files = files(&template).ok()?;
    let json = |path: &str| serde_json::from_str::<Value>(files.get(path)?).ok();
    let schema = json("schema.json")?.pointer("/$defs/MediaInput")?.clone();
    let input = json("tests/example.input.json")?;
    let item = input
        .as_object()?
        .values()
        .find_map(|member| member.get(0).filter(|item| item.get("type").is_some()))?;
    Some((schema, item.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rationale_comes_first_and_once() {
        let mut members = as_map(json!({
            "type": "object", "required": ["a", "rationale"],
            "properties": { "a": {}, "rationale": { "type": "string" } }
        }));
        assert!(has_room(&members) && !add_rationale(&mut members));
        assert_eq!(members["required"], json!(["rationale", "a"]));
        let names: Vec<&String> = members["properties"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["rationale", "a"]);
        assert!(!has_room(&as_map(
            json!({ "type": "object", "properties": { "rationale": { "type": "array" } } })
        )));
        assert!(!has_room(&as_map(json!({ "type": "object", "properties": {}, "oneOf": [] }))));
        assert!(!has_room(&as_map(json!({ "type": "string" }))));
    }

    #[test]
    fn every_kind_of_media_has_an_item() {
        for kind in
            [InputModality::Image, InputModality::Audio, InputModality::Video, InputModality::Document]
        {
            let (schema, item) = media_item(kind).unwrap();
            assert!(cognitive_schema::accepts(&schema, &item), "{kind:?}");
        }
    }
}
