//! Several turns over HTTP: context stored by a run is available to the next run with the same key and conversation
//! only.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cognitive_contract::ports::Provider;
use cognitive_http::ApiKey;
use cognitive_library::{Library, ModuleCache};
use cognitive_runtime::Host;
use cognitive_testkit::{FakeProvider, MemoryContext, complete, good_answer};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::streams::{hear, say};
use crate::support::{Server, client, json_of, roomy};

const ANNA: &str = "anna-0123456789abcdef";
const BOB: &str = "bob-0123456789abcdef";

/// A model that stores its turn number.
fn turns() -> FakeProvider {
    let turn = AtomicUsize::new(0);
    FakeProvider::new(move |_, sink| {
        let mut answer = good_answer(&json!({ "rationale": "r" }));
        let note = format!("the-turn-is-{}", turn.fetch_add(1, Ordering::SeqCst) + 1);
        answer["_emitted_context"] = json!({ "session_state": { "note": note } });
        sink.piece(&answer.to_string());
        Ok(complete())
    })
}

/// The turn number that the last call received.
fn told(turns: &FakeProvider) -> Option<u64> {
    let last = turns.calls().pop()?;
    let (_, after) = last.input.split_once("the-turn-is-")?;
    after.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok()
}

async fn server(keys: &[(&str, &str)]) -> (Server, Arc<FakeProvider>) {
    server_with(keys, "").await
}

/// Starts a server whose module declares additional emit settings.
async fn server_with(keys: &[(&str, &str)], emits: &str) -> (Server, Arc<FakeProvider>) {
    let folder = tempfile::tempdir().unwrap();
    let module = folder.path().join("cognitive/modules/talk");
    std::fs::create_dir_all(&module).unwrap();
    let manifest = "name: talk\nversion: 1.0.0\nresponsibility: Talk\ntier: decision\nresponse:\n  mode: both\ncontext:\n  accepts:\n    - type: session_state\n  emits:\n    - type: session_state\n      ttl: 3600\n";
    std::fs::write(module.join("module.yaml"), format!("{manifest}{emits}")).unwrap();
    std::fs::write(module.join("prompt.md"), "Talk.").unwrap();
    let schema = json!({ "input": { "type": "object" }, "data": { "type": "object", "required": ["rationale"], "properties": { "rationale": { "type": "string" } } } });
    std::fs::write(module.join("schema.json"), schema.to_string()).unwrap();
    let turns = Arc::new(turns());
    let module_cache = ModuleCache::new(Library::new(folder.path(), None, &[]));
    let mut host = Host::new(Arc::new(module_cache), Arc::clone(&turns) as Arc<dyn Provider>);
    host.context = Some(Arc::new(MemoryContext::default()));
    let mut config = roomy();
    config.keys = keys.iter().map(|(name, key)| ApiKey::new(name, key).unwrap()).collect();
    (Server::with_host(folder, host, config).await, turns)
}

/// Runs one turn; returns the earlier turn number that the model received.
async fn turn(
    server: &Server,
    turns: &FakeProvider,
    key: Option<&str>,
    session: Option<&str>,
) -> Option<u64> {
    let mut request = client().post(server.url("/api/run/talk")).header("content-type", "application/json");
    if let Some(key) = key {
        request = request.header("authorization", format!("Bearer {key}"));
    }
    let options = session.map_or_else(|| json!({}), |session| json!({ "session": session }));
    let body = json!({ "input": { "text": "hello" }, "_options": options });
    let envelope = json_of(request.body(body.to_string()).send().await.unwrap()).await;
    assert_eq!(envelope["ok"], true, "{envelope}");
    told(turns)
}

// S-23, CTX-016: a conversation belongs to a key and a name; another key or name is another conversation.
#[tokio::test]
async fn several_turns_over_http_belong_to_one_key_and_one_conversation() {
    let (server, turns) = server(&[("anna", ANNA), ("bob", BOB)]).await;
    assert_eq!(turn(&server, &turns, Some(ANNA), Some("login")).await, None);
    assert_eq!(turn(&server, &turns, Some(ANNA), Some("login")).await, Some(1));
    assert_eq!(turn(&server, &turns, Some(ANNA), Some("login")).await, Some(2));
    assert_eq!(turn(&server, &turns, Some(BOB), Some("login")).await, None, "another key");
    assert_eq!(turn(&server, &turns, Some(ANNA), Some("other")).await, None, "another conversation");
    assert_eq!(turn(&server, &turns, Some(ANNA), None).await, None, "no conversation");
    assert_eq!(turn(&server, &turns, Some(ANNA), Some("login")).await, Some(3));
}

// A conversation has a name chosen by its caller; it needs no user.
#[tokio::test]
async fn without_keys_a_conversation_goes_on_under_its_name() {
    let (server, turns) = server(&[]).await;
    assert_eq!(turn(&server, &turns, None, Some("login")).await, None);
    assert_eq!(turn(&server, &turns, None, Some("login")).await, Some(1));
    assert_eq!(turn(&server, &turns, None, Some("other")).await, None);
}

// W5, D-13, CTX-032: without an identified user, user context is neither stored nor found, on any transport.
#[tokio::test]
async fn without_keys_nobody_is_given_the_context_of_somebody_else() {
    let of_user = "      key_pattern: \"${user_id}:x\"\n";
    let (open, turns) = server_with(&[], of_user).await;
    for session in [None, Some("login")] {
        assert_eq!(turn(&open, &turns, None, session).await, None);
        assert_eq!(turn(&open, &turns, None, session).await, None);
    }
    let body = r#"{"text": "hello"}"#;
    for accept in ["application/json", "application/x-ndjson"] {
        let request = client().post(open.url("/api/run/talk")).header("content-type", "application/json");
        let answer = request.header("accept", accept).body(body).send().await.unwrap().text().await.unwrap();
        assert!(answer.contains("its key names an id that the run does not have"), "{answer}");
        assert_eq!(told(&turns), None, "{accept}");
    }
    let (mut socket, _) =
        tokio_tungstenite::connect_async(format!("ws://{}/ws", open.address)).await.unwrap();
    say(&mut socket, &json!({ "type": "run", "module": "talk", "input": { "text": "hello" } })).await;
    while hear(&mut socket).await.get("final").is_none() {}
    assert_eq!(told(&turns), None);
    // With keys it belongs to the key that was shown.
    let (keyed, turns) = server_with(&[("anna", ANNA), ("bob", BOB)], of_user).await;
    assert_eq!(turn(&keyed, &turns, Some(ANNA), None).await, None);
    assert_eq!(turn(&keyed, &turns, Some(ANNA), None).await, Some(1));
    assert_eq!(turn(&keyed, &turns, Some(BOB), None).await, None);
}

// The same with a header, in a stream and on a socket.
#[tokio::test]
async fn a_conversation_goes_on_over_every_transport() {
    let (server, turns) = server(&[("anna", ANNA)]).await;
    let by_header = async |session: &str, accept: &str| {
        let request = client().post(server.url("/api/run/talk")).header("content-type", "application/json");
        let request = request.header("authorization", format!("Bearer {ANNA}")).header("accept", accept);
        let body = r#"{"text": "hello"}"#;
        request.header("x-cognitive-session", session).body(body).send().await.unwrap()
    };
    assert_eq!(by_header("a", "application/json").await.status(), 200);
    assert_eq!(told(&turns), None);
    let streamed = by_header("a", "application/x-ndjson").await.text().await.unwrap();
    assert!(streamed.contains(r#""final":true"#), "{streamed}");
    assert_eq!(told(&turns), Some(1));
    let mut request = format!("ws://{}/ws", server.address).into_client_request().unwrap();
    request.headers_mut().insert("authorization", format!("Bearer {ANNA}").parse().unwrap());
    let (mut socket, _) = tokio_tungstenite::connect_async(request).await.unwrap();
    let run = |session: Value| json!({ "type": "run", "module": "talk", "input": { "text": "hello" }, "options": { "session": session } });
    say(&mut socket, &run(json!("a"))).await;
    while hear(&mut socket).await.get("final").is_none() {}
    assert_eq!(told(&turns), Some(2));
    say(&mut socket, &run(json!("x".repeat(129)))).await;
    assert_eq!(hear(&mut socket).await["error"]["code"], "E1001");
    assert_eq!(by_header(&"x".repeat(129), "application/json").await.status(), 400);
}
