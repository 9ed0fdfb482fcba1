//! Decisions with a toy, and the constants with the real model.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use cognitive_library::Library;
use cognitive_schema::SchemaTarget;
use cognitive_testkit::weights;
use serde_json::{Value, json};

use super::calibration::{Curve, LEAD, PIECE};
use super::*;
use crate::model::LanguageModel;
use crate::toy::Toy;
use cognitive_llama::{Model, TokenSession};

fn contract(data: Value) -> Value {
    json!({ "anyOf": [
        { "properties": { "ok": { "const": true }, "data": { "type": "object", "properties": data } } },
        { "properties": { "ok": { "const": false } } },
    ] })
}

fn made(schema: &Value, input: &Value) -> Decisions {
    let toy = Arc::new(Toy::wordy());
    let mut session = Arc::clone(&toy).session(1);
    Decisions::make(schema, &input.to_string(), &mut *session, &*toy, &|| false).unwrap().0
}

fn by() -> Value {
    json!([{ "ask": "What?", "say": "It is" }, { "say": "It is" }, { "given": "About {}:" }])
}

#[test]
fn d1_the_order_of_a_list_plays_no_part_in_a_decision() {
    let schema = contract(json!({ "label": {
        "type": "string", "x-copy-from": "labels", "x-decide": { "about": "text", "by": by() },
    } }));
    let labels = ["alpha", "beta", "gamma", "delta"];
    let with = |labels: &[&str]| made(&schema, &json!({ "text": "some words", "labels": labels }));
    let first = with(&labels);
    let value = first.named("label").unwrap().value.clone().unwrap();
    assert!(labels.contains(&value.as_str()), "{value}");
    for turn in 1..labels.len() {
        let mut turned = labels;
        turned.rotate_left(turn);
        assert_eq!(with(&turned), first, "{turned:?}");
        turned.reverse();
        assert_eq!(with(&turned), first, "{turned:?}");
    }
}

#[test]
fn only_what_is_wanted_and_can_be_judged_is_decided() {
    let decide = json!({ "about": "text", "by": by() });
    let piece = json!({ "type": "string", "x-copy-from": "text", "x-name-from": "want", "x-decide": decide });
    let schema = contract(json!({
        "mood": { "enum": ["good", "bad"], "x-decide": decide },
        "found": { "type": "object", "properties": { "who": piece, "when": piece } },
        "free": { "type": "string" },
    }));
    let decided = |input: Value| {
        made(&schema, &input).0.iter().map(|decision| decision.path.join(".")).collect::<Vec<_>>()
    };
    assert_eq!(decided(json!({ "text": "Ada left.", "want": ["when"] })), ["mood", "found.when"]);
    assert_eq!(decided(json!({ "query": "Ada left.", "want": [] })), ["mood"]);
    assert!(decided(json!({ "text": " " })).is_empty() && decided(json!({ "other": "x" })).is_empty());
    assert!(Decisions::are_wanted(&schema) && !Decisions::are_wanted(&contract(json!({ "a": {} }))));
}

#[test]
fn a_piece_that_can_be_one_thing_only_belongs_to_the_likeliest() {
    let question = |alone| DecisionQuestion {
        path: vec!["a"],
        text: "t",
        ways: Vec::new(),
        kind: DecisionKind::Piece { most: 9, alone },
    };
    let claim = |name: &str, weight| piece(vec![name.to_owned()], Some("Ada".to_owned()), weight);
    let mut both = [claim("a", -1.0), claim("b", -2.0)];
    give_each_piece_to_one(&[question(true), question(true)], &mut both);
    assert_eq!((both[0].value.as_deref(), both[1].value.as_deref()), (Some("Ada"), None));
    let mut both = [claim("a", -1.0), claim("b", -2.0)];
    give_each_piece_to_one(&[question(true), question(false)], &mut both);
    assert!(both.iter().all(|decision| decision.value.is_some()));
}

#[test]
fn d4_a_piece_that_is_not_likely_is_no_piece_and_that_is_sure() {
    let nothing = piece(vec!["a".to_owned()], Some("weather".to_owned()), pieces::MIN_SCORE);
    assert_eq!(nothing.value, None);
    assert!(nothing.probability > 0.9, "{nothing:?}");
    let sure = piece(vec!["a".to_owned()], Some("Ada".to_owned()), -1.0);
    assert!(sure.value.is_some() && sure.probability > 0.9, "{sure:?}");
}

/// A curve through weights and verdicts, by the slope of its likelihood.
fn fitted(rows: &[(f64, bool)]) -> Curve {
    let count: f64 = rows.iter().map(|_| 1.0).sum();
    let mut curve = Curve { slope: 1.0, offset: 0.0 };
    for _ in 0..60_000 {
        let (mut slope, mut offset) = (0.0, 0.0);
        for (weight, right) in rows {
            let error = curve.at(*weight) - f64::from(u8::from(*right));
            slope += error * weight;
            offset += error;
        }
        curve.slope -= 0.02 * (slope / count + 0.001 * curve.slope);
        curve.offset -= 0.1 * offset / count;
    }
    curve
}

/// Fits the constants to the tuning half of the sets and compares. The other half is never looked at here.
#[test]
#[ignore = "takes minutes; run it when the ways of judging, the sets or the weights change"]
fn the_constants_are_those_that_the_tuning_half_gives() {
    let Some(path) = weights() else { return };
    let model = Arc::new(Model::open(&path).unwrap());
    let mut rows: BTreeMap<&str, Vec<(f64, bool)>> = BTreeMap::new();
    for name in ["text-classifier", "entity-extractor"] {
        let lowered = Library::default().load(name).unwrap().provider_schema(SchemaTarget::Grammar);
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../eval/{name}.jsonl"));
        let cases = std::fs::read_to_string(file).unwrap();
        let cases = cases.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        for case in cases.filter(|case| case["half"] == "tuning") {
            let mut session = TokenSession::new(Arc::clone(&model), 2);
            let input = case["input"].to_string();
            let (made, _) =
                Decisions::make(&lowered.schema, &input, &mut session, model.tokenizer(), &|| false).unwrap();
            for decision in &made.0 {
                let expected = &case["expect"][decision.path.join(".")];
                // A piece counts here also if it was not likely enough: where that begins is what is fitted.
                let is_piece = decision.path.len() > 1;
                let found = decision.value.as_deref().or(decision.next.as_deref().filter(|_| is_piece));
                let listed = expected["$in"].as_array();
                let right = expected.as_str().is_some_and(|text| found == Some(text))
                    || listed.is_some_and(|list| list.iter().any(|item| item.as_str() == found));
                let kind = if is_piece { "piece" } else { "lead" };
                if !expected.is_null() && decision.weight.is_finite() {
                    rows.entry(kind).or_default().push((decision.weight, right));
                }
            }
        }
    }
    for (kind, constant) in [("lead", LEAD), ("piece", PIECE)] {
        let found = fitted(&rows[kind]);
        println!("{kind}: slope {:.3}, offset {:.3} of {}", found.slope, found.offset, rows[kind].len());
        assert!((found.slope - constant.slope).abs() < 0.15 * constant.slope, "{found:?}");
        assert!((found.offset - constant.offset).abs() < 0.15 * constant.offset.abs() + 0.1, "{found:?}");
    }
}
