//! Values and texts that would stall or flood a validator, and schemas that would mislead this one.
//! Every check here ends quickly, with a finding that names the problem.

use serde_json::{Map, Value, json};

use super::*;

fn compile(schema: Value) -> Result<Contract, Vec<SchemaProblem>> {
    Contract::compile(&SchemaFiles::from([(SCHEMA_FILE.to_owned(), schema)]), &Layout::default())
}

fn with_data(data: Value) -> Contract {
    compile(json!({ "input": {}, "data": data })).unwrap()
}

fn report(section: &Section, value: &Value) -> Vec<String> {
    let found = section.violations(value);
    found.iter().map(|each| format!("{} {}: {}", each.path, each.rule, each.message)).collect()
}

fn refusal(schema: Value) -> String {
    let problems = compile(schema).map(|_| ()).expect_err("should be refused");
    format!("{} {}", problems[0].pointer, problems[0].message)
}

#[test]
fn many_branches_and_a_large_value_are_explained_without_copies() {
    let branches: Vec<Value> = (0..500).map(|n| json!({ "required": [format!("x{n}")] })).collect();
    let contract = with_data(json!({ "anyOf": branches }));
    let members = (0..20_000).map(|n| (format!("member {n}"), json!(n)));
    let value = Value::Object(members.collect::<Map<_, _>>());
    assert_eq!(report(contract.data(), &value), ["/x0 required: required member `x0` is missing"]);
}

#[test]
fn unexpected_members_are_counted_and_not_all_listed() {
    let closed = |n: usize| json!({ "properties": { (format!("p{n}")): {} }, "additionalProperties": false });
    let contract = with_data(json!({ "anyOf": (0..64).map(closed).collect::<Vec<_>>() }));
    let value = Value::Object((0..30_000).map(|n| (format!("m{n}"), json!(0))).collect::<Map<_, _>>());
    let told = report(contract.data(), &value);
    assert!((1..=100).contains(&told.len()), "{}", told.len());
}

#[test]
fn a_deeply_nested_section_that_is_no_schema_is_named_to_the_point() {
    let junk = json!({ "type": "strng", "enum": vec![json!({ "a": [1, 2, 3] }); 500] });
    let deep = (0..110).fold(junk, |inner, _| json!({ "items": inner }));
    let found = refusal(json!({ "input": {}, "data": deep }));
    assert!(found.starts_with(&format!("/data{}", "/items".repeat(30))), "{found}");
    let shallow = (0..5).fold(json!({ "type": "strng" }), |inner, _| json!({ "items": inner }));
    let found = refusal(json!({ "input": {}, "data": shallow }));
    assert!(
        found.starts_with(&format!("/data{}/type not a Draft-07 schema: ", "/items".repeat(5))),
        "{found}"
    );
}

#[test]
fn a_costly_pattern_judges_short_texts_only() {
    let contract = with_data(json!({ "pattern": "(?:[01]*1[01]{3000}2|[01]*1[01]{2900}3)" }));
    assert_eq!(
        report(contract.data(), &json!("01".repeat(150_000))),
        [" maxLength: expected at most 338 characters"]
    );
    let contract = with_data(json!({ "pattern": "^[01]*1[01]{300}2$", "allOf": [{ "maxLength": 400 }] }));
    let matching = format!("01{}2", "0".repeat(300));
    assert!(contract.data().accepts(&json!(matching)));
    assert!(!contract.data().accepts(&json!(format!("{matching}2"))));
    assert!(contract.data().accepts(&json!(17)));
    let told = report(contract.data(), &json!("2"));
    assert_eq!(told, [" pattern: expected text that matches `^[01]*1[01]{300}2$`"]);
}

#[test]
fn a_pattern_that_is_tried_too_often_ends_in_a_finding() {
    let contract = with_data(json!({ "properties": { "a": { "items": { "pattern": "^(a|aa)+(?=b)$" } } } }));
    let told = report(contract.data(), &json!({ "b": 1, "a": ["a".repeat(400)] }));
    assert_eq!(told, ["/a/0 pattern: the pattern takes too long on this value"]);
    let told = report(contract.data(), &json!({ "a": ["a".repeat(501)] }));
    assert_eq!(told, ["/a/0 maxLength: expected at most 500 characters"]);
}

#[test]
fn texts_cost_more_where_patterns_do() {
    let contract = with_data(json!({ "items": { "pattern": "[01]*1[01]{30}2" } }));
    let told = report(contract.data(), &json!(["0".repeat(4_000_000)]));
    assert_eq!(told, [" schema: takes too long to check against the contract"]);
    let contract = with_data(json!({ "items": { "pattern": r"^\s*\S" } }));
    assert!(contract.data().accepts(&json!(["x".repeat(4_000_000)])));
}

#[test]
fn an_identifier_below_the_root_does_not_move_references() {
    let contract = compile(json!({
        "input": {},
        "data": {
            "$id": "http://example.com/other.json",
            "properties": { "a": { "$id": "nested/", "$schema": "http://json-schema.org/draft-04/schema#",
                                   "items": { "$ref": "#/$defs/text" } } },
            "$defs": { "text": { "type": "integer" } },
        },
        "$defs": { "text": { "type": "string" } },
    }))
    .unwrap();
    assert!(contract.data().accepts(&json!({ "a": ["x"] })));
    assert!(!contract.data().accepts(&json!({ "a": [1] })));
}

#[test]
fn members_and_data_may_be_called_like_labels() {
    let contract = with_data(json!({
        "properties": { "$id": { "type": "string" }, "$schema": { "const": { "$id": "x" } } },
        "required": ["$id"],
    }));
    assert!(contract.data().accepts(&json!({ "$id": "a", "$schema": { "$id": "x" } })));
    assert!(!contract.data().accepts(&json!({ "$id": 1 })));
    assert!(!contract.data().accepts(&json!({ "$id": "a", "$schema": {} })));
}

#[test]
fn only_schemas_are_read_as_schemas() {
    let hidden =
        json!({ "const": { "pattern": "a".repeat(5_000) }, "properties": { "pattern": { "enum": [] } } });
    for pointer in ["#/x/const", "#/x/properties"] {
        let found = refusal(json!({ "input": {}, "data": { "$ref": pointer }, "x": hidden }));
        assert!(found.starts_with("/data `$ref` points to something that is not a schema: "), "{found}");
    }
    let files =
        SchemaFiles::from([(SCHEMA_FILE.to_owned(), json!({ "input": {}, "data": {}, "x": hidden }))]);
    let layout = Layout { data: Some(SectionRef::parse("#/x/const")), ..Layout::default() };
    let problems = Contract::compile(&files, &layout).unwrap_err();
    assert_eq!(problems[0].message, "a section must be a schema");
}

#[test]
fn a_section_is_read_where_its_name_says() {
    let schema = json!({ "input": {}, "a%2Fb": { "type": "string" }, "a": { "b": { "type": "integer" } } });
    let layout = Layout { data: Some(SectionRef::parse("#/a%2Fb")), ..Layout::default() };
    let files = SchemaFiles::from([(SCHEMA_FILE.to_owned(), schema)]);
    let contract = Contract::compile(&files, &layout).unwrap();
    assert!(contract.data().accepts(&json!("x")));
}

#[test]
fn a_custom_branch_may_contain_itself_and_is_never_copied() {
    let kind = json!({ "oneOf": [{ "type": "string", "enum": ["a"] }, { "$ref": "#/$defs/own" }] });
    let own = json!({ "properties": { "custom": {}, "inner": kind }, "examples": vec![0; 10_000] });
    let data = json!({ "items": vec![kind; 500] });
    let contract = compile(json!({ "input": {}, "data": data, "$defs": { "own": own } })).unwrap();
    let custom = |inner: Value| json!([{ "custom": "c", "reason": "r", "inner": inner }]);
    assert!(contract.data().accepts(&custom(json!("a"))));
    assert!(contract.data().accepts(&custom(custom(json!("a"))[0].clone())));
    assert!(!contract.data().accepts(&custom(json!({ "custom": "c" }))));
    assert!(!contract.data().accepts(&json!([{ "custom": 1, "reason": "r" }])));
    assert!(!contract.data().accepts(&json!([{ "custom": "x".repeat(33), "reason": "r" }])));
}

#[test]
fn messages_quote_only_the_beginning_of_a_literal() {
    let long = "x".repeat(100_000);
    for data in [json!({ "const": long }), json!({ "enum": [long] }), json!({ "const": { "a": long } })] {
        let told = report(with_data(data).data(), &json!(1));
        assert!(told[0].contains('…') && told[0].len() < 200, "{}", told[0].len());
    }
    let closed = with_data(json!({ "properties": { "a": {} }, "additionalProperties": false }));
    let told = report(closed.data(), &json!({ (long): 1 }));
    assert!(told[0].ends_with("x…` is expected here"), "{told:?}");
}
