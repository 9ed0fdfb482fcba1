//! The answer is what the model meant: `cogn run` on replies that retract themselves, close too early, contradict
//! themselves or break off, from a saved file and from a slow service.

use cognitive_testkit::{Act, FakeModel, Home, Then, piece};
use serde_json::{Value, json};

use crate::home;

/// A home with a module that rates a text; `exec` is the strict tier, `wraps` accepts bare payloads.
fn place(tier: &str, wraps: bool) -> Home {
    let run = home();
    let compat = json!({ "accepts_v21_payload": wraps });
    run.simple_module("./m", &json!({ "tier": tier, "response": { "mode": "both" }, "compat": compat }));
    let text = json!({ "type": "string" });
    let members = json!({ "rationale": text, "label": text, "n": { "type": "number" } });
    let data = json!({ "type": "object", "required": ["rationale"], "properties": members });
    run.write("m/schema.json", json!({ "input": { "type": "object" }, "data": data }).to_string());
    run
}

fn replay(run: &Home, reply: &str, more: &[&str]) -> Value {
    run.write("reply.txt", reply);
    let usual = ["run", "./m", "--input", "{}", "--provider", "replay", "--reply", "reply.txt"];
    run.cogn(&[&usual, more].concat()).json
}

fn envelope(data: &Value) -> String {
    json!({ "ok": true, "meta": { "confidence": 0.95, "risk": "low", "explain": "e" }, "data": data })
        .to_string()
}

fn label(label: &str) -> String {
    envelope(&json!({ "rationale": "r", "label": label }))
}

fn reason(value: &Value) -> (&str, &str) {
    let error = &value["error"];
    (error["code"].as_str().unwrap_or("none"), error["details"]["reason"].as_str().unwrap_or("none"))
}

// D-09
#[test]
fn d_09_a_retracted_answer_is_not_returned() {
    let reply =
        format!("```json\n{}\n```\nWait, I misread it. Correction:\n{}\n", label("good"), label("bad"));
    let value = replay(&place("decision", false), &reply, &[]);
    assert_eq!(reason(&value), ("E1000", "ambiguous"), "{value}");
    assert_eq!(value["error"]["details"]["candidates"].as_array().unwrap().len(), 2);
    let strict = replay(&place("decision", false), &reply, &["--strict-parse"]);
    assert_eq!(reason(&strict), ("E1000", "not_alone"), "{strict}");
    assert_eq!(reason(&replay(&place("exec", false), &reply, &[])), ("E1000", "not_alone"));
}

// D-09
#[test]
fn d_09_an_early_brace_drops_nothing() {
    let early = r#"{"ok": true, "data": {"rationale": "maybe sarcasm", "label": "x"}}, "meta": {"confidence": 0.2, "risk": "high", "explain": "Very unsure"}}"#;
    let late = format!("{}\n, \"error\": {{\"code\": \"E2007\", \"message\": \"m\"}}}}", label("x"));
    for reply in [early, &late] {
        assert_eq!(reason(&replay(&place("decision", false), reply, &[])), ("E1000", "closed_early"));
    }
    let bare = r#"{"rationale": "r", "label": "a"}, "label": "b"}"#;
    assert_eq!(reason(&replay(&place("decision", true), bare, &[])), ("E1000", "closed_early"));
}

// D-09
#[test]
fn d_09_of_two_bare_payloads_none_is_picked() {
    let reply = "My first impression: {\"rationale\": \"It thanks the staff at length\", \"label\": \"good\"}\n\n\
                 On reflection it is sarcasm: {\"rationale\": \"Sarcasm\", \"label\": \"bad\"}";
    assert_eq!(reason(&replay(&place("decision", true), reply, &[])), ("E1000", "ambiguous"));
}

// D-10
#[test]
fn d_10_a_number_is_never_rounded_in_silence() {
    let reply = r#"{"ok": true, "meta": {"confidence": 0.95, "risk": "low", "explain": "e"}, "data": {"rationale": "r", "wei": 123456789012345678901234, "pi": 3.14159265358979323846264338, "price": 1.10, "y": 1e2}}"#;
    let value = replay(&place("decision", false), reply, &[]);
    let warnings: Vec<&Value> = value["meta"]["warnings"].as_array().unwrap().iter().collect();
    let rounded = warnings.iter().filter(|warning| warning["code"] == "NUMBER_ROUNDED");
    let words: Vec<&str> = rounded.map(|warning| warning["message"].as_str().unwrap()).collect();
    assert!(words[0].contains("`/data/wei`") && words[0].contains("123456789012345678901234"), "{words:?}");
    assert!(words[1].contains("`/data/pi`") && words.len() == 2, "{words:?}");
    let exec = replay(&place("exec", false), reply, &[]);
    let violations = exec["error"]["details"]["violations"].as_array().unwrap();
    assert_eq!(exec["error"]["code"], "E3001");
    assert_eq!([&violations[0]["path"], &violations[1]["path"]], ["/data/wei", "/data/pi"]);
}

// D-10: an input number that would be rounded is refused, in every input format.
#[test]
fn d_10_an_input_keeps_its_numbers_or_is_refused() {
    let run = place("decision", false);
    run.write("in.json", r#"{"id": 123456789012345678901234}"#);
    for input in [
        vec!["--input", r#"{"id": 123456789012345678901234}"#],
        vec!["--input", r#"{"id": {"deep": [1e400]}}"#],
        vec!["--set", "id=123456789012345678901234"],
        vec!["in.json"],
    ] {
        let args = [vec!["run", "./m"], input.clone(), vec!["--provider", "replay", "--reply", "reply.txt"]];
        run.write("reply.txt", label("x"));
        let value = run.cogn(&args.concat()).json;
        assert_eq!(value["error"]["code"], "E1001", "{input:?} {value}");
        assert!(value["error"]["suggestion"].as_str().unwrap().contains("string"), "{value}");
    }
    let value = replay(&run, &label("x"), &[]);
    assert_eq!(value["ok"], true, "{value}");
}

// D-09
#[test]
fn d_09_words_around_an_answer_never_decide() {
    let sample =
        format!("For the text sample given:\n{}\nIn case of sarcasm:\n{}\n", label("good"), label("bad"));
    assert_eq!(reason(&replay(&place("decision", false), &sample, &[])), ("E1000", "ambiguous"));
    // If the contract decides between two readings, it is followed and reported.
    let template = format!("Template: {{\"ok\": true, \"meta\": {{}}, \"data\": {{}}}}\n{}", label("good"));
    let value = replay(&place("decision", false), &template, &["--receipt"]);
    assert_eq!(value["data"]["label"], "good", "{value}");
    let rules = value["meta"]["provenance"]["liberties"].to_string();
    assert!(rules.contains("passed_over"), "{rules}");
}

// The contract selects the object, and a no-break space is read as a space.
#[test]
fn d_09_an_object_out_of_code_or_prose_is_judged_by_the_contract() {
    let run = place("decision", true);
    let value = replay(
        &run,
        "headers = {\"note\": \"a longer object, which is no answer by any reading\"}\n{\"rationale\": \"r\", \"label\": \"good\"}",
        &[],
    );
    assert_eq!(value["data"]["label"], "good", "{value}");
    assert_eq!(replay(&run, "[f(budget={\"min\": 1})]", &[])["error"]["code"], "E3001");
    assert_eq!(
        replay(&run, "[{\"rationale\": \"r\"}, {\"rationale\": \"s\"}]", &[])["error"]["code"],
        "E3001"
    );
}

#[test]
fn d_01_a_no_break_space_between_tokens_is_read_and_told() {
    let reply = label("good").replace(":{", ":\u{a0}{");
    let value = replay(&place("decision", false), &reply, &[]);
    assert_eq!(value["data"]["label"], "good", "{value}");
    assert_eq!(value["meta"]["warnings"][0]["code"], "REPAIRED");
}

/// Returns the events of an answer in deltas of 16 letters.
fn deltas(answer: &str) -> String {
    let letters: Vec<char> = answer.chars().collect();
    let pieces = letters.chunks(16).map(|chunk| piece(&chunk.iter().collect::<String>(), None));
    let usage =
        json!({ "model": "stub-1", "choices": [], "usage": { "prompt_tokens": 11, "completion_tokens": 7 } });
    pieces.collect::<String>() + &piece("", Some("stop")) + &format!("data: {usage}\n\ndata: [DONE]\n\n")
}

/// Returns an envelope without the values that differ between runs.
fn settled(mut value: Value) -> Value {
    for member in ["trace_id", "latency_ms", "processing_time_ms"] {
        value["meta"].as_object_mut().unwrap().shift_remove(member);
    }
    value
}

fn ask(run: &Home, service: &FakeModel, more: &[&str]) -> Value {
    crate::ask(run, "./m", &service.url(), &[&["--input", "{}"], more].concat()).json
}

// REPAIR-010, D-08: also with pauses between the deltas, which used to end the call.
#[test]
fn repair_010_a_failing_answer_of_a_slow_service_is_kept_whole() {
    let data = json!({ "n": "five", "rationale": "a long and valuable reason", "label": 7, "tail": "kept?" });
    let answer = deltas(&envelope(&data));
    let run = place("decision", false);
    let slow = ask(&run, &FakeModel::script(vec![Act::stream(answer.clone()).with_pauses()]), &[]);
    let at_once = ask(&run, &FakeModel::script(vec![Act::stream(answer.clone())]), &[]);
    assert_eq!(slow["error"]["code"], "E3001", "{slow}");
    assert_eq!(slow["partial_data"], data);
    assert_eq!(slow["error"]["details"]["violations"].as_array().unwrap().len(), 2);
    assert_eq!(slow["meta"]["usage"]["output_tokens"], 7);
    assert_eq!(slow["meta"]["model"], "openai/stub-1");
    assert_eq!(settled(slow), settled(at_once));
    // A service that falls silent behind the first wrong value: only an early stop ends this call.
    let text = envelope(&data);
    let wrong = deltas(&text[..text.find("five\"").unwrap() + "five\", \"r".len()]);
    let wrong = wrong[..wrong.find(r#""stop""#).unwrap()].rsplit_once("data:").unwrap().0.to_owned();
    let silent = FakeModel::script(vec![Act::stream(wrong).then(Then::Silence)]);
    let stopped = ask(&run, &silent, &["--early-stop"]);
    assert!(stopped["error"]["details"]["stopped_at"].is_u64(), "{stopped}");
    assert_eq!(stopped["partial_data"], json!({}), "nothing was complete");
}

// STREAM-013, STREAM-015, D-12
#[test]
fn stream_015_an_interrupted_answer_of_a_service_holds_what_was_streamed() {
    let answer = envelope(&json!({ "rationale": "The image shows a beautiful sunset", "label": "x" }));
    let half = &answer[..answer.find(" sunset").unwrap()];
    let events = deltas(half);
    let events = &events[..events.find(r#""stop""#).unwrap()];
    let events = events.rsplit_once("data:").unwrap().0;
    let run = place("decision", false);
    let broken = || FakeModel::script(vec![Act::stream(events).then(Then::Close)]);
    let sync = ask(&run, &broken(), &[]);
    assert_eq!(sync["error"]["code"], "E2010", "{sync}");
    assert_eq!(sync["partial_data"], json!({ "rationale": "The image shows a beautiful" }));
    let last = ask(&run, &broken(), &["--stream"]);
    assert_eq!(last["partial_data"], sync["partial_data"], "{last}");
}

// D-19, C-47: with the compat block that the specification prints, a failure that is badly written was a success.
#[test]
fn an_ok_that_is_not_a_boolean_fails_in_every_tier_with_and_without_compat_env_007_d_19() {
    let meta = json!({ "confidence": 0.97, "risk": "none", "explain": "Refused: this would delete data" });
    let error = json!({ "code": "OUT_OF_SCOPE", "message": "m" });
    for tier in ["exec", "decision", "exploration"] {
        for compat in [true, false] {
            let run = place(tier, compat);
            for ok in [json!("false"), json!(0), Value::Null] {
                for reply in [
                    json!({ "ok": ok, "meta": meta, "data": { "rationale": "I must not do this" } }),
                    json!({ "ok": ok, "error": error, "rationale": "r", "confidence": 0.97 }),
                ] {
                    let value = replay(&run, &reply.to_string(), &[]);
                    assert_eq!(value["error"]["code"], "E3001", "{tier} {compat} {reply}: {value}");
                    assert_eq!(value["error"]["details"]["violations"][0]["path"], "/ok", "{value}");
                }
            }
        }
    }
    let old = json!({ "rationale": "r", "confidence": 0.97 }).to_string();
    let value = replay(&place("decision", true), &old, &[]);
    assert_eq!(value["ok"], true, "an absent `ok` stays the v2.1 case: {value}");
}
