//! The rules of the stream itself: the chunks, their timing, and the end.

use std::sync::Arc;
use std::task::Poll;

use cognitive_contract::ports::{AuditLog, Finish, NullSink, ProviderError};
use cognitive_contract::stream::assemble;
use cognitive_contract::{ErrorCode, Failure};
use cognitive_runtime::{Delivery, Stream};
use cognitive_testkit::MemoryAuditLog;
use serde_json::{Value, json};

use super::harness::{META, Pieces, chunks, gathered, good, host, module, request};

fn open() -> Value {
    json!({ "type": "object" })
}

fn reply(data: &str) -> String {
    format!(r#"{{"ok": true, "meta": {META}, "data": {data}}}"#)
}

/// The log of a reply that comes letter by letter.
fn log(manifest: Value, text: &str) -> Vec<Value> {
    let module = module(manifest, &open());
    let letters: Vec<String> = text.chars().map(String::from).collect();
    let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
    chunks(&host(&module, Arc::new(Pieces::new(&letters, Ok(Finish::Complete)))), request(false)).0
}

fn deltas(log: &[Value]) -> Vec<(String, String)> {
    let word = |chunk: &Value, name: &str| chunk["chunk"][name].as_str().map(str::to_owned);
    log.iter().filter_map(|chunk| Some((word(chunk, "field")?, word(chunk, "delta")?))).collect()
}

fn fields(log: &[Value]) -> Vec<(String, String)> {
    let mut joined: Vec<(String, String)> = Vec::new();
    for (field, delta) in deltas(log) {
        match joined.last_mut() {
            Some((last, text)) if *last == field => text.push_str(&delta),
            _ => joined.push((field, delta)),
        }
    }
    joined
}

#[test]
fn stream_007_texts_grow_at_any_depth_with_escapes_split_anywhere() {
    let data = r#"{"rationale": "a\n\u00e9\ud83d\ude00\"b", "items": [{"text": "one"}, "two", [{"x": "three"}]], "n": 1}"#;
    let log = log(json!({}), &reply(data));
    let expected = [
        ("data.rationale", "a\né😀\"b"),
        ("data.items.0.text", "one"),
        ("data.items.1", "two"),
        ("data.items.2.0.x", "three"),
    ];
    let expected: Vec<_> = expected.map(|(field, text)| (field.to_owned(), text.to_owned())).into();
    assert_eq!(fields(&log), expected);
    assert!(deltas(&log).iter().all(|(_, delta)| delta.chars().count() == 1), "one letter, one delta");
}

#[test]
fn stream_001_010_026_it_opens_shows_progress_and_says_meta_when_that_is_complete() {
    let log = log(json!({}), &reply(r#"{"rationale": "r"}"#));
    assert_eq!(log[0]["streaming"], true);
    assert_eq!(log[0]["meta"]["confidence"], Value::Null);
    assert_eq!(log[1]["progress"]["stage"], "call");
    assert_eq!(log[2]["meta"], json!({ "confidence": 0.95, "risk": "low", "explain": "e" }));
    assert_eq!(log[3]["chunk"]["field"], "data.rationale");
    assert_eq!(log[4]["progress"], json!({ "percent": 90, "stage": "check" }));
    assert_eq!(log[5]["final"], true);
    assert_eq!(log.len(), 6);
}

#[test]
fn stream_009_a_snapshot_module_sends_only_snapshots_and_they_grow() {
    let manifest = json!({ "response": { "chunk_type": "snapshot" } });
    let log = log(manifest, &reply(r#"{"rationale": "so it is", "list": [{"a": "x"}], "n": 2}"#));
    assert!(deltas(&log).is_empty());
    let shown: Vec<&Value> = log.iter().filter_map(|chunk| chunk["chunk"].get("data")).collect();
    assert!(shown.contains(&&json!({ "rationale": "so it" })), "{shown:#?}");
    assert!(shown.contains(&&json!({ "rationale": "so it is", "list": [{ "a": "x" }] })), "{shown:#?}");
}

#[test]
fn stream_009_the_snapshots_of_a_long_answer_together_stay_linear() {
    let text = reply(&format!(r#"{{"rationale": "{}"}}"#, "word ".repeat(4_000)));
    let log = log(json!({ "response": { "chunk_type": "snapshot" } }), &text);
    let bytes: usize = log.iter().map(|chunk| chunk.to_string().len()).sum();
    assert!(bytes < 20 * text.len(), "{bytes} bytes of chunks for {} bytes of text", text.len());
}

#[test]
fn stream_020_the_buffer_of_the_module_is_honoured() {
    let manifest = json!({ "response": { "buffer_size": 10 } });
    let log = log(manifest, &reply(r#"{"rationale": "abcdefghijklmnopqrstuvwxy"}"#));
    let sent: Vec<_> = deltas(&log).into_iter().map(|(_, delta)| delta).collect();
    assert_eq!(sent, ["abcdefghij", "klmnopqrst", "uvwxy"]);
}

#[test]
fn stream_017_a_failure_before_the_call_is_one_error_chunk() {
    let provider = Arc::new(Pieces::new(&[], Ok(Finish::Complete)));
    let mut wrong = request(false);
    wrong.input = cognitive_runtime::host::RunInput::Json(json!({ "n": "one" }));
    let (log, _) = chunks(&host(&module(json!({}), &open()), provider), wrong);
    assert_eq!(log.len(), 1);
    assert_eq!(log[0]["error"]["code"], "E1001");
    assert!(log[0]["session_id"].as_str().unwrap().starts_with("sess_"));
}

#[test]
fn stream_014_a_lack_of_time_is_e2011_and_a_break_is_e2010_with_partial_data() {
    let text = reply(r#"{"rationale": "half"#);
    for (error, code) in
        [(ProviderError::Timeout, "E2011"), (ProviderError::Interrupted("x".to_owned()), "E2010")]
    {
        for end in 0..text.len() - 2 {
            let provider = Arc::new(Pieces::new(&[&text[..end]], Err(error.clone())));
            let (log, _) = chunks(&host(&module(json!({}), &open()), provider), request(false));
            let last = log.last().unwrap();
            assert_eq!(last["error"]["code"], code);
            assert_eq!(last["partial_data"].is_object(), end > 0);
        }
    }
}

// W7, D-12: the failure contains the data that a reader of the stream has seen, and a run without a stream contains
// the same.
#[test]
fn d_12_stream_015_an_interrupted_answer_holds_what_was_streamed() {
    let text = reply(r#"{"rationale": "The image shows", "items": [{"name": "a"}, {"name": "su"#);
    let text = text.strip_suffix('}').unwrap();
    let (module, wraps) = (module(json!({}), &open()), json!({ "compat": { "accepts_v21_payload": true } }));
    let wraps = super::harness::module(wraps, &open());
    let bare = r#"{"rationale": "The image"#;
    for (module, text, expected) in [
        (
            &module,
            text,
            json!({ "rationale": "The image shows", "items": [{ "name": "a" }, { "name": "su" }] }),
        ),
        (&module, &text[..text.find(" shows").unwrap()], json!({ "rationale": "The image" })),
        (&module, r#"{"ok": true, "meta": {"confidence": 0."#, json!({})),
        (&module, "I think that", json!({ "raw": "I think that" })),
        (&wraps, bare, json!({ "rationale": "The image" })),
    ] {
        for error in [ProviderError::Timeout, ProviderError::Interrupted("x".to_owned())] {
            let provider = || Pieces::new(&[text], Err(error.clone()));
            let (log, _) = chunks(&host(module, Arc::new(provider())), request(false));
            assert_eq!(log.last().unwrap()["partial_data"], expected, "{text}");
            assert_eq!(super::sync(module, provider(), false)["partial_data"], expected, "{text}");
        }
        let cut = super::sync(module, Pieces::new(&[text], Ok(Finish::CutOff)), false);
        assert_eq!((&cut["error"]["code"], &cut["partial_data"]), (&json!("E2003"), &expected), "{text}");
    }
    let silent = super::harness::module(json!({ "failure": { "partial_allowed": false } }), &open());
    let provider = Pieces::new(&[text], Err(ProviderError::Timeout));
    assert!(super::sync(&silent, provider, false).get("partial_data").is_none());
}

// SEC-005
#[test]
fn stream_002_a_thousand_streams_have_a_thousand_names() {
    let names: std::collections::HashSet<String> =
        (0..1_000).map(|_| Stream::new(|_| {}).session_id().to_string()).collect();
    assert_eq!(names.len(), 1_000);
}

#[test]
fn tier_008_the_exec_gate_acts_on_the_final_chunk() {
    let text = reply(r#"{"rationale": "r"}"#).replace("0.95", "0.5");
    let log = log(json!({ "tier": "exec" }), &text);
    assert_eq!(fields(&log), [("data.rationale".to_owned(), "r".to_owned())]);
    assert_eq!(log.last().unwrap()["error"]["code"], "E2001");
}

// CAP-010
#[test]
fn stream_021_a_module_without_streams_answers_whole_with_a_warning() {
    let module = module(json!({ "response": { "mode": "sync" } }), &open());
    let text = good();
    let provider = || Arc::new(Pieces::new(&[&text], Ok(Finish::Complete)));
    let (log, delivery) = chunks(&host(&module, provider()), request(false));
    assert!(log.is_empty());
    let Delivery::Whole(envelope) = delivery else { panic!("it was streamed") };
    assert!(envelope.ok());
    assert_eq!(envelope.meta().extra["warnings"][0]["code"], "E4010");
}

// S-18: a cancelled run is in the audit log like any other.
#[test]
fn a_stream_that_is_stopped_ends_with_what_there_is() {
    let text = reply(r#"{"rationale": "half"#);
    let mut provider = Pieces::new(&[&text[..text.len() - 2], "f"], Ok(Finish::Complete));
    provider.waits = true;
    let (mut host, mut log) = (host(&module(json!({}), &open()), Arc::new(provider)), Vec::new());
    let books = Arc::new(MemoryAuditLog::default());
    host.audit = Some(Arc::clone(&books) as Arc<dyn AuditLog>);
    let mut stream = Stream::new(|chunk| log.push(serde_json::to_value(chunk).unwrap()));
    let stop = std::future::ready(Failure::new(ErrorCode::StreamTimeout, "too slow"));
    let delivery = {
        let mut sink = NullSink;
        let mut run = std::pin::pin!(stream.run_until(&host, request(false), &mut sink, stop));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let Poll::Ready(delivery) = run.as_mut().poll(&mut context) else { panic!("it was not stopped") };
        delivery
    };
    drop(stream);
    let envelope = delivery.into_envelope();
    assert_eq!(envelope.error().unwrap().code(), "E2011");
    assert!(envelope.meta().extra.contains_key("trace_id"));
    let codes: Vec<_> =
        books.records().into_iter().filter(|it| it.event == "run").map(|it| it.code).collect();
    assert_eq!(codes, [Some("E2011".to_owned())]);
    assert_eq!(log.last().unwrap()["partial_data"], json!({ "rationale": "hal" }));
    assert!(cognitive_contract::stream::check_log(&log).is_empty());
}

#[test]
fn a_module_that_hands_over_nothing_partial_takes_back_what_it_announced() {
    let text = reply(r#"{"rationale": "half"#);
    let log = log(json!({ "failure": { "partial_allowed": false } }), &text);
    assert_eq!(fields(&log).len(), 1);
    assert!(serde_json::to_value(assemble(log)).unwrap().get("partial_data").is_none());
}

#[test]
fn nothing_in_prose_or_thinking_is_announced() {
    let answer = reply(r#"{"rationale": "yes"}"#);
    let wrong = reply(r#"{"rationale": "no"}"#);
    for text in [
        format!("<think>maybe {wrong}</think>{answer}"),
        format!("{{braces}} {{\"data\": {{\"rationale\": \"no\"}}}} and [{wrong}]. {answer}"),
    ] {
        let log = log(json!({}), &text);
        assert_eq!(fields(&log), [("data.rationale".to_owned(), "yes".to_owned())], "{text}");
    }
}

#[test]
fn stream_008_d_09_an_answer_that_is_corrected_is_taken_back() {
    let (one, two) = (reply(r#"{"rationale": "one"}"#), reply(r#"{"rationale": "two", "answer": "a"}"#));
    let text = format!("{one}\nThe corrected answer:\n{two}");
    let strict = module(json!({}), &json!({ "required": ["answer"] }));
    let provider = Arc::new(Pieces::new(&[&text], Ok(Finish::Complete)));
    let (log, _) = chunks(&host(&strict, provider), request(false));
    assert_eq!(gathered(&log), json!({ "rationale": "two", "answer": "a" }));
    assert_eq!(log.last().unwrap()["data"]["rationale"], "two");
    // If both keep the contract, the surrounding text does not decide between them.
    let both = super::protocol::log(json!({}), &text);
    assert_eq!(both.last().unwrap()["error"]["details"]["reason"], "ambiguous");
    let thought = format!("{}</think>{}", reply(r#"{"rationale": "one"}"#), reply(r#"{"rationale": "two"}"#));
    assert_eq!(gathered(&super::protocol::log(json!({}), &thought)), json!({ "rationale": "two" }));
}

#[test]
fn stream_008_a_second_call_starts_anew() {
    let module = module(json!({}), &json!({ "required": ["answer"] }));
    let text = reply(r#"{"rationale": "r"}"#);
    let provider = Arc::new(Pieces::new(&[&text], Ok(Finish::Complete)));
    let mut again = request(false);
    again.options.settings.reask = Some(1);
    let (log, _) = chunks(&host(&module, provider), again);
    assert_eq!(gathered(&log), json!({ "rationale": "r" }));
    assert_eq!(deltas(&log).len(), 2);
}

#[test]
fn a_bare_payload_grows_where_the_module_takes_it() {
    let manifest = json!({ "compat": { "accepts_v21_payload": true } });
    let log = log(manifest, r#"{"rationale": "bare", "more": [{"a": "x"}]}"#);
    let expected = [("data.rationale", "bare"), ("data.more.0.a", "x")];
    assert_eq!(fields(&log), expected.map(|(field, text)| (field.to_owned(), text.to_owned())));
}

#[test]
fn names_that_no_path_can_carry_are_left_to_the_final_chunk() {
    let log = log(
        json!({}),
        &reply(r#"{"a.b": "x", "": "y", "c": {"d.e": {"f": "z"}}, "rationale": "r", "rationale": "s"}"#),
    );
    assert_eq!(fields(&log), [("data.rationale".to_owned(), "r".to_owned())]);
}
