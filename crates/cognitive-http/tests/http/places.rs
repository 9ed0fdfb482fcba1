//! Clients that resume at a foreign or unknown position, and runs in flight when the server stops.

use std::time::Duration;

use cognitive_http::ApiKey;
use serde_json::json;

use crate::breaks::read_events;
use crate::support::{ANSWER, Script, Server, ask, client, events, json_of, roomy};

/// Returns the id of a stream that has just started.
async fn session_of(response: &mut reqwest::Response) -> String {
    let begun = events(&read_events(response, 1).await);
    begun[0].data["session_id"].as_str().unwrap().to_owned()
}

// EXT-REC: for any header value, no chunk is skipped, no client waits for ever, and the model is called once.
#[tokio::test]
async fn ext_rec_a_place_that_never_was_starts_the_stream_again() {
    let script = Script::free(&ANSWER);
    let server = Server::start(&script, "both", roomy()).await;
    let whole = events(&ask(&server, "text/event-stream").send().await.unwrap().text().await.unwrap());
    let session = whole[0].data["session_id"].as_str().unwrap();
    for odd in ["999", "-1", "18446744073709551615", "99999999999999999999999999", "", "1e3", "0x1"] {
        let again = ask(&server, "text/event-stream").header("last-event-id", format!("{session}:{odd}"));
        let again = events(&again.send().await.unwrap().text().await.unwrap());
        assert_eq!(again[0].data["meta"]["warnings"][0]["code"], "E4014", "{odd}");
        assert_eq!(again[0].data["resume_from_seq"], 1, "{odd}");
        assert_eq!(again[1..], whole[1..], "{odd}");
    }
    for seq in [json!(999), json!(u64::MAX), json!(i64::MAX)] {
        let body =
            json!({ "input": { "text": "a" }, "_recovery": { "session_id": session, "last_seq": seq } });
        let request = client().post(server.url("/api/run/words")).header("content-type", "application/json");
        let request = request.header("accept", "text/event-stream").body(body.to_string());
        let again = events(&request.send().await.unwrap().text().await.unwrap());
        assert_eq!(again[0].data["meta"]["warnings"][0]["code"], "E4014", "{seq}");
    }
    let from_zero = ask(&server, "text/event-stream").header("last-event-id", format!("{session}:0"));
    let from_zero = events(&from_zero.send().await.unwrap().text().await.unwrap());
    assert_eq!(from_zero[1..], whole[1..], "a stream opens once");
    assert_eq!(script.calls(), 1);
}

#[tokio::test]
async fn ext_rec_a_place_beyond_a_stream_that_goes_on_is_not_waited_for() {
    let script = Script::with_leave(&ANSWER, 1);
    let server = Server::start(&script, "both", roomy()).await;
    let mut first = ask(&server, "text/event-stream").send().await.unwrap();
    let session = session_of(&mut first).await;
    let beyond = ask(&server, "text/event-stream").header("last-event-id", format!("{session}:5000"));
    let beyond = beyond.send().await.unwrap();
    script.allow(ANSWER.len());
    let beyond = events(&beyond.text().await.unwrap());
    assert_eq!(beyond[0].data["meta"]["warnings"][0]["code"], "E4014");
    assert_eq!(beyond.last().unwrap().name, "final");
    assert_eq!(script.calls(), 1);
}

// A stream of another client does not exist, and a request for it reveals nothing.
#[tokio::test]
async fn ext_rec_a_stream_belongs_to_the_key_that_opened_it() {
    let (anna, bert) = ("a-key-of-some-length", "b-key-of-some-length");
    let mut config = roomy();
    config.keys = vec![ApiKey::new("anna", anna).unwrap(), ApiKey::new("bert", bert).unwrap()];
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    let stream = async |key: &str, last: &str| {
        let request = ask(&server, "text/event-stream").header("last-event-id", last);
        let response = request.header("authorization", format!("Bearer {key}")).send().await.unwrap();
        events(&response.text().await.unwrap())
    };
    let own = stream(anna, "").await;
    let stolen = stream(bert, &own[1].id).await;
    let unknown = stream(bert, "sess_00000000000000000000000000000000:2").await;
    for other in [&stolen, &unknown] {
        assert!(other[0].data.get("resumed").is_none());
        assert_ne!(other[0].data["session_id"], own[0].data["session_id"]);
        assert_eq!(other.last().unwrap().data["meta"]["warnings"][0]["code"], "E4013");
    }
    assert_eq!(stream(anna, &own[1].id).await[1..], own[2..]);
}

// STREAM-023: resuming does not bypass the limit.
#[tokio::test]
async fn stream_023_one_stream_is_not_read_by_a_crowd() {
    let script = Script::with_leave(&ANSWER, 1);
    let server = Server::start(&script, "both", roomy()).await;
    let mut first = ask(&server, "text/event-stream").send().await.unwrap();
    let session = session_of(&mut first).await;
    let mut readers = Vec::new();
    for expected in [200, 200, 200, 429] {
        let again = ask(&server, "text/event-stream").header("last-event-id", format!("{session}:1"));
        let again = again.send().await.unwrap();
        assert_eq!(again.status(), expected);
        readers.push(again);
    }
}

// Sync runs get the drain time too; a run that is still in flight after it ends with an envelope.
#[tokio::test]
async fn a_server_that_stops_answers_sync_runs_too() {
    for (drain, allowed, expected) in [(Duration::from_millis(20), 0, 503), (Duration::from_hours(1), 9, 200)]
    {
        let script = Script::with_leave(&ANSWER, 1);
        let mut config = roomy();
        config.drain = drain;
        let mut server = Server::start(&script, "both", config).await;
        let waiting = tokio::spawn(ask(&server, "application/json").send());
        script.until_open(1).await;
        server.stop();
        script.allow(allowed);
        let response = waiting.await.unwrap().unwrap();
        assert_eq!(response.status(), expected);
        assert_eq!(json_of(response).await["ok"], expected == 200);
        (&mut server.task).await.unwrap();
    }
}
