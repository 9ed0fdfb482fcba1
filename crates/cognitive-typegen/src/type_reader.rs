//! Reads types from the contract of a module. The input is the plain form that `cognitive-schema` writes: with resolved
//! references, merged `allOf` and recursive types in `$defs`. Refuses nothing: a schema without a type becomes "any".

use cognitive_contract::{Module, envelope_schema};
use cognitive_schema::PlainSections;
use serde_json::{Map, Value};

use crate::ModuleTypes;
use crate::model::{ObjectField, ObjectType, TypeDefinition, TypeExpr};
use crate::naming::{TypeNames, pascal_case};

/// The name of the type for values outside of a list.
pub(crate) const CUSTOM: &str = "Custom";

/// Returns the types that all envelopes share.
pub(crate) fn shared_types(names: &mut TypeNames) -> Vec<TypeDefinition> {
    // These names have a fixed meaning, so no module may use them.
    for name in ["Success", "Envelope"] {
        names.claim(name);
    }
    let schema = envelope_schema::json_schema();
    let definitions = schema.get("definitions").cloned().unwrap_or_default();
    let mut reader =
        TypeReader { names, defs: Map::new(), prefix: String::new(), tag: "custom", types: Vec::new() };
    reader.object_named("Meta", definitions.get("meta"));
    reader.object_named("ErrorInfo", definitions.get("error"));
    let custom = serde_json::json!({
        "description": "A value that is not in the list, with its reason.", "type": "object",
        "required": ["custom", "reason"], "additionalProperties": false,
        "properties": { "custom": { "type": "string" }, "reason": { "type": "string" } },
    });
    reader.object_named(CUSTOM, Some(&custom));
    reader.types
}

/// Returns the types of one module.
pub(crate) fn module_types(module: &Module, names: &mut TypeNames) -> ModuleTypes {
    let prefix = names.claim(&pascal_case(&module.manifest.name));
    let PlainSections { input, data, defs, .. } = module.plain_sections();
    let tag = &module.manifest.enums.unknown_tag;
    let mut reader = TypeReader { names, defs, prefix: prefix.clone(), tag, types: Vec::new() };
    for (end, section) in [("Input", input), ("Data", data)] {
        reader.object_named(&format!("{prefix}{end}"), Some(&section));
    }
    let types = reader.types;
    let version = module.manifest.version.clone();
    ModuleTypes { module: module.manifest.name.clone(), version, prefix, types }
}

/// Returns the types of named schemas.
pub(crate) fn named_types(schemas: &Map<String, Value>) -> Vec<TypeDefinition> {
    let (names, defs) = (&mut TypeNames::default(), schemas.clone());
    let mut reader = TypeReader { names, defs, prefix: String::new(), tag: "custom", types: Vec::new() };
    for name in schemas.keys() {
        reader.reference(&format!("{DEFS}{name}"));
    }
    reader.types
}

/// The place of types that are referred to by name.
const DEFS: &str = "#/$defs/";

struct TypeReader<'a> {
    names: &'a mut TypeNames,
    /// The types that are referred to, by name.
    defs: Map<String, Value>,
    prefix: String,
    /// The member that holds a value outside of a list.
    tag: &'a str,
    types: Vec<TypeDefinition>,
}

impl TypeReader<'_> {
    /// Defines a type of this name: an object if the schema is one, else an alias.
    fn object_named(&mut self, name: &str, schema: Option<&Value>) {
        let name = self.names.claim(name);
        let schema = schema.unwrap_or(&Value::Null);
        // A type comes before the types of its members, so its position is reserved first.
        let place = self.types.len();
        let description = text(schema, "description");
        self.types.push(TypeDefinition::Alias { name: name.clone(), description, target: TypeExpr::Any });
        let definition = match schema.get("properties").and_then(Value::as_object) {
            Some(properties) => TypeDefinition::Object(self.object(&name, schema, properties)),
            None => {
                let target = self.expr(schema, &name);
                TypeDefinition::Alias { name, description: text(schema, "description"), target }
            }
        };
        if let Some(slot) = self.types.get_mut(place) {
            *slot = definition;
        }
    }

    fn object(&mut self, name: &str, schema: &Value, properties: &Map<String, Value>) -> ObjectType {
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let fields = properties.iter().map(|(member, schema)| ObjectField {
            name: member.clone(),
            description: text(schema, "description"),
            value: self.expr(schema, &format!("{name}{}", pascal_case(member))),
            is_required: required.contains(&member.as_str()),
        });
        let fields = fields.collect();
        let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
        ObjectType { name: name.to_owned(), description: text(schema, "description"), fields, is_closed }
    }

    /// Returns the type of a value. `hint` is the name for it, if it needs one.
    fn expr(&mut self, schema: &Value, hint: &str) -> TypeExpr {
        let Value::Object(members) = schema else { return TypeExpr::Any };
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            return self.reference(reference);
        }
        if let Some(Value::Array(values)) = members.get("enum") {
            return literal_type(values);
        }
        if let Some(value) = members.get("const") {
            return literal_type(std::slice::from_ref(value));
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(branches)) = members.get(keyword) {
                return self.choice(branches, hint);
            }
        }
        match members.get("type") {
            Some(Value::String(name)) => self.named_type(name, members, schema, hint),
            Some(Value::Array(names)) => {
                let parts: Vec<TypeExpr> = names
                    .iter()
                    .filter_map(Value::as_str)
                    .map(|name| self.named_type(name, members, schema, hint))
                    .collect();
                TypeExpr::union(parts)
            }
            _ if members.contains_key("properties") => self.named_type("object", members, schema, hint),
            _ if members.contains_key("items") => self.named_type("array", members, schema, hint),
            _ => TypeExpr::Any,
        }
    }

    fn choice(&mut self, branches: &[Value], hint: &str) -> TypeExpr {
        let is_list = branches.iter().any(|branch| branch.get("enum").is_some());
        let objects = branches.iter().filter(|branch| branch.get("properties").is_some()).count();
        let parts: Vec<TypeExpr> = branches
            .iter()
            .enumerate()
            .map(|(index, branch)| {
                if is_list && self.is_custom(branch) {
                    return TypeExpr::Named(CUSTOM.to_owned());
                }
                // A single object among other types gets the name itself; several get numbers.
                let hint = if objects > 1 { format!("{hint}Form{}", index + 1) } else { hint.to_owned() };
                self.expr(branch, &hint)
            })
            .collect();
        TypeExpr::union(parts)
    }

    /// Returns whether this is the branch `{custom, reason}` with its usual tag, so that all modules share its type.
    fn is_custom(&self, branch: &Value) -> bool {
        let properties = branch.get("properties").and_then(Value::as_object);
        self.tag == "custom"
            && properties.is_some_and(|properties| properties.contains_key("custom") && properties.len() <= 2)
    }

    fn named_type(
        &mut self,
        name: &str,
        members: &Map<String, Value>,
        schema: &Value,
        hint: &str,
    ) -> TypeExpr {
        match name {
            "null" => TypeExpr::Null,
            "boolean" => TypeExpr::Boolean,
            "integer" => TypeExpr::Integer,
            "number" => TypeExpr::Number,
            "string" => TypeExpr::Text,
            "array" => {
                let items = match members.get("items") {
                    Some(Value::Array(places)) => {
                        let places: Vec<TypeExpr> =
                            places.iter().map(|place| self.expr(place, &format!("{hint}Item"))).collect();
                        TypeExpr::union(places)
                    }
                    Some(items) => self.expr(items, &format!("{hint}Item")),
                    None => TypeExpr::Any,
                };
                TypeExpr::List(Box::new(items))
            }
            "object" => match members.get("properties").and_then(Value::as_object) {
                Some(properties) if !properties.is_empty() => {
                    let name = self.names.claim(hint);
                    let object = self.object(&name, schema, properties);
                    self.types.push(TypeDefinition::Object(object));
                    TypeExpr::Named(name)
                }
                _ => {
                    let values = members.get("additionalProperties").filter(|values| values.is_object());
                    let values =
                        values.map_or(TypeExpr::Any, |values| self.expr(values, &format!("{hint}Value")));
                    TypeExpr::Map(Box::new(values))
                }
            },
            _ => TypeExpr::Any,
        }
    }

    /// Returns a type by its name; defines it at its first use.
    fn reference(&mut self, reference: &str) -> TypeExpr {
        let Some(token) = reference.strip_prefix(DEFS) else { return TypeExpr::Any };
        let name = format!("{}{}", self.prefix, pascal_case(token));
        let is_known = self.types.iter().any(|known| known.name() == name);
        if !is_known {
            let schema = self.defs.get(token).cloned();
            self.object_named(&name, schema.as_ref());
        }
        TypeExpr::Named(name)
    }
}

fn text(schema: &Value, member: &str) -> Option<String> {
    schema.get(member).and_then(Value::as_str).filter(|text| !text.trim().is_empty()).map(str::to_owned)
}

/// Returns the type of listed values; `Any` if lists or objects are among them, because these have no literal form.
fn literal_type(values: &[Value]) -> TypeExpr {
    let (plain, null): (Vec<&Value>, Vec<&Value>) = values.iter().partition(|value| !value.is_null());
    if plain.iter().any(|value| value.is_object() || value.is_array()) {
        return TypeExpr::Any;
    }
    // No Python type can list fractions.
    if plain.iter().any(|value| value.is_f64()) {
        return TypeExpr::Number;
    }
    let plain = TypeExpr::Listed(plain.into_iter().cloned().collect());
    if null.is_empty() { plain } else { TypeExpr::union([plain, TypeExpr::Null]) }
}

impl TypeDefinition {
    /// The name of the type.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Object(object) => &object.name,
            Self::Alias { name, .. } => name,
        }
    }
}
