//! Decisions with a toy model, and the calibration constants with the real model.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use cognitive_library::Library;
use cognitive_schema::SchemaTarget;
use cognitive_testkit::weights;
use serde_json::{Value, json};

use super::calibration::{Curve, Curves};
use super::judge::piece;
use super::*;
use crate::beginnings::Beginnings;
use crate::chat::ChatForm;
use crate::model::LanguageModel;
use crate::toy::Toy;
use cognitive_llama::{Ensemble, Model};

const SMALL: u64 = 135_000_000;
const MIDDLE: u64 = 500_000_000;
const LARGE: u64 = 1_500_000_000;

fn contract(data: Value) -> Value {
    json!({ "anyOf": [
        { "properties": { "ok": { "const": true }, "data": { "type": "object", "properties": data } } },
        { "properties": { "ok": { "const": false } } },
    ] })
}

/// The decisions of a model with this many parameters.
fn made_by(parameters: u64, schema: &Value, input: &Value, examples: &[Example]) -> Decisions {
    let toy = Arc::new(Toy::wordy());
    let marks = ChatForm::from_template(None, &*toy).unwrap().marks(&*toy).unwrap();
    let request = DecisionRequest {
        schema,
        input: &input.to_string(),
        examples,
        marks: &marks,
        vocabulary: &*toy,
        profile: JudgeProfile::for_parameters(parameters),
        trained: None,
    };
    let (texts, weights): (_, Arc<dyn LanguageModel>) = (Beginnings::default(), Arc::<Toy>::clone(&toy));
    Decisions::make(&request, |fixed| texts.text(fixed, &weights), &|| false).unwrap().0
}

fn made(schema: &Value, input: &Value) -> Decisions {
    made_by(SMALL, schema, input, &[])
}

fn by() -> Value {
    json!([{ "ask": "What?", "say": "It is" }, { "say": "It is" }, { "given": "About {}:" }])
}

#[test]
fn the_order_of_a_list_plays_no_part_in_a_decision() {
    let schema = contract(json!({ "label": {
        "type": "string", "x-copy-from": "labels",
        "x-decide": { "about": "text", "ask": "Which of {options}?", "by": by() },
    } }));
    let labels = ["alpha", "beta", "gamma", "delta"];
    for size in [SMALL, MIDDLE, LARGE] {
        let with =
            |labels: &[&str]| made_by(size, &schema, &json!({ "text": "some words", "labels": labels }), &[]);
        let first = with(&labels);
        let value = first.at_path("label").unwrap().value.clone().unwrap();
        assert!(labels.contains(&value.as_str()), "{value}");
        for turn in 1..labels.len() {
            let mut turned = labels;
            turned.rotate_left(turn);
            assert_eq!(with(&turned), first, "{turned:?}");
            turned.reverse();
            assert_eq!(with(&turned), first, "{turned:?}");
        }
    }
}

#[test]
fn an_order_has_every_entry_once_and_levels_that_never_rise() {
    let ranked = json!({ "type": "array", "items": { "type": "object", "properties": {
        "task": { "type": "string", "x-copy-from": "tasks", "x-decide": {
            "about": "tasks", "with": ["goal"], "order": "level", "ask": "High or low?", "told": "Be quick.",
        } },
        "level": { "enum": ["high", "middle", "low"] },
    } } });
    let schema = contract(json!({ "ranked": ranked }));
    let tasks = ["wash", "cook", "sleep", "read", "run"];
    let made = made_by(LARGE, &schema, &json!({ "tasks": tasks, "goal": "rest" }), &[]);
    let at = |index: usize, name: &str| {
        made.at_path(&format!("ranked.{index}.{name}")).map(|decision| decision.value.clone().unwrap())
    };
    let mut found: Vec<String> = (0..tasks.len()).map(|index| at(index, "task").unwrap()).collect();
    let levels: Vec<String> = (0..tasks.len()).map(|index| at(index, "level").unwrap()).collect();
    let rank = |level: &String| ["high", "middle", "low"].iter().position(|known| known == level).unwrap();
    assert!(levels.is_sorted_by_key(rank), "{levels:?}");
    found.sort();
    assert_eq!(found, ["cook", "read", "run", "sleep", "wash"]);
    assert!(at(tasks.len(), "task").is_none());
    let path = |index: &'static str| ["data", "ranked", index].into_iter();
    assert!(
        made.has_item_decision(path("4"))
            && !made.has_item_decision(path("5"))
            && !made.has_item_decision(["data", "x"].into_iter())
    );
    assert!(made_by(SMALL, &schema, &json!({ "tasks": tasks }), &[]).is_empty(), "it is not asked");
}

#[test]
fn examples_show_a_model_how_its_questions_are_answered() {
    let decide = json!({ "about": "text", "ask": "Which person?", "told": "Look." });
    let mood = json!({ "about": "text", "ask": "One of {options}?" });
    let schema = contract(json!({
        "mood": { "enum": ["good", "bad"], "x-decide": mood },
        "who": { "type": "string", "x-copy-from": "text", "x-decide": decide },
    }));
    let example = |answer: Value| Example {
        input: json!({ "text": "Ada left." }).to_string(),
        answer: answer.to_string(),
    };
    let examples = [
        example(json!({ "ok": true, "data": { "mood": "bad", "who": "Ada" } })),
        example(json!({ "ok": true, "data": { "mood": "good" } })),
        example(json!({ "ok": false, "error": {} })),
    ];
    let toy = Toy::wordy();
    let marks = ChatForm::from_template(None, &toy).unwrap().marks(&toy).unwrap();
    let request = DecisionRequest {
        schema: &schema,
        input: "{}",
        examples: &examples,
        marks: &marks,
        vocabulary: &toy,
        profile: JudgeProfile::for_parameters(LARGE),
        trained: None,
    };
    let fixed = QuestionPrefix::new(&request).common_tokens();
    let text: Vec<u8> = fixed.iter().flat_map(|token| toy.bytes(*token).to_vec()).collect();
    let turn = |role: &str, text: &str| format!("<|im_start|>{role}\n{text}<|im_end|>\n");
    let asked = |ask: &str, answer: &str| {
        turn("user", &format!("Text: Ada left.\n\n{ask}")) + &turn("assistant", answer)
    };
    let expected = [
        turn("system", "Look."),
        asked("One of bad, good?", "bad"),
        asked("Which person?", "Ada"),
        asked("One of bad, good?", "good"),
        asked("Which person?", "none"),
    ];
    assert_eq!(String::from_utf8(text).unwrap(), expected.concat());
}

#[test]
fn a_decision_that_was_not_measured_is_not_calibrated() {
    let schema =
        contract(json!({ "mood": { "enum": ["good", "bad"], "x-decide": { "about": "text", "by": by() } } }));
    let input = json!({ "text": "some words" });
    let of = |parameters| made_by(parameters, &schema, &input, &[]).probability().unwrap().1;
    // The curves of the first two models were fitted to other decisions.
    for parameters in [134_479_872, 1_543_569_408, 134_479_873, 0] {
        assert!(!of(parameters), "{parameters}");
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
        made(&schema, &input).made.iter().map(|decision| decision.path.join(".")).collect::<Vec<_>>()
    };
    assert_eq!(decided(json!({ "text": "Ada left.", "want": ["when"] })), ["mood", "found.when"]);
    assert_eq!(decided(json!({ "query": "Ada left.", "want": [] })), ["mood"]);
    assert!(decided(json!({ "text": " " })).is_empty() && decided(json!({ "other": "x" })).is_empty());
    assert!(Decisions::are_requested(&schema) && !Decisions::are_requested(&contract(json!({ "a": {} }))));
}

#[test]
fn a_piece_that_can_be_one_thing_only_belongs_to_the_likeliest() {
    let curve = JudgeProfile::for_parameters(134_479_872).curves.piece;
    let claim = |alone: bool, name: &str, weight| {
        let decision = piece(vec![name.to_owned()], Some("Ada".to_owned()), weight, curve);
        (alone.then_some(0.9), decision)
    };
    let mut both = [claim(true, "a", -1.0), claim(true, "b", -2.0)];
    assign_pieces_once(&mut both);
    assert_eq!((both[0].1.value.as_deref(), both[1].1.value.as_deref()), (Some("Ada"), None));
    assert!(both[1].1.probability < 1.0, "that there is nothing of the kind is no certainty either");
    let mut both = [claim(true, "a", -1.0), claim(false, "b", -2.0)];
    assign_pieces_once(&mut both);
    assert!(both.iter().all(|(_, decision)| decision.value.is_some()));
}

#[test]
fn a_piece_that_is_not_likely_is_no_piece_and_that_is_sure() {
    let curve = JudgeProfile::for_parameters(134_479_872).curves.piece;
    let nothing = piece(vec!["a".to_owned()], Some("weather".to_owned()), pieces::MIN_SCORE, curve);
    assert_eq!(nothing.value, None);
    assert!(nothing.probability > 0.9, "{nothing:?}");
    let sure = piece(vec!["a".to_owned()], Some("Ada".to_owned()), -1.0, curve);
    assert!(sure.value.is_some() && sure.probability > 0.9, "{sure:?}");
}

#[test]
fn the_curves_count_for_the_decisions_that_they_were_fitted_to_and_no_others() {
    let inputs = [
        ("text-classifier", json!({ "text": "Good.", "labels": ["a", "b"] })),
        (
            "entity-extractor",
            json!({ "text": "Ada left.", "want": ["person", "organisation", "place", "price", "date"] }),
        ),
        ("task-prioritizer", json!({ "tasks": ["wash", "cook"], "goal": "rest" })),
    ];
    let mut known = 0;
    for (name, input) in inputs {
        let module = Library::default().load(name).unwrap();
        let lowered = module.provider_schema(SchemaTarget::Grammar);
        for question in question::all(&lowered.schema, &input) {
            let fingerprint = question.fingerprint();
            assert!(calibration::is_fitted_to(fingerprint), "{name} {:?}: {fingerprint:#x}", question.path);
            known += 1;
        }
    }
    assert_eq!(known, 8);
    // The same question about other values is another decision.
    let wish = json!({ "about": "text", "by": by() });
    let of = |values: [&str; 2]| {
        let schema = contract(json!({ "mood": { "enum": values, "x-decide": wish } }));
        let input = json!({ "text": "some words" });
        question::all(&schema, &input)[0].fingerprint()
    };
    assert_ne!(of(["good", "bad"]), of(["good", "evil"]));
    assert!(!calibration::is_fitted_to(of(["good", "bad"])));
}

/// The curve for a decision of a bundled module.
fn curve_of(path: &[String], input: &Value, curves: &Curves, is_asked: bool) -> (&'static str, Curve) {
    match (path[0].as_str(), is_asked) {
        ("ranked", _) => ("order", curves.order),
        ("found", true) => ("asked_piece", curves.asked_piece),
        ("found", false) => ("piece", curves.piece),
        (_, false) => ("weighed", curves.weighed),
        ("sentiment", true) => ("fixed", curves.fixed),
        _ => (
            "listed",
            if input["labels"].is_array() { curves.listed } else { Curve { slope: 0.0, offset: 0.0 } },
        ),
    }
}

/// Fits the curves to the tuning half of the sets and compares them. The other half is never read here. `COGN_TEST_FIT`
/// names the weights of another model.
#[test]
#[ignore = "takes minutes; run it when the ways of judging, the sets or the weights change"]
fn the_constants_are_those_that_the_tuning_half_gives() {
    let Some(path) = std::env::var_os("COGN_TEST_FIT").map(Into::into).or_else(weights) else { return };
    let model = Arc::new(Ensemble::new(Arc::new(Model::open(&path).unwrap()), 2));
    let profile = JudgeProfile::for_parameters(LanguageModel::parameters(&*model));
    let mut rows: BTreeMap<&str, Vec<(f64, bool)>> = BTreeMap::new();
    for name in ["text-classifier", "entity-extractor", "task-prioritizer"] {
        let module = Library::default().load(name).unwrap();
        let lowered = module.provider_schema(SchemaTarget::Grammar);
        let marks = ChatForm::from_template(model.chat_template(), model.vocabulary()).unwrap();
        let marks = marks.marks(model.vocabulary()).unwrap();
        let texts = Beginnings::default();
        let weights: Arc<dyn LanguageModel> = Arc::<Ensemble>::clone(&model);
        let example = |each: &cognitive_contract::module::WorkedExample| Example {
            input: each.input.to_string(),
            answer: each.answer.to_string(),
        };
        let examples: Vec<Example> = module.examples.iter().map(example).collect();
        for case in cases(name) {
            let request = DecisionRequest {
                schema: &lowered.schema,
                input: &case["input"].to_string(),
                examples: &examples,
                marks: &marks,
                vocabulary: model.vocabulary(),
                profile,
                trained: None,
            };
            let begin = |fixed: &[u32]| texts.text(fixed, &weights);
            let (made, _) = Decisions::make(&request, begin, &|| false).unwrap();
            for decision in &made.made {
                let expected = &case["expect"][decision.path.join(".")];
                let (kind, _) = curve_of(&decision.path, &case["input"], &profile.curves, profile.is_asked);
                // A piece counts here even if it was not likely enough, because that threshold is being fitted.
                let is_piece = kind.ends_with("piece");
                let found = decision.value.as_deref().or(decision.next.as_deref().filter(|_| is_piece));
                let listed = expected["$in"].as_array();
                let right = expected.as_str().is_some_and(|text| found == Some(text))
                    || listed.is_some_and(|list| list.iter().any(|item| item.as_str() == found));
                if !expected.is_null() && decision.weight.is_finite() {
                    println!(
                        "{name} {} {kind} {:.3} {right} {found:?} {expected}",
                        case["id"], decision.weight
                    );
                    rows.entry(kind).or_default().push((decision.weight, right));
                }
            }
        }
    }
    let mut is_off = false;
    for (kind, rows) in &rows {
        let found = Curve::fit(rows);
        println!("{kind}: slope {:.3}, offset {:.3} of {}", found.slope, found.offset, rows.len());
        let curves = profile.curves;
        let all = [
            ("fixed", curves.fixed),
            ("listed", curves.listed),
            ("weighed", curves.weighed),
            ("piece", curves.piece),
            ("asked_piece", curves.asked_piece),
            ("order", curves.order),
        ];
        let (_, constant) = all.iter().find(|(name, _)| name == kind).unwrap();
        is_off |= (found.slope - constant.slope).abs() > 0.15 * constant.slope;
        is_off |= (found.offset - constant.offset).abs() > 0.15 * constant.offset.abs() + 0.1;
    }
    assert!(!is_off, "a curve is not where the tuning half has it");
}

fn cases(name: &str) -> Vec<Value> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../eval/{name}.jsonl"));
    let cases = std::fs::read_to_string(file).unwrap();
    let cases = cases.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    cases.filter(|case| case["half"] == "tuning").collect()
}
