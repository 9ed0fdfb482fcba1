//! A hundred thousand broken envelopes and two thousand broken modules: always a verdict, never a panic. `fuzz/` tests
//! the same properties in longer runs.

use std::collections::BTreeMap;

use cogn_cli::commands::check::judge;
use cognitive_contract::Envelope;
use cognitive_library::{Folder, Library, Mode, bundled_modules, load, validate};
use cognitive_testkit::SeededRandom;
use serde_json::{Value, json};

/// A small generator with a fixed seed: the same cases on every machine.
fn seeds() -> Vec<Value> {
    vec![
        json!({
            "ok": true,
            "meta": { "confidence": 0.86, "risk": "low", "explain": "e", "trace_id": "t", "model": "a/b", "latency_ms": 12,
                      "warnings": [{ "code": "E4010", "message": "m" }] },
            "data": { "rationale": "because", "summary": "s", "changes": [{ "risk": "low", "type": { "custom": "x", "reason": "r" } }],
                      "extensions": { "insights": [{ "text": "t", "suggested_mapping": "m" }] } },
            "usage": { "input_tokens": 1 },
        }),
        json!({
            "ok": false, "meta": { "confidence": 0, "risk": "high", "explain": "e" },
            "error": { "code": "E1001", "message": "m", "recoverable": true, "suggestion": "s", "details": { "violations": [] } },
            "partial_data": { "rationale": "half" }, "streaming": true, "session_id": "s",
        }),
        json!([
            { "ok": true, "streaming": true, "session_id": "sess_a", "meta": { "confidence": null, "risk": "low", "explain": "" } },
            { "chunk": { "seq": 1, "type": "delta", "field": "data.rationale", "delta": "r" } },
            { "progress": { "percent": 45 } },
            { "final": true, "meta": { "confidence": 0.9, "risk": "low", "explain": "e" }, "data": { "rationale": "r" } },
        ]),
    ]
}

fn odd_value(dice: &mut SeededRandom) -> Value {
    let odd = [
        json!(null),
        json!(true),
        json!(-1),
        json!(0.5),
        json!(1e300),
        json!(u64::MAX),
        json!(""),
        json!("low"),
        json!("\u{0}\u{10ffff}"),
        json!([]),
        json!({}),
        json!([[[[]]]]),
        json!({ "custom": "c", "reason": "r" }),
        json!("x".repeat(300)),
        json!({ "ok": true }),
        json!([{ "text": 1 }]),
    ];
    odd[dice.index(odd.len())].clone()
}

fn paths(value: &Value, at: &str, into: &mut Vec<String>) {
    into.push(at.to_owned());
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(name, each)| paths(each, &format!("{at}/{name}"), into));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, each)| paths(each, &format!("{at}/{i}"), into));
        }
        _ => {}
    }
}

/// Replaces, removes or adds a random value, one to three times.
fn mutate(value: &mut Value, dice: &mut SeededRandom) {
    for _ in 0..=dice.index(3) {
        let mut places = Vec::new();
        paths(value, "", &mut places);
        let place = &places[dice.index(places.len())];
        let target = value.pointer_mut(place).unwrap();
        match (dice.index(3), target) {
            (0, Value::Object(members)) if !members.is_empty() => {
                let name = members.keys().nth(dice.index(members.len())).unwrap().clone();
                members.shift_remove(&name);
            }
            (1, Value::Object(members)) => {
                let names =
                    ["ok", "meta", "data", "error", "partial_data", "rationale", "chunk", "final", "x", ""];
                members.insert(names[dice.index(names.len())].to_owned(), odd_value(dice));
            }
            (_, target) => *target = odd_value(dice),
        }
    }
}

#[test]
fn check_gives_a_verdict_on_a_hundred_thousand_mutations() {
    let modules = ["summarizer", "code-simplifier", "audio-transcriber"]
        .map(|name| Library::default().load(name).unwrap());
    let seeds = seeds();
    let mut dice = SeededRandom::new(0x5eed);
    let (mut valid, mut invalid, mut unreadable) = (0_u32, 0_u32, 0_u32);
    for round in 0..100_000 {
        let mut value = seeds[round % seeds.len()].clone();
        mutate(&mut value, &mut dice);
        let mut text = value.to_string();
        if dice.index(8) == 0 {
            // Truncates the text at a random character.
            let mut end = dice.index(text.len() + 1);
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text.truncate(end);
        }
        let module = modules.get(dice.index(4));
        match judge(&text, module) {
            Err(_) => unreadable += 1,
            Ok((_, violations)) if violations.is_empty() => {
                valid += 1;
                let is_envelope = value.get("ok").is_some() && value.get("chunk").is_none();
                if is_envelope
                    && module.is_none()
                    && let Ok(envelope) = Envelope::from_value(value)
                {
                    let again = serde_json::to_value(&envelope).unwrap();
                    assert!(Envelope::from_value(again).is_ok(), "what was read can be written: {text}");
                }
            }
            Ok((_, violations)) => {
                invalid += 1;
                assert!(violations.iter().all(|each| !each.message.is_empty()));
            }
        }
    }
    assert!(
        valid > 500 && invalid > 50_000 && unreadable > 5_000,
        "{valid} valid, {invalid} invalid, {unreadable} unreadable"
    );
}

/// Changes a few bytes of a file: cuts, duplicates, flips, or inserts a token that is special in YAML or JSON.
fn scramble(bytes: &mut Vec<u8>, dice: &mut SeededRandom) {
    let tokens: [&[u8]; 12] =
        [b": ", b"- ", b"\n", b"{", b"}", b"[", b"\"", b"&a ", b"*a", b"\t", b"\xff", b"$ref"];
    for _ in 0..=dice.index(4) {
        let at = dice.index(bytes.len() + 1);
        match dice.index(4) {
            0 => bytes.truncate(at),
            1 => {
                let token = tokens[dice.index(tokens.len())];
                bytes.splice(at..at, token.iter().copied());
            }
            2 if at < bytes.len() => bytes[at] ^= 1 << dice.index(8),
            _ => {
                let end = (at + dice.index(40)).min(bytes.len());
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
        }
    }
}

#[test]
fn validate_gives_a_verdict_on_two_thousand_mutated_folders() {
    let names: Vec<&str> = bundled_modules::names().collect();
    let mut dice = SeededRandom::new(0xf01d);
    let (mut valid, mut invalid) = (0_u32, 0_u32);
    for round in 0..2_000 {
        let Some(Folder::Memory { files, .. }) = bundled_modules::find(names[round % names.len()]) else {
            continue;
        };
        let mut files: BTreeMap<String, Vec<u8>> = (*files).clone();
        let targets = ["module.yaml", "schema.json", "prompt.md"];
        let target = targets[dice.index(targets.len())];
        match dice.index(12) {
            0 => {
                files.remove(target);
            }
            _ => scramble(files.get_mut(target).unwrap(), &mut dice),
        }
        let folder = Folder::memory("m", files);
        let report = validate(&folder, if dice.index(2) == 0 { Mode::Strict } else { Mode::Standard });
        for place in report.findings.iter().filter_map(|finding| report.sources.locate(finding)) {
            assert!(place.line > 0 && place.column > 0);
        }
        if report.valid() {
            valid += 1;
            assert!(load(&folder).is_ok(), "what is valid loads");
        } else {
            invalid += 1;
            assert!(report.findings.iter().all(|finding| !finding.message.is_empty()));
        }
    }
    assert!(valid > 300 && invalid > 700, "{valid} valid, {invalid} invalid");
}
