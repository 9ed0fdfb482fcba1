//! What is read, what is forgiven, what is refused. Whole replies through the pipeline are in `tests/replies.rs`.

use serde_json::{Value, json};

use super::*;

const ENVELOPE: &str = r#"{"ok": true, "meta": {"explain": "e"}, "data": {"n": 1}}"#;
const OTHER: &str = r#"{"ok": true, "meta": {"explain": "e"}, "data": {"n": 2}}"#;

fn lenient(text: &str) -> Result<Draft, Reason> {
    find(text, Manner::Lenient, &Finish::Complete).map_err(|why| why.reason)
}

fn strictly(text: &str) -> Result<Draft, Reason> {
    find(text, Manner::Strict, &Finish::Complete).map_err(|why| why.reason)
}

/// What is read from `text`, and the liberties as `rule@offset`.
fn read(text: &str) -> (Value, Vec<String>) {
    let draft = lenient(text).unwrap_or_else(|reason| panic!("{reason:?}: {text}"));
    let rule = |liberty: &Liberty| serde_json::to_value(liberty.rule).unwrap();
    let liberties = draft.liberties.iter();
    let liberties = liberties.map(|each| format!("{}@{}", rule(each).as_str().unwrap(), each.at)).collect();
    (Value::Object(draft.object), liberties)
}

fn check(text: &str, expected: Value, liberties: &[&str]) {
    let (value, taken) = read(text);
    assert_eq!(value, expected, "{text}");
    assert_eq!(taken, liberties, "{text}");
}

fn refuse(text: &str, reason: Reason) {
    assert_eq!(lenient(text).map(|draft| draft.object).unwrap_err(), reason, "{text}");
}

#[test]
fn d_01_each_slip_has_one_reading_and_one_entry() {
    check(
        r#"{"a": [1, 2,], "b": 3,}"#,
        json!({ "a": [1, 2], "b": 3 }),
        &["trailing_comma@11", "trailing_comma@21"],
    );
    check(
        "{\"a\": 1, // one\n /* two */ \"b\": 2 # three\n}",
        json!({ "a": 1, "b": 2 }),
        &["comment@9", "comment@17", "comment@34"],
    );
    check(r#"{'a': 'it\'s "x"'}"#, json!({ "a": "it's \"x\"" }), &["quotes@1", "quotes@6"]);
    check(
        "{“a”: „b“, ‘c’: ’d’}",
        json!({ "a": "b", "c": "d" }),
        &["quotes@1", "quotes@10", "quotes@19", "quotes@28"],
    );
    check(r#"{"a": "it\'s"}"#, json!({ "a": "it's" }), &["quotes@9"]);
    check(
        "{a: 1, $b-c_2: 2, é: 3}",
        json!({ "a": 1, "$b-c_2": 2, "é": 3 }),
        &["bare_name@1", "bare_name@7", "bare_name@18"],
    );
    check(
        r#"{"a": [True, False, None]}"#,
        json!({ "a": [true, false, null] }),
        &["python_literal@7", "python_literal@13", "python_literal@20"],
    );
    check("{\"a\": \"one\r\n\ttwo\n\"}", json!({ "a": "one\r\n\ttwo\n" }), &["raw_break@10"]);
    check("\u{feff}{\"a\": 1}", json!({ "a": 1 }), &["bom@0"]);
    check(
        "{\"a\": 1\n \"b\": \"x\"\r\n \"c\": {}}",
        json!({ "a": 1, "b": "x", "c": {} }),
        &["missing_comma@7", "missing_comma@17"],
    );
}

#[test]
fn s_11_repeated_names_are_said_in_every_manner() {
    let text = r#"{"a": 1, "b": {"c": 1, "c": 2}, "a": 3}"#;
    check(text, json!({ "a": 3, "b": { "c": 2 } }), &["repeated_name@23", "repeated_name@32"]);
    assert_eq!(strictly(text).unwrap().liberties.len(), 2);
    check(
        &format!("So: {text}"),
        json!({ "a": 3, "b": { "c": 2 } }),
        &["prose@0", "repeated_name@27", "repeated_name@36"],
    );
    let fenced = strictly(&format!("```\n {text}\n```")).unwrap();
    assert_eq!(fenced.liberties.iter().map(|each| each.at).collect::<Vec<_>>(), [4, 28, 37]);
}

#[test]
fn d_01_gen_007_what_has_two_readings_or_none_is_refused() {
    for text in [
        r#"{"a": NaN}"#,
        r#"{"a": Infinity}"#,
        r#"{"a": -Infinity}"#,
        r#"{"a": undefined}"#,
        r#"{"a": yes}"#,
        r#"{"a": TRUE}"#,
        "{\"a\": [\n#b,\n#c\n]}",
        r#"{"a": .5}"#,
        r#"{"a": 1.}"#,
        r#"{"a": +1}"#,
        r#"{"a": 01}"#,
        r#"{"a": 0x1F}"#,
        r#"{"a": 1e999}"#,
        r#"{"a": 1_000}"#,
        r#"{"a": -}"#,
        r#"{"a": "\d"}"#,
        r#"{"a": "\ud800"}"#,
        r#"{"a": "\udc00\ud800"}"#,
        r#"{"a": "\u12g4"}"#,
        "{\"a\": \"\u{1}\"}",
        r#"{"a": [1,,2]}"#,
        r#"{"a": [,]}"#,
        r#"{"a": 1,, "b": 2}"#,
        r#"{"a": 1 "b": 2}"#,
        "{\"a\": [\"x\"\n\"y\"]}",
        "{\"a\": 1\n b: 2}",
        "{\"a\": 1\n'b': 2}",
        r#"{"a" 1}"#,
        r#"{"a": "say "hi""}"#,
        "{'a': 'it's'}",
        "{“a”: “say “hi” now”}",
        r#"{"a": b}"#,
        r#"{"a": `b`}"#,
        "{\"a\nb\": 1}",
        r#"{"a": 1]"#,
        r#"{"a": {"b": 1]}"#,
        r#"{"a": (1, 2)}"#,
        "{\"a\": \"x\\\ny\"}",
    ] {
        refuse(text, Reason::NotJson);
    }
}

#[test]
fn d_01_nothing_is_ever_completed() {
    let text = r#"{"ok": true, "meta": {"explain": "a \"b\" \u00e9"}, "data": {"n": [1, {"m": -2.5e3}], 'x': None}}"#;
    assert!(lenient(text).is_ok());
    for end in 1..text.len() {
        refuse(&text[..end], Reason::Truncated);
        refuse(&format!("Sure, here it is: {}", &text[..end]), Reason::Truncated);
    }
}

#[test]
fn pipe_004_exec_takes_the_whole_text_or_a_fence_and_nothing_else() {
    assert_eq!(strictly(&format!("x\n```json\n{ENVELOPE}\n```\n")).unwrap().liberties.len(), 1);
    assert!(strictly(&format!(" \r\n{ENVELOPE}\n")).unwrap().liberties.is_empty());
    for text in [
        format!("Sure: {ENVELOPE}"),
        ENVELOPE.replace("true", "True"),
        format!("{ENVELOPE},"),
        format!("```\n{ENVELOPE}"),
        format!("<think></think>{ENVELOPE}"),
        "```\n{\"a\": 1,}\n```".to_owned(),
    ] {
        assert!(matches!(strictly(&text), Err(Reason::NotJson)), "{text}");
    }
    let twice = format!("```\n{ENVELOPE}\n```\n```\n{OTHER}\n```");
    assert!(matches!(strictly(&twice), Err(Reason::Ambiguous)));
    assert!(matches!(strictly(&ENVELOPE[..20]), Err(Reason::Truncated)));
}

#[test]
fn it_is_not_fooled() {
    let one: Value = serde_json::from_str(ENVELOPE).unwrap();
    for text in [
        format!("For example {OTHER} but here:\n{ENVELOPE} Done {{.}}"),
        format!("{ENVELOPE}\n\nNote: {{\"x\": 1}} was left out, and {{\"y\": <z>}} too"),
        format!("{ENVELOPE}\n\nFor example, otherwise I had said {OTHER}"),
        format!("The {{ opens, e.g. {{x}} or {{x: y}} or {{https://a/{{b}}}}:\n{ENVELOPE}"),
        format!("First try: {OTHER}. Corrected:\n{ENVELOPE}"),
        format!("{{\"ok\": true, \"data\": {{...}}}} is the shape.\n{ENVELOPE}"),
        format!("```json\n{{\"ok\": true, \"data\": {{ …\n```\n```json\n{ENVELOPE}\n```"),
        format!("- {ENVELOPE}"),
        format!("1. It is\n\n   ```json\n   {ENVELOPE}\n   ```\n"),
        format!("{OTHER}\n```json\n{ENVELOPE}\n```"),
        format!("{ENVELOPE}{ENVELOPE}"),
        format!("[1] says so, [\"a\", 2] too: {ENVELOPE}"),
        format!("[{OTHER}] as asked.\n{ENVELOPE}"),
        format!("```json {ENVELOPE} ```"),
        format!("~~~\r\n{ENVELOPE}\r\n~~~\r\n"),
    ] {
        assert_eq!(read(&text).0, one, "{text}");
    }
    let code = r#"{"ok": true, "data": {"code": "```json\n{\"ok\": false}\n```"}}"#;
    assert_eq!(read(&format!("Here: {code}")).0["data"]["code"], "```json\n{\"ok\": false}\n```");
    let raw = "```json\n{\"ok\": true, \"data\": {\"code\": \"\n```python\nx = {}\n```\n\"}}\n```";
    check(
        raw,
        json!({ "ok": true, "data": { "code": "\n```python\nx = {}\n```\n" } }),
        &["fence@0", "raw_break@39"],
    );
}

#[test]
fn thinking_is_not_the_answer() {
    let one: Value = serde_json::from_str(ENVELOPE).unwrap();
    for text in [
        format!("<think>{OTHER}</think>{ENVELOPE}"),
        format!("<THINKING>a <think>{OTHER}</think> b {{\"</THINKING>\n```\n{ENVELOPE}\n```"),
        format!("<think>not <think> again {OTHER}</think>{ENVELOPE}"),
        format!("{OTHER} or {{\"a\": \"unclosed </think>{ENVELOPE}"),
        format!("so {OTHER}\n</think>\n{ENVELOPE}"),
        format!("I use no <think> here: {ENVELOPE}"),
        format!("<think>a</think>{ENVELOPE}<think>{OTHER}</think>"),
    ] {
        assert_eq!(read(&text).0, one, "{text}");
    }
    check("<think>x</think>{\"a\": 1}", json!({ "a": 1 }), &["thinking@0"]);
    let tags = r#"{"ok": true, "data": {"t": "<think>x</think>"}}"#;
    check(&format!("Here: {tags}"), serde_json::from_str(tags).unwrap(), &["prose@0"]);
    refuse(&format!("<think>{OTHER}"), Reason::Truncated);
    refuse("<think>x</think>", Reason::Empty);
    refuse(&format!("{OTHER} so be it</think>"), Reason::Empty);
}

#[test]
fn d_01_two_answers_are_none() {
    for between in ["\n", "\nNot correct: ", "\nIf it were wrong, the result would be ", " and "] {
        refuse(&format!("{ENVELOPE}{between}{OTHER}"), Reason::Ambiguous);
    }
    refuse(&format!("```\n{ENVELOPE}\n```\n```\n{OTHER}\n```"), Reason::Ambiguous);
    refuse(&format!("{ENVELOPE} Answer: {}", &OTHER[..30]), Reason::Truncated);
    refuse(&format!("{ENVELOPE} Answer: {}", OTHER.replace('2', "NaN")), Reason::NotJson);
    refuse("{\"ok\": true, \"data\": NaN} and {\"x\": 1}", Reason::NotJson);
    refuse(&format!("{ENVELOPE} {{\"ok\": true, \"data\": NaN}} {{\"x\": ...}}"), Reason::NotJson);
    refuse("{\"ok\": true, \"data\": {\"x\": 1} \"more\": {\"ok\": true, \"data\": {}}}", Reason::NotJson);
    refuse("{\"rationale\": \"r\", \"list\": [{\"ok\": true, \"data\": {}}, oops]}", Reason::NotJson);
}

#[test]
fn pipe_005_lists_and_scalars_are_json_of_the_wrong_type() {
    for text in [
        "[1]",
        "42",
        "\"text\"",
        "null",
        "```json\n[1]\n```",
        "Here: [{\"a\": 1}]",
        "<think></think>\n```\n7\n```",
    ] {
        refuse(text, Reason::NotAnObject);
    }
    for text in ["no json here", "See [1] and {this}", "[1, 2,]", "```\ncode\n```"] {
        refuse(text, Reason::NotJson);
    }
}

#[test]
fn s_11_depth_is_limited_in_every_manner() {
    let nested = |levels: usize| format!("{{\"a\": {}{}}}", "[".repeat(levels), "]".repeat(levels));
    assert!(lenient(&nested(99)).is_ok() && strictly(&nested(99)).is_ok());
    assert!(lenient(&format!("so {}", nested(99))).is_ok());
    refuse(&nested(100), Reason::TooDeep);
    refuse(&format!("so {}", nested(100)), Reason::TooDeep);
    assert!(matches!(strictly(&nested(100)), Err(Reason::TooDeep)));
}

#[test]
fn a_reply_that_was_cut_off_is_not_answered_by_its_example() {
    let text = format!("An example: {ENVELOPE}. Now the answer");
    assert!(lenient(&text).is_ok());
    let cut = |text: &str| find(text, Manner::Lenient, &Finish::CutOff).map_err(|why| why.reason);
    assert_eq!(cut(&text).unwrap_err(), Reason::Truncated);
    assert_eq!(cut(&format!("It is {ENVELOPE}. Now {{")).unwrap_err(), Reason::Truncated);
    assert!(cut(ENVELOPE).is_ok(), "what is complete is complete");
}
