//! Tests a review as a promise that only a person's decision resolves, even if workers die meanwhile.

use cogn::json;

use crate::local_worker::{Here, PARTS};

fn rules() -> cogn::Value {
    json!({ "review": { "rules": [{ "when": "risk in [high]" }] } })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_ends_a_run_that_waits_also_after_its_worker_is_gone() {
    let Some(mut here) = Here::open(rules()).await else { return };
    for part in PARTS {
        here.model.answers(part, "high", part);
    }
    let wanted = json!({ "text": "a", "_options": { "review": "wait" } });
    here.call("chain/one/run/send", wanted).await;
    let shown = here.call("chain/one/review", json!(null)).await;
    assert_eq!((&shown["state"], &shown["rule"]), (&json!("waiting"), &json!("risk in [high]")), "{shown}");
    assert_eq!(here.call("chain/one/status", json!(null)).await, json!({ "state": "waiting" }));
    here.restart_worker();
    let wrong = here.call("chain/one/decide", json!({ "verdict": "correct", "data": { "text": 1 } })).await;
    assert_eq!(wrong["error"]["code"], "E1001", "a correction has to fit the module: {wrong}");
    let right = json!({ "verdict": "correct", "data": { "rationale": "s", "text": "right" }, "by": "ann" });
    let decided = here.call("chain/one/decide", right.clone()).await;
    assert_eq!(decided["decided"]["verdict"], "correct", "{decided}");
    let envelope = here.call("chain/one/envelope", json!(null)).await;
    assert_eq!(
        (&envelope["data"]["text"], &envelope["meta"]["review"]["by"]),
        (&json!("right"), &json!("ann"))
    );
    assert_eq!(
        here.call("chain/one/decide", right).await["decided"]["by"],
        "ann",
        "the same again changes nothing"
    );
    let other = here.call("chain/one/decide", json!({ "verdict": "reject" })).await;
    assert_eq!(other["error"]["details"]["decision"]["verdict"], "correct", "{other}");
    assert_eq!(here.model.asked(), PARTS, "nobody was asked twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn single_modules_wait_too_and_what_no_rule_means_does_not() {
    let Some(here) = Here::open(rules()).await else { return };
    here.model.answers("first", "high", "a");
    let wanted = |text: &str| {
        let (input, options) = (json!({ "text": text }), json!({ "review": "wait" }));
        json!({ "module": "first", "input": input, "_options": options })
    };
    here.call("cogn-run/one/run/send", wanted("a")).await;
    assert_eq!(here.call("cogn-run/one/review", json!(null)).await["state"], "waiting");
    here.call("cogn-run/one/decide", json!({ "verdict": "reject", "reason": "no" })).await;
    let rejected = here.call("cogn-run/one/envelope", json!(null)).await;
    assert_eq!((&rejected["ok"], &rejected["error"]["details"]["kind"]), (&json!(false), &json!("rejected")));
    here.model.answers("first", "low", "b");
    let free = here.call("cogn-run/two/run", wanted("b")).await;
    assert_eq!((&free["ok"], &free["data"]["text"]), (&json!(true), &json!("b")));
    assert_eq!(here.call("cogn-run/two/review", json!(null)).await, json!({ "state": "done" }));
    let nothing = here.call("cogn-run/two/decide", json!({ "verdict": "approve" })).await;
    assert_eq!(nothing["error"]["code"], "E1001");
}
