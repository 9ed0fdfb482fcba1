//! Single rules: the lowered forms of one member and their losses. `lowered.txt` has the cases: a schema, then for each
//! target its form, and behind it a line for each loss.

use super::*;

/// The value of a line of the table.
fn parsed(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

#[test]
fn d_05_members_are_lowered_as_the_table_says() {
    let (mut case, mut x, mut losses, mut forms) = ("", Value::Null, Vec::new().into_iter(), 0);
    for line in include_str!("lowered.txt").lines().filter(|line| !line.is_empty()) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if word == "-" {
            assert_eq!(losses.next().as_deref(), Some(rest), "{case}: {x}");
            continue;
        }
        assert_eq!(losses.next(), None, "{case}: {x}");
        if let Some(target) = SchemaTarget::ALL.into_iter().find(|target| format!("{target:?}") == word) {
            let (said, noted) = lowered_member(x.clone(), target);
            assert_eq!(said, parsed(rest), "{case}: {x} for {word}");
            (losses, forms) = (noted.into_iter(), forms + 1);
        } else if word == "?" {
            case = rest;
        } else {
            x = parsed(line);
        }
    }
    assert_eq!(losses.next(), None, "{case}: {x}");
    assert!(forms > 70, "{forms}");
}

#[test]
fn d_05_strict_enums_have_no_custom_form() {
    let pattern = json!({ "oneOf": [{ "type": "string", "enum": ["a", "b"] }, {
        "type": "object", "required": ["custom", "reason"], "properties": { "custom": {}, "reason": {} },
    }] });
    let schema = json!({ "input": {}, "data": { "type": "object", "properties": { "x": pattern }, "required": ["x"] } });
    let module = module(json!({ "enums": { "strategy": "strict" } }), schema);
    let data = data_of(&lower(&module, SchemaTarget::OpenAi));
    assert_eq!(data["properties"]["x"], json!({ "type": "string", "enum": ["a", "b"] }));
}

#[test]
fn d_05_references_to_other_files_are_open_and_noted() {
    let data = json!({ "type": "object", "properties": { "x": { "$ref": "types.json#/a" } } });
    let files = SchemaFiles::from([
        (SCHEMA_FILE.to_owned(), json!({ "input": {}, "data": data })),
        ("types.json".to_owned(), json!({ "a": { "type": "string" } })),
    ]);
    let lowered = lower(&compile(rules(&json!({})), &files).unwrap(), SchemaTarget::Ollama);
    let loss = lowered.losses.iter().find(|loss| loss.keyword == "$ref").unwrap();
    assert_eq!(loss.path, "/properties/data/properties/x");
    assert_eq!(data_of(&lowered)["properties"]["x"]["type"].as_array().unwrap().len(), 6);
}

#[test]
fn d_05_too_many_listed_values_are_left_to_validation() {
    let many: Vec<String> = (0..1_001).map(|index| format!("v{index}")).collect();
    let (said, losses) = lowered_member(json!({ "type": "string", "enum": many }), SchemaTarget::OpenAi);
    assert_eq!((said, losses), (json!({ "type": "string" }), vec!["enum dropped".to_owned()]));
    let long: Vec<String> = (0..300).map(|index| format!("{index:060}")).collect();
    assert_eq!(lowered_member(json!({ "enum": long }), SchemaTarget::OpenAi).1, ["enum dropped"]);
    assert!(lowered_member(json!({ "enum": long }), SchemaTarget::Anthropic).1.is_empty());
}

/// References that double at each step make hundreds of thousands of losses of a small schema.
#[test]
fn of_many_losses_the_first_are_listed_and_the_rest_are_counted() {
    let texts = |count: usize| -> Map<String, Value> {
        (0..count).map(|at| (format!("m{at}"), json!({ "type": "string", "maxLength": 5 }))).collect()
    };
    let lowered =
        lower(&with_member(json!({ "type": "object", "properties": texts(3_000) })), SchemaTarget::Anthropic);
    let graves = lowered.losses.iter().filter(|loss| loss.effect == Effect::Validity);
    assert_eq!(graves.count(), MAX_LOSSES + 1);
    let last = lowered.losses.iter().rfind(|loss| loss.keyword == "…").unwrap();
    assert!(last.what.starts_with("and ") && last.what.ends_with(" more"), "{last:?}");
    assert!(
        lower(&with_member(json!({ "type": "object", "properties": texts(9) })), SchemaTarget::Anthropic)
            .losses
            .iter()
            .all(|loss| loss.keyword != "…")
    );
}
