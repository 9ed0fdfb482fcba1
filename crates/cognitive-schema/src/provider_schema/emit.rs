//! Writes the plain form in the dialect of a target. Adds no rules except those that the dialect requires, and records
//! every change as a loss.

use serde_json::{Map, Value, json};

use super::Losses;
use super::bounds;
use super::dialect::{
    Objects, OpenNotation, OptionalNotation, OutcomeShape, SchemaDialect, Size, UnsupportedRules,
};
use super::except;
use super::merge::{types_of, union_of, values_of};
use super::union::{self, nullable};
use crate::text::pointer;

/// Writes a whole envelope.
pub(super) fn envelope(envelope: &Value, dialect: &'static SchemaDialect, losses: &mut Losses) -> Value {
    let mut emit = EnvelopeEmitter { dialect, losses, absent: 0, enum_values: 0 };
    let mut schema = match dialect.envelope {
        OutcomeShape::OneObject => emit.one_object(envelope),
        OutcomeShape::TwoObjects => emit.two_objects(envelope),
    };
    if dialect.size == Size::Bounded {
        // Compact JSON has more tokens that follow from the grammar alone, and those need no model.
        schema.insert("x-guidance".to_owned(), json!({ "whitespace_flexible": false }));
    }
    if let Some(Value::Object(defs)) = envelope.get("$defs") {
        let said = defs.iter().map(|(name, def)| {
            let path = pointer("/$defs", name);
            (name.clone(), emit.schema(def, &path, 1).unwrap_or_else(|| json!({ "type": "null" })))
        });
        let said: Map<String, Value> = said.collect();
        schema.insert("$defs".to_owned(), Value::Object(said));
    }
    let schema = Value::Object(schema);
    emit.check_limits(&schema);
    schema
}

/// The walk over one envelope.
pub(super) struct EnvelopeEmitter<'a> {
    pub dialect: &'static SchemaDialect,
    pub losses: &'a mut Losses,
    /// Number of optional members so far.
    pub absent: usize,
    /// Number of listed values so far.
    pub enum_values: usize,
}

impl EnvelopeEmitter<'_> {
    /// Writes all members as one object; those of the other outcome are null.
    fn one_object(&mut self, envelope: &Value) -> Map<String, Value> {
        let how = "`data` and `error` may be null, independently of `ok`";
        self.losses.note_weakened("", "oneOf", how);
        let mut properties = Map::new();
        let mut required = Vec::new();
        for (name, schema) in members(envelope) {
            let said = self
                .schema(schema, &pointer("/properties", name), 2)
                .unwrap_or_else(|| json!({ "type": "null" }));
            let (said, is_required) = match name.as_str() {
                "data" | "error" => (nullable(said), true),
                "_emitted_context" => self.optional(said, &pointer("/properties", name)),
                _ => (said, true),
            };
            if is_required {
                required.push(json!(name));
            }
            properties.insert(name.clone(), said);
        }
        self.object_of(properties, required)
    }

    /// Writes a choice of two objects, distinguished by `ok`.
    fn two_objects(&mut self, envelope: &Value) -> Map<String, Value> {
        let mut said = Map::new();
        let mut impossible = Vec::new();
        for (name, schema) in members(envelope) {
            let schema = self.schema(schema, &pointer("/properties", name), 2).unwrap_or_else(|| {
                impossible.push(name.clone());
                json!({ "type": "null" })
            });
            said.insert(name.clone(), schema);
        }
        let branch = |ok: bool, others: &[&str], required: &[&str]| {
            let mut properties = Map::new();
            properties.insert("ok".to_owned(), json!({ "type": "boolean", "const": ok }));
            for name in others {
                if let Some(schema) = said.get(*name) {
                    properties.insert((*name).to_owned(), schema.clone());
                }
            }
            let required = required.iter().map(|name| json!(name)).collect();
            Value::Object(self.object_of(properties, required))
        };
        let success = branch(true, &["data", "_emitted_context", "meta"], &["ok", "data", "meta"]);
        let failure = branch(false, &["error", "meta"], &["ok", "error", "meta"]);
        // A grammar must not lead to an answer that no contract accepts. A service may be sent such a schema.
        let is_left =
            |name: &str| self.dialect.size == Size::AsWritten || !impossible.iter().any(|each| each == name);
        let outcomes: Vec<Value> = [("data", success), ("error", failure)]
            .into_iter()
            .filter(|(name, _)| is_left(name))
            .map(|(_, branch)| branch)
            .collect();
        Map::from_iter([("anyOf".to_owned(), Value::Array(outcomes))])
    }

    fn object_of(&self, properties: Map<String, Value>, required: Vec<Value>) -> Map<String, Value> {
        let mut object = Map::new();
        object.insert("type".to_owned(), json!("object"));
        if self.dialect.has("propertyOrdering") {
            let order: Vec<&String> = properties.keys().collect();
            object.insert("propertyOrdering".to_owned(), json!(order));
        }
        object.insert("properties".to_owned(), Value::Object(properties));
        object.insert("required".to_owned(), Value::Array(required));
        object.insert("additionalProperties".to_owned(), json!(false));
        object
    }

    /// Writes one schema; `None` if no value matches it.
    pub(super) fn schema(&mut self, node: &Value, path: &str, level: usize) -> Option<Value> {
        let node = match node {
            Value::Object(node) => node,
            Value::Bool(false) => return None,
            _ => return Some(self.unconstrained_node(path)),
        };
        if let Some(reference) = node.get("$ref") {
            // A reference allows no other keyword next to it, not even a description.
            return Some(json!({ "$ref": reference }));
        }
        let said = match (union_of(node), values_of(node)) {
            (Some((keyword, branches)), _) => self.choice(keyword, branches, path, level),
            (None, Some(values)) => self.values(values, node, path, level),
            (None, None) => self.typed_node(node, path, level),
        };
        said.map(|said| self.with_description(said, node.get("description")))
    }

    fn with_description(&self, mut said: Value, description: Option<&Value>) -> Value {
        if let (Value::Object(members), Some(description), true) =
            (&mut said, description, self.dialect.has("description"))
        {
            let behind_type = usize::from(members.contains_key("type"));
            members.shift_insert(behind_type, "description".to_owned(), description.clone());
        }
        said
    }

    fn choice(&mut self, keyword: &str, branches: &[Value], path: &str, level: usize) -> Option<Value> {
        // For a narrowing target, the branches already exclude each other, or the loss is already recorded.
        if keyword == "oneOf"
            && self.dialect.rest == UnsupportedRules::LeftOut
            && !union::is_disjoint(branches)
        {
            self.losses.note_weakened(path, "oneOf", "at least one branch instead of exactly one");
        }
        let at = pointer(path, keyword);
        let said: Vec<Value> = branches
            .iter()
            .enumerate()
            .filter_map(|(index, branch)| self.schema(branch, &pointer(&at, &index.to_string()), level))
            .collect();
        union::any_of(said)
    }

    /// Writes a node with types, or with keywords that imply the type.
    fn typed_node(&mut self, node: &Map<String, Value>, path: &str, level: usize) -> Option<Value> {
        let types = types_of(node).unwrap_or_else(|| self.guessed_types(node, path));
        if types.is_empty() {
            return Some(self.unconstrained_node(path));
        }
        let is_number = types.iter().any(|name| name == "number");
        let mut said = Vec::new();
        for name in types.iter().filter(|name| *name != "null" && !(is_number && *name == "integer")) {
            for part in self.without_excluded(name, node, path) {
                said.extend(match values_of(&part) {
                    Some(values) => self.values(values, &part, path, level),
                    None => self.single(name, &part, path, level).map(Value::Object),
                });
            }
        }
        let has_null = types.iter().any(|name| name == "null") && !except::excludes(node, &Value::Null);
        match union::any_of(said) {
            Some(said) if has_null => Some(nullable(said)),
            None if has_null => Some(json!({ "type": "null" })),
            said => said,
        }
    }

    fn guessed_types(&mut self, node: &Map<String, Value>, path: &str) -> Vec<String> {
        let has = |keywords: &[&str]| keywords.iter().any(|keyword| node.contains_key(*keyword));
        let guesses = [
            (
                "object",
                has(&[
                    "properties",
                    "required",
                    "additionalProperties",
                    "minProperties",
                    "maxProperties",
                    "patternProperties",
                    "propertyNames",
                ]),
            ),
            ("array", has(&["items", "minItems", "maxItems", "uniqueItems"])),
            ("string", has(&["minLength", "maxLength", "pattern", "format", "allOf"])),
            ("number", has(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"])),
        ];
        let types: Vec<String> =
            guesses.iter().filter(|(_, holds)| *holds).map(|(name, _)| (*name).to_owned()).collect();
        if !types.is_empty() {
            let how = format!("`{}`, because the other keywords apply to that type", types.join("` or `"));
            self.losses.note_tightened(path, "type", how);
        }
        if types.is_empty() && node.contains_key("not") {
            return except::ALL_TYPES.map(str::to_owned).to_vec();
        }
        types
    }

    pub(super) fn single(
        &mut self,
        name: &str,
        node: &Map<String, Value>,
        path: &str,
        level: usize,
    ) -> Option<Map<String, Value>> {
        match name {
            "string" => Some(self.string(node, path)).filter(|said| !self.is_empty(said)),
            "integer" | "number" => Some(self.number(name, node, path)).filter(|said| !self.is_empty(said)),
            "array" => self.array(node, path, level),
            "object" => self.object(node, path, level),
            _ => Some(type_members(name)),
        }
    }

    /// Returns whether no value fits the bounds. Only checked for grammars, which break on an impossible rule.
    fn is_empty(&self, said: &Map<String, Value>) -> bool {
        self.dialect.rest == UnsupportedRules::Narrowed && bounds::contradict(said)
    }

    /// Writes a location without rules.
    pub(super) fn unconstrained_node(&mut self, path: &str) -> Value {
        // A grammar with a gap is not used, so further parts beyond the limit are not worth their size.
        if self.losses.is_too_large && self.dialect.rest == UnsupportedRules::Narrowed {
            return Value::Object(type_members("string"));
        }
        if self.dialect.anything == OpenNotation::AllTypes {
            return json!({ "type": ["object", "array", "string", "number", "boolean", "null"] });
        }
        self.losses.note_tightened(path, "type", "a plain value; a list or an object would need a schema");
        let nothing = Map::new();
        let said = vec![
            Value::Object(self.string(&nothing, path)),
            Value::Object(self.number("number", &nothing, path)),
        ];
        union::any_of([said, vec![json!({ "type": "boolean" }), json!({ "type": "null" })]].concat())
            .unwrap_or(Value::Bool(true))
    }

    /// Writes an optional member. The flag is true if it is required as null instead.
    pub(super) fn optional(&mut self, said: Value, path: &str) -> (Value, bool) {
        let as_null = match self.dialect.optional {
            OptionalNotation::Absent => false,
            OptionalNotation::AbsentUpTo(most) => self.absent >= most,
            OptionalNotation::Null => true,
        };
        if !as_null {
            self.absent += 1;
            return (said, false);
        }
        self.losses.note_weakened(path, "required", "`null` replaces a missing member");
        (nullable(said), true)
    }

    /// Returns whether objects lose undescribed members.
    pub(super) fn closes(&self) -> bool {
        self.dialect.objects != Objects::Open
    }

    fn check_limits(&mut self, schema: &Value) {
        let found = bounds::measure(schema);
        let limits = self.dialect.limits;
        let counts = [
            ("properties", found.properties, limits.properties),
            ("anyOf", found.unions, limits.unions),
            ("enum", found.characters, limits.characters),
        ];
        for (keyword, count, most) in counts {
            if count > most {
                self.losses.note_refused(keyword, format!("{count} of them, but the service accepts {most}"));
            }
        }
    }
}

fn members(envelope: &Value) -> impl Iterator<Item = (&String, &Value)> {
    envelope.get("properties").and_then(Value::as_object).into_iter().flatten()
}

pub(super) fn type_members(name: &str) -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), json!(name))])
}
