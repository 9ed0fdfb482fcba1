//! Tests of calls and placeholders: every form, text that stays text, rejections, and values that are never scanned.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn calls(prompt: &str) -> Vec<Call> {
    let found = directives(prompt);
    assert_eq!(found.slips, [], "{prompt}");
    found.calls
}

fn only(prompt: &str) -> Call {
    let [call] = <[Call; 1]>::try_from(calls(prompt)).unwrap_or_else(|calls| panic!("{prompt}: {calls:?}"));
    call
}

#[test]
fn comp_060_what_is_called_and_with_what() {
    let path = |text: &str| Argument::Path(Path::parse(text).unwrap());
    for (prompt, module, argument) in [
        ("1. First:\n   @call:code-analyzer($INPUT)\n", "code-analyzer", Argument::Input),
        ("@call:code-analyzer", "code-analyzer", Argument::Input),
        ("(see @call:code-analyzer).", "code-analyzer", Argument::Input),
        ("@call:a2()", "a2", Argument::Input),
        ("@call:a( $ARGUMENTS )", "a", Argument::Arguments),
        ("@call:a($.data.parsed_ast)", "a", path("$.data.parsed_ast")),
        ("@call:a($['x(y)'])", "a", path("$['x(y)']")),
        ("@call:a($)", "a", path("$")),
        ("@call:a(check (all of) it)", "a", Argument::Text("check (all of) it".to_owned())),
        ("@call:a($5 budget)", "a", Argument::Text("$5 budget".to_owned())),
        ("用@call:a。", "a", Argument::Input),
    ] {
        let call = only(prompt);
        assert_eq!((call.module.as_str(), call.argument), (module, argument), "{prompt}");
    }
    assert_eq!(only("先用@call:a分析").module, "a");
}

#[test]
fn comp_060_what_is_no_call_stays_text() {
    for prompt in [
        "An e-mail like call:me@example.com is not a directive",
        "me@call:x",
        "me_@call:x($INPUT)",
        "@call:",
        "@call: x",
        "@call:-x",
        "@ call:x",
        "@Call:x",
        "",
    ] {
        assert_eq!(calls(prompt), [], "{prompt}");
    }
}

#[test]
fn comp_061_options_and_their_defaults() {
    assert_eq!(only("@call:a($INPUT)").options, CallOptions::default());
    let all = only("@call:a($INPUT)[async, timeout=45s, optional, tier=exec]").options;
    let expected = CallOptions {
        is_async: true,
        timeout: Duration::from_secs(45),
        optional: true,
        tier: Some(Tier::Exec),
    };
    assert_eq!(all, expected);
    assert!(only("@call:a[ optional ] and more").options.optional);
    assert_eq!(only("@call:a($INPUT) [async]").options, CallOptions::default(), "a space ends the call");
}

#[test]
fn a_badly_written_call_is_told_with_its_place_and_stays_text() {
    for (prompt, text) in [
        ("x @call:a($INPUT", "@call:a("),
        ("@call:a(one\ntwo)", "@call:a("),
        ("@call:a($.x y)", "@call:a($.x y)"),
        ("@call:a($INPUT)[fast]", "fast"),
        ("@call:a($INPUT)[timeout=5]", "timeout=5"),
        ("@call:a[timeout=-5s]", "timeout=-5s"),
        ("@call:a[timeout=99999999999s]", "timeout=99999999999s"),
        ("@call:a[tier=best]", "tier=best"),
        ("@call:a[async=true]", "async=true"),
        ("@call:a[]", ""),
        ("@call:a[async,]", ""),
        ("@call:a[async\n]", "\n"),
        ("@call:a[async", ""),
    ] {
        let found = directives(prompt);
        assert_eq!(found.calls, [], "{prompt}");
        let [slip] = found.slips.as_slice() else { panic!("{prompt}: {:?}", found.slips) };
        assert_eq!(&prompt[slip.span.clone()], text, "{prompt}");
        assert_eq!(found.pieces(prompt), [PromptPiece::Text(prompt)]);
    }
}

#[test]
fn prompt_009_values_of_results() {
    let prompt = "Risk {{code-analyzer.meta.risk}}, {{ a.data.items[0]['x y'] }}, {{a}}.";
    let found = directives(prompt);
    let envelope = json!({ "meta": { "risk": "low" }, "data": { "items": [{ "x y": { "n": 1.5 } }] } });
    let shown: Vec<_> = found.inserts.iter().map(|insert| insert.text(&envelope)).collect();
    let whole = r#"{"meta":{"risk":"low"},"data":{"items":[{"x y":{"n":1.5}}]}}"#;
    assert_eq!(shown, [Some("low".into()), Some(r#"{"n":1.5}"#.into()), Some(whole.into())]);
    assert_eq!(found.inserts[0].module, "code-analyzer");
    let missing = directives("{{a.data.none}}");
    assert_eq!(missing.inserts[0].text(&envelope), None);
}

#[test]
fn prompt_009_braces_of_code_stay_text() {
    for prompt in [
        "style={{ color: 'red' }}",
        "{{#if x}}",
        "{{ }}",
        "{{a.}}",
        "{{a b}}",
        "{{$INPUT}}",
        "{{a.b}",
        "{{a\n.b}}",
        "{a.b}",
        "${{ secrets.X }}x{{",
    ] {
        let found = directives(prompt);
        let expected = usize::from(prompt.contains("secrets"));
        assert_eq!((found.inserts.len(), found.slips.len()), (expected, 0), "{prompt}");
    }
}

#[test]
fn a_call_within_the_arguments_of_another_is_text() {
    let call = only("@call:a(then @call:b($INPUT) {{x.y}})");
    assert_eq!(call.argument, Argument::Text("then @call:b($INPUT) {{x.y}}".to_owned()));
}

#[test]
fn comp_064_pieces_are_the_prompt_in_order() {
    let prompt = "A @call:x($INPUT) B {{x.meta.risk}}{{x.data}} C";
    let found = directives(prompt);
    let kinds: Vec<String> = found
        .pieces(prompt)
        .iter()
        .map(|piece| match piece {
            PromptPiece::Text(text) => format!("text {text:?}"),
            PromptPiece::Call(call) => format!("call {}", call.module),
            PromptPiece::Insert(insert) => format!("insert {}", &prompt[insert.span.clone()]),
        })
        .collect();
    let expected = [
        "text \"A \"",
        "call x",
        "text \" B \"",
        "insert {{x.meta.risk}}",
        "insert {{x.data}}",
        "text \" C\"",
    ];
    assert_eq!(kinds, expected);
}

/// Text made of meaningful tokens mixed with other text.
fn hostile() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("@call:a("),
        Just("@call:b"),
        Just(")"),
        Just("["),
        Just("]"),
        Just("{{"),
        Just("}}"),
        Just("a.b"),
        Just("$INPUT"),
        Just("$.x['"),
        Just("'"),
        Just("\n"),
        Just(","),
        Just("async"),
        Just("timeout=1s"),
        Just(" "),
        Just("é"),
        Just("日"),
    ];
    prop_oneof![prop::collection::vec(word, 0..60).prop_map(|words| words.concat()), "\\PC{0,200}",]
}

proptest! {
    #[test]
    fn any_text_is_read_and_its_pieces_are_the_text(prompt in hostile()) {
        let found = directives(&prompt);
        let joined: String = found.pieces(&prompt).iter().map(|piece| match piece {
            PromptPiece::Text(text) => text,
            PromptPiece::Call(call) => &prompt[call.span.clone()],
            PromptPiece::Insert(insert) => &prompt[insert.span.clone()],
        }).collect();
        prop_assert_eq!(joined, prompt.clone());
        for slip in &found.slips {
            prop_assert!(prompt.get(slip.span.clone()).is_some());
        }
    }

    // SEC-023: a value is inserted unchanged and never scanned.
    #[test]
    fn sec_023_what_values_say_changes_nothing_about_what_is_called(value in hostile()) {
        let prompt = "@call:first($INPUT) {{first.data.text}} end";
        let envelope = json!({ "data": { "text": value } });
        let found = directives(prompt);
        let mut rendered = String::new();
        for piece in found.pieces(prompt) {
            match piece {
                PromptPiece::Text(text) => rendered.push_str(text),
                PromptPiece::Call(call) => prop_assert_eq!(&call.module, "first"),
                PromptPiece::Insert(insert) => rendered.push_str(&insert.text(&envelope).unwrap()),
            }
        }
        prop_assert_eq!(rendered, format!(" {value} end"));
    }
}

/// The number of scanned bytes cannot be measured here. But a quadratic scan of a megabyte of opening tokens would not
/// finish.
#[test]
fn many_beginnings_are_read_in_one_pass() {
    for beginning in [
        "@call:a(",
        "@call:a[",
        "{{a['",
        "{{",
        "{{a.",
        "@call:a($['",
        "((",
        "@call:a(x)",
        "@call:a($.",
        "@call:a[async,",
    ] {
        let mut prompt = beginning.repeat((1 << 20) / beginning.len());
        if beginning.ends_with("$.") {
            prompt.push_str(&")".repeat(prompt.matches('(').count()));
        }
        let found = directives(&prompt);
        assert!(found.calls.len() + found.slips.len() <= prompt.len() / beginning.len());
    }
}
