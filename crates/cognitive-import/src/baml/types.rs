//! Converts BAML types to JSON Schema. A class is written inline, so that a model sees it in context. Only recursive
//! classes, and classes beyond a limit, go to `$defs`. Dynamic types are refused, because they are only known at run
//! time.

use cognitive_contract::Failure;
use cognitive_contract::manifest::InputModality;
use serde_json::{Map, Value, json};

use super::parse::{BamlAttribute, BamlBlock, BamlFile, BamlType};
use crate::draft::{DraftInput, as_map};
use crate::foreign_schema::or_null;
use crate::loss::LossList;
use crate::source::{quote, refuse};

/// The maximum nesting of types. Types may lead to each other without an end.
const MAX_DEPTH: usize = 60;
/// The maximum number of classes and enums that are written inline. Classes that name each other twice would double
/// with each level.
const MAX_WRITTEN_OUT: usize = 300;
const CHECKS: &str =
    "a check is an expression, which a contract does not evaluate; express it as a keyword of JSON Schema";

/// The types of one function.
pub(super) struct BamlTypes<'f> {
    file: &'f BamlFile,
    place: String,
    losses: &'f mut LossList,
    /// The classes that are being written, outermost first.
    inside: Vec<String>,
    written_out: usize,
    /// The definitions that schemas refer to.
    pub(super) definitions: Map<String, Value>,
}

impl<'f> BamlTypes<'f> {
    pub(super) fn new(file: &'f BamlFile, place: &str, losses: &'f mut LossList) -> Self {
        Self {
            file,
            place: place.to_owned(),
            losses,
            inside: Vec::new(),
            written_out: 0,
            definitions: Map::new(),
        }
    }

    /// Adds an argument of the function to the input.
    pub(super) fn add_argument(
        &mut self,
        name: &str,
        kind: &BamlType,
        input: &mut DraftInput,
    ) -> Result<(), Failure> {
        let optional = matches!(kind, BamlType::Optional(_));
        let bare = match kind {
            BamlType::Optional(inner) => inner,
            kind => kind,
        };
        let (single, several) = match bare {
            BamlType::List(inner) => (&**inner, true),
            kind => (kind, false),
        };
        if let BamlType::Named(word) = single
            && let Some(kind) = medium(word)
        {
            let why = "callers send `{\"type\": \"url\", \"url\": …}` or a file, which is checked";
            self.losses.add_changed(format!("`{name}`, now a media item"), &self.place, why);
            input.add_media(name, kind, several, !optional);
            return Ok(());
        }
        let schema = self.schema(kind, 0)?;
        input.add(name, schema, !optional);
        Ok(())
    }

    /// The schema of the answer. A class is written with its members.
    pub(super) fn answer(&mut self, kind: &BamlType) -> Result<Value, Failure> {
        match kind {
            BamlType::Checked(inner, written) => {
                self.losses.add_lost(format!("`{written}`"), &self.place, CHECKS);
                self.answer(inner)
            }
            BamlType::Named(name) => match self.file.blocks.get(name).filter(|block| !block.is_enum) {
                Some(block) => self.class(name, block, 0),
                None => self.schema(kind, 0),
            },
            kind => self.schema(kind, 0),
        }
    }

    fn schema(&mut self, kind: &BamlType, depth: usize) -> Result<Value, Failure> {
        if depth > MAX_DEPTH {
            return Err(refuse(
                format!("types of {} refer to each other without an end", quote(&self.place)),
                "Simplify them",
            ));
        }
        Ok(match kind {
            BamlType::Named(name) => self.named_type(name, depth)?,
            BamlType::Literal(value) => json!({ "const": value }),
            BamlType::List(inner) => json!({ "type": "array", "items": self.schema(inner, depth + 1)? }),
            BamlType::Optional(inner) => {
                let mut schema = as_map(self.schema(inner, depth + 1)?);
                or_null(&mut schema);
                Value::Object(schema)
            }
            BamlType::Map(key, value) => {
                let mut map = as_map(
                    json!({ "type": "object", "additionalProperties": self.schema(value, depth + 1)? }),
                );
                if **key != BamlType::Named("string".to_owned()) {
                    map.insert("propertyNames".to_owned(), self.schema(key, depth + 1)?);
                }
                Value::Object(map)
            }
            BamlType::Union(all) => self.union(all, depth)?,
            BamlType::Checked(inner, written) => {
                self.losses.add_lost(format!("`{written}`"), &self.place, CHECKS);
                self.schema(inner, depth + 1)?
            }
        })
    }

    fn union(&mut self, all: &[BamlType], depth: usize) -> Result<Value, Failure> {
        let literals: Vec<&Value> = all
            .iter()
            .filter_map(|kind| if let BamlType::Literal(value) = kind { Some(value) } else { None })
            .collect();
        if literals.len() == all.len() {
            return Ok(json!({ "enum": literals }));
        }
        let branches: Vec<Value> =
            all.iter().map(|kind| self.schema(kind, depth + 1)).collect::<Result<_, _>>()?;
        Ok(json!({ "anyOf": branches }))
    }

    fn named_type(&mut self, name: &str, depth: usize) -> Result<Value, Failure> {
        let scalar = match name {
            "string" => Some("string"),
            "int" => Some("integer"),
            "float" => Some("number"),
            "bool" => Some("boolean"),
            "null" => Some("null"),
            _ => None,
        };
        if let Some(scalar) = scalar {
            return Ok(json!({ "type": scalar }));
        }
        if medium(name).is_some() {
            let message = format!(
                "{} has media at a place where a module cannot have them: {}",
                quote(&self.place),
                quote(name)
            );
            return Err(refuse(message, "Use media only as arguments of a function, alone or in a list"));
        }
        if let Some(alias) = self.file.aliases.get(name) {
            return self.schema(alias, depth + 1);
        }
        let Some(block) = self.file.blocks.get(name) else {
            let message = format!("unknown type in {}: {}", quote(&self.place), quote(name));
            return Err(refuse(message, "Import the folder with all its files"));
        };
        self.written_out += 1;
        if block.is_enum {
            return self.choice(name, block);
        }
        if !self.inside.iter().any(|each| each == name) && self.written_out <= MAX_WRITTEN_OUT {
            return self.class(name, block, depth + 1);
        }
        if !self.definitions.contains_key(name) {
            // Registered before it is built, so that a class may contain itself.
            self.definitions.insert(name.to_owned(), json!({}));
            let schema = self.class(name, block, depth + 1)?;
            self.definitions.insert(name.to_owned(), schema);
        }
        Ok(json!({ "$ref": format!("#/$defs/{name}") }))
    }

    fn block_attributes(&mut self, name: &str, block: &BamlBlock) -> Result<Option<String>, Failure> {
        let mut description = None;
        for attribute in &block.attributes {
            match attribute.name.as_str() {
                "dynamic" => {
                    return Err(refuse(
                        format!(
                            "`{name}` is dynamic: its members are known only at run time, so it has no contract"
                        ),
                        "Import a function with static types only",
                    ));
                }
                "description" => description.clone_from(&attribute.text),
                "alias" => self.alias(name, attribute, &block.file),
                "check" | "assert" => {
                    self.losses.add_lost(
                        format!("`@{}` of `{name}`", attribute.written),
                        &block.file,
                        CHECKS,
                    );
                }
                _ => self.losses.add_lost(
                    format!("`@{}` of `{name}`", attribute.written),
                    &block.file,
                    "modules have no equivalent",
                ),
            }
        }
        Ok(description)
    }

    fn alias(&mut self, name: &str, attribute: &BamlAttribute, file: &str) {
        let why = "the model uses the same name as programs";
        self.losses.add_lost(format!("`{}` of `{name}`", attribute.written), file, why);
    }

    /// Returns whether a field is included, and its description, according to its attributes.
    fn field(&mut self, name: &str, attributes: &[BamlAttribute], file: &str) -> (bool, Option<String>) {
        let mut description = None;
        for attribute in attributes {
            match attribute.name.as_str() {
                "description" => description.clone_from(&attribute.text),
                "skip" => {
                    self.losses.add_lost(
                        format!("`{name}`"),
                        file,
                        "it is marked `@skip`, so no model reads it",
                    );
                    return (false, None);
                }
                "alias" => self.alias(name, attribute, file),
                "check" | "assert" => {
                    self.losses.add_lost(format!("`{}` of `{name}`", attribute.written), file, CHECKS);
                }
                _ => self.losses.add_lost(
                    format!("`{}` of `{name}`", attribute.written),
                    file,
                    "modules have no equivalent",
                ),
            }
        }
        (true, description)
    }

    fn choice(&mut self, name: &str, block: &BamlBlock) -> Result<Value, Failure> {
        let mut notes: Vec<String> = self.block_attributes(name, block)?.into_iter().collect();
        let mut options = Vec::new();
        for value in &block.fields {
            let (true, description) = self.field(&value.name, &value.attributes, &block.file) else {
                continue;
            };
            notes.extend(description.map(|text| format!("{}: {}", value.name, text.trim())));
            options.push(Value::from(value.name.as_str()));
        }
        if options.is_empty() {
            return Err(refuse(format!("the enum `{name}` has no values"), "Give it values"));
        }
        let mut schema = as_map(json!({ "enum": options }));
        if !notes.is_empty() {
            schema.insert("description".to_owned(), Value::from(notes.join("; ")));
        }
        Ok(Value::Object(schema))
    }

    fn class(&mut self, name: &str, block: &BamlBlock, depth: usize) -> Result<Value, Failure> {
        let description = self.block_attributes(name, block)?;
        let mut inner = DraftInput::empty();
        self.inside.push(name.to_owned());
        for field in &block.fields {
            let (true, description) = self.field(&field.name, &field.attributes, &block.file) else {
                continue;
            };
            let Some(kind) = &field.kind else { continue };
            let mut schema = as_map(self.schema(kind, depth + 1)?);
            schema.extend(description.map(|text| ("description".to_owned(), Value::from(text.trim()))));
            inner.add(&field.name, Value::Object(schema), !matches!(kind, BamlType::Optional(_)));
        }
        self.inside.pop();
        let mut schema = inner.schema;
        schema.insert("additionalProperties".to_owned(), Value::Bool(false));
        schema.extend(description.map(|text| ("description".to_owned(), Value::from(text.trim()))));
        Ok(Value::Object(schema))
    }
}

/// The media kind of a type name.
fn medium(name: &str) -> Option<InputModality> {
    match name {
        "image" => Some(InputModality::Image),
        "audio" => Some(InputModality::Audio),
        "video" => Some(InputModality::Video),
        "pdf" => Some(InputModality::Document),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse;
    use super::*;

    fn answer(text: &str) -> Result<(Value, Map<String, Value>, usize), String> {
        let mut file = BamlFile::default();
        parse(&format!("{text}\nfunction F() -> R {{ prompt \"x\" }}"), "f", &mut file).unwrap();
        let mut losses = LossList::default();
        let mut types = BamlTypes::new(&file, "f", &mut losses);
        let schema =
            types.answer(&file.functions[0].answer).map_err(|failure| failure.message().to_owned())?;
        let definitions = types.definitions;
        Ok((schema, definitions, losses.finish().len()))
    }

    #[test]
    fn classes_enums_and_unions_become_schemas() {
        let (schema, definitions, losses) = answer(
            "enum E { A @description(\"first\")\n B @alias(\"b\")\n C @skip }\nclass P { x int }\n\
             class R { e E\n p P? @description(\"a part\")\n l (string | float)[]\n k \"a\" | \"b\"\n m map<string, int>\n n \"one\" | true\n}",
        )
        .unwrap();
        assert_eq!(
            schema["properties"],
            json!({
                "e": { "enum": ["A", "B"], "description": "A: first" },
                "p": { "type": ["object", "null"], "properties": { "x": { "type": "integer" } }, "required": ["x"],
                       "additionalProperties": false, "description": "a part" },
                "l": { "type": "array", "items": { "anyOf": [{ "type": "string" }, { "type": "number" }] } },
                "k": { "enum": ["a", "b"] },
                "m": { "type": "object", "additionalProperties": { "type": "integer" } },
                "n": { "enum": ["one", true] }
            })
        );
        assert_eq!(schema["required"], json!(["e", "l", "k", "m", "n"]));
        assert!(definitions.is_empty());
        assert_eq!(losses, 2);
    }

    #[test]
    fn a_class_may_have_parts_of_its_own_kind() {
        let (schema, definitions, _) = answer("class R { name string\n children R[] }").unwrap();
        assert_eq!(schema["properties"]["children"]["items"], json!({ "$ref": "#/$defs/R" }));
        assert!(definitions["R"]["properties"]["children"].is_object());
    }

    /// Each class uses the next one twice; written inline, the last one would occur a million times.
    #[test]
    fn classes_that_multiply_are_referred_to() {
        let chain: Vec<String> =
            (0..20).map(|at| format!("class C{at} {{ a C{0}\n b C{0} }}\n", at + 1)).collect();
        let chain = chain.concat();
        let (schema, definitions, _) =
            answer(&format!("{chain}class C20 {{ x int }}\nclass R {{ c C0 }}")).unwrap();
        assert!(schema.to_string().len() < 100_000 && definitions.len() > 5);
    }

    #[test]
    fn what_nobody_knows_is_refused() {
        assert!(answer("class R { a string\n @@dynamic }").unwrap_err().contains("is dynamic"));
        assert!(answer("class R { a Missing }").unwrap_err().contains(": `Missing`"));
        assert!(answer("class R { a image }").unwrap_err().contains("media"));
        assert!(answer("type R = R[]").unwrap_err().contains("without an end"));
        assert!(answer("enum R { }").unwrap_err().contains("no values"));
    }
}
