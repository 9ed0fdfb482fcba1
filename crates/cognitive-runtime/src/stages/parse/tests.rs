//! Accepted, forgiven and refused replies. Whole replies through the pipeline are in `tests/replies.rs`.

use serde_json::{Value, json};

use super::*;

const ENVELOPE: &str = r#"{"ok": true, "meta": {"explain": "e"}, "data": {"n": 1}}"#;
const OTHER: &str = r#"{"ok": true, "meta": {"explain": "e"}, "data": {"n": 2}}"#;

/// The contract of these tests: an object with `ok` and a number in its data.
#[expect(clippy::needless_pass_by_value, reason = "the type that a chooser calls")]
fn fits(object: Map<String, Value>) -> bool {
    object.get("ok").is_some_and(Value::is_boolean)
        && object.get("data").is_some_and(|data| data["n"].is_number())
}

fn lenient(text: &str) -> Result<Draft, UnreadableReason> {
    find(text, Leniency::Lenient, &Finish::Complete, &fits).map_err(|why| why.reason)
}

fn strictly(text: &str) -> Result<Draft, UnreadableReason> {
    find(text, Leniency::Strict, &Finish::Complete, &fits).map_err(|why| why.reason)
}

/// The object that is read from `text`, and the liberties as `rule@offset`.
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

fn refuse(text: &str, reason: UnreadableReason) {
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
fn s_11_d_09_repeated_names_are_said_or_refused() {
    let text = r#"{"a": 1, "b": {"c": 1, "c": 2}, "a": 3}"#;
    check(text, json!({ "a": 3, "b": { "c": 2 } }), &["repeated_name@23", "repeated_name@32"]);
    check(
        &format!("So: {text}"),
        json!({ "a": 3, "b": { "c": 2 } }),
        &["prose@0", "repeated_name@27", "repeated_name@36"],
    );
    for text in [text.to_owned(), format!("```\n {text}\n```")] {
        assert!(matches!(strictly(&text), Err(UnreadableReason::RepeatedName)), "{text}");
    }
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
        refuse(text, UnreadableReason::NotJson);
    }
}

#[test]
fn d_01_nothing_is_ever_completed() {
    let text = r#"{"ok": true, "meta": {"explain": "a \"b\" \u00e9"}, "data": {"n": [1, {"m": -2.5e3}], 'x': None}}"#;
    assert!(lenient(text).is_ok());
    for end in 1..text.len() {
        refuse(&text[..end], UnreadableReason::Truncated);
        refuse(&format!("Sure, here it is: {}", &text[..end]), UnreadableReason::Truncated);
    }
}

#[test]
fn pipe_004_exec_takes_the_whole_text_or_a_fence_and_nothing_else() {
    assert_eq!(strictly(&format!(" \n```json\n{ENVELOPE}\n```\n")).unwrap().liberties.len(), 1);
    assert!(strictly(&format!(" \r\n{ENVELOPE}\n")).unwrap().liberties.is_empty());
    for text in [
        format!("Sure: {ENVELOPE}"),
        ENVELOPE.replace("true", "True"),
        format!("{ENVELOPE},"),
        format!("```\n{ENVELOPE}"),
        format!("<think></think>{ENVELOPE}"),
        "```\n{\"a\": 1,}\n```".to_owned(),
    ] {
        assert!(matches!(strictly(&text), Err(UnreadableReason::NotJson)), "{text}");
    }
    for text in [
        format!("```\n{ENVELOPE}\n```\n```\n{OTHER}\n```"),
        format!("```\n{ENVELOPE}\n```\nCorrection:\n{OTHER}"),
        format!("Here it is:\n```json\n{ENVELOPE}\n```"),
        format!("<think>\n</think>\n```\n{ENVELOPE}\n```"),
    ] {
        assert!(matches!(strictly(&text), Err(UnreadableReason::NotAlone)), "{text}");
    }
    assert!(matches!(strictly(&ENVELOPE[..20]), Err(UnreadableReason::Truncated)));
}

#[test]
fn it_is_not_fooled() {
    let one: Value = serde_json::from_str(ENVELOPE).unwrap();
    for text in [
        format!("{{}} opens and {{\"n\": 2}} too, but here:\n{ENVELOPE} Done {{.}}"),
        format!("{ENVELOPE}\n\nNote: {{\"x\": 1}} was left out, and {{\"y\": <z>}} too"),
        format!("The {{ opens, e.g. {{x}} or {{x: y}} or {{https://a/{{b}}}}:\n{ENVELOPE}"),
        format!("First try: {{\"ok\": true, \"data\": {{}}}}. Corrected:\n{ENVELOPE}"),
        format!("{ENVELOPE} or, as a template: {{\"ok\": true, \"meta\": {{}}, \"data\": {{\"n\": \"…\"}}}}"),
        format!("{{\"ok\": true, \"data\": {{...}}}} is the shape.\n{ENVELOPE}"),
        format!("```json\n{{\"ok\": true, \"data\": {{ …\n```\n```json\n{ENVELOPE}\n```"),
        format!("- {ENVELOPE}"),
        format!("1. It is\n\n   ```json\n   {ENVELOPE}\n   ```\n"),
        format!("{{\"ok\": true, \"data\": 2}}\n```json\n{ENVELOPE}\n```"),
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
    refuse(&format!("<think>{OTHER}"), UnreadableReason::Truncated);
    refuse("<think>x</think>", UnreadableReason::Empty);
    refuse(&format!("{OTHER} so be it</think>"), UnreadableReason::Empty);
}

#[test]
fn d_01_two_answers_are_none() {
    for between in ["\n", "\nFor example ", "\nCorrected, this is the final answer: ", " and "] {
        let text = format!("{ENVELOPE}{between}{OTHER}");
        refuse(&text, UnreadableReason::Ambiguous(vec![0, ENVELOPE.len() + between.len()]));
    }
    refuse(
        &format!("```\n{ENVELOPE}\n```\n{OTHER}"),
        UnreadableReason::Ambiguous(vec![4, ENVELOPE.len() + 9]),
    );
    refuse(&format!("{ENVELOPE} Answer: {}", &OTHER[..30]), UnreadableReason::Truncated);
    refuse(&format!("{ENVELOPE} Answer: {}", OTHER.replace('2', "NaN")), UnreadableReason::NotJson);
    refuse("{\"ok\": true, \"data\": NaN} and {\"x\": 1}", UnreadableReason::NotJson);
    refuse(&format!("{ENVELOPE} {{\"ok\": true, \"data\": NaN}} {{\"x\": ...}}"), UnreadableReason::NotJson);
    refuse(
        "{\"ok\": true, \"data\": {\"x\": 1} \"more\": {\"ok\": true, \"data\": {}}}",
        UnreadableReason::NotJson,
    );
    refuse(
        "{\"rationale\": \"r\", \"list\": [{\"ok\": true, \"data\": {}}, oops]}",
        UnreadableReason::NotJson,
    );
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
        refuse(text, UnreadableReason::NotAnObject);
    }
    for text in ["no json here", "See [1] and {this}", "[1, 2,]", "```\ncode\n```"] {
        refuse(text, UnreadableReason::NotJson);
    }
}

#[test]
fn s_11_depth_is_limited_in_every_manner() {
    let nested = |levels: usize| format!("{{\"a\": {}{}}}", "[".repeat(levels), "]".repeat(levels));
    assert!(lenient(&nested(99)).is_ok() && strictly(&nested(99)).is_ok());
    assert!(lenient(&format!("so {}", nested(99))).is_ok());
    refuse(&nested(100), UnreadableReason::TooDeep);
    refuse(&format!("so {}", nested(100)), UnreadableReason::TooDeep);
    assert!(matches!(strictly(&nested(100)), Err(UnreadableReason::TooDeep)));
}

#[test]
fn what_is_cut_off_behind_an_answer_may_have_been_another() {
    let cut = |text: &str| find(text, Leniency::Lenient, &Finish::CutOff, &fits).map_err(|why| why.reason);
    assert_eq!(cut(&format!("It is {ENVELOPE}. Now {{")).unwrap_err(), UnreadableReason::Truncated);
    assert!(cut(ENVELOPE).is_ok(), "what is complete is complete");
}

#[test]
fn d_09_an_object_with_json_behind_it_was_closed_too_early() {
    for behind in [", \"meta\": {}}", "}", " ]", "\n\"more\": 1}", ":", " \"so\""] {
        refuse(&format!("{ENVELOPE}{behind}"), UnreadableReason::ClosedEarly);
        refuse(&format!("So: {ENVELOPE}{behind}"), UnreadableReason::ClosedEarly);
    }
    for behind in [".", ";", ")", "`", " done }", " and so, …"] {
        assert!(lenient(&format!("{ENVELOPE}{behind}")).is_ok(), "{behind}");
    }
    refuse(
        &format!("{ENVELOPE} Corrected: {{\"ok\": true, \"data\": {{}}}}, \"n\": 2}}"),
        UnreadableReason::ClosedEarly,
    );
}

#[test]
fn d_09_without_a_fitting_object_the_best_is_told_about() {
    let best = |text: &str| Value::Object(lenient(text).unwrap().object);
    let envelope = json!({ "ok": true, "data": {} });
    assert_eq!(best(&format!("{{\"a\": \"a long object that is none\"}} {envelope} {{}}")), envelope);
    assert_eq!(best("{\"a\": 1} and {\"b\": 22} and {\"c\": 3}"), json!({ "b": 22 }));
    assert_eq!(best("{\"a\": 1} and {\"b\": 2}"), json!({ "b": 2 }));
}

#[test]
fn d_10_numbers_that_do_not_keep_their_value_are_noted_in_every_manner() {
    let text = r#"{"ok": true, "data": {"n": 123456789012345678901234, "list": [0.5, {"pi": 3.14159265358979323846}]}}"#;
    let places = |draft: Draft| draft.rounded.into_iter().map(|number| number.path).collect::<Vec<_>>();
    let expected = ["/data/n", "/data/list/1/pi"];
    assert_eq!(places(lenient(text).unwrap()), expected);
    assert_eq!(places(strictly(text).unwrap()), expected);
    assert_eq!(places(strictly(&format!("```\n{text}\n```")).unwrap()), expected);
    assert_eq!(places(lenient(&format!("So: {text}")).unwrap()), expected);
    assert_eq!(places(lenient(&text.replace('"', "'")).unwrap()), expected);
    let beyond = r#"{"ok": true, "data": {"n": [1e999]}}"#;
    for draft in [lenient(beyond), strictly(beyond), strictly(&format!("```\n{beyond}\n```"))] {
        let rounded = draft.unwrap().rounded;
        assert!(rounded.len() == 1 && rounded[0].overflows && rounded[0].path == "/data/n/0");
    }
}

#[test]
fn d_01_other_spaces_between_tokens_have_one_reading() {
    check(
        "{\u{a0}\"a\":\u{2009}[1,\u{3000}2]\u{202f}}",
        json!({ "a": [1, 2] }),
        &["other_blank@1", "other_blank@7", "other_blank@13", "other_blank@18"],
    );
    assert!(strictly("{\u{a0}\"a\": 1}").is_err());
}
