//! Tests that each key gets one answer for all callers, and that a run can be cancelled.

use cogn::json;

use crate::http::send;
use crate::local_worker::{Here, PARTS};

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_made_once_for_each_key() {
    let Some(here) = Here::open(json!({})).await else { return };
    for part in PARTS {
        here.model.answers(part, "low", part);
    }
    // Without a key, the hash of the request is the key, independent of the order of members.
    let first =
        here.call("cogn/run", json!({ "module": "chain", "input": { "text": "a", "more": 1 } })).await;
    let again =
        here.call("cogn/run", json!({ "input": { "more": 1, "text": "a" }, "module": "chain" })).await;
    assert_eq!((first["ok"] == true, &first), (true, &again), "the very same run");
    assert_eq!(here.model.asked(), PARTS);
    let other = here.call("cogn/run", json!({ "module": "chain", "input": { "text": "b" } })).await;
    assert_ne!(first["meta"]["trace_id"], other["meta"]["trace_id"]);
    assert_eq!(here.model.asked().len(), 8);
    // A caller's key takes precedence over the input, for compositions and for single modules.
    for module in ["chain", "first"] {
        let before = here.model.asked().len();
        let named = json!({ "module": module, "input": { "text": "c" }, "key": "mine" });
        let mine = here.call("cogn/run", named).await;
        let same = json!({ "module": module, "input": { "text": "d" }, "key": "mine" });
        assert_eq!(here.call("cogn/run", same).await, mine, "{module}");
        assert_eq!(here.model.asked().len() - before, if module == "chain" { 4 } else { 1 }, "{module}");
    }
    let known = here.call("chain/mine/envelope", json!(null)).await;
    assert_eq!(known["data"]["text"], "fourth");
    assert_eq!(here.call("chain/mine/status", json!(null)).await, json!({ "state": "done" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_drops_the_call_of_its_model_and_says_so() {
    let Some(here) = Here::open(json!({})).await else { return };
    for part in PARTS {
        here.model.answers(part, "low", part);
    }
    let mut heard = here.model.stays_silent_for(&["third"]);
    let sent = here.call("chain/slow/run/send", json!({ "text": "a" })).await;
    let id = sent["invocationId"].as_str().unwrap();
    assert_eq!(heard.recv().await, Some("asked"));
    let (status, said) =
        send("PATCH", &format!("{}/invocations/{id}/cancel", here.restate.admin), &json!(null)).await;
    assert!((200..300).contains(&status), "{status} {said}");
    assert_eq!(heard.recv().await, Some("dropped"), "the call of the model is over");
    let envelope = here.call("chain/slow/envelope", json!(null)).await;
    assert_eq!(
        (&envelope["error"]["code"], &envelope["error"]["details"]["kind"]),
        (&json!("E2010"), &json!("cancelled"))
    );
    assert_eq!(envelope["meta"]["trace_id"], json!(id));
    assert_eq!(here.model.asked(), ["first", "second", "third"], "nobody was asked again");
}
