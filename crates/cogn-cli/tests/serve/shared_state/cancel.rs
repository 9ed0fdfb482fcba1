//! Any server can cancel a stream, but only for its own client.

use cognitive_testkit::TestRedis;
use serde_json::{Value, json};

use super::service::{ANN, BOB, Home, Server, Service, send};
use super::streams::{Chunks, session, shared, three};

fn end(server: &Server, id: &str, key: &str) -> (u16, String) {
    send(&server.address, &format!("DELETE /v1/streams/{id}"), key, "")
}

/// Returns whether the stream ended as cancelled.
fn was_cancelled(chunks: &[Value]) -> bool {
    let last = chunks.last().unwrap_or(&Value::Null);
    let has_parts = last["partial_data"]["rationale"].as_str().is_some_and(|part| part.contains("one, two"));
    last["error"]["details"]["kind"] == "cancelled" && has_parts
}

#[test]
fn a_stream_is_ended_at_any_server_by_its_own_client() {
    let Some(redis) = TestRedis::start() else { return };
    let (home, service) = (Home::new("audit: {enabled: false}\n"), Service::start());
    let [first, second, third] = three(&home, &service, &shared(&redis, "0"));
    // At a server that has never seen the stream, and at one that follows it.
    for (name, at) in [("half-a", &second), ("half-b", &third)] {
        let mut own = Chunks::open(&first.address, name, &json!({}), None);
        let id = session(&own.until_text());
        // Once another server has the part, all servers find it there.
        let mut followed = Chunks::open(&third.address, name, &json!({}), Some(&id));
        followed.until_text();
        let (status, refused) = end(at, &id, BOB);
        assert!(status == 410 && refused.contains("E4013"), "{refused}");
        let (status, ended) = end(at, &id, ANN);
        assert!(status == 200 && ended.contains("cancelled"), "{ended}");
        for chunks in [own.rest(), followed.rest()] {
            assert!(was_cancelled(&chunks), "{name}: {chunks:?}");
        }
        // Later clients get the same result, and the cancel is idempotent.
        assert!(was_cancelled(&Chunks::open(&second.address, name, &json!({}), Some(&id)).rest()));
        assert_eq!((end(&first, &id, ANN).0, end(at, &id, ANN).0), (200, 200));
        assert_eq!(service.times(name), 1);
    }
    assert_eq!(end(&second, "nobody", ANN).0, 410);
}

#[test]
fn where_the_server_of_a_stream_cannot_be_told_the_client_is() {
    let Some(redis) = TestRedis::start() else { return };
    let (home, service) = (Home::new("audit: {enabled: false}\n"), Service::start());
    let [first, second, _third] = three(&home, &service, &shared(&redis, "0"));
    let mut own = Chunks::open(&first.address, "half-a", &json!({}), None);
    let id = session(&own.until_text());
    redis.freeze();
    let (status, refused) = end(&second, &id, ANN);
    assert!(status == 503 && refused.contains("cannot cancel"), "{refused}");
    // The stream's own server needs no shared state for that.
    assert_eq!(end(&first, &id, ANN).0, 200);
    assert!(was_cancelled(&own.rest()));
    redis.thaw();
}
