//! The dialects: each keyword, mixed files, refusals, and the JSON Schema Test Suite.

use cognitive_testkit::json_schema_suite;
use serde_json::json;

use super::*;
use crate::validate::{Contract, Layout, Section};

const NEWER: [&str; 2] =
    ["https://json-schema.org/draft/2019-09/schema", "https://json-schema.org/draft/2020-12/schema"];

fn files(schema: Value) -> SchemaFiles {
    SchemaFiles::from([(SCHEMA_FILE.to_owned(), schema)])
}

fn contract(schema: Value) -> Result<Contract, Vec<SchemaProblem>> {
    Contract::compile(&files(schema), &Layout::default())
}

/// Checks values against a schema alone and as a section of a module.
fn judges(dialect: &str, schema: &Value, right: &[Value], wrong: &[Value]) {
    let mut alone = schema.clone();
    alone["$schema"] = json!(dialect);
    let section = Section::standalone(&alone).unwrap_or_else(|problems| panic!("{schema}: {problems:?}"));
    let mut data = schema.clone();
    // Pointers start at the file, unless the section has its own address.
    let definitions = schema.get("$id").map_or_else(|| data.as_object_mut()?.shift_remove("$defs"), |_| None);
    let module =
        json!({ "$schema": dialect, "input": {}, "data": data, "$defs": definitions.unwrap_or(json!({})) });
    let module = contract(module).unwrap_or_else(|problems| panic!("{schema}: {problems:?}"));
    for (values, expected) in [(right, true), (wrong, false)] {
        for value in values {
            assert_eq!(section.accepts(value), expected, "{dialect} {schema} {value}");
            assert_eq!(section.violations(value).is_empty(), expected, "{dialect} {schema} {value}");
            assert_eq!(module.data().accepts(value), expected, "as a section: {dialect} {schema} {value}");
        }
    }
}

// SCH-003, D-25
#[test]
fn sch_003_keywords_of_both_newer_dialects() {
    for dialect in NEWER {
        let both = |schema: Value, right: &[Value], wrong: &[Value]| judges(dialect, &schema, right, wrong);
        both(
            json!({ "dependentRequired": { "a": ["b"] }, "dependentSchemas": { "a": { "minProperties": 3 } } }),
            &[json!({ "b": 1 }), json!({ "a": 1, "b": 1, "c": 1 }), json!(1)],
            &[json!({ "a": 1 }), json!({ "a": 1, "b": 1 }), json!({ "a": 1, "c": 1, "d": 1 })],
        );
        both(
            json!({ "contains": { "const": 1 }, "minContains": 2, "maxContains": 3 }),
            &[json!([1, 1]), json!([1, 2, 1, 1])],
            &[json!([1]), json!([1, 1, 1, 1]), json!([])],
        );
        both(json!({ "contains": { "const": 1 }, "minContains": 0 }), &[json!([]), json!([2])], &[]);
        both(
            json!({ "$ref": "#/$defs/t", "maxLength": 2, "$defs": { "t": { "type": "string" } } }),
            &[json!("ab")],
            &[json!("abc"), json!(1)],
        );
        both(
            json!({ "allOf": [{ "properties": { "a": { "type": "integer" } } }], "unevaluatedProperties": false }),
            &[json!({ "a": 1 }), json!([1])],
            &[json!({ "a": 1, "b": 2 }), json!({ "a": "1" })],
        );
        both(
            json!({
                "anyOf": [{ "required": ["a"], "properties": { "a": true } }, { "properties": { "b": { "const": 1 } } }],
                "unevaluatedProperties": { "type": "string" },
            }),
            &[json!({ "a": 1 }), json!({ "b": 1 }), json!({ "a": 1, "b": 1, "c": "" })],
            &[json!({ "c": 1 }), json!({ "a": 1, "b": 2 })],
        );
        both(
            json!({ "$anchor": "here", "properties": { "n": { "$ref": "#num" } }, "$defs": { "x": { "$anchor": "num", "type": "number" } } }),
            &[json!({ "n": 1 })],
            &[json!({ "n": "1" })],
        );
    }
}

#[test]
fn sch_003_keywords_of_one_newer_dialect() {
    judges(
        NEWER[1],
        &json!({ "prefixItems": [{ "type": "string" }, { "type": "integer" }], "items": false }),
        &[json!(["a", 1]), json!(["a"]), json!([])],
        &[json!([1]), json!(["a", 1, 2])],
    );
    judges(
        NEWER[1],
        &json!({ "allOf": [{ "prefixItems": [{ "const": 1 }] }], "unevaluatedItems": { "type": "string" } }),
        &[json!([1, "a"]), json!([])],
        &[json!([1, 2])],
    );
    // In 2020-12, `contains` evaluates items; in 2019-09, it does not.
    let contained = json!({ "contains": { "const": 1 }, "unevaluatedItems": { "const": 2 } });
    judges(NEWER[1], &contained, &[json!([1, 2])], &[json!([1, 3]), json!([2])]);
    judges(NEWER[0], &contained, &[], &[json!([1, 2])]);
    judges(
        NEWER[0],
        &json!({ "items": [{ "type": "string" }], "additionalItems": { "type": "integer" } }),
        &[json!(["a", 1])],
        &[json!(["a", "b"])],
    );
}

#[test]
fn sch_003_findings_name_the_keyword() {
    for (schema, value, expected) in [
        (json!({ "contains": { "const": 1 }, "minContains": 2 }), json!([1]), " minContains"),
        (json!({ "contains": { "const": 1 }, "maxContains": 1 }), json!([1, 1]), " maxContains"),
        (json!({ "contains": { "const": 1 } }), json!([2]), " contains"),
        (
            json!({ "anyOf": [{ "properties": { "a": true } }], "unevaluatedProperties": false }),
            json!({ "b/c": 1 }),
            "/b~1c unevaluatedProperties",
        ),
        (
            json!({ "anyOf": [{ "prefixItems": [true] }], "unevaluatedItems": false }),
            json!([1, 2]),
            " unevaluatedItems",
        ),
    ] {
        let mut schema = schema;
        schema["$schema"] = json!(NEWER[1]);
        let found = Section::standalone(&schema).unwrap().violations(&value);
        let found: Vec<String> = found.iter().map(|each| format!("{} {}", each.path, each.rule)).collect();
        assert_eq!(found, [expected], "{schema}");
    }
}

// A reference to a place that moves in the core form.
#[test]
fn sch_003_references_follow_keywords_that_move() {
    let schema = json!({
        "prefixItems": [{ "type": "string" }, { "$ref": "#/prefixItems/0" }],
        "items": { "$ref": "#/dependentSchemas/k", "description": "only a remark" },
        "dependentSchemas": { "k": { "type": "integer" } },
    });
    let mut schema = schema;
    schema["$schema"] = json!(NEWER[1]);
    let section = Section::standalone(&schema).unwrap();
    assert!(section.accepts(&json!(["a", "b", 1])));
    assert!(!section.accepts(&json!(["a", 1])) && !section.accepts(&json!(["a", "b", "c"])));
}

// A tree whose extension closes every node (2019-09 and 2020-12 spell it differently).
#[test]
fn sch_003_dynamic_references_lead_to_the_outermost_anchor() {
    let tree = |anchor: (&str, Value), reference: (&str, &str)| {
        json!({
            "$id": "https://example.com/strict", "$ref": "tree", anchor.0: anchor.1, "unevaluatedProperties": false,
            "$defs": { "tree": {
                "$id": "tree", anchor.0: anchor.1, "type": "object",
                "properties": { "value": true, "children": { "type": "array", "items": { reference.0: reference.1 } } },
            } },
        })
    };
    for (dialect, schema) in [
        (NEWER[0], tree(("$recursiveAnchor", json!(true)), ("$recursiveRef", "#"))),
        (NEWER[1], tree(("$dynamicAnchor", json!("node")), ("$dynamicRef", "#node"))),
    ] {
        judges(
            dialect,
            &schema,
            &[json!({ "children": [{ "value": 1, "children": [] }] })],
            &[json!({ "children": [{ "valeu": 1 }] }), json!({ "children": [{ "children": [{ "x": 1 }] }] })],
        );
    }
}

#[test]
fn sch_003_draft_07_stays_what_it_was() {
    for dialect in ["http://json-schema.org/draft-07/schema#", "https://example.com/own", ""] {
        for schema in [
            json!({ "prefixItems": [{ "type": "string" }], "dependentRequired": { "a": ["b"] } }),
            json!({ "unevaluatedProperties": false, "contains": true, "minContains": 2 }),
            json!({ "$ref": "#/$defs/any", "type": "null", "$defs": { "any": {} } }),
        ] {
            judges(dialect, &schema, &[json!([1]), json!({ "a": 1 })], &[]);
        }
    }
}

// Each section has its own dialect, and they share definitions.
#[test]
fn sch_003_a_section_may_declare_another_dialect_than_its_file() {
    let pair = json!({ "prefixItems": [{ "type": "string" }], "$ref": "#/$defs/list", "maxItems": 2 });
    let mut modern = pair.clone();
    modern["$schema"] = json!(NEWER[1]);
    let schema = json!({ "input": pair, "data": modern, "$defs": { "list": { "type": "array", "prefixItems": [{ "type": "null" }] } } });
    let contract = contract(schema.clone()).unwrap();
    assert!(contract.input().accepts(&json!([1, 2, 3])), "Draft-07 reads neither keyword");
    assert!(!contract.input().accepts(&json!(1)));
    assert!(contract.data().accepts(&json!(["a", 2])), "the definition is in the dialect of the file");
    assert!(!contract.data().accepts(&json!([1])) && !contract.data().accepts(&json!(["a", 2, 3])));
    assert_eq!(*contract.source(), schema);
}

fn problems(schema: Value) -> Vec<String> {
    let problems = contract(schema).map(|_| ()).unwrap_err();
    let told =
        |each: SchemaProblem| format!("{} {} ({})", each.pointer, each.message, each.hint.unwrap_or("-"));
    problems.into_iter().map(told).collect()
}

#[test]
fn sch_003_a_schema_that_is_invalid_in_its_dialect_does_not_load() {
    let list = json!({ "items": [{ "type": "string" }] });
    let expected = "/data/items not a 2020-12 schema: expected boolean or object (Use `prefixItems` for a list of schemas by position)";
    assert_eq!(problems(json!({ "$schema": NEWER[1], "input": {}, "data": list })), [expected]);
    let mut own = list.clone();
    own["$schema"] = json!(NEWER[1]);
    assert_eq!(problems(json!({ "input": {}, "data": own })), [expected]);
    let in_definition = json!({ "$schema": NEWER[1], "input": {}, "data": {}, "$defs": { "l": list } });
    assert!(problems(in_definition)[0].starts_with("/$defs/l/items not a 2020-12 schema"));
    assert!(contract(json!({ "$schema": NEWER[0], "input": {}, "data": list })).is_ok());
    let found = problems(json!({ "$schema": NEWER[0], "input": {}, "data": { "minContains": -1 } }));
    assert!(found[0].starts_with("/data/minContains not a 2019-09 schema"), "{found:?}");
}

// A problem is shown where the author wrote the keyword, not where the core form has it.
#[test]
fn sch_003_problems_are_shown_at_the_keyword_that_the_author_wrote() {
    let endless =
        json!({ "dependentSchemas": { "a": { "prefixItems": [{ "pattern": "x".repeat(3_000) }] } } });
    let found = problems(json!({ "$schema": NEWER[1], "input": {}, "data": endless }));
    assert!(found[0].starts_with("/data/dependentSchemas/a/prefixItems/0 the pattern has more"), "{found:?}");
}

#[test]
fn sch_003_no_schema_of_a_newer_dialect_can_stall() {
    // Every level of a value would be checked twice, to see what is evaluated.
    let open = json!({ "anyOf": [{ "properties": { "a": { "$ref": "#/data" } } }, {}], "unevaluatedProperties": false });
    let found = problems(json!({ "$schema": NEWER[1], "input": {}, "data": open }));
    assert!(found[0].contains("the work would multiply"), "{found:?}");
    // Resources that lead to each other through dynamic references, with many outermost anchors.
    let names: Vec<String> = (0..40).map(|number| format!("n{number}")).collect();
    let resources = names.iter().map(|name| {
        let onward: Vec<Value> = names.iter().map(|other| json!({ "items": { "$ref": other } })).collect();
        (name.clone(), json!({ "$id": name, "$dynamicAnchor": "node", "items": { "$dynamicRef": "#node" }, "allOf": onward }))
    });
    let resources: Map<String, Value> = resources.collect();
    let schema = json!({ "$schema": NEWER[1], "$id": "https://example.com/", "input": {}, "data": { "$ref": "n0" }, "$defs": resources });
    assert!(contract(schema).is_err());
    // A deep schema is checked against the schema of schemas on the stack of a server thread.
    let mut deep = json!({});
    for _ in 0..120 {
        deep = json!({ "not": deep });
    }
    let server_thread = std::thread::Builder::new().stack_size(2 << 20);
    let refused = server_thread
        .spawn(move || contract(json!({ "$schema": NEWER[1], "input": {}, "data": deep })).is_err())
        .unwrap();
    assert!(refused.join().unwrap());
}

#[test]
fn sch_003_keywords_that_a_dialect_lacks_are_found() {
    let all = json!({
        "prefixItems": [{ "additionalItems": false }], "minContains": 1, "$recursiveRef": "#", "$anchor": "a",
        "x-own": { "minContains": 1 }, "$defs": { "prefixItems": { "const": { "prefixItems": 1 } } }, "dependencies": {},
        "properties": { "prefixItems": { "dependentRequired": {} } },
    });
    let found = |dialect: &str| -> Vec<String> {
        let schema = json!({ "$schema": dialect, "data": all });
        foreign_keywords(&files(schema)).into_iter().map(|problem| problem.pointer).collect()
    };
    let properties = "/data/properties/prefixItems/dependentRequired";
    assert_eq!(
        found("https://example.com/own"),
        ["/data/prefixItems", "/data/minContains", "/data/$recursiveRef", properties]
    );
    assert_eq!(found(NEWER[0]), ["/data/prefixItems"]);
    assert_eq!(found(NEWER[1]), ["/data/prefixItems/0/additionalItems", "/data/$recursiveRef"]);
}

// SCH-003, D-25
#[test]
fn sch_003_the_suite_of_three_dialects_is_judged_right() {
    let Some(groups) = json_schema_suite() else { return };
    let (mut right, mut wrong) = (std::collections::BTreeMap::<&str, usize>::new(), Vec::new());
    for group in &groups {
        let dialect = group.name.split_once('/').map_or("", |(dialect, _)| dialect);
        let section = match Section::standalone(&group.schema) {
            Ok(section) => section,
            Err(problems) => {
                wrong.push(format!("{}: {problems:?}", group.name));
                continue;
            }
        };
        for case in &group.cases {
            let is_right = section.accepts(&case.value) == case.is_valid
                && section.violations(&case.value).is_empty() == case.is_valid;
            if is_right {
                *right.entry(dialect).or_default() += 1;
            } else {
                wrong.push(format!("{}: {}", group.name, case.name));
            }
        }
    }
    println!("{} schemas, {right:?} values judged right", groups.len());
    assert!(wrong.is_empty(), "{} wrong of {} schemas\n{}", wrong.len(), groups.len(), wrong.join("\n"));
}
