//! Tests workers that die in the middle of a run: answered parts are not asked again, for every shape of
//! composition.

use cogn::{Value, json};

use crate::local_worker::{Here, PARTS, text_schema, write_module};
use crate::model::without_measures;

fn step(from: &str, to: &str) -> Value {
    let path = if from == "input" { "$.text" } else { "$.data.text" };
    json!({ "from": from, "to": to, "mapping": { "text": path } })
}

fn names(parts: &[&str]) -> Vec<Value> {
    parts.iter().map(|part| json!({ "name": part })).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_that_run_at_once_go_on_where_each_of_them_was() {
    let fan = json!({ "composition": {
        "pattern": "parallel", "requires": names(&["first", "second", "third"]),
        "dataflow": [
            step("input", "first"), step("input", "second"), step("first.output", "third"),
            { "from": ["first.output", "second.output", "third.output"], "to": "output", "aggregate": "merge" },
        ],
    } });
    let write = |root: &std::path::Path| write_module(root, "fan", &fan, &text_schema());
    let Some(mut here) = Here::with_modules(json!({}), write).await else { return };
    for part in PARTS {
        here.model.answers(part, "low", part);
    }
    let mut heard = here.model.stays_silent_for(&["second", "third"]);
    here.call("fan/one/run/send", json!({ "text": "a" })).await;
    // `third` is asked after the answer of `first` was recorded.
    assert_eq!((heard.recv().await, heard.recv().await), (Some("asked"), Some("asked")));
    here.restart_worker();
    let durable = here.call("fan/one/envelope", json!(null)).await;
    let mut asked = here.model.asked();
    assert_eq!(asked[..3], ["first", "second", "third"]);
    asked.sort();
    assert_eq!(asked, ["first", "second", "second", "third", "third"], "`first` was not asked again");
    let run = here.runtime().module("fan").unwrap().input(json!({ "text": "a" }));
    let whole = run.options(|options| options.remote = true).run().await;
    assert_eq!(without_measures(&durable), without_measures(&serde_json::to_value(&whole).unwrap()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_is_made_of_parts_is_recalled_as_a_whole() {
    let outer = json!({ "composition": {
        "requires": names(&["chain", "counter"]),
        "dataflow": [
            step("input", "chain"), step("chain.output", "counter"),
            { "from": "counter.output", "to": "output" },
        ],
    } });
    let write = |root: &std::path::Path| write_module(root, "outer", &outer, &text_schema());
    let Some(mut here) = Here::with_modules(json!({}), write).await else { return };
    for part in PARTS.iter().chain(&["counter"]) {
        here.model.answers(part, "low", part);
    }
    let mut heard = here.model.stays_silent_for(&["counter"]);
    here.call("outer/one/run/send", json!({ "text": "a" })).await;
    assert_eq!(heard.recv().await, Some("asked"));
    here.restart_worker();
    let envelope = here.call("outer/one/envelope", json!(null)).await;
    assert_eq!(envelope["data"]["text"], "counter", "{envelope}");
    assert_eq!(here.model.asked(), ["first", "second", "third", "fourth", "counter", "counter"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn context_that_a_part_kept_is_kept_once_the_run_is_over_and_not_before() {
    let talk = json!({ "context": { "mode": "main" }, "composition": {
        "requires": names(&["counter", "first"]),
        "dataflow": [
            step("input", "counter"), step("counter.output", "first"), { "from": "first.output", "to": "output" },
        ],
    } });
    let write = |root: &std::path::Path| write_module(root, "talk", &talk, &text_schema());
    let Some(mut here) = Here::with_modules(json!({}), write).await else { return };
    let meta = json!({ "confidence": 0.9, "risk": "low", "explain": "e" });
    let (data, tally) = (json!({ "rationale": "r", "text": "t" }), json!({ "tally": { "count": 7 } }));
    here.model.says("counter", json!({ "ok": true, "meta": meta, "data": data, "_emitted_context": tally }));
    here.model.answers("first", "low", "done");
    let mut heard = here.model.stays_silent_for(&["first"]);
    here.call("cogn-session/s/run/send", json!({ "module": "talk", "input": { "text": "a" } })).await;
    assert_eq!(heard.recv().await, Some("asked"));
    assert_eq!(
        here.call("cogn-session/s/context", json!(null)).await,
        json!({ "context": [] }),
        "not half of it"
    );
    here.restart_worker();
    // Runs of a session are serialized, so this one starts after the first.
    let second =
        here.call("cogn-session/s/run", json!({ "module": "first", "input": { "text": "b" } })).await;
    assert_eq!(second["ok"], true, "{second}");
    let kept = here.call("cogn-session/s/context", json!(null)).await;
    assert_eq!(kept["context"][0]["value"], json!({ "count": 7 }), "{kept}");
    assert_eq!(here.model.asked(), ["counter", "first", "first", "first"], "`counter` was asked once");
}
