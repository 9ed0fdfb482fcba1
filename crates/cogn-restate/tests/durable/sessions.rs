//! Tests sessions as objects: the next run sees the context of the previous one, in this session only.

use cogn::{Value, json};

use crate::local_worker::Here;

fn counted(count: u64) -> Value {
    let meta = json!({ "confidence": 0.9, "risk": "low", "explain": "e" });
    let data = json!({ "rationale": "r", "text": count.to_string() });
    json!({ "ok": true, "meta": meta, "data": data, "_emitted_context": { "tally": { "count": count } } })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_keeps_context_between_runs_and_workers() {
    let Some(mut here) = Here::open(json!({})).await else { return };
    let turn = json!({ "module": "counter", "input": { "text": "go" } });
    here.model.says("counter", counted(1));
    let first = here.call("cogn-session/ann%2Flogin/run", turn.clone()).await;
    assert_eq!((&first["ok"], first["meta"].get("warnings")), (&json!(true), None), "{first}");
    here.restart_worker();
    let kept = here.call("cogn-session/ann%2Flogin/context", json!(null)).await;
    assert_eq!(kept["context"][0]["value"], json!({ "count": 1 }), "{kept}");
    assert_eq!(here.call("cogn-session/other/context", json!(null)).await, json!({ "context": [] }));
    here.model.says("counter", counted(2));
    let whole = json!({ "module": "counter", "input": { "text": "go" }, "session": "ann/login" });
    assert_eq!(here.call("cogn/run", whole).await["data"]["text"], "2");
    let kept = here.call("cogn-session/ann%2Flogin/context", json!(null)).await;
    assert_eq!(kept["context"].as_array().map(Vec::len), Some(1), "the newest of each name");
    assert_eq!(kept["context"][0]["value"]["count"], 2);
    here.call("cogn-session/ann%2Flogin/forget", json!(null)).await;
    assert_eq!(here.call("cogn-session/ann%2Flogin/context", json!(null)).await, json!({ "context": [] }));
}
