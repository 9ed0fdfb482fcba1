//! The labelled sets below `eval/`: every case can run, and its expectations refer to existing members.

use std::collections::BTreeMap;
use std::path::Path;

use cognitive_contract::Module;
use cognitive_library::Library;
use cognitive_testing::eval::{LabelledCase, parse};
use serde_json::Value;

const SETS: [&str; 4] = ["entity-extractor", "summarizer", "task-prioritizer", "text-classifier"];

fn set(name: &str) -> Vec<LabelledCase> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../eval/{name}.jsonl"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    parse(&text).unwrap_or_else(|why| panic!("{name}: {why}"))
}

fn module(name: &str) -> Module {
    Library::default().load(name).unwrap()
}

/// Returns the schema at a path of the payload; numbers are list indices.
fn schema_of<'a>(data: &'a Value, place: &str) -> Option<&'a Value> {
    place.split('.').try_fold(data, |schema, word| match word.parse::<usize>() {
        Ok(_) => schema.get("items"),
        Err(_) => schema.get("properties")?.get(word),
    })
}

#[test]
fn every_set_has_enough_cases_that_its_module_takes() {
    for name in SETS {
        let (module, cases) = (module(name), set(name));
        // The published figures are those of the sets that the embedded model answers.
        let is_answered = module.manifest.runtime_requirements.required_capabilities.is_empty();
        let least = if is_answered { 100 } else { 40 };
        assert!(cases.len() >= least, "{name}: {}", cases.len());
        if is_answered {
            for half in ["tuning", "held-out"] {
                let count = cases.iter().filter(|case| case.half.as_deref() == Some(half)).count();
                assert!(count >= 50, "{name}: {count} of {half}");
            }
        }
        for case in &cases {
            let refused = module.contract.input().violations(&case.input);
            assert!(case.input.is_object() && refused.is_empty(), "{name} {}: {refused:?}", case.id);
            for place in case.expect.places() {
                let known = ["ok", "error.code"].contains(&place)
                    || schema_of(module.contract.data().schema(), place).is_some();
                assert!(known, "{name} {}: the module has no `{place}`", case.id);
            }
        }
    }
}

#[test]
fn no_text_is_there_twice_and_none_is_an_example() {
    for name in SETS {
        let examples =
            module(name).examples.into_iter().map(|example| ("an example".to_owned(), example.input));
        let cases = set(name).into_iter().map(|case| (case.id, case.input));
        let mut seen: BTreeMap<String, String> = BTreeMap::new();
        for (id, input) in examples.chain(cases) {
            let text = input.get("text").or_else(|| input.get("tasks")).unwrap().to_string();
            let earlier = seen.insert(text, id.clone());
            assert!(earlier.is_none(), "{name}: {id} repeats {}", earlier.unwrap());
        }
    }
}

/// If the right answers were mostly at one position of the list, the set would measure a bias of the model.
#[test]
fn the_right_label_stands_at_every_place_equally_often() {
    let mut places: BTreeMap<(Option<String>, usize), Vec<usize>> = BTreeMap::new();
    let mut sentiments: BTreeMap<String, usize> = BTreeMap::new();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../eval/text-classifier.jsonl");
    for line in std::fs::read_to_string(file).unwrap().lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let expect = case.get("expect").unwrap();
        if let Some(sentiment) = expect.get("sentiment") {
            *sentiments.entry(sentiment.as_str().unwrap().to_owned()).or_default() += 1;
        }
        let Some(label) = expect.get("label") else { continue };
        let labels = case.pointer("/input/labels").and_then(Value::as_array).unwrap();
        let at = labels.iter().position(|each| each == label).unwrap_or_else(|| panic!("{line}"));
        let half = case.get("half").and_then(Value::as_str).map(str::to_owned);
        let counts = places.entry((half, labels.len())).or_insert_with(|| vec![0; labels.len()]);
        *counts.get_mut(at).unwrap() += 1;
    }
    for (kind, counts) in &places {
        let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        assert!(most - least <= 1, "{kind:?}: {counts:?}");
    }
    let all: usize = sentiments.values().sum();
    assert!(sentiments.len() == 3 && sentiments.values().all(|count| count * 6 >= all), "{sentiments:?}");
}
