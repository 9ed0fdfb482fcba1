//! The common intermediate form of all imports: the parts of a module before they become files. Contains no rules for a
//! single source form.

use std::collections::BTreeMap;

use cognitive_contract::manifest::InputModality;
use serde_json::{Map, Value, json};

use crate::foreign_schema;
use crate::form::ImportForm;
use crate::loss::LossList;
use crate::prompt_text::OwnPlaceholders;
use crate::template::rephrase::VariableUse;

/// The parts of a module.
#[derive(Debug)]
pub(crate) struct ImportDraft {
    /// The source form.
    pub(crate) form: ImportForm,
    /// The source file, for messages.
    pub(crate) source: String,
    /// The name in the file.
    pub(crate) name: String,
    /// The version in the file, if any.
    pub(crate) version: Option<String>,
    /// The description in the file, if any.
    pub(crate) responsibility: Option<String>,
    /// The prompt for the model.
    pub(crate) prompt: String,
    /// The placeholders in the prompt that keep their meaning.
    pub(crate) own: OwnPlaceholders,
    /// The input.
    pub(crate) input: DraftInput,
    /// The output.
    pub(crate) output: DraftOutput,
    /// Definitions that input and output refer to.
    pub(crate) definitions: Map<String, Value>,
    /// Files that are copied unchanged.
    pub(crate) extra: BTreeMap<String, Vec<u8>>,
    /// Example inputs with the names of their tests.
    pub(crate) examples: Vec<(String, Value)>,
    /// The losses so far.
    pub(crate) losses: LossList,
}

impl ImportDraft {
    /// Creates a draft from its source alone.
    pub(crate) fn new(form: ImportForm, source: &str, name: &str) -> Self {
        Self {
            form,
            source: source.to_owned(),
            name: name.to_owned(),
            version: None,
            responsibility: None,
            prompt: String::new(),
            own: OwnPlaceholders::None,
            input: DraftInput::empty(),
            output: DraftOutput::Text,
            definitions: Map::new(),
            extra: BTreeMap::new(),
            examples: Vec::new(),
            losses: LossList::default(),
        }
    }
}

/// The input, an object.
#[derive(Debug, Default)]
pub(crate) struct DraftInput {
    /// The schema, as it will be in `schema.json`.
    pub(crate) schema: Map<String, Value>,
    /// The kinds of media in the input.
    pub(crate) media: Vec<InputModality>,
}

/// The output.
#[derive(Debug)]
pub(crate) enum DraftOutput {
    /// Plain text.
    Text,
    /// The schema of the member `result`.
    Result(Value),
    /// A schema from a file. Its references point into itself.
    Schema {
        /// The schema as written.
        schema: Value,
        /// The file of the schema.
        file: String,
    },
    /// A schema whose references point to the definitions of the draft.
    Defined(Value),
}

impl DraftInput {
    /// An input without members.
    pub(crate) fn empty() -> Self {
        Self { schema: as_map(json!({ "type": "object", "properties": {} })), media: Vec::new() }
    }

    /// Creates an input from a JSON Schema. A schema for a non-object becomes the member `input` of an object.
    pub(crate) fn from_schema(schema: &Value, file: &str, losses: &mut LossList) -> Self {
        let mut moved = as_map(foreign_schema::move_schema(schema, "/input", file, losses));
        let is_object = moved.get("type").is_none_or(|kind| kind == "object");
        if is_object {
            moved.entry("type").or_insert_with(|| Value::from("object"));
            moved.entry("properties").or_insert_with(|| json!({}));
            return Self { schema: moved, media: Vec::new() };
        }
        losses.add_changed(
            "an input that is not an object, now its member `input`",
            file,
            "a module's input is an object",
        );
        let inner =
            foreign_schema::move_schema(schema, "/input/properties/input", file, &mut LossList::default());
        let mut input = Self::empty();
        input.add("input", inner, true);
        input
    }

    /// The names of the members.
    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        self.schema
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(|members| members.keys())
    }

    /// Returns whether the input has this member.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.schema.get("properties").is_some_and(|members| members.get(name).is_some())
    }

    /// Adds a member, or replaces one.
    pub(crate) fn add(&mut self, name: &str, schema: Value, required: bool) {
        if let Some(Value::Object(members)) = self.schema.get_mut("properties") {
            members.insert(name.to_owned(), schema);
        }
        if let (true, Value::Array(names)) =
            (required, self.schema.entry("required").or_insert_with(|| json!([])))
            && !names.iter().any(|each| each == name)
        {
            names.push(Value::from(name));
        }
    }

    /// Adds the variables that a template uses but the file does not declare. With `is_closed`, the file declares all
    /// members, and other variables are recorded as lost.
    pub(crate) fn add_used(
        &mut self,
        used: &[(String, VariableUse)],
        is_closed: bool,
        file: &str,
        losses: &mut LossList,
    ) {
        for (name, how) in used {
            if how.as_media {
                losses.add_changed(
                    format!("`{name}`, now a media item"),
                    file,
                    "callers send `{\"type\": \"url\", \"url\": …}` or a file, which is checked, instead \
                     of an address",
                );
                let required = !how.optional && !how.as_list;
                self.add_media(name, InputModality::Image, how.as_list, required);
            } else if !self.has(name) {
                if is_closed {
                    losses.add_lost(
                        format!("the variable `{name}`"),
                        file,
                        "its schema does not have it, so the input never contains it",
                    );
                    continue;
                }
                losses.add_invented(
                    format!("the type of `{name}`"),
                    file,
                    "the file does not declare it; narrow its type in `schema.json`",
                );
                self.add(name, guess_type(how), !how.optional);
            }
        }
    }

    /// Adds a member for one or several media items.
    pub(crate) fn add_media(&mut self, name: &str, kind: InputModality, several: bool, required: bool) {
        let item = json!({ "$ref": "#/$defs/MediaInput" });
        let schema = if several { json!({ "type": "array", "items": item }) } else { item };
        self.add(name, schema, required);
        if !self.media.contains(&kind) {
            self.media.push(kind);
        }
    }

    /// Sets the default value of a member, and makes it optional.
    pub(crate) fn set_default(&mut self, name: &str, value: &Value) {
        let member = self.schema.get_mut("properties").and_then(|members| members.get_mut(name));
        if let Some(Value::Object(member)) = member {
            member.insert("default".to_owned(), value.clone());
        }
        if let Some(Value::Array(required)) = self.schema.get_mut("required") {
            required.retain(|each| each != name);
            if required.is_empty() {
                self.schema.shift_remove("required");
            }
        }
    }
}

/// The type of a variable, as far as its use shows it.
fn guess_type(used: &VariableUse) -> Value {
    let members: Map<String, Value> = used.members.iter().map(|name| (name.clone(), json!({}))).collect();
    match (used.as_list, members.is_empty()) {
        (true, _) => json!({ "type": "array", "items": {} }),
        (false, false) => json!({ "type": "object", "properties": members }),
        (false, true) => json!({ "type": "string" }),
    }
}

/// The members of an object; an empty map for other values.
pub(crate) fn as_map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_template_uses_becomes_input() {
        let mut input = DraftInput::empty();
        input.add("known", json!({ "type": "integer" }), true);
        let list = VariableUse { as_list: true, ..VariableUse::default() };
        let part =
            VariableUse { members: ["name".to_owned()].into(), optional: true, ..VariableUse::default() };
        let photo = VariableUse { as_media: true, ..VariableUse::default() };
        let used = [("list", list), ("part", part), ("known", VariableUse::default()), ("photo", photo)]
            .map(|(name, used)| (name.to_owned(), used));
        let mut losses = LossList::default();
        input.add_used(&used, false, "f", &mut losses);
        assert_eq!(input.schema["properties"]["list"]["type"], "array");
        assert_eq!(
            input.schema["properties"]["part"],
            json!({ "type": "object", "properties": { "name": {} } })
        );
        assert_eq!(input.schema["required"], json!(["known", "list", "photo"]));
        assert_eq!(input.media, [InputModality::Image]);
        assert_eq!(losses.finish().len(), 3);
    }

    #[test]
    fn an_input_is_an_object() {
        let mut losses = LossList::default();
        let input = DraftInput::from_schema(&json!({ "type": "string" }), "f", &mut losses);
        assert_eq!(input.schema["properties"]["input"], json!({ "type": "string" }));
        assert_eq!(losses.finish().len(), 1);
        let mut input = DraftInput::from_schema(
            &json!({ "properties": { "a": {} }, "required": ["a"] }),
            "f",
            &mut LossList::default(),
        );
        input.set_default("a", &json!("x"));
        assert_eq!(
            Value::Object(input.schema),
            json!({ "properties": { "a": { "default": "x" } }, "type": "object" })
        );
    }
}
