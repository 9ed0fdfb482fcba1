//! Long runs become tasks for clients that support tasks, and for no others.

use std::time::Duration;

use cognitive_mcp::ToolSurface;
use serde_json::{Value, json};

use super::harness::{Bench, Client};

fn knows_tasks() -> Value {
    json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } })
}

async fn start(bench: &Bench, client: &mut Client) -> String {
    bench.gate.open.send_replace(false);
    let made = client.call("alpha", json!({ "text": "hi" })).await;
    assert_eq!(made["resultType"], "task", "{made}");
    made["taskId"].as_str().unwrap().to_owned()
}

/// Polls until the task is in this state. Each poll lets the server make progress, so this returns as soon as it is.
async fn until(client: &mut Client, task: &str, state: &str) -> Value {
    loop {
        let found = client.ask("tasks/get", json!({ "taskId": task })).await;
        if found["result"]["status"] == state {
            return found["result"].clone();
        }
        assert_eq!(found["result"]["status"], "working", "{found}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_long_run_is_a_task_whose_result_is_the_same_envelope() {
    let bench = Bench::new(&["alpha"], ToolSurface::All);
    let mut client = bench.stateless(knows_tasks());
    let task = start(&bench, &mut client).await;
    bench.gate.open.send_replace(true);
    let done = until(&mut client, &task, "completed").await;
    assert_eq!(done["result"]["structuredContent"]["data"]["answer"], "yes");
}

#[tokio::test]
async fn a_cancelled_task_leaves_the_model() {
    let bench = Bench::new(&["alpha"], ToolSurface::All);
    let mut client = bench.stateless(knows_tasks());
    let task = start(&bench, &mut client).await;
    bench.gate.asked.subscribe().wait_for(|count| *count == 1).await.unwrap();
    client.ask("tasks/cancel", json!({ "taskId": task })).await;
    bench.gate.left.subscribe().wait_for(|count| *count == 1).await.unwrap();
    until(&mut client, &task, "cancelled").await;
}

#[tokio::test]
async fn a_client_that_does_not_know_tasks_waits_for_its_answer() {
    let bench = Bench::new(&["alpha"], ToolSurface::All);
    bench.gate.open.send_replace(false);
    let mut client = bench.stateless(json!({}));
    let id = client.send("tools/call", json!({ "name": "alpha", "arguments": { "text": "hi" } })).await;
    bench.gate.asked.subscribe().wait_for(|count| *count == 1).await.unwrap();
    bench.gate.open.send_replace(true);
    assert_eq!(client.answer_to(id).await["result"]["structuredContent"]["ok"], true);
}

/// Runs of clients that support tasks are spawned, so only their runs could be left behind.
#[tokio::test(start_paused = true)]
async fn a_client_that_knows_tasks_and_hangs_up_leaves_the_model() {
    let bench = Bench::with_tasks_after(&["alpha"], ToolSurface::All, Duration::from_hours(1));
    bench.gate.open.send_replace(false);
    let mut client = bench.stateless(knows_tasks());
    client.send("tools/call", json!({ "name": "alpha", "arguments": { "text": "hi" } })).await;
    bench.gate.asked.subscribe().wait_for(|count| *count == 1).await.unwrap();
    drop(client);
    bench.gate.left.subscribe().wait_for(|count| *count == 1).await.unwrap();
}
