//! Connections that break, clients that resume, servers that stop.

use std::sync::Arc;
use std::time::Duration;

use cognitive_contract::ports::Provider;
use cognitive_runtime::Host;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::{
    ANSWER, Script, Server, ask, client, events, json_of, module_cache, roomy, time_passes,
};

/// Reads a stream until it has this many events, and returns the text.
pub(crate) async fn read_events(response: &mut reqwest::Response, count: usize) -> String {
    let mut body = String::new();
    while events(body.rsplit_once("\n\n").map_or("", |(whole, _)| whole)).len() < count {
        body.push_str(std::str::from_utf8(&response.chunk().await.unwrap().unwrap()).unwrap());
    }
    body
}

// S-18: the model call is cancelled when its client disconnects, at every position.
#[tokio::test]
async fn a_client_that_goes_takes_its_call_along() {
    for pieces in 0..ANSWER.len() {
        let script = Script::with_leave(&ANSWER, pieces);
        let mut config = roomy();
        config.grace = Duration::ZERO;
        let server = Server::start(&script, "both", config).await;
        let mut response = ask(&server, "text/event-stream").send().await.unwrap();
        script.until_open(1).await;
        read_events(&mut response, 1).await;
        drop(response);
        script.until_open(0).await;
    }
}

#[tokio::test]
async fn a_sync_call_ends_with_its_connection_too() {
    let script = Script::with_leave(&ANSWER, 1);
    let server = Server::start(&script, "both", roomy()).await;
    let waiting = tokio::spawn(ask(&server, "application/json").send());
    script.until_open(1).await;
    waiting.abort();
    script.until_open(0).await;
}

// EXT-REC, S-16: for every k, exactly the missing part, and one model call in total.
#[tokio::test]
async fn ext_rec_a_client_that_comes_back_gets_exactly_what_it_missed() {
    let script = Script::free(&ANSWER);
    let server = Server::start(&script, "both", roomy()).await;
    let whole = ask(&server, "text/event-stream").send().await.unwrap().text().await.unwrap();
    let whole = events(&whole);
    for (index, event) in whole.iter().enumerate() {
        let again =
            ask(&server, "text/event-stream").header("last-event-id", &event.id).send().await.unwrap();
        let again = events(&again.text().await.unwrap());
        assert_eq!(again[0].data["resumed"], true);
        assert_eq!(again[1..], whole[index + 1..], "after {}", event.id);
        let Some(seq) = event.data["chunk"]["seq"].as_u64() else { continue };
        assert_eq!(again[0].data["resume_from_seq"], seq + 1);
        let body = json!({
            "input": { "text": "winter snow" },
            "_recovery": { "session_id": whole[0].data["session_id"], "last_seq": seq, "last_checkpoint": event.data["chunk"]["checkpoint"] }
        });
        let request = client().post(server.url("/api/run/words")).header("content-type", "application/json");
        let by_body =
            request.header("accept", "text/event-stream").body(body.to_string()).send().await.unwrap();
        assert_eq!(events(&by_body.text().await.unwrap())[1..], whole[index + 1..]);
    }
    assert_eq!(script.calls(), 1);
}

#[tokio::test]
async fn ext_rec_the_call_goes_on_while_a_client_is_away() {
    let script = Script::with_leave(&ANSWER, 2);
    let server = Server::start(&script, "both", roomy()).await;
    let mut response = ask(&server, "text/event-stream").send().await.unwrap();
    let seen = events(&read_events(&mut response, 2).await);
    drop(response);
    script.allow(ANSWER.len());
    script.until_open(0).await;
    let back = ask(&server, "text/event-stream").header("last-event-id", &seen[1].id).send().await.unwrap();
    let rest = events(&back.text().await.unwrap());
    assert_eq!(rest.last().unwrap().name, "final");
    assert_eq!(script.calls(), 1);
}

#[tokio::test]
async fn ext_rec_the_other_rows_of_the_table() {
    let script = Script::free(&ANSWER);
    let server = Server::start(&script, "both", roomy()).await;
    let resume = async |server: &Server, recovery: Value| {
        let body = json!({ "input": { "text": "a" }, "_recovery": recovery });
        let request = client().post(server.url("/api/run/words")).header("content-type", "application/json");
        request.header("accept", "text/event-stream").body(body.to_string()).send().await.unwrap()
    };
    let first = events(&ask(&server, "text/event-stream").send().await.unwrap().text().await.unwrap());
    let session = first[0].data["session_id"].clone();
    let wrong =
        json!({ "session_id": session, "last_seq": 1, "last_checkpoint": { "offset": 3, "hash": "ffffff" } });
    let again = events(&resume(&server, wrong).await.text().await.unwrap());
    assert_eq!(again[0].data["meta"]["warnings"][0]["code"], "E4014");
    assert_eq!(again[1..], first[1..], "from the beginning");
    let unknown = json!({ "session_id": "sess_0", "last_seq": 1 });
    let fresh = events(&resume(&server, unknown).await.text().await.unwrap());
    assert_ne!(fresh[0].data["session_id"], session);
    let warnings = &fresh.last().unwrap().data["meta"]["warnings"];
    assert_eq!(warnings[0]["code"], "E4013", "{warnings}");
    let mut config = roomy();
    config.replay = Duration::ZERO;
    let forgetful = Server::start(&script, "both", config).await;
    let refused = resume(&forgetful, json!({ "session_id": "sess_0", "last_seq": 1 })).await;
    // The example of `docs/errors.md`: no `cogn` process disables this.
    let page = include_str!("../../../../docs/errors.md");
    let example = page.split("## E4012").nth(1).unwrap().split("```json").nth(1).unwrap();
    let example: Value = serde_json::from_str(example.split("```").next().unwrap()).unwrap();
    assert_eq!(json_of(refused).await["error"], example);
}

// EXT-REC: a client that wants only the rest of its stream causes no second model call.
#[tokio::test]
async fn ext_rec_a_client_may_refuse_a_new_run_in_place_of_its_stream() {
    let script = Script::free(&ANSWER);
    let server = Server::start(&script, "both", roomy()).await;
    let first = events(&ask(&server, "text/event-stream").send().await.unwrap().text().await.unwrap());
    let body = json!({ "_options": { "resume_only": true } }).to_string();
    // A client that saw only the headers knows the id of the stream, and gets all of it.
    let headers = ask(&server, "text/event-stream").send().await.unwrap().headers().clone();
    let named = headers["x-cognitive-recovery-session"].to_str().unwrap().to_owned();
    let resume = async |last: &str| {
        let request = client().post(server.url("/api/run/words")).header("content-type", "application/json");
        let request = request.header("accept", "text/event-stream").header("last-event-id", last);
        request.body(body.clone()).send().await.unwrap()
    };
    let rest = events(&resume(&first[1].id).await.text().await.unwrap());
    assert_eq!(rest[1..], first[2..], "the input is not needed again");
    let all = events(&resume(&format!("{named}:0")).await.text().await.unwrap());
    assert_eq!((all.len(), &all[0].data["session_id"]), (first.len(), &json!(named)));
    let refused = resume("sess_0:1").await;
    assert_eq!(refused.status(), 410);
    assert_eq!(json_of(refused).await["error"]["code"], "E4013");
    assert_eq!(script.calls(), 2);
}

// S-18: a stream that its client cancels ends at once, even where a lost connection would have a grace period.
#[tokio::test]
async fn a_client_can_end_the_run_of_its_stream() {
    let script = Script::with_leave(&ANSWER, 1);
    let server = Server::start(&script, "both", roomy()).await;
    let mut response = ask(&server, "text/event-stream").send().await.unwrap();
    let seen = events(&read_events(&mut response, 1).await);
    script.until_open(1).await;
    let session = seen[0].data["session_id"].as_str().unwrap();
    let end = |id: &str| client().delete(server.url(&format!("/v1/streams/{id}"))).send();
    assert_eq!(end("sess_0").await.unwrap().status(), 410);
    let ended = json_of(end(session).await.unwrap()).await;
    assert_eq!(ended, json!({ "session_id": session, "status": "cancelled" }));
    script.until_open(0).await;
    let rest = response.text().await.unwrap();
    let last = events(&rest).pop().unwrap();
    assert_eq!(last.data["error"]["code"], "E2010");
    assert_eq!(last.data["error"]["details"]["kind"], "cancelled");
}

// STREAM-022, SEC-005: a stream has a time limit, and its call ends with it.
#[tokio::test]
async fn stream_022_a_stream_that_is_too_long_is_ended() {
    let script = Script::with_leave(&ANSWER, 2);
    let mut config = roomy();
    config.stream_limit = Duration::from_hours(1);
    let (folder, modules) = module_cache("both");
    let mut host = Host::new(Arc::new(modules), Arc::clone(&script) as Arc<dyn Provider>);
    host.settings.timeout = Some(Duration::from_hours(24));
    let server = Server::with_host(folder, host, config).await;
    let mut response = ask(&server, "text/event-stream").send().await.unwrap();
    let mut body = String::new();
    while !body.contains("is sh") {
        body.push_str(std::str::from_utf8(&response.chunk().await.unwrap().unwrap()).unwrap());
    }
    time_passes(Duration::from_hours(2)).await;
    body.push_str(&response.text().await.unwrap());
    let last = events(&body).pop().unwrap();
    assert_eq!((last.name.as_str(), &last.data["error"]["code"]), ("error", &json!("E2011")));
    assert_eq!(last.data["partial_data"]["rationale"], "It is sh");
    script.until_open(0).await;
}

// A signal with a hundred open streams: each of them is ended properly.
#[tokio::test]
async fn a_server_that_stops_ends_every_stream_in_order() {
    // With a shared permit count the first streams could take all permits, and the last would wait for its first
    // chunk for ever.
    let script = Script::stuck_after(&ANSWER, 1);
    let mut config = roomy();
    config.drain = Duration::from_millis(20);
    let mut server = Server::start(&script, "both", config).await;
    let streams = join_all((0..100).map(|_| ask(&server, "application/x-ndjson").send())).await;
    script.until_open(100).await;
    server.stop();
    for body in join_all(streams.into_iter().map(|stream| stream.unwrap().text())).await {
        let body = body.unwrap();
        let last: Value = serde_json::from_str(body.lines().last().unwrap()).unwrap();
        assert_eq!(last["error"]["code"], "E2010", "{last}");
    }
    (&mut server.task).await.unwrap();
    script.until_open(0).await;
}

#[tokio::test]
async fn a_server_that_stops_lets_streams_finish() {
    let script = Script::with_leave(&ANSWER, 1);
    let mut config = roomy();
    config.drain = Duration::from_hours(1);
    let mut server = Server::start(&script, "both", config).await;
    let stream = ask(&server, "application/x-ndjson").send().await.unwrap();
    script.until_open(1).await;
    server.stop();
    script.allow(ANSWER.len());
    let body = stream.text().await.unwrap();
    let last: Value = serde_json::from_str(body.lines().last().unwrap()).unwrap();
    assert_eq!(last["final"], true);
    (&mut server.task).await.unwrap();
}
