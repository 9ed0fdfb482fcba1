//! Every error example in `docs/errors.md` is compared with the program's output: each error is provoked as users would
//! meet it. The examples are read from the page, so none can be added without a case.
//!
//! In an example, `…` matches any text, and a member that is `"…"` matches any value.

mod media;
mod models;
mod modules;
mod served;

use serde_json::Value;

const PAGE: &str = include_str!("../../../../../docs/errors.md");

/// Provokes an error and returns the result; gets the example of the page.
type Case = fn(&Value) -> Value;

/// The case of each example, in the order of the page.
const CASES: &[(&str, Case)] = &[
    ("E1000", models::prose),
    ("E1000", modules::broken_input),
    ("E1001", modules::missing_field),
    // The runtime returns these three as codes of violations below E1001. As outer codes they are answers of models,
    // and so is E1006 for a value of the input.
    ("E1002", models::said_by_the_model),
    ("E1003", models::said_by_the_model),
    ("E1004", models::said_by_the_model),
    ("E1005", modules::long_input),
    ("E1006", models::said_by_the_model),
    ("E1010", media::unknown_type),
    ("E1011", media::too_many_bytes),
    ("E1012", media::nothing_at_the_address),
    ("E1013", media::data_url),
    ("E1014", media::other_type),
    ("E1015", media::too_wide),
    ("E1016", media::too_small),
    ("E1017", media::too_many_pixels),
    ("E1018", served::expired_upload),
    ("E1019", served::unknown_upload),
    ("E1020", media::wrong_checksum),
    ("E2001", models::doubt),
    ("E2002", models::silence),
    ("E2003", models::token_limit),
    ("E2004", models::said_by_the_model),
    ("E2004", models::refusal),
    // Only a model can detect these three.
    ("E2005", models::said_by_the_model),
    ("E2006", models::said_by_the_model),
    ("E2007", models::said_by_the_model),
    ("E2010", models::lost_connection),
    ("E2011", models::silent_stream),
    ("E3001", models::wrong_value),
    // A composition ends with the code of the first part that failed.
    ("E3002", models::said_by_the_model),
    ("E3003", models::empty_rationale),
    ("E3004", models::too_many_insights),
    ("E3005", models::custom_value),
    ("E3006", models::risky),
    ("E4000", modules::broken_module),
    ("E4001", models::outage),
    ("E4001", models::no_key),
    ("E4002", models::rate_limit),
    ("E4003", models::context_overflow),
    ("E4004", modules::circle),
    ("E4005", modules::too_deep),
    ("E4006", modules::misspelt),
    ("E4007", modules::not_for_users),
    ("E4010", modules::no_stream),
    ("E4011", media::no_video),
    ("E4013", served::unknown_session),
    ("E4014", served::wrong_checkpoint),
    ("E4100", modules::too_many_calls),
    ("E4101", modules::too_dear),
];

/// Examples that the program never prints, with the reasons.
const NOT_HERE: &[(&str, &str)] =
    &[("E4012", "`cogn serve` has no switch for it; the tests of cognitive-http compare this example")];

/// The members of an error that are compared.
const MEMBERS: [&str; 5] = ["code", "message", "recoverable", "suggestion", "details"];

/// Returns the error examples of the page: every JSON block with a text `code`.
fn examples() -> Vec<Value> {
    let blocks = PAGE.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let values =
        blocks.map(|text| serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}")));
    values.filter(|value: &Value| value["code"].is_string()).collect()
}

/// Returns whether a value matches an example.
fn shows(example: &Value, value: &Value) -> bool {
    match (example, value) {
        (Value::String(text), _) if text == "…" => true,
        (Value::String(text), Value::String(value)) => shows_text(text, value),
        (Value::Array(items), Value::Array(values)) => {
            items.len() == values.len() && items.iter().zip(values).all(|(item, value)| shows(item, value))
        }
        (Value::Object(members), Value::Object(values)) => {
            members.len() == values.len()
                && members
                    .iter()
                    .all(|(name, member)| values.get(name).is_some_and(|value| shows(member, value)))
        }
        _ => example == value,
    }
}

/// Matches texts: the pieces around each `…` must occur in order.
fn shows_text(example: &str, value: &str) -> bool {
    let Some((first, rest)) = example.split_once('…') else { return example == value };
    value.strip_prefix(first).is_some_and(|value| {
        let starts = value.char_indices().map(|(at, _)| at).chain([value.len()]);
        starts.into_iter().any(|at| shows_text(rest, &value[at..]))
    })
}

/// Returns the members of an error that are compared.
fn essence(error: &Value) -> Value {
    let members = error.as_object().unwrap_or_else(|| panic!("no error: {error}"));
    let kept = MEMBERS.iter().filter_map(|name| Some(((*name).to_owned(), members.get(*name)?.clone())));
    Value::Object(kept.collect())
}

#[test]
fn every_example_has_a_case_or_a_reason() {
    let examples = examples();
    let codes: Vec<&str> = examples.iter().map(|example| example["code"].as_str().unwrap()).collect();
    let cases = CASES.iter().map(|(code, _)| *code);
    let mut known: Vec<&str> = cases.chain(NOT_HERE.iter().map(|(code, _)| *code)).collect();
    known.sort_unstable();
    assert_eq!(codes, known);
}

#[test]
fn every_example_is_what_the_program_says() {
    let examples = examples();
    let mut different = Vec::new();
    let mut here =
        examples.iter().filter(|example| NOT_HERE.iter().all(|(code, _)| example["code"] != *code));
    for (_, case) in CASES {
        let example = here.next().unwrap();
        let came = essence(&case(example));
        if !shows(&essence(example), &came) {
            different.push(format!("page: {example}\ncame: {came}"));
        }
    }
    assert!(different.is_empty(), "{} examples differ\n{}", different.len(), different.join("\n"));
}

#[test]
fn an_ellipsis_stands_for_anything() {
    let example = serde_json::json!({ "a": "x … y", "b": "…" });
    assert!(shows(&example, &serde_json::json!({ "a": "x 12 y", "b": [1] })));
    assert!(!shows(&example, &serde_json::json!({ "a": "x 12 z", "b": 1 })));
    assert!(!shows(&example, &serde_json::json!({ "a": "x 12 y", "b": 1, "c": 1 })));
}
