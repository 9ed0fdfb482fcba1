//! Schemas with which an author could crash, stall or flood the process that runs the module. Every such schema is
//! refused, and every harmless one that looks similar is accepted.

use serde_json::{Map, Value, json};

use super::*;

fn compile(schema: Value) -> Result<Contract, Vec<SchemaProblem>> {
    Contract::compile(&SchemaFiles::from([(SCHEMA_FILE.to_owned(), schema)]), &Layout::default())
}

/// Compiles a schema, adding only the mandatory sections.
fn with(mut schema: Value) -> Result<Contract, Vec<SchemaProblem>> {
    for section in ["input", "data"] {
        schema.as_object_mut().unwrap().entry(section).or_insert(json!({}));
    }
    compile(schema)
}

fn refusal(schema: Value) -> String {
    let problems = with(schema).map(|_| ()).expect_err("should be refused");
    assert_eq!(problems.len(), 1, "{problems:?}");
    format!("{} {}", problems[0].pointer, problems[0].message)
}

fn reference(name: impl std::fmt::Display) -> Value {
    json!({ "$ref": format!("#/{name}") })
}

/// `{"a": {"a": … inner}}`.
fn nested(depth: usize, inner: Value) -> Value {
    (0..depth).fold(inner, |inner, _| json!({ "a": inner }))
}

const CIRCLE: &str = "refers to itself without descending into the value";
const LONG_CHAIN: &str = "a chain of more than 32 references leads to the schema of one value";
const TOO_MANY: &str = "more than 2000 schemas would check the same value";
const MULTIPLIES: &str = "more than one branch refers back to this schema for the same member or item, so the work would \
     multiply at each level";
const STACK: &str = "checking a deeply nested value would take too many steps from here";

#[test]
fn circles_that_read_nothing_are_refused() {
    for circle in [
        json!({ "input": reference("input") }),
        json!({ "input": reference("a"), "a": { "allOf": [reference("input")] } }),
        json!({ "input": { "not": reference("input") } }),
        json!({ "input": { "dependencies": { "x": reference("input") } } }),
        json!({ "input": { "if": {}, "then": { "oneOf": [reference("input")] } } }),
    ] {
        assert!(refusal(circle).ends_with(CIRCLE));
    }
}

/// `d0` to the last, each wrapped around a reference to the next.
fn chain(steps: usize, wrap: impl Fn(Value) -> Value, last: Value) -> Map<String, Value> {
    let step = |n: usize| (format!("d{n}"), wrap(reference(format!("d{}", n + 1))));
    (0..steps).map(step).chain([(format!("d{steps}"), last)]).collect()
}

type Wrap = fn(Value) -> Value;

const WRAPS: [Wrap; 6] = [
    |inner| json!({ "allOf": [inner] }),
    |inner| json!({ "anyOf": [inner, { "type": "string" }] }),
    |inner| json!({ "oneOf": [inner, { "type": "string" }, { "type": "null" }] }),
    |inner| json!({ "if": {}, "then": inner, "else": {} }),
    |inner| json!({ "dependencies": { "a": inner } }),
    |inner| json!({ "not": inner }),
];

#[test]
fn a_chain_of_references_times_a_deep_value_does_not_exhaust_the_stack() {
    for wrap in WRAPS {
        let mut schema = Value::Object(chain(245, wrap, reference("input")));
        schema["input"] = json!({ "properties": { "a": reference("d0") }, "additionalProperties": false });
        assert!(refusal(schema).ends_with(LONG_CHAIN));
    }
}

#[test]
fn what_is_just_allowed_fits_the_stack_of_a_test_thread() {
    for wrap in WRAPS {
        let recursive = |steps: usize| {
            let again = (0..steps).fold(reference("data"), |inner, _| wrap(inner));
            with(json!({ "data": { "properties": { "a": again }, "additionalProperties": false } }))
        };
        let allowed = (1..30).take_while(|steps| recursive(*steps).is_ok()).last().unwrap();
        assert!(allowed >= 2, "{allowed}");
        let contract = recursive(allowed).unwrap();
        let value = nested(127, json!({ "b": 1 }));
        let found = contract.data().violations(&value);
        assert_eq!(found.is_empty(), contract.data().accepts(&value));
    }
    let again = (0..30).fold(reference("data"), |inner, _| json!({ "oneOf": [inner] }));
    assert!(refusal(json!({ "data": { "properties": { "a": again } } })).ends_with(STACK));
}

#[test]
fn schemas_that_nest_through_references_compile_on_the_stack_of_a_test_thread() {
    let floor = |inner| (0..60).fold(inner, |inner, _| json!({ "additionalProperties": inner }));
    let tower = Value::Object(chain(8, floor, json!({})));
    assert!(refusal(tower).ends_with("the schemas and the references between them nest too deeply here"));
    let floor = |inner| (0..10).fold(inner, |inner, _| json!({ "additionalProperties": inner }));
    let mut tower = Value::Object(chain(20, floor, json!({})));
    tower["data"] = reference("d0");
    assert!(with(tower).is_ok());
    let deep = (0..60).fold(json!({}), |inner, _| json!({ "properties": { "a": inner } }));
    assert!(with(json!({ "data": deep })).is_ok());
}

#[test]
fn branches_that_multiply_as_schemas_nest_are_refused() {
    let twice = |inner: Value| json!({ "properties": { "a": { "allOf": [inner, inner] } } });
    assert!(
        refusal(Value::Object(chain(40, twice, json!({})))).contains("would check one value below this one")
    );
    let twice = |inner: Value| json!({ "dependencies": { "a": inner, "b": inner } });
    assert!(refusal(Value::Object(chain(15, twice, json!({})))).ends_with(TOO_MANY));
    let twice = |inner: Value| json!({ "allOf": [inner, inner] });
    assert!(refusal(Value::Object(chain(15, twice, json!({})))).ends_with(TOO_MANY));
    let twice = |inner: Value| json!({ "items": inner, "contains": inner });
    assert!(
        refusal(Value::Object(chain(40, twice, json!({})))).contains("would check one value below this one")
    );
    let twice = |inner: Value| json!({ "patternProperties": { "a": inner, "^": inner } });
    assert!(
        refusal(Value::Object(chain(40, twice, json!({})))).contains("would check one value below this one")
    );
}

#[test]
fn a_section_is_counted_whether_or_not_it_refers_to_anything() {
    let many = |branch: Value, count: usize| json!({ "data": { "allOf": vec![branch; count] }, "a": {} });
    assert_eq!(refusal(many(json!({ "minimum": 1 }), 2_000)), format!("/data {TOO_MANY}"));
    assert!(refusal(many(reference("a"), 50_000)).ends_with("the module has more than 2000 references"));
    assert!(with(many(reference("a"), 900)).is_ok());
}

#[test]
fn a_type_that_contains_itself_twice_in_one_place_is_refused() {
    let again = || reference("data");
    for twice in [
        json!({ "properties": { "a": { "allOf": [again(), again()] }, "b": false } }),
        json!({ "properties": { "a": { "oneOf": [again(), again(), { "type": "null" }] } } }),
        json!({ "properties": { "a": again() }, "patternProperties": { "^a": again() } }),
        json!({ "items": again(), "contains": again() }),
        json!({ "allOf": [{ "properties": { "a": again() } }, { "additionalProperties": again() }] }),
        json!({ "anyOf": [{ "items": again() }, { "items": [again()] }] }),
        json!({ "if": { "properties": { "a": again() } }, "then": { "properties": { "a": again() } } }),
    ] {
        assert!(refusal(json!({ "data": twice })).ends_with(MULTIPLIES));
    }
    // Through each other.
    let mutual = json!({
        "data": { "properties": { "a": reference("x") } },
        "x": { "properties": { "a": { "anyOf": [reference("data"), { "allOf": [reference("x")] }] } } },
    });
    assert!(refusal(mutual).ends_with(MULTIPLIES));
}

#[test]
fn types_that_leave_something_behind_on_every_level_are_counted() {
    // Each level adds one more schema that validates everything below it: a hundred for a hundred levels, and so on.
    let mut schema = json!({ "d0": { "properties": { "a": reference("d0") } } });
    for n in 1..4 {
        let both = json!({ "allOf": [reference(format!("d{n}")), reference(format!("d{}", n - 1))] });
        schema[format!("d{n}")] = json!({ "properties": { "a": both } });
    }
    assert!(refusal(schema.clone()).contains("would check one value below this one"));
    schema.as_object_mut().unwrap().retain(|name, _| name.as_str() < "d2");
    assert!(with(schema).is_ok());
}

#[test]
fn honest_recursive_types_compile_and_judge_deep_values() {
    let node = || reference("$defs/node");
    let text = || json!({ "type": "string" });
    for honest in [
        // A tree.
        json!({ "properties": { "name": text(), "children": { "type": "array", "items": node() } } }),
        // Two named children, and the rest.
        json!({ "properties": { "left": node(), "right": node() }, "additionalProperties": node() }),
        // A linked list.
        json!({ "properties": { "value": {}, "next": { "oneOf": [node(), { "type": "null" }] } } }),
        // Alternatives of which one recurses.
        json!({ "oneOf": [text(), { "type": "number" }, { "type": "array", "items": node() }] }),
        // Alternatives that recurse through different members.
        json!({ "oneOf": [
            { "required": ["and"], "properties": { "and": { "items": node() } } },
            { "required": ["or"], "properties": { "or": { "items": node() } } },
            { "required": ["not"], "properties": { "not": node() } },
            { "required": ["field"], "properties": { "field": text(), "is": {} } },
        ] }),
        // Pairs.
        json!({ "items": [text(), node()], "additionalItems": false }),
        // Any JSON.
        json!({ "anyOf": [
            { "type": ["string", "number", "boolean", "null"] },
            { "type": "array", "items": node() },
            { "type": "object", "additionalProperties": node() },
        ] }),
        // A schema shared by every node.
        json!({ "allOf": [reference("$defs/named"), { "properties": { "children": { "items": node() } } }] }),
    ] {
        let named = json!({ "properties": { "name": text(), "tags": { "items": text() } } });
        let contract = with(json!({ "data": node(), "$defs": { "node": honest, "named": named } }));
        let contract = contract.unwrap_or_else(|problems| panic!("{honest}: {problems:?}"));
        for deep in [nested(125, json!(1)), (0..125).fold(json!({ "name": 1 }), |inner, _| json!([inner]))] {
            let found = contract.data().violations(&deep);
            assert_eq!(found.is_empty(), contract.data().accepts(&deep));
        }
    }
}

#[test]
fn alternatives_that_a_constant_tells_apart_may_both_go_on() {
    let kind = |name: &str| {
        json!({ "required": ["type"], "properties": {
            "a": { "items": reference("data") }, "type": { "const": name }, "text": { "type": "string" } } })
    };
    for count in [2, 3] {
        let kinds: Vec<Value> = ["row", "column", "grid"].into_iter().take(count).map(kind).collect();
        let contract = with(json!({ "data": { "oneOf": kinds } })).unwrap();
        let tree = |depth: usize, text: Value| {
            (0..depth).fold(
                json!({ "type": "row", "text": text }),
                |inner, level| json!({ "type": if level % 2 == 0 { "row" } else { "column" }, "a": [inner] }),
            )
        };
        assert!(contract.data().accepts(&tree(40, json!("x"))));
        let found = contract.data().violations(&tree(3, json!(1)));
        assert_eq!(
            (found[0].path.as_str(), found[0].message.as_str()),
            ("/a/0/a/0/a/0/text", "expected string")
        );
        // Each level doubles the number of findings; the meter stops it.
        assert!(!contract.data().violations(&tree(40, json!(1))).is_empty());
    }
    let same = json!({ "data": { "oneOf": [kind("row"), kind("row")] } });
    assert!(refusal(same).ends_with(MULTIPLIES));
}

#[test]
fn the_schema_of_schemas_is_an_honest_type() {
    let schema = || json!({ "$ref": "types.json#" });
    let list = json!({ "type": "array", "minItems": 1, "items": schema() });
    let map = json!({ "type": "object", "additionalProperties": schema() });
    let types = json!({ "type": ["object", "boolean"], "properties": {
        "items": { "anyOf": [schema(), list] }, "additionalItems": schema(), "contains": schema(),
        "properties": map, "patternProperties": map, "definitions": map, "additionalProperties": schema(),
        "dependencies": { "additionalProperties": { "anyOf": [schema(), { "type": "array", "items": { "type": "string" } }] } },
        "not": schema(), "if": schema(), "then": schema(), "else": schema(),
        "allOf": list, "anyOf": list, "oneOf": list, "enum": { "type": "array", "items": true },
    } });
    let files = SchemaFiles::from([
        (SCHEMA_FILE.to_owned(), json!({ "input": {}, "data": schema() })),
        ("types.json".to_owned(), types),
    ]);
    let contract = Contract::compile(&files, &Layout::default()).unwrap();
    assert!(contract.data().accepts(&json!({ "items": [{ "not": { "allOf": [true] } }] })));
    assert!(!contract.data().accepts(&json!({ "items": [{ "not": { "allOf": [1] } }] })));
}

#[test]
fn branches_options_and_exclusions_have_limits() {
    let branch = |n: usize| json!({ "required": [format!("x{n}")] });
    let any_of = |count: usize| json!({ "data": { "anyOf": (0..count).map(branch).collect::<Vec<_>>() } });
    assert_eq!(refusal(any_of(501)), "/data `anyOf` has more than 500 branches");
    assert!(with(any_of(500)).is_ok());
    let options = |count: usize| json!({ "data": { "items": { "enum": (0..count).collect::<Vec<_>>() } } });
    assert_eq!(refusal(options(2_001)), "/data/items `enum` has more than 2000 options");
    assert!(with(options(2_000)).is_ok());
    let excluded = json!({ "data": { "not": { "const": "x".repeat(100_000) } } });
    assert_eq!(refusal(excluded), "/data `not` has more than 500 values");
}

#[test]
fn patterns_have_limits() {
    let found = |data: Value| refusal(json!({ "data": data }));
    assert_eq!(
        found(json!({ "pattern": "a".repeat(2_001) })),
        "/data the pattern has more than 2000 characters"
    );
    let many: Vec<Value> = (0..501).map(|n| json!({ "pattern": format!("^{n}") })).collect();
    assert_eq!(found(json!({ "allOf": many })), "/data/allOf/500 the module has more than 500 patterns");
    let large = json!({ "pattern": "((a{100}){100}){100}" });
    assert!(found(large).contains("are too large; limit the length with `maxLength` instead"));
    let names: Map<String, Value> = (0..33).map(|n| (format!("^{n}"), json!({}))).collect();
    assert_eq!(
        found(json!({ "patternProperties": names })),
        "/data `patternProperties` has more than 32 patterns"
    );
    let names = json!({ "patternProperties": { "[01]*1[01]{3000}2": {} } });
    assert_eq!(found(names), "/data a pattern for member names is too costly");
    let nested = json!({ "pattern": "^(?:a(?=(?:a(?=[^c]*))*))*$" });
    assert_eq!(found(nested), "/data look-arounds in a pattern cannot be nested");
}

#[test]
fn towers_of_definitions_that_refer_into_each_other_are_refused() {
    let leaves: Vec<Value> = vec![json!({ "minimum": 1 }); 10_000];
    let mut tower = json!({ "x": leaves });
    for _ in 0..60 {
        tower = json!({ "x": tower });
    }
    let pointers = (1..60).map(|floor| reference(format!("tower{}", "/x".repeat(floor))));
    let schema = json!({ "data": { "items": pointers.collect::<Vec<_>>() }, "tower": tower });
    assert!(refusal(schema).ends_with("too many references point into each other's targets"));
}
