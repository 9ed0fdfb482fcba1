//! `cogn run` with a hostile or unusual service: thousands of tool calls in one turn, endless calls, tiny deltas, empty
//! streams, split characters. The cost is limited, and omissions are reported.

use cognitive_testkit::{Act, FakeModel, ProcessOutput, Then, good_answer, piece};
use serde_json::{Value, json};

use crate::tools::{answers, play};
use crate::{ask, good, home, summarizer};

/// One event with this delta.
fn delta(delta: &Value) -> String {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": null });
    format!("data: {}\n\n", json!({ "model": "stub-1", "choices": [choice] }))
}

/// Returns a turn with this number of calls for the time; the last one has this argument.
fn asks(count: usize, last: &str) -> Act {
    let call = |index: usize| {
        let arguments = if index + 1 == count { last } else { "{}" };
        let function = json!({ "name": "current_time", "arguments": arguments });
        json!({ "index": index, "id": format!("call_{index}"), "type": "function", "function": function })
    };
    let calls: String = (0..count).map(|index| delta(&json!({ "tool_calls": [call(index)] }))).collect();
    Act::stream(calls + &piece("", Some("tool_calls")) + "data: [DONE]\n\n")
}

fn tool_records(books: &[Value]) -> usize {
    books.iter().filter(|record| record["event"] == "tool_call").count()
}

// Three answers must not evict the audit, nor make the user pay for megabytes of calls that were not made.
#[test]
fn thousands_of_calls_in_a_turn_cost_what_seventeen_do() {
    let script = vec![asks(5_000, "{}"), asks(5_000, "{}"), answers()];
    let (output, asked, books) = play(json!({ "allowed": ["current_time"] }), script, "x");
    assert_eq!(output.exit(), 0, "{}", output.all());
    let messages = asked[2]["messages"].as_array().unwrap();
    let size = asked[2].to_string().len();
    assert!(size < 20_000, "{size} bytes in the third request");
    let turns: Vec<&Value> = messages.iter().filter(|message| message["role"] == "assistant").collect();
    let told: Vec<&Value> = messages.iter().filter(|message| message["role"] == "tool").collect();
    assert_eq!((turns.len(), told.len()), (2, 34));
    for turn in turns {
        let ids: Vec<&Value> =
            turn["tool_calls"].as_array().unwrap().iter().map(|call| &call["id"]).collect();
        let answered: Vec<&Value> = told.iter().take(17).map(|reply| &reply["tool_call_id"]).collect();
        assert_eq!(ids, answered, "each call that goes back has its answer");
    }
    let last = told[16]["content"].as_str().unwrap();
    assert!(last.contains("4984 more were not made"), "{last}");
    let receipt = output.json["meta"]["provenance"]["tools"].as_array().unwrap();
    assert_eq!((receipt.len(), tool_records(&books)), (34, 34));
    assert_eq!((&receipt[16]["outcome"], &receipt[16]["calls"]), (&json!("too_many"), &json!(4984)));
    assert!(receipt[0].get("calls").is_none());
    assert!(output.json["meta"]["warnings"].to_string().contains("4984 were not made"), "{}", output.all());
}

#[test]
fn the_records_of_a_run_are_bounded_also_if_the_model_never_answers() {
    let (output, asked, books) = play(json!({ "allowed": ["current_time"] }), vec![asks(5_000, "{}")], "x");
    assert_eq!(output.json["error"]["details"]["reason"], "tool_rounds", "{}", output.all());
    assert_eq!(asked.len(), 9);
    assert!(tool_records(&books) <= 8 * 17 + 17, "{}", tool_records(&books));
    assert!(output.json["meta"]["warnings"].to_string().contains("4984 were not made"), "{}", output.all());
}

#[test]
fn a_call_that_is_too_long_is_told_to_the_model_and_to_the_caller() {
    let long = json!({ "zone": "x".repeat(2 << 20) }).to_string();
    for before in [0, 3] {
        let script = vec![asks(before + 1, &long), answers()];
        let (output, asked, books) = play(json!({ "allowed": ["current_time"] }), script, "x");
        assert_eq!(output.exit(), 0, "{}", output.all());
        let messages = asked[1]["messages"].as_array().unwrap();
        let told: Vec<&str> = messages.iter().filter_map(|each| each["content"].as_str()).collect();
        assert!(told.last().unwrap().contains("the arguments are too long"), "{told:?}");
        let warnings = output.json["meta"]["warnings"].to_string();
        assert!(
            warnings.contains("a call of the model was too long and was not made: `current_time`"),
            "{warnings}"
        );
        assert_eq!(tool_records(&books), before + 1, "the others are made");
    }
}

// A call without offered tools is refused as a tool call, not as an empty reply.
#[test]
fn a_call_that_is_too_long_and_not_offered_is_e4007() {
    let long = json!({ "zone": "x".repeat(2 << 20) }).to_string();
    let (output, _, _) = play(json!({}), vec![asks(1, &long)], "x");
    assert_eq!(output.json["error"]["code"], "E4007", "{}", output.all());
}

/// Streams an answer with this rationale, four characters at a time.
fn in_tiny_pieces(rationale: &str) -> Act {
    let answer = good_answer(&json!({ "rationale": rationale }));
    let text = answer.to_string();
    let pieces = text.as_bytes().chunks(4).map(|bytes| piece(std::str::from_utf8(bytes).unwrap(), None));
    Act::stream(pieces.collect::<String>() + &piece("", Some("stop")) + "data: [DONE]\n\n")
}

/// Runs a module with a service that acts like this.
fn run_with(act: Act, more: &[&str]) -> ProcessOutput {
    let (run, service) = (home(), FakeModel::script(vec![act]));
    run.simple_module("./clockwork", &json!({}));
    ask(&run, "./clockwork", &service.url(), &[&["--set", "text=x"], more].concat())
}

// 24 MB of events carry 0.8 MB of text; only the text counts.
#[test]
fn a_long_answer_in_tiny_pieces_is_an_answer() {
    let rationale = "word".repeat(200_000);
    let output = run_with(in_tiny_pieces(&rationale), &[]);
    assert_eq!(
        output.json["data"]["rationale"],
        json!(rationale),
        "{}",
        &output.all()[..300.min(output.all().len())]
    );
    run_with(in_tiny_pieces(&rationale), &["--stream"]).expect_exit(0);
}

// A stream without content is limited by its bytes, with a separate message, sync and streamed.
#[test]
fn an_endless_stream_that_says_nothing_is_cut() {
    let (empty, comment) = (piece("", None), ": still here\n\n".to_owned());
    // A stream also ends after 30 seconds without text. Long events reach the limit of bytes long before, on a busy machine too.
    let long = empty.replace("stub-1", &"m".repeat(100_000));
    for (nothing, more) in [(&empty, &[][..]), (&comment, &[]), (&long, &["--stream"])] {
        let output =
            run_with(Act::stream(nothing.repeat(1_000_000 / nothing.len())).then(Then::Repeat), more);
        assert!(output.out.contains("E2010"), "{}", output.all());
        assert!(output.out.contains("it contains almost no text"), "{}", output.all());
    }
}

#[test]
fn an_endless_text_is_cut_by_what_it_says() {
    let output = run_with(Act::stream(piece(&"x".repeat(10_000), None)).then(Then::Repeat), &[]);
    assert!(output.out.contains("it is longer than 16 MiB"), "{}", output.all());
}

/// Streams the answer with an emoji as two escapes, split into events at these bytes.
fn escaped(cuts: &[&str]) -> Act {
    let frame = piece("TEXT", None);
    let pieces: String = cuts.iter().map(|text| frame.replace("TEXT", text)).collect();
    Act::stream(pieces + &piece("", Some("stop")) + "data: [DONE]\n\n")
}

// A character that is split between two frames is joined; a lone half is reported as lost.
#[test]
fn surrogate_halves_in_two_frames_are_one_character() {
    let text = good().to_string().replace("Short.", "EMOJI");
    let (before, after) = text.split_once("EMOJI").unwrap();
    let [before, after] = [before, after].map(|text| text.replace('"', "\\\""));
    let whole = escaped(&[&format!("{before}a\\ud83d"), &format!("\\ude00b{after}")]);
    let half = escaped(&[&format!("{before}a\\ud83d"), "b", &after]);
    let last = escaped(&[&before, &format!("a\\ude00b{after}")]);
    for (act, summary, is_lost) in
        [(whole, "a😀b", false), (half, "a\u{fffd}b", true), (last, "a\u{fffd}b", true)]
    {
        let (run, service) = (home(), FakeModel::script(vec![act]));
        let output = summarizer(&run, &service.url(), &[]);
        assert_eq!(output.json["data"]["summary"], json!(summary), "{}", output.all());
        assert_eq!(
            output.json["meta"]["warnings"].to_string().contains("ENCODING"),
            is_lost,
            "{}",
            output.all()
        );
    }
}

#[test]
fn surrogate_halves_in_the_arguments_of_a_call_are_one_character() {
    let call = |id: Value, name: Value, arguments: &str| {
        let function = json!({ "name": name, "arguments": arguments });
        delta(&json!({ "tool_calls": [{ "index": 0, "id": id, "function": function }] }))
    };
    let first = call(json!("call_1"), json!("json_query"), r#"{"path":"/a","value":{"a":"HALF"#);
    let second = call(Value::Null, Value::Null, r#"HALF"}}"#);
    let body = first.replace("HALF", "\\ud83d") + &second.replace("HALF", "\\ude00");
    let turn = Act::stream(body + &piece("", Some("tool_calls")) + "data: [DONE]\n\n");
    let (output, asked, _) = play(json!({ "allowed": ["json_query"] }), vec![turn, answers()], "x");
    assert_eq!(output.exit(), 0, "{}", output.all());
    let told =
        asked[1]["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
    assert!(told.contains('😀'), "{told}");
}
