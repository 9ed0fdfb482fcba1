//! Rules that the embedded model's grammar replaces by stricter ones, and rules that it drops.

use super::*;
use crate::validate::accepts;

/// The grammar's form of `x`, and the keywords that it cannot keep.
fn narrowed(x: Value) -> (Value, Vec<String>) {
    let lowered = lower(&with_member(x), SchemaTarget::Grammar);
    check(&lowered);
    let gaps = lowered.gaps().map(|gap| format!("{} {}", gap.path, gap.keyword)).collect();
    (data_of(&lowered).pointer("/properties/x").cloned().unwrap_or(Value::Null), gaps)
}

#[test]
fn d_05_a_grammar_narrows_as_the_table_says() {
    let (mut case, mut x, mut said, mut gaps) = ("", Value::Null, Value::Null, Vec::new());
    let mut judged = 0;
    for line in include_str!("narrowed.txt").lines().skip_while(|line| !line.starts_with('?')) {
        let (sign, rest) = line.split_once(' ').unwrap_or_default();
        let value = || serde_json::from_str::<Value>(rest).unwrap_or_else(|error| panic!("{error}: {line}"));
        let of = format!("{case}: {x} became {said}: {line}");
        match sign {
            "" => {}
            "{" => {
                assert!(gaps.is_empty(), "{of}: {gaps:?}");
                x = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
                (said, gaps) = narrowed(x.clone());
            }
            "?" => case = rest,
            "+" => assert!(accepts(&x, &value()) && accepts(&said, &value()), "{of}"),
            "-" => assert!(!accepts(&said, &value()), "{of}"),
            "=" => assert_eq!(said, value(), "{of}"),
            "gap" => {
                assert_eq!(
                    std::mem::take(&mut gaps),
                    [format!("/properties/data/properties/x {rest}")],
                    "{of}"
                );
            }
            _ => panic!("no line of the table: {line}"),
        }
        judged += 1;
    }
    assert!(gaps.is_empty() && judged > 80, "{gaps:?} {judged}");
    let members = json!({ "a": { "const": 1 }, "b": { "const": 1 }, "c": { "const": 1 } });
    let (said, _) = narrowed(json!({ "type": "object", "properties": members, "maxProperties": 2 }));
    assert_eq!(said["properties"].as_object().unwrap().len(), 2);
}

#[test]
fn d_05_a_loss_says_what_it_means_for_an_answer() {
    let effects = |x: Value, target: SchemaTarget| -> Vec<Effect> {
        let lowered = lower(&with_member(x), target);
        let here = lowered.losses.iter().filter(|loss| loss.path == "/properties/data/properties/x");
        here.map(|loss| loss.effect).collect()
    };
    let x = json!({ "type": "string", "maxLength": 9, "format": "color" });
    assert_eq!(effects(x.clone(), SchemaTarget::Grammar), [Effect::Annotation]);
    assert_eq!(effects(x, SchemaTarget::OpenAi), [Effect::Annotation, Effect::Validity]);
    assert_eq!(effects(json!({ "type": "string" }), SchemaTarget::Grammar), [Effect::Tightened]);
    let x = json!({ "type": "string", "maxLength": 9, "pattern": "^(?!x)" });
    assert_eq!(effects(x, SchemaTarget::Grammar), [Effect::Validity]);
}
