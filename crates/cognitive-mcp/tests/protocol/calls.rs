//! The result of a call: one envelope in two forms, for every outcome.

use cognitive_mcp::ToolSurface;
use serde_json::{Value, json};

use super::harness::Bench;

/// Returns the envelope of a result, after comparing its two forms.
fn envelope(result: &Value) -> Value {
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), result["structuredContent"]);
    assert_eq!(result["isError"], json!(!result["structuredContent"]["ok"].as_bool().unwrap()));
    result["structuredContent"].clone()
}

#[tokio::test]
async fn a_call_answers_with_its_envelope_as_structure_and_as_text() {
    let bench = Bench::new(&["alpha"], ToolSurface::All);
    let answer = envelope(&bench.session().await.call("alpha", json!({ "text": "hi" })).await);
    assert_eq!(answer["data"]["answer"], "yes");
    assert_eq!(answer["meta"]["confidence"], 0.9);
    let search = Bench::new(&["alpha"], ToolSurface::Search);
    let mut client = search.session().await;
    let again = envelope(
        &client.call("cognitive_run", json!({ "module": "alpha", "input": { "text": "hi" } })).await,
    );
    assert_eq!(again["data"], answer["data"]);
    let free = envelope(&client.call("cognitive_run", json!({ "module": "alpha", "args": "hi" })).await);
    assert_eq!(free["ok"], true);
    let report = client.call("cognitive_validate", json!({ "module": "alpha" })).await;
    assert_eq!(report["structuredContent"]["valid"], true);
}

#[tokio::test]
async fn what_is_wrong_with_a_call_is_an_error_of_the_tool_that_a_model_can_read() {
    let bench = Bench::new(&["alpha"], ToolSurface::All);
    let failed = envelope(&bench.session().await.call("alpha", json!({ "text": 1 })).await);
    assert_eq!(failed["error"]["code"], "E1001");
    let told = "The `inputSchema` of this tool shows the module's input";
    assert_eq!(failed["error"]["suggestion"], told);
    let search = Bench::new(&["alpha"], ToolSurface::Search);
    let mut client = search.session().await;
    for arguments in [json!({}), json!({ "module": 1 }), json!({ "module": "alpha", "args": 1 })] {
        let failed = envelope(&client.call("cognitive_run", arguments.clone()).await);
        assert_eq!(failed["error"]["code"], "E1001", "{arguments}");
    }
    let wrong = json!({ "module": "alpha", "input": { "text": 1 } });
    let failed = envelope(&client.call("cognitive_run", wrong).await);
    assert_eq!(failed["error"]["suggestion"], "`cognitive_info` shows the module's input");
    assert_eq!(client.ask("tools/call", json!({ "name": "nothing" })).await["error"]["code"], -32602);
}

/// The paused clock advances only while all tasks are idle, and nothing here waits for time.
#[tokio::test(start_paused = true)]
async fn a_client_hears_at_once_what_its_call_is_at() {
    let bench = Bench::new(&["alpha"], ToolSurface::All);
    bench.gate.open.send_replace(false);
    let mut client = bench.session().await;
    let began = tokio::time::Instant::now();
    let params = json!({ "name": "alpha", "arguments": { "text": "hi" }, "_meta": { "progressToken": 7 } });
    client.send("tools/call", params).await;
    while client.hear("notifications/progress").await["params"]["message"] != "call" {}
    assert_eq!(began.elapsed(), std::time::Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_long_call_tells_that_it_is_alive_where_a_token_was_given() {
    let bench = Bench::new(&["alpha"], ToolSurface::All);
    bench.gate.open.send_replace(false);
    let mut client = bench.session().await;
    let params = json!({ "name": "alpha", "arguments": { "text": "hi" }, "_meta": { "progressToken": "p" } });
    let id = client.send("tools/call", params).await;
    let mut last = -1.0;
    // The paused clock advances only while all tasks are idle: the start, the stage of the call, then the heartbeat.
    for _ in 0..4 {
        let told = client.hear("notifications/progress").await;
        assert_eq!(told["params"]["progressToken"], "p");
        let progress = told["params"]["progress"].as_f64().unwrap();
        assert!(progress > last, "progress only grows");
        last = progress;
    }
    bench.gate.open.send_replace(true);
    assert_eq!(envelope(&client.answer_to(id).await["result"])["ok"], true);
}

/// The clock is paused, because the library gives answers five seconds after a stream was closed.
#[tokio::test(start_paused = true)]
async fn a_cancelled_call_leaves_the_model_and_a_closed_stream_does_too() {
    let bench = Bench::new(&["alpha"], ToolSurface::All);
    bench.gate.open.send_replace(false);
    let mut client = bench.session().await;
    let id = client.send("tools/call", json!({ "name": "alpha", "arguments": { "text": "hi" } })).await;
    bench.gate.asked.subscribe().wait_for(|count| *count == 1).await.unwrap();
    client
        .write(
            &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }),
        )
        .await;
    bench.gate.left.subscribe().wait_for(|count| *count == 1).await.unwrap();
    client.send("tools/call", json!({ "name": "alpha", "arguments": { "text": "hi" } })).await;
    bench.gate.asked.subscribe().wait_for(|count| *count == 2).await.unwrap();
    drop(client);
    bench.gate.left.subscribe().wait_for(|count| *count == 2).await.unwrap();
}
