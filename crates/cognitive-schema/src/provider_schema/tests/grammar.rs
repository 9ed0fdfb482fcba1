//! The embedded model's grammar: every part is bounded.

use super::*;

#[test]
fn d_05_rationale_is_the_longest_text_and_confidence_has_two_decimals() {
    let lowered = lower(&with_member(json!({ "type": "boolean" })), SchemaTarget::Grammar);
    assert_eq!(data_of(&lowered)["properties"]["rationale"]["maxLength"], json!(400));
    let confidence = &lowered.schema["anyOf"][0]["properties"]["meta"]["properties"]["confidence"];
    assert_eq!(confidence, &json!({ "type": "number", "minimum": 0, "maximum": 1, "multipleOf": 0.01 }));
    assert_eq!(lowered.schema["x-guidance"], json!({ "whitespace_flexible": false }));
}

#[test]
fn d_05_anything_is_a_plain_value() {
    let (said, losses) = lowered_member(json!({}), SchemaTarget::Grammar);
    assert_eq!(said["anyOf"].as_array().unwrap().len(), 4);
    assert!(losses.iter().all(|loss| loss.contains("tightened")), "{losses:?}");
}

#[test]
fn d_05_an_outcome_that_cannot_be_is_not_offered() {
    let x = json!({ "type": "integer", "enum": ["none of these"] });
    let lowered = lower(&with_member(x), SchemaTarget::Grammar);
    let outcomes = lowered.schema["anyOf"].as_array().unwrap();
    assert_eq!(outcomes.len(), 1, "{}", lowered.schema);
    assert_eq!(outcomes[0]["properties"]["ok"]["const"], json!(false));
}

#[test]
fn d_05_a_narrow_range_excludes_its_bounds_by_a_step() {
    let x = json!({ "type": "number", "exclusiveMinimum": 20, "exclusiveMaximum": 20.064 });
    let (said, losses) = lowered_member(x, SchemaTarget::Grammar);
    let (least, most) = (said["minimum"].as_f64().unwrap(), said["maximum"].as_f64().unwrap());
    assert!(20.0 < least && least < most && most < 20.064, "{said}");
    assert!(losses.iter().all(|loss| loss.contains("tightened")) && losses.len() == 2, "{losses:?}");
}

/// No part of a grammar may be endless: strings, arrays and maps have a limit, numbers a range.
#[test]
fn d_05_every_part_of_a_grammar_is_bounded() {
    let x = json!({ "type": "object", "properties": {
        "a": { "type": "string", "format": "uri" }, "b": {}, "c": { "type": "array" },
        "d": { "type": "object", "additionalProperties": { "type": "string" } }, "e": { "type": ["number", "null"] },
    } });
    let lowered = lower(&with_member(x), SchemaTarget::Grammar);
    check(&lowered);
    every_schema(&lowered.schema, &mut |node| {
        let has = |keyword: &str| node.contains_key(keyword);
        if has("enum") || has("const") {
            return;
        }
        let types = match node.get("type") {
            Some(Value::Array(names)) => names.clone(),
            Some(name) => vec![name.clone()],
            None => vec![],
        };
        for name in types {
            let bounded = match name.as_str().unwrap() {
                "string" => has("maxLength"),
                "array" => has("maxItems"),
                "number" | "integer" => has("minimum") && has("maximum"),
                "object" => node["additionalProperties"] == json!(false) || has("maxProperties"),
                _ => true,
            };
            assert!(bounded, "{node:?}");
        }
    });
}
