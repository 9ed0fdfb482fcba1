//! Converts an author's schema to plain form: references resolved, `allOf` merged, choices free of further rules, and
//! unsupported keywords removed and recorded. Never loops, and bounds its output for any schema.
//! Reads no file. Of files other than `schema.json` it knows only those that are a section as a whole.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Losses;
use super::dialect::{Recursion, UnsupportedRules};
use super::follow::SchemaLocation;
use super::merge::{UNIONS, merge};
use super::union;
use crate::text::pointer;
use crate::validate::{MAX_CUSTOM_LENGTH, SCHEMA_FILE, Section};

/// The maximum number of schemas and listed values in a plain form. Anything is allowed beyond it. References that
/// double at each step would otherwise fill the memory.
pub(super) const MAX_NODES: usize = 10_000;
/// The maximum nesting of a plain form. Deeper ones would overflow the stack.
pub(super) const MAX_DEPTH: usize = 48;

/// Keywords that are copied unchanged.
const PLAIN: &str = "type description required const minimum maximum exclusiveMinimum exclusiveMaximum multipleOf \
                     minLength maxLength pattern format minItems maxItems x-copy-from x-decide x-name-from x-say";

/// Keywords that only narrowing targets keep.
const COUNTS: &str = "minProperties maxProperties uniqueItems";

/// Keywords that no target knows.
const UNKNOWN: &str = "not if then else dependencies propertyNames patternProperties minProperties maxProperties \
                       uniqueItems contains minContains maxContains unevaluatedItems unevaluatedProperties";

/// Those of them that can be expressed as a choice.
const CONDITIONS: &str = "not if then else dependencies contains minContains";

pub(super) fn is_among(words: &str, keyword: &str) -> bool {
    words.split(' ').any(|word| word == keyword)
}

/// The treatment of the custom branch of an extensible enum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CustomBranch {
    /// Stays, with a name of 1–32 characters and a reason.
    Kept,
    /// Removed, because the module's enums are strict.
    Removed,
}

/// The position of the walk: the file, the path in the result and the depth.
#[derive(Debug, Clone)]
pub(super) struct WalkPosition {
    pub file: String,
    pub path: String,
    pub depth: usize,
    /// True if this schema will be merged with others, which a bare reference does not allow.
    pub joined: bool,
}

impl WalkPosition {
    pub(super) fn new(file: &str, path: &str) -> Self {
        Self { file: file.to_owned(), path: path.to_owned(), depth: 0, joined: true }
    }

    fn child(&self, token: &str) -> Self {
        let path = pointer(&self.path, token);
        Self { file: self.file.clone(), path, depth: self.depth + 1, joined: false }
    }

    /// The position of another schema for the same value.
    pub(super) fn same_value(&self) -> Self {
        Self { depth: self.depth + 1, joined: true, ..self.clone() }
    }
}

/// The walk over all sections of one module.
pub(super) struct SchemaNormaliser<'a> {
    pub files: BTreeMap<String, &'a Value>,
    tag: &'a str,
    /// Setting for the current section.
    pub custom: CustomBranch,
    pub recursion: Recursion,
    pub rest: UnsupportedRules,
    /// The author's keyword that is being replaced by other keywords.
    pub written_as: Option<&'static str>,
    room: usize,
    /// The locations that are being written out, outermost first.
    pub open: Vec<SchemaLocation>,
    /// The names of recursive types by location, and those that are not yet written.
    pub names: BTreeMap<SchemaLocation, String>,
    pub pending: Vec<SchemaLocation>,
    pub losses: &'a mut Losses,
}

impl<'a> SchemaNormaliser<'a> {
    pub(super) fn new(
        root: &'a Value,
        tag: &'a str,
        (recursion, rest): (Recursion, UnsupportedRules),
        losses: &'a mut Losses,
    ) -> Self {
        Self {
            files: BTreeMap::from([(SCHEMA_FILE.to_owned(), root)]),
            tag,
            custom: CustomBranch::Kept,
            recursion,
            rest,
            written_as: None,
            room: MAX_NODES,
            open: Vec::new(),
            names: BTreeMap::new(),
            pending: Vec::new(),
            losses,
        }
    }

    /// The plain form of a section, for the location `path`.
    pub(super) fn section(&mut self, section: &'a Section, path: &str) -> Value {
        let place =
            SchemaLocation { file: section.place.file.clone(), pointer: section.place.pointer.clone() };
        if place.pointer.is_empty() {
            self.files.entry(place.file.clone()).or_insert_with(|| section.schema());
        }
        let at = WalkPosition::new(&place.file, path);
        self.normalise_at(place, section.schema(), &at)
    }

    /// The plain form of a schema.
    pub(super) fn schema(&mut self, node: &Value, at: &WalkPosition) -> Value {
        let Value::Object(members) = node else {
            return Value::Bool(node.as_bool().unwrap_or(true));
        };
        if at.depth > MAX_DEPTH || !self.takes(1) {
            self.losses.too_large(&at.path);
            return Value::Bool(true);
        }
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            // No other rule is next to a `$ref`. A description is not a rule, so it stays.
            return self.reference(reference, members.get("description"), at);
        }
        let mut plain = self.keywords(members, at);
        for branch in members.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            let also = self.schema(branch, &at.same_value());
            plain = merge(plain, also, &at.path, self.losses);
        }
        for keyword in UNIONS {
            if let Some(Value::Array(branches)) = members.get(keyword) {
                let at = WalkPosition { joined: plain != Value::Bool(true), ..at.clone() };
                let choice = self.choice(keyword, branches, &at);
                plain = merge(plain, choice, &at.path, self.losses);
            }
        }
        if self.narrows() {
            plain = self.conditions(members, plain, at);
        }
        plain
    }

    /// Returns whether inexpressible rules are replaced by stricter ones.
    pub(super) fn narrows(&self) -> bool {
        self.rest == UnsupportedRules::Narrowed
    }

    pub(super) fn normalise_at(&mut self, place: SchemaLocation, schema: &Value, at: &WalkPosition) -> Value {
        self.open.push(place);
        let plain = self.schema(schema, at);
        self.open.pop();
        plain
    }

    pub(super) fn takes(&mut self, nodes: usize) -> bool {
        let fits = self.room >= nodes;
        self.room = self.room.saturating_sub(nodes);
        fits
    }

    /// Converts a node's own keywords, without those that combine it with other schemas.
    fn keywords(&mut self, members: &Map<String, Value>, at: &WalkPosition) -> Value {
        let mut plain = Map::new();
        for (keyword, value) in members {
            match keyword.as_str() {
                "properties" => {
                    if let Value::Object(properties) = value {
                        plain.insert(keyword.clone(), self.properties(properties, &at.child("properties")));
                    }
                }
                "additionalProperties" => {
                    plain.insert(keyword.clone(), self.schema(value, &at.child(keyword)));
                }
                "items" => self.items(value, members.get("additionalItems"), &mut plain, at),
                "enum" => self.add_enum(value, &mut plain, at),
                name if is_among(PLAIN, name) => {
                    let is_count = ["Length", "Items"].iter().any(|end| name.ends_with(end));
                    plain.insert(
                        keyword.clone(),
                        if is_count { without_fraction(value) } else { value.clone() },
                    );
                }
                "patternProperties" if self.narrows() => {
                    if let Value::Object(patterns) = value {
                        plain.insert(keyword.clone(), self.properties(patterns, &at.child(keyword)));
                    }
                }
                "propertyNames" if self.narrows() => {
                    plain.insert(keyword.clone(), self.schema(value, &at.child(keyword)));
                }
                name if self.narrows() && is_among(COUNTS, name) && rules(name, members) => {
                    plain.insert(keyword.clone(), without_fraction(value));
                }
                name if self.narrows() && is_among(CONDITIONS, name) => {}
                name if is_among(UNKNOWN, name) && rules(name, members) => {
                    self.losses.note_dropped(&at.path, name);
                }
                _ => {}
            }
        }
        // Members whose names match a pattern are no longer described, so no rule here may exclude them.
        if rules("patternProperties", members) && !self.narrows() {
            plain.shift_remove("additionalProperties");
        }
        if plain.get("additionalProperties") == Some(&Value::Bool(true)) {
            plain.shift_remove("additionalProperties");
        }
        if plain.is_empty() { Value::Bool(true) } else { Value::Object(plain) }
    }

    fn properties(&mut self, properties: &Map<String, Value>, at: &WalkPosition) -> Value {
        let plain =
            properties.iter().map(|(name, schema)| (name.clone(), self.schema(schema, &at.child(name))));
        Value::Object(plain.collect())
    }

    fn add_enum(&mut self, values: &Value, plain: &mut Map<String, Value>, at: &WalkPosition) {
        if self.takes(values.as_array().map_or(0, Vec::len)) {
            plain.insert("enum".to_owned(), values.clone());
        } else {
            self.losses.note_dropped(&at.path, "enum");
        }
    }

    /// Writes `items` as one schema. For other targets than narrowing ones, a list of schemas by index becomes a
    /// choice.
    fn items(
        &mut self,
        items: &Value,
        others: Option<&Value>,
        plain: &mut Map<String, Value>,
        at: &WalkPosition,
    ) {
        let below = at.child("items");
        let Value::Array(places) = items else {
            plain.insert("items".to_owned(), self.schema(items, &below));
            return;
        };
        if self.narrows() {
            let places = places.iter().enumerate();
            let places = places.map(|(index, place)| self.schema(place, &below.child(&index.to_string())));
            plain.insert("items".to_owned(), Value::Array(places.collect()));
            if let Some(others) = others {
                plain.insert("additionalItems".to_owned(), self.schema(others, &at.child("additionalItems")));
            }
            return;
        }
        self.losses.note_weakened(&at.path, "items", "which schema holds at which place of the list");
        let mut branches: Vec<Value> =
            places.iter().map(|place| self.schema(place, &below.same_value())).collect();
        match others {
            Some(Value::Bool(false)) => {
                let most = plain.get("maxItems").and_then(Value::as_u64).unwrap_or(u64::MAX);
                plain.insert("maxItems".to_owned(), json!(most.min(places.len() as u64)));
            }
            Some(schema) => branches.push(self.schema(schema, &below.same_value())),
            None => branches.push(Value::Bool(true)),
        }
        let schema =
            if branches.contains(&Value::Bool(true)) { json!(true) } else { json!({ "anyOf": branches }) };
        plain.insert("items".to_owned(), schema);
    }

    fn choice(&mut self, keyword: &str, branches: &[Value], at: &WalkPosition) -> Value {
        let is_extensible = branches.iter().any(|branch| branch.get("enum").is_some_and(Value::is_array));
        let is_custom = |branch: &Value| is_extensible && is_custom_branch(branch, self.tag);
        let kept: Vec<Value> = branches
            .iter()
            .filter(|branch| self.custom == CustomBranch::Kept || !is_custom(branch))
            .map(|branch| if is_custom(branch) { limit_custom(branch, self.tag) } else { branch.clone() })
            .collect();
        let list = at.child(keyword);
        let plain = kept.iter().enumerate().map(|(index, branch)| {
            self.schema(branch, &WalkPosition { joined: at.joined, ..list.child(&index.to_string()) })
        });
        let plain: Vec<Value> = plain.collect();
        if keyword == "oneOf" && self.narrows() && !union::is_disjoint(&plain) {
            return self.exclusive(&kept, plain, at);
        }
        json!({ keyword: plain })
    }
}

/// Returns whether a keyword restricts any value here.
fn rules(keyword: &str, members: &Map<String, Value>) -> bool {
    let Some(value) = members.get(keyword) else { return false };
    match keyword {
        "then" | "else" => members.contains_key("if"),
        "if" => members.contains_key("then") || members.contains_key("else"),
        "uniqueItems" => value == &Value::Bool(true),
        "contains" => min_contains(members) > 0.0,
        "minContains" => min_contains(members) > 1.0,
        "unevaluatedItems" | "unevaluatedProperties" => value != &Value::Bool(true),
        "minProperties" => value.as_u64() != Some(0),
        "patternProperties" | "dependencies" => value.as_object().is_some_and(|map| !map.is_empty()),
        _ => true,
    }
}

/// A value as written, but `2.0` as `2`: counts may be written either way.
fn without_fraction(value: &Value) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value
        .as_f64()
        .filter(|number| value.is_f64() && number.fract() == 0.0 && (0.0..EXACT).contains(number))
    {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked in the line before"
        )]
        Some(number) => json!(number as u64),
        None => value.clone(),
    }
}

/// The number of items that have to match `contains`.
pub(super) fn min_contains(members: &Map<String, Value>) -> f64 {
    members.get("minContains").and_then(Value::as_f64).unwrap_or(1.0)
}

fn is_custom_branch(branch: &Value, tag: &str) -> bool {
    let required = branch.get("required").and_then(Value::as_array);
    branch.get("properties").and_then(|properties| properties.get(tag)).is_some()
        && required.is_some_and(|names| names.iter().any(|name| name == tag))
}

/// The custom branch with the limits of the contract, even if the author omitted them.
fn limit_custom(branch: &Value, tag: &str) -> Value {
    let limits = json!({
        "type": "object",
        "required": [tag, "reason"],
        "properties": {
            tag: { "type": "string", "minLength": 1, "maxLength": MAX_CUSTOM_LENGTH },
            "reason": { "type": "string" },
        },
    });
    json!({ "allOf": [branch, limits] })
}
