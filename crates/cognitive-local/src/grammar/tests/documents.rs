//! Single documents: cut at limits, with measured confidence, and reproducible.

use serde_json::Map;

use super::*;
use crate::confidence::{LABELS, TOKENS};
use crate::model::ModelState;
use cognitive_llama::FeedError;

fn guide() -> (Guide, Arc<dyn LanguageModel>) {
    let weights: Arc<dyn LanguageModel> = Arc::new(Toy::wordy());
    (Guide::new(Arc::clone(&weights), false).unwrap(), weights)
}

fn rich() -> Module {
    module(&json!({
        "type": "object", "required": ["rationale", "mood", "items", "when"], "additionalProperties": false,
        "properties": {
            "rationale": { "type": "string" },
            "mood": { "enum": ["good", "bad", "mixed feelings"] },
            "note": { "type": "string", "maxLength": 20 },
            "when": { "type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$" },
            "odd": { "type": "string", "pattern": "ab+c" },
            "items": { "type": "array", "minItems": 1, "maxItems": 5, "items": {
                "type": "object", "required": ["name", "share"], "properties": {
                    "name": { "type": "string", "minLength": 1 },
                    "share": { "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1 },
                },
            } },
        },
    }))
    .unwrap()
}

/// EMBEDDED: at every limit the document is completed to a whole envelope, close to the limit.
#[test]
fn an_envelope_is_whole_at_every_limit() {
    let (module, (guide, weights)) = (rich(), guide());
    let grammar = guide.grammar(&lowered(&module)).unwrap();
    let shortest = grammar.shortest.unwrap();
    for budget in 1..=400 {
        let (text, written) = document(&weights, &grammar, budget, 77).unwrap();
        assert_eq!(complaints(&module, &text), None, "{budget}");
        // A label that the model wants may be longer than the shortest one. The explanation has a few words, and a new
        // item is longer than none.
        let most = budget.max(shortest) + 80;
        assert!(written.tokens <= most, "{budget}: {} tokens, shortest {shortest}: {text}", written.tokens);
    }
}

/// EMBEDDED: ends that a greedy rule misses: a pattern without anchors, and a long required text.
#[test]
fn the_search_finds_ends_that_are_far_or_hidden() {
    let (guide, weights) = guide();
    for member in [
        json!({ "type": "string", "pattern": "ab+c" }),
        json!({ "type": "string", "pattern": "x[0-9]{12}y[a-f]{9}z$" }),
        json!({ "type": "string", "minLength": 900 }),
        json!({ "type": "string", "pattern": "^\"[日本]{4}\\\\$" }),
        json!({ "type": "number", "exclusiveMinimum": 0.000_001, "maximum": 0.000_002 }),
        json!({ "type": "array", "minItems": 30, "items": { "type": "integer", "minimum": 1000 } }),
    ] {
        let data = json!({ "type": "object", "required": ["m"], "properties": { "m": member.clone() } });
        let module = module(&data).unwrap();
        let grammar = guide.grammar(&lowered(&module)).unwrap();
        for (budget, seed) in [(1, 1), (30, 2), (45, 3), (70, 4)] {
            let (text, _) = document(&weights, &grammar, budget, seed).unwrap();
            assert_eq!(complaints(&module, &text), None, "{member} {budget}");
        }
    }
}

#[test]
fn confidence_is_measured_from_labels_or_else_from_tokens() {
    let (guide, weights) = guide();
    for (member, expected) in [
        (json!({ "enum": ["good", "bad"] }), LABELS),
        (json!({ "type": "boolean" }), LABELS),
        (json!({ "type": "string" }), TOKENS),
    ] {
        let data = json!({ "type": "object", "required": ["m"], "properties": { "m": member } });
        let module = module(&data).unwrap();
        let grammar = guide.grammar(&lowered(&module)).unwrap();
        let mut seen = Map::new();
        for seed in 0..40 {
            let (text, written) = document(&weights, &grammar, 700, seed).unwrap();
            let value: Value = serde_json::from_str(&text).unwrap();
            if value["ok"] == json!(true) {
                assert_eq!(written.confidence_from, Some(expected), "{text}");
                let confidence = value["meta"]["confidence"].as_f64().unwrap();
                assert!((0.01..=0.99).contains(&confidence), "{text}");
                seen.insert(value["meta"]["confidence"].to_string(), Value::Null);
            }
        }
        assert!(seen.len() > 2, "a measurement differs from run to run: {seen:?}");
    }
}

/// A contract that does not allow the measured number gets the model's own, which is not reported as measured.
#[test]
fn a_confidence_that_does_not_fit_is_left_to_the_model() {
    let (guide, weights) = guide();
    let mut schema = lowered(&rich());
    for branch in schema["anyOf"].as_array_mut().unwrap() {
        branch["properties"]["meta"]["properties"]["confidence"] = json!({ "enum": [1, 2] });
    }
    let grammar = guide.grammar(&schema).unwrap();
    let (text, written) = document(&weights, &grammar, 300, 5).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert!([json!(1), json!(2)].contains(&value["meta"]["confidence"]), "{text}");
    assert_eq!(written.confidence_from, None);
}

/// Checking one token gives the same answer as the mask, at every place of a document.
#[test]
fn a_token_is_allowed_alone_if_and_only_if_it_is_in_the_mask() {
    for weights in toys() {
        let guide = Guide::new(Arc::clone(&weights), false).unwrap();
        let grammar = guide.grammar(&lowered(&rich())).unwrap();
        let mut dice = TokenRandom::new(5);
        let count = u32::try_from(weights.vocabulary().len()).unwrap();
        for _ in 0..6 {
            let mut walk = grammar.walk();
            for _ in 0..150 {
                walk.forced_tokens().unwrap();
                if walk.is_over() {
                    break;
                }
                let mask = walk.mask().unwrap();
                for token in 0..count {
                    assert_eq!(walk.allows(token), mask.is_allowed(token), "{token}");
                }
                let allowed: Vec<u32> = mask.iter().collect();
                walk.take(allowed[usize::try_from(dice.next()).unwrap() % allowed.len()]).unwrap();
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let (module, (guide, weights)) = (rich(), guide());
    let grammar = guide.grammar(&lowered(&module)).unwrap();
    let write = |seed: u64| {
        let order = GenerateRequest {
            grammar: &grammar,
            vocabulary: weights.vocabulary(),
            prompt: &[1, 2, 3],
            input: "",
            decisions: &Decisions::default(),
            budget: 300,
            temperature: 0.9,
            seed,
        };
        let mut text = Vec::new();
        let mut session = Arc::clone(&weights).session();
        compose(&mut *session, &order, &|| false, &mut |bytes| text.extend_from_slice(bytes)).unwrap();
        text
    };
    assert_eq!(write(1), write(1));
    assert_ne!(write(1), write(2));
}

/// A document that is cut short still contains an explanation by the model.
#[test]
fn a_closed_document_explains_itself_in_the_words_of_the_model() {
    let (module, (guide, weights)) = (rich(), guide());
    let grammar = guide.grammar(&lowered(&module)).unwrap();
    let explain = |seed| {
        let (text, written) = document(&weights, &grammar, 1, seed).unwrap();
        assert!(written.closed);
        serde_json::from_str::<Value>(&text).unwrap()["meta"]["explain"].as_str().unwrap().to_owned()
    };
    assert!((0..10).any(|seed| explain(seed).len() > 10));
}

/// The context ends before the document does: the rest is written without the model.
#[test]
fn a_full_context_still_gives_a_whole_envelope() {
    let module = rich();
    let weights: Arc<dyn LanguageModel> = Arc::new(Toy { context: 40, ..Toy::wordy() });
    let guide = Guide::new(Arc::clone(&weights), false).unwrap();
    let grammar = guide.grammar(&lowered(&module)).unwrap();
    let (text, written) = document(&weights, &grammar, 10_000, 9).unwrap();
    assert_eq!(complaints(&module, &text), None);
    assert!(written.closed);
}

/// A reader that rates all tokens equally, except one word.
struct Fixed {
    word: (usize, f32),
    tokens: Vec<u32>,
    logits: Vec<f32>,
}

impl ModelState for Fixed {
    fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    fn truncate(&mut self, length: usize) {
        self.tokens.truncate(length);
    }

    fn feed(&mut self, tokens: &[u32], _: &dyn Fn() -> bool) -> Result<&[f32], FeedError> {
        self.tokens.extend_from_slice(tokens);
        self.logits[self.word.0] = self.word.1;
        Ok(&self.logits)
    }
}

/// A document about an input, from a reader that prefers a word, at a high temperature.
fn written(module: &Module, word: (&str, f32), input: &str, seed: u64) -> Value {
    let (guide, weights) = guide();
    let grammar = guide.grammar(&lowered(module)).unwrap();
    let vocabulary = weights.vocabulary();
    let token = vocabulary.encode(word.0.as_bytes())[0] as usize;
    let order = GenerateRequest {
        grammar: &grammar,
        vocabulary,
        prompt: &[1],
        input,
        decisions: &Decisions::default(),
        budget: 400,
        temperature: 3.0,
        seed,
    };
    let mut reading =
        Fixed { word: (token, word.1), tokens: Vec::new(), logits: vec![0.0; vocabulary.len()] };
    let mut text = Vec::new();
    compose(&mut reading, &order, &|| false, &mut |bytes| text.extend_from_slice(bytes)).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert_eq!(complaints(module, &text), None);
    serde_json::from_str(&text).unwrap()
}

/// EMBEDDED: a small model reports failure too often, so a failure counts only if it is nearly sure.
#[test]
fn a_failure_needs_a_model_that_is_nearly_sure() {
    let module = rich();
    // Next to `false`, the candidates are `f`, `t`, `tru` and `true`.
    assert_eq!(written(&module, ("false", 3.0), "", 1)["ok"], json!(true), "0.83");
    assert_eq!(written(&module, ("false", 6.0), "", 1)["ok"], json!(false), "0.99");
    assert_eq!(written(&module, ("true", 0.1), "", 1)["ok"], json!(true));
}

/// EMBEDDED: a label is a decision, so sampling does not affect it.
#[test]
fn labels_are_the_likeliest_at_any_temperature_and_seed() {
    let data =
        json!({ "type": "object", "required": ["m"], "properties": { "m": { "enum": ["low", "medium"] } } });
    let module = module(&data).unwrap();
    for seed in 0..20 {
        let value = written(&module, ("medium", 0.1), "", seed);
        assert_eq!(value["data"]["m"], json!("medium"), "{value}");
    }
}

/// EMBEDDED: values that are marked as copies are pieces of the input, under the names that the input lists.
#[test]
fn copies_are_pieces_of_the_input_whatever_the_model_prefers() {
    let value = json!({ "type": "string", "minLength": 1, "maxLength": 30, "x-copy-from": "text", "x-name-from": "want" });
    let members = json!({ "data": value, "rest": value, "x y": value });
    let found = json!({ "type": "object", "additionalProperties": false, "properties": members });
    let data = json!({ "type": "object", "required": ["found"], "properties": { "found": found } });
    let module = module(&data).unwrap();
    let input = json!({ "text": "the abc \"low\" 你 12", "want": ["x y", "data", "other"] }).to_string();
    for word in ["abc", "null", "12", "\"}", "the "] {
        let value = written(&module, (word, 9.0), &input, 3);
        let found = value["data"]["found"].as_object().unwrap();
        assert_eq!(found.keys().collect::<Vec<_>>(), ["data", "x y"], "{value}");
        for copy in found.values().map(|copy| copy.as_str().unwrap()) {
            assert!("the abc \"low\" 你 12".contains(copy) && !copy.is_empty(), "{word}: {value}");
        }
    }
}

// Of an escape such as `\u0000`, the last digit is forced too.
#[test]
fn listed_values_with_control_characters_are_ended() {
    for weights in toys() {
        let guide = Guide::new(Arc::clone(&weights), false).unwrap();
        for text in ["hello\u{0}there", "\u{1f}", "a\u{7f}b\u{b}"] {
            let data = json!({ "type": "object", "required": ["rationale", "x"], "additionalProperties": false,
                "properties": { "rationale": { "type": "string" }, "x": { "const": text } } });
            let module = module(&data).unwrap();
            let grammar = guide.grammar(&lowered(&module)).unwrap();
            for budget in [1, 60] {
                let (written, _) = document(&weights, &grammar, budget, 7).unwrap();
                assert_eq!(complaints(&module, &written), None, "{text:?}: {written}");
            }
        }
    }
}

// D-29: a failure without words breaks every contract.
#[test]
fn d_29_no_failure_is_written_without_words() {
    let module = module(&json!({ "type": "object", "required": ["rationale"] })).unwrap();
    let schema = lowered(&module);
    let failure =
        schema["anyOf"].as_array().unwrap().iter().find(|each| each["properties"]["error"].is_object());
    let error = &failure.unwrap()["properties"]["error"]["properties"];
    assert_eq!((&error["code"]["minLength"], &error["message"]["minLength"]), (&json!(1), &json!(1)));
}
