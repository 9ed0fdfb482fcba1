//! The corpus of replies: a model's possible replies, and the results for the caller. Cases are data in
//! `replies/*.json`; in their texts `$GOOD` is a valid answer, `$OTHER` another one and `$META` a valid `meta`.
//! Truncations, costs and properties are tested here and in `replies/sloppy.rs`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "in a test, a panic is the report"
)]

#[path = "replies/harness.rs"]
mod harness;
#[path = "replies/sloppy.rs"]
mod sloppy;

use std::collections::BTreeMap;

use cognitive_contract::ports::Finish;
use harness::{How, META, answer, good, module, other};
use serde::Deserialize;
use serde_json::{Map, Value, json};

const FILES: [(&str, &str); 4] = [
    ("forgiven", include_str!("replies/forgiven.json")),
    ("chosen", include_str!("replies/chosen.json")),
    ("refused", include_str!("replies/refused.json")),
    ("contract", include_str!("replies/contract.json")),
];

/// One reply and the verdict on it: `code` if it is refused, else the data (those of `$GOOD` unless given).
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    id: String,
    text: String,
    /// The requirement, if it is not D-01.
    #[serde(rename = "about")]
    _about: Option<String>,
    /// `exec`, `wraps`, or a plain module of tier decision.
    #[serde(default)]
    module: String,
    #[serde(default)]
    strict: bool,
    #[serde(default)]
    finish: String,
    code: Option<String>,
    /// `error.details.reason`.
    reason: Option<String>,
    /// The places of all violations.
    paths: Option<Vec<String>>,
    data: Option<Value>,
    #[serde(default)]
    any_data: bool,
    /// The liberties, in any order.
    rules: Option<Vec<String>>,
    /// The code of a failure that the model itself reports.
    failure: Option<String>,
}

fn cases() -> impl Iterator<Item = (&'static str, Case)> {
    FILES.into_iter().flat_map(|(file, text)| {
        let cases: Vec<Case> = serde_json::from_str(text).unwrap_or_else(|error| panic!("{file}: {error}"));
        cases.into_iter().map(move |case| (file, case))
    })
}

#[test]
fn d_01_pipe_003_004_005_s_09_s_11_every_case_gets_its_verdict() {
    let modules: BTreeMap<_, _> = ["", "exec", "wraps"].map(|name| (name, module(name))).into();
    let mut wrong = Vec::new();
    for (file, case) in cases() {
        let text = case.text.replace("$GOOD", &good()).replace("$OTHER", &other()).replace("$META", META);
        let finish = match case.finish.as_str() {
            "cut_off" => Finish::CutOff,
            "refused" => Finish::Refused("I must not".to_owned()),
            _ => Finish::Complete,
        };
        let how = How { strict: case.strict, receipt: true };
        let value = answer(&modules[case.module.as_str()], &text, finish, how);
        if let Err(message) = verdict(&case, &text, &value) {
            wrong.push(format!("{file} {}: {message}\n  reply: {text}\n  answer: {value}", case.id));
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}

fn verdict(case: &Case, text: &str, value: &Value) -> Result<(), String> {
    match &case.code {
        Some(code) => refused(case, code, text, value),
        None => accepted(case, text, value),
    }
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what} is {found:?}, expected {expected:?}")) }
}

fn accepted(case: &Case, text: &str, value: &Value) -> Result<(), String> {
    if let Some(code) = &case.failure {
        expect("error.code", value["error"]["code"].as_str(), Some(code))?;
    } else if !case.any_data {
        let plain = json!({ "rationale": "r", "answer": "42" });
        expect("data", &value["data"], case.data.as_ref().unwrap_or(&plain))?;
    }
    let liberties = value["meta"]["provenance"]["liberties"].as_array().cloned().unwrap_or_default();
    let places: Vec<_> = liberties.iter().map(|each| place(&each["at"]).unwrap()).collect();
    if !places.is_sorted() || !places.iter().all(|at| text.is_char_boundary(*at)) {
        return Err(format!("liberties are at {places:?}"));
    }
    let mut found: Vec<_> = liberties.iter().map(|each| each["rule"].as_str().unwrap()).collect();
    let mut expected: Vec<_> = case.rules.iter().flatten().map(String::as_str).collect();
    found.sort_unstable();
    expected.sort_unstable();
    expect("liberties", found, expected)?;
    let warned = warnings(value).iter().filter(|warning| warning["code"] == "REPAIRED").count();
    if warned == 0 && !liberties.is_empty() { Err("nobody was told".to_owned()) } else { Ok(()) }
}

fn place(offset: &Value) -> Option<usize> {
    offset.as_u64().and_then(|at| usize::try_from(at).ok())
}

fn warnings(value: &Value) -> Vec<Value> {
    value["meta"]["warnings"].as_array().cloned().unwrap_or_default()
}

fn refused(case: &Case, code: &str, text: &str, value: &Value) -> Result<(), String> {
    let error = &value["error"];
    expect("ok", value["ok"].as_bool(), Some(false))?;
    expect("code", error["code"].as_str(), Some(code))?;
    expect(
        "partial_data",
        value["partial_data"].is_object(),
        !text.trim_matches(['\u{feff}', ' ', '\r', '\n', '\t']).is_empty(),
    )?;
    if matches!(code, "E1000" | "E2003") {
        expect("details.source", error["details"]["source"].as_str(), Some("model"))?;
    }
    if code == "E1000" {
        expect(
            "raw",
            value["partial_data"].get("raw").and_then(Value::as_str).is_some(),
            value.get("partial_data").is_some(),
        )?;
    }
    if let Some(reason) = &case.reason {
        expect("details.reason", error["details"]["reason"].as_str(), Some(reason.as_str()))?;
    }
    if let Some(at) = place(&error["details"]["offset"]) {
        expect("an offset within the text", text.is_char_boundary(at), true)?;
    }
    let violations = error["details"]["violations"].as_array().cloned().unwrap_or_default();
    let mut found: Vec<_> = violations.iter().map(|each| each["path"].as_str().unwrap()).collect();
    let mut expected: Vec<_> = case.paths.iter().flatten().map(String::as_str).collect();
    found.sort_unstable();
    found.dedup();
    expected.sort_unstable();
    expect("violations", found, expected)
}

#[test]
fn the_corpus_is_large_and_its_ids_are_unique() {
    let mut ids: Vec<_> = cases().map(|(_, case)| case.id).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
    assert!(count >= 300, "{count} cases");
}

/// Answers of which every truncation must be refused.
fn to_truncate() -> Vec<(&'static str, String)> {
    let rich = format!(
        r#"{{"ok": true, "meta": {META}, "data": {{"rationale": "a \"b\" é 😀 \u00e9", "answer": "42", "items": ["x", "y"], "n": [{{"m": -2.5e3}}, null]}}}}"#
    );
    let payload = r#"{"rationale": "r", "answer": "42", "inner": {"rationale": "r", "answer": "7"}}"#;
    vec![
        ("", rich.clone()),
        ("exec", rich.clone()),
        ("", format!("Sure, here it is:\n\n{rich}")),
        ("", format!("<think>it is {}</think>\n```json\n{rich}", other())),
        ("", rich.replace('"', "'").replace("true", "True").replace("\\'", "")),
        ("wraps", rich),
        ("wraps", payload.to_owned()),
    ]
}

#[test]
fn d_01_pipe_003_no_beginning_of_an_answer_is_completed() {
    for (name, text) in to_truncate() {
        let module = module(name);
        assert_eq!(answer(&module, &text, Finish::Complete, How::default())["ok"], true, "{text}");
        for (end, _) in text.char_indices() {
            let start = &text[..end];
            let value = answer(&module, start, Finish::Complete, How::default());
            assert_eq!(value["error"]["code"], "E1000", "{start}");
            let value = answer(&module, start, Finish::CutOff, How::default());
            assert_eq!(value["error"]["code"], "E2003", "{start}");
        }
    }
}

#[test]
fn d_01_no_answer_with_a_piece_missing_is_read_as_another() {
    let module = module("");
    let text = good();
    let original: Value = serde_json::from_str(&text).unwrap();
    for at in 0..text.len() {
        let without = format!("{}{}", &text[..at], &text[at + 1..]);
        let value = answer(&module, &without, Finish::Complete, How::default());
        let code = value["error"]["code"].as_str().unwrap_or("");
        // A missing byte of a string or of white space may go unnoticed; missing structure may not.
        let in_a_string = text[at..].starts_with(|c: char| c.is_alphanumeric());
        assert!(
            value["data"] == original["data"] || in_a_string || matches!(code, "E1000" | "E3001"),
            "{without}: {value}"
        );
    }
}

#[test]
fn err_014_partial_data_can_be_forbidden_and_is_cut() {
    let silent = module("silent");
    for text in ["no json", "[1]", "{\"ok\": true}"] {
        assert!(answer(&silent, text, Finish::Complete, How::default()).get("partial_data").is_none());
    }
    let long = "é".repeat(5_000);
    let value = answer(&module(""), &long, Finish::Complete, How::default());
    assert_eq!(value["partial_data"]["raw"].as_str().unwrap().chars().count(), 2_000);
}

#[test]
fn s_09_a_refusal_is_told_in_the_models_words() {
    let value = answer(&module(""), "", Finish::Refused("not that".to_owned()), How::default());
    assert_eq!(value["error"]["message"], "not that");
    let value = answer(&module(""), "", Finish::Refused(String::new()), How::default());
    assert_eq!(value["error"]["code"], "E2004");
}

/// Texts with a quadratic cost for a naive search, and clean ones.
fn hostile(bytes: usize) -> Vec<(&'static str, String)> {
    let fill = |unit: &str| unit.repeat(bytes / unit.len());
    let members: Map<String, Value> = (0..bytes / 20).map(|at| (format!("key-{at}"), json!(at))).collect();
    let mut clean: Value = serde_json::from_str(&good()).unwrap();
    clean["data"]["more"] = Value::Object(members);
    let clean = clean.to_string();
    vec![
        ("clean", clean.clone()),
        ("clean in prose", format!("Sure: {clean} Done.")),
        ("single quotes", clean.replace('"', "'")),
        ("cut off", clean[..clean.len() - 1].to_owned()),
        ("braces", fill("{")),
        ("brackets", fill("[")),
        ("brackets and braces", fill("[{")),
        ("lists", fill("[1,")),
        ("lists of strings", fill("[\"")),
        ("nested", fill("{\"a\":")),
        ("nested lists", fill("{\"a\":[1,{")),
        ("many objects", fill("{\"a\":1} ")),
        ("many envelopes", fill("{\"ok\":true,\"data\":{}} ")),
        ("many broken objects", fill("{\"a\":x} ")),
        ("never closed", fill("{\"a\":x ")),
        ("names", fill("{\"")),
        ("single quoted names", fill("{'")),
        ("curly names", fill("{“")),
        ("mixed names", fill("{\"{'{“{‘")),
        ("quotes", fill("\"")),
        ("backslashes", format!("{{\"a\": \"{}", fill("\\"))),
        ("comments", fill("{//")),
        ("block comments", fill("{/*")),
        ("hashes", fill("{#")),
        ("names and comments", fill("{a//")),
        ("names and block comments", fill("{a/*")),
        ("comments and a line", format!("{}\n}}", fill("{a//"))),
        ("values and comments", fill("{a:/*")),
        ("tags in comments", fill("{\"a\"://</think>")),
        ("tags in prose and comments", fill("x{\"a\"://</think>")),
        ("tags in block comments", fill("x{\"a\":/*</think>")),
        ("tags in strings", fill("x{\"a\":'</think>")),
        ("fences", fill("```\n")),
        ("fences with braces", fill("```\n{\n")),
        ("fences with broken objects", fill("```\n{\"a\": x\n```\n")),
        ("tildes", fill("~~~")),
        ("think", fill("<think>")),
        ("think in lines", fill("<think>\n")),
        ("think in prose", fill("x<think>")),
        ("think closed", fill("</think>")),
        ("think opened and closed", fill("<think>{</think>")),
        ("almost tags", fill("<thin")),
        ("white space", format!("{{{}", fill(" "))),
        ("byte order marks", fill("\u{feff}")),
        ("commas", format!("[{}", fill(","))),
        ("urls", fill("{https://a/{b}} ")),
        ("repeated names", format!("{{{}\"a\":1}}", fill("\"a\":1,"))),
    ]
}

/// No reply makes the parser run away; `benches/run.rs` measures that the cost is linear.
#[test]
fn every_hostile_text_ends_in_an_envelope() {
    for name in ["", "exec"] {
        let module = module(name);
        for (what, text) in hostile(400_000) {
            let envelope = answer(&module, &text, Finish::Complete, How::default());
            assert!(envelope.get("ok").is_some(), "{what}");
        }
    }
}
