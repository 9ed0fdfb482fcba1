//! Recorded exchanges of seven clients with several services, served byte by byte and in random pieces. The texts in them
//! are made up; see `tests/wire/README.md`.

use cognitive_contract::ports::{Finish, Usage};
use serde_json::{Value, json};

use super::{play, with_tools};
use crate::support::{Outcome, Reply, run};

/// The recordings, one per line.
pub(super) const RECORDINGS: &str = include_str!("../../wire/responses/recorded.jsonl");

/// A small generator, so that every failure can be repeated.
struct Cuts(u64);

impl Cuts {
    fn next(&mut self) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % 61).unwrap() + 2
    }
}

/// Returns the bytes of a recording, and their type.
fn body(recording: &Value) -> (&'static str, String) {
    match recording.get("events").and_then(Value::as_array) {
        None => ("content-type: application/json", recording["response"].to_string()),
        Some(events) => {
            let event =
                |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
            ("content-type: text/event-stream", events.iter().map(event).collect())
        }
    }
}

/// Describes an outcome in the form of the expectations.
fn found(outcome: &Outcome) -> Value {
    let Ok(end) = &outcome.end else { return json!({ "finish": "error" }) };
    let mut found = json!({ "text": outcome.heard.text, "model": end.model });
    let finish = match &end.finish {
        Finish::Complete => "complete",
        Finish::CutOff => "cut_off",
        Finish::Refused(why) => {
            found["refusal"] = json!(why);
            "refused"
        }
        other => panic!("{other:?}"),
    };
    found["finish"] = json!(finish);
    if !end.tool_calls.is_empty() {
        let calls = end.tool_calls.iter().map(|call| json!([call.id, call.name, call.arguments]));
        found["calls"] = calls.collect();
    }
    if let Some(usage) = end.usage {
        let Usage {
            input_tokens, output_tokens, thinking_tokens, cache_read_tokens, cache_write_tokens, ..
        } = usage;
        found["usage"] =
            json!([input_tokens, output_tokens, thinking_tokens, cache_read_tokens, cache_write_tokens]);
    }
    found
}

#[test]
fn every_recording_is_read_alike_in_any_pieces() {
    let mut cuts = Cuts(0x9e37_79b9_7f4a_7c15);
    let (mut count, mut streams) = (0, 0);
    for (number, line) in RECORDINGS.lines().enumerate() {
        let recording: Value = serde_json::from_str(line).unwrap();
        let (content_type, body) = body(&recording);
        streams += usize::from(recording.get("events").is_some());
        for cut in [1, cuts.next(), cuts.next()] {
            let reply = Reply::new("200 OK", content_type, &body).cut(cut);
            let (outcome, _) = run(play(vec![reply.act(); 3], with_tools));
            assert_eq!(found(&outcome), recording["expect"], "line {} in pieces of {cut}", number + 1);
        }
        count += 1;
    }
    assert!(count >= 300 && streams >= 140, "{count} recordings, {streams} of them streams");
}
