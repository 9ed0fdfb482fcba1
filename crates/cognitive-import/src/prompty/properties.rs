//! Inputs and outputs of Prompty: a list of named properties, a map of names to properties, or a map of names to plain
//! values.

use cognitive_contract::Failure;
use cognitive_contract::manifest::InputModality;
use serde_json::{Map, Value, json};

use crate::draft::DraftInput;
use crate::loss::LossList;
use crate::source::{quote, refuse};

/// The maximum nesting of properties. Deeper ones would overflow the stack.
const MAX_DEPTH: usize = 20;

/// One input or output.
#[derive(Debug)]
pub(super) struct PromptyProperty {
    /// The name.
    pub(super) name: String,
    members: Map<String, Value>,
}

/// All properties at a key.
pub(super) fn list(written: &Value, file: &str) -> Result<Vec<PromptyProperty>, Failure> {
    let written = written.get("properties").unwrap_or(written);
    let property = |name: &str, value: &Value| {
        let members = match value {
            Value::Object(members)
                if ["kind", "type", "description", "default", "sample", "example"]
                    .iter()
                    .any(|key| members.contains_key(*key)) =>
            {
                members.clone()
            }
            // A plain value is its own default.
            plain => {
                Map::from_iter([("kind".to_owned(), word_of(plain)), ("default".to_owned(), plain.clone())])
            }
        };
        PromptyProperty { name: name.to_owned(), members }
    };
    match written {
        Value::Array(items) => items
            .iter()
            .map(|item| {
                let name = item.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
                let name = name.ok_or_else(|| {
                    refuse(format!("an input or output of {} has no name", quote(file)), "Give it a `name`")
                })?;
                Ok(property(name, item))
            })
            .collect(),
        Value::Object(members) => Ok(members.iter().map(|(name, value)| property(name, value)).collect()),
        Value::Null => Ok(Vec::new()),
        _ => Err(refuse(
            format!("the inputs or outputs of {} are neither a list nor a map", quote(file)),
            "Correct them",
        )),
    }
}

impl PromptyProperty {
    fn text(&self, key: &str) -> Option<&str> {
        self.members.get(key).and_then(Value::as_str)
    }

    fn kind(&self) -> &str {
        self.text("kind").or_else(|| self.text("type")).unwrap_or("string")
    }

    /// An example value.
    pub(super) fn example(&self) -> Option<&Value> {
        let given = ["sample", "example", "default"].iter().find_map(|key| self.members.get(*key))?;
        Some(given).filter(|value| !is_reference(value))
    }

    fn is_required(&self) -> bool {
        let said =
            self.members.get("required").or_else(|| self.members.get("is_required")).and_then(Value::as_bool);
        said.unwrap_or_else(|| !self.members.contains_key("default"))
    }

    /// Adds the property to the input of a module.
    pub(super) fn add_to(
        &self,
        input: &mut DraftInput,
        file: &str,
        losses: &mut LossList,
    ) -> Result<(), Failure> {
        const TAKEN: [&str; 14] = [
            "name",
            "kind",
            "type",
            "description",
            "default",
            "sample",
            "example",
            "required",
            "is_required",
            "enumValues",
            "enum",
            "items",
            "properties",
            "strict",
        ];
        for key in self.members.keys().filter(|key| !TAKEN.contains(&key.as_str())) {
            losses.add_lost(format!("`{key}` of `{}`", self.name), file, "contracts have no such key");
        }
        let media = match self.kind() {
            "thread" => {
                return Err(refuse(
                    format!(
                        "{} continues a conversation ({}), but a module makes a single judgement",
                        quote(file),
                        quote(&self.name)
                    ),
                    "Import a prompt that answers once; a module reads earlier turns as context",
                ));
            }
            "image" => Some(InputModality::Image),
            "audio" => Some(InputModality::Audio),
            "file" => Some(InputModality::Document),
            _ => None,
        };
        if let Some(kind) = media {
            let why = "callers send `{\"type\": \"url\", \"url\": …}` or a file, which is checked";
            losses.add_changed(format!("`{}`, now a media item", self.name), file, why);
            input.add_media(&self.name, kind, false, self.is_required());
            return Ok(());
        }
        let default = self.members.get("default");
        input.add(&self.name, self.schema(file, 0)?, self.is_required());
        match default {
            Some(value) if is_reference(value) => {
                let why = "values of the environment and of files are never read";
                losses.add_lost(format!("the default of `{}`", self.name), file, why);
            }
            Some(value) => input.set_default(&self.name, value),
            None => {}
        }
        Ok(())
    }

    /// Adds the property to the schema of the answer.
    pub(super) fn add_to_output(&self, output: &mut DraftInput, file: &str) -> Result<(), Failure> {
        if ["thread", "image", "audio", "file"].contains(&self.kind()) {
            let message =
                format!("{} returns something other than data: {}", quote(file), quote(self.kind()));
            return Err(refuse(message, "Import a prompt that returns text or data"));
        }
        let optional = self.members.get("required").and_then(Value::as_bool) == Some(false);
        output.add(&self.name, self.schema(file, 0)?, !optional);
        Ok(())
    }

    fn schema(&self, file: &str, depth: usize) -> Result<Value, Failure> {
        if depth > MAX_DEPTH {
            return Err(refuse(
                format!("{} nests types more than {MAX_DEPTH} levels deep", quote(file)),
                "Flatten them",
            ));
        }
        let mut schema = match self.kind() {
            "string" | "secret" => json!({ "type": "string" }),
            "integer" => json!({ "type": "integer" }),
            "float" | "number" => json!({ "type": "number" }),
            "boolean" => json!({ "type": "boolean" }),
            "any" => json!({}),
            "array" | "list" => json!({ "type": "array", "items": self.items(file, depth)? }),
            "object" | "dict" => self.object(file, depth)?,
            other => {
                let message =
                    format!("{} has an input or output of an unknown type: {}", quote(file), quote(other));
                return Err(refuse(
                    message,
                    "Use `string`, `integer`, `float`, `boolean`, `array` or `object`",
                ));
            }
        };
        if let Value::Object(members) = &mut schema {
            members
                .extend(self.text("description").map(|text| ("description".to_owned(), Value::from(text))));
            let options = self.members.get("enumValues").or_else(|| self.members.get("enum"));
            if let Some(options) =
                options.filter(|options| options.as_array().is_some_and(|list| !list.is_empty()))
            {
                members.insert("enum".to_owned(), options.clone());
            }
        }
        Ok(schema)
    }

    fn items(&self, file: &str, depth: usize) -> Result<Value, Failure> {
        match self.members.get("items") {
            Some(Value::Object(members)) => {
                Self { name: String::new(), members: members.clone() }.schema(file, depth + 1)
            }
            _ => Ok(json!({})),
        }
    }

    fn object(&self, file: &str, depth: usize) -> Result<Value, Failure> {
        let Some(written) = self.members.get("properties") else { return Ok(json!({ "type": "object" })) };
        let mut inner = DraftInput::empty();
        for property in list(written, file)? {
            inner.add(&property.name, property.schema(file, depth + 1)?, property.is_required());
        }
        Ok(Value::Object(inner.schema))
    }
}

/// Returns whether a value refers to the environment or to a file.
fn is_reference(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.starts_with("${"))
}

fn word_of(value: &Value) -> Value {
    Value::from(match value {
        Value::String(_) | Value::Null => "string",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "integer",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    })
}

/// A schema for the type of a value.
pub(super) fn kind_of(value: &Value) -> Value {
    match value {
        Value::String(_) => json!({ "type": "string" }),
        Value::Bool(_) => json!({ "type": "boolean" }),
        Value::Number(_) => json!({ "type": "number" }),
        Value::Array(_) => json!({ "type": "array", "items": {} }),
        Value::Object(_) => json!({ "type": "object" }),
        Value::Null => json!({}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_to_write_properties_mean_the_same() {
        let listed = json!([{ "name": "a", "kind": "integer", "default": 3 }]);
        for written in [
            listed.clone(),
            json!({ "a": { "kind": "integer", "default": 3 } }),
            json!({ "a": 3 }),
            json!({ "properties": listed }),
        ] {
            let mut input = DraftInput::empty();
            for property in list(&written, "f").unwrap() {
                property.add_to(&mut input, "f", &mut LossList::default()).unwrap();
            }
            assert_eq!(
                input.schema["properties"],
                json!({ "a": { "type": "integer", "default": 3 } }),
                "{written}"
            );
        }
    }

    #[test]
    fn what_is_no_property_is_refused() {
        assert!(list(&json!([{ "kind": "string" }]), "f").is_err());
        assert!(list(&json!("x"), "f").is_err());
        let odd = list(&json!([{ "name": "a", "kind": "matrix" }]), "f").unwrap();
        assert!(odd[0].add_to(&mut DraftInput::empty(), "f", &mut LossList::default()).is_err());
        let deep = (0..40).fold(
            json!({ "kind": "string" }),
            |inner, _| json!({ "kind": "array", "items": inner, "name": "a" }),
        );
        assert!(
            list(&json!([deep]), "f").unwrap()[0]
                .add_to(&mut DraftInput::empty(), "f", &mut LossList::default())
                .is_err()
        );
    }
}
