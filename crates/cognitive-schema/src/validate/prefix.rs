//! The rules of a contract that can be checked on the beginning of a value: a plan of plain nodes, built once per
//! module.
//! Holds only certain rules. Each schema keyword only narrows, so a skipped one (`oneOf`, `pattern`, `if` …) can miss
//! an error but never report a false one. References into other files are skipped too.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{Contract, SCHEMA_FILE};

/// The most schemas in one plan. Schemas beyond that are not checked. Without it, references that double at each step
/// would fill the memory.
const MAX_NODES: usize = 10_000;

/// The kinds of JSON values, as bits.
pub mod kind {
    /// `null`
    pub const NULL: u8 = 1;
    /// `true` and `false`
    pub const BOOLEAN: u8 = 2;
    /// A number.
    pub const NUMBER: u8 = 4;
    /// A number without a fraction.
    pub const INTEGER: u8 = 8;
    /// A string.
    pub const STRING: u8 = 16;
    /// An array.
    pub const ARRAY: u8 = 32;
    /// An object.
    pub const OBJECT: u8 = 64;
    /// Every kind.
    pub const ANY: u8 = 127;
}

/// The number of a node in a plan.
pub type NodeId = usize;

/// The rules for partial data of a module.
#[derive(Debug, Default)]
pub struct PrefixRules {
    nodes: Vec<ValueRules>,
}

/// The rules for one value.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct ValueRules {
    /// The allowed kinds, as bits of [`kind`]; 0 means all.
    pub kinds: u8,
    /// The declared values of an `enum` or a `const`.
    pub options: Option<Vec<Value>>,
    /// The strings among them as repair compares them: trimmed and in lower case.
    pub spellings: Vec<Box<str>>,
    /// Minimum length in code points.
    pub min_length: u64,
    /// Maximum length in code points.
    pub max_length: Option<u64>,
    /// Lowest allowed number.
    pub minimum: Option<f64>,
    /// Highest allowed number.
    pub maximum: Option<f64>,
    /// Exclusive lower bound.
    pub above: Option<f64>,
    /// Exclusive upper bound.
    pub below: Option<f64>,
    /// Minimum number of items.
    pub min_items: u64,
    /// Maximum number of items.
    pub max_items: Option<u64>,
    /// The rules for the first items by index, each if it has any.
    pub places: Vec<Option<NodeId>>,
    /// The rules for every other item.
    pub items: Option<NodeId>,
    /// Declared members, each with its rules if it has any.
    pub members: HashMap<Box<str>, Option<NodeId>>,
    /// Required members.
    pub required: Vec<Box<str>>,
    /// True if only declared members are allowed.
    pub closed: bool,
    /// The rules for members that are not declared.
    pub others: Option<NodeId>,
}

impl PrefixRules {
    /// The rules for the whole value.
    pub const ROOT: NodeId = 0;

    /// The rules of one node.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Option<&ValueRules> {
        self.nodes.get(id)
    }

    pub(super) fn for_data(contract: &Contract) -> Self {
        let local = contract.data.place.file == SCHEMA_FILE;
        let mut planner =
            Planner { root: local.then_some(&contract.root), plan: Self::default(), known: HashMap::new() };
        planner.node(&contract.data.schema);
        planner.plan
    }
}

struct Planner<'a> {
    /// The document in which `#/…` is looked up.
    root: Option<&'a Value>,
    plan: PrefixRules,
    /// The nodes of reference targets, so that recursive types end.
    known: HashMap<&'a str, Option<NodeId>>,
}

impl<'a> Planner<'a> {
    /// The node of a schema; `None` if it has no rule that can be checked.
    fn node(&mut self, schema: &'a Value) -> Option<NodeId> {
        let Value::Object(members) = schema else { return None };
        // No other rule is next to `$ref`.
        if let Some(reference) = members.get("$ref") {
            return self.target(reference.as_str()?);
        }
        if self.plan.nodes.len() >= MAX_NODES {
            return None;
        }
        let id = self.plan.nodes.len();
        self.plan.nodes.push(ValueRules::default());
        let mut node = rules(members);
        match members.get("items") {
            Some(Value::Array(places)) => {
                node.places = places.iter().map(|place| self.node(place)).collect();
                node.items = members.get("additionalItems").and_then(|others| self.node(others));
            }
            items => node.items = items.and_then(|items| self.node(items)),
        }
        self.members(members, &mut node);
        if let Some(place) = self.plan.nodes.get_mut(id) {
            *place = node;
        }
        Some(id)
    }

    fn target(&mut self, reference: &'a str) -> Option<NodeId> {
        if let Some(known) = self.known.get(reference) {
            return *known;
        }
        let pointer = reference.strip_prefix('#').filter(|pointer| !pointer.contains('%'))?;
        let schema = self.root?.pointer(pointer)?;
        // A reference to a reference gets its node later; until then it has no rules.
        let ahead = schema.get("$ref").is_none().then_some(self.plan.nodes.len());
        self.known.insert(reference, ahead.filter(|id| *id < MAX_NODES && schema.is_object()));
        let id = self.node(schema);
        self.known.insert(reference, id);
        id
    }

    fn members(&mut self, schema: &'a Map<String, Value>, node: &mut ValueRules) {
        for (name, member) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let rules = self.node(member);
            node.members.insert(name.as_str().into(), rules);
        }
        // A pattern may declare any name.
        if schema.contains_key("patternProperties") {
            return;
        }
        match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => node.closed = true,
            Some(others) => node.others = self.node(others),
            None => {}
        }
    }
}

/// The rules of a schema that apply to its own value.
fn rules(schema: &Map<String, Value>) -> ValueRules {
    let count = |name: &str| schema.get(name).and_then(Value::as_f64).and_then(exact_count);
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64).filter(|bound| is_exact(*bound));
    let options = match (schema.get("enum"), schema.get("const")) {
        (Some(Value::Array(options)), _) => Some(options.clone()),
        (_, Some(constant)) => Some(vec![constant.clone()]),
        _ => None,
    };
    let texts = options.iter().flatten().filter_map(Value::as_str);
    let spellings = texts.map(|text| text.trim().to_ascii_lowercase().into()).collect();
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    ValueRules {
        kinds: kinds(schema.get("type")),
        options,
        spellings,
        min_length: count("minLength").unwrap_or(0),
        max_length: count("maxLength"),
        minimum: bound("minimum"),
        maximum: bound("maximum"),
        above: bound("exclusiveMinimum"),
        below: bound("exclusiveMaximum"),
        min_items: count("minItems").unwrap_or(0),
        max_items: count("maxItems"),
        required: required.filter_map(Value::as_str).map(Into::into).collect(),
        ..ValueRules::default()
    }
}

/// Returns whether the number is small enough that floats compare it without rounding (below 2^53).
#[must_use]
pub fn is_exact(number: f64) -> bool {
    number.abs() < 9_007_199_254_740_992.0
}

fn exact_count(number: f64) -> Option<u64> {
    let fits = is_exact(number) && number >= 0.0 && number.fract() == 0.0;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked in the line before")]
    fits.then_some(number as u64)
}

fn kinds(declared: Option<&Value>) -> u8 {
    let one = |word: &Value| match word.as_str() {
        Some("null") => kind::NULL,
        Some("boolean") => kind::BOOLEAN,
        Some("number") => kind::NUMBER | kind::INTEGER,
        Some("integer") => kind::INTEGER,
        Some("string") => kind::STRING,
        Some("array") => kind::ARRAY,
        Some("object") => kind::OBJECT,
        _ => kind::ANY,
    };
    match declared {
        None => 0,
        Some(Value::Array(words)) => words.iter().map(one).fold(0, |all, each| all | each),
        Some(word) => one(word),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Layout, SchemaFiles};
    use super::*;

    fn plan(data: Value, defs: Value) -> PrefixRules {
        plan_in(json!("http://json-schema.org/draft-07/schema#"), data, defs)
    }

    fn plan_in(dialect: Value, data: Value, defs: Value) -> PrefixRules {
        let schema = json!({ "$schema": dialect, "input": {}, "data": data, "$defs": defs });
        let files = SchemaFiles::from([(SCHEMA_FILE.to_owned(), schema)]);
        PrefixRules::for_data(&Contract::compile(&files, &Layout::default()).unwrap())
    }

    fn member(plan: &PrefixRules, of: NodeId, name: &str) -> NodeId {
        plan.node(of).unwrap().members[name].unwrap()
    }

    #[test]
    fn references_are_followed_also_into_themselves_and_what_stands_beside_them_is_not_read() {
        let tree =
            json!({ "type": "object", "properties": { "next": { "$ref": "#/$defs/tree", "type": "null" } } });
        let data = json!({ "properties": { "tree": { "$ref": "#/$defs/tree" } } });
        let plan = plan(data, json!({ "tree": tree }));
        let tree = member(&plan, PrefixRules::ROOT, "tree");
        assert_eq!(plan.node(tree).unwrap().kinds, kind::OBJECT);
        assert_eq!(member(&plan, tree, "next"), tree);
    }

    #[test]
    fn only_what_is_certain_is_in_the_plan() {
        let plan = plan(
            json!({
                "properties": { "a": { "oneOf": [{ "type": "string" }] }, "b": true },
                "patternProperties": { "^x": {} }, "additionalProperties": false,
                "required": ["a"], "maxProperties": 1,
            }),
            json!({}),
        );
        let root = plan.node(PrefixRules::ROOT).unwrap();
        assert!(!root.closed);
        assert_eq!(root.members["b"], None);
        assert_eq!(plan.node(root.members["a"].unwrap()).unwrap().kinds, 0);
        assert_eq!(*root.required, ["a".into()]);
    }

    #[test]
    fn integers_are_numbers_and_bounds_that_floats_round_are_left_out() {
        let plan = plan(
            json!({ "type": "integer", "minimum": -1, "maximum": 9_007_199_254_740_993_u64, "maxLength": 3.0 }),
            json!({}),
        );
        let root = plan.node(PrefixRules::ROOT).unwrap();
        assert_eq!((root.kinds, root.minimum, root.maximum), (kind::INTEGER, Some(-1.0), None));
        assert_eq!(root.max_length, Some(3));
        assert_eq!(kinds(Some(&json!(["number", "null"]))), kind::NUMBER | kind::INTEGER | kind::NULL);
    }
}
