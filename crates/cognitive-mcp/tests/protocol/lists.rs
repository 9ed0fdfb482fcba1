//! The lists that clients see before they call a tool.

use cognitive_mcp::ToolSurface;
use serde_json::{Value, json};

use super::harness::Bench;

fn names(listed: &Value) -> Vec<&str> {
    listed["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn api_007_many_modules_are_four_tools_and_few_are_tools_of_their_own() {
    let few = Bench::new(&["alpha", "beta"], ToolSurface::default());
    let listed = few.session().await.ask("tools/list", json!({})).await;
    assert_eq!(names(&listed), ["alpha", "beta"]);
    let many = Bench::new(&["alpha", "beta"], ToolSurface::UpTo(1));
    let four = ["cognitive_list", "cognitive_info", "cognitive_run", "cognitive_validate"];
    assert_eq!(names(&many.session().await.ask("tools/list", json!({})).await), four);
    let all = Bench::new(&["alpha", "beta"], ToolSurface::from("all"));
    assert_eq!(names(&all.session().await.ask("tools/list", json!({})).await), ["alpha", "beta"]);
    let one = Bench::new(&["alpha", "beta"], ToolSurface::from("beta, gone"));
    assert_eq!(names(&one.session().await.ask("tools/list", json!({})).await), ["beta"]);
}

#[tokio::test]
async fn a_tool_says_what_it_takes_gives_and_may_do() {
    let bench = Bench::new(&["alpha"], ToolSurface::All);
    let listed = bench.session().await.ask("tools/list", json!({})).await;
    let tool = &listed["result"]["tools"][0];
    assert_eq!(tool["description"], "Judge alpha things. Not for: cooking.");
    assert_eq!(tool["inputSchema"]["type"], "object");
    assert_eq!(tool["inputSchema"]["required"], json!(["text"]));
    assert_eq!(tool["outputSchema"]["required"], json!(["ok", "meta"]));
    assert_eq!(
        tool["outputSchema"]["properties"]["data"]["properties"]["answer"],
        json!({ "type": "string" })
    );
    assert_eq!(tool["annotations"], json!({ "readOnlyHint": true, "openWorldHint": false }));
}

#[tokio::test]
async fn pol_020_a_module_that_agents_may_not_run_and_one_that_is_not_offered_are_no_tools() {
    let bench = Bench::new(&["alpha", "hidden"], ToolSurface::All);
    bench.stub_modules.put("private", json!({ "invocation": { "agent_invocable": false } }));
    let mut client = bench.session().await;
    assert_eq!(names(&client.ask("tools/list", json!({})).await), ["alpha"]);
    let error = client.ask("tools/call", json!({ "name": "private", "arguments": {} })).await;
    assert_eq!(error["error"]["code"], -32602);
    let search = Bench::new(&["alpha", "hidden"], ToolSurface::Search);
    search.stub_modules.put("private", json!({ "invocation": { "agent_invocable": false } }));
    let mut client = search.session().await;
    let found = client.call("cognitive_list", json!({})).await;
    assert_eq!(found["structuredContent"]["total"], 1);
    for (module, code) in [("private", "E4007"), ("hidden", "E4006"), ("../alpha", "E4006")] {
        let result =
            client.call("cognitive_run", json!({ "module": module, "input": { "text": "x" } })).await;
        assert_eq!(result["structuredContent"]["error"]["code"], code, "{module}");
        assert_eq!(result["isError"], true);
    }
}

#[tokio::test]
async fn the_newest_revision_needs_no_handshake_and_says_how_long_lists_hold() {
    let bench = Bench::new(&["alpha"], ToolSurface::All);
    let mut client = bench.stateless(json!({}));
    let found = client.ask("server/discover", json!({})).await;
    let versions = found["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")) && versions.contains(&json!("2025-11-25")), "{found}");
    let listed = client.ask("tools/list", json!({})).await;
    assert_eq!(names(&listed), ["alpha"]);
    assert!(listed["result"]["ttlMs"].is_u64() && listed["result"]["cacheScope"].is_string(), "{listed}");
}

#[tokio::test]
async fn modules_can_be_read_and_picked_from_a_menu() {
    let bench = Bench::new(&["alpha"], ToolSurface::All);
    let mut client = bench.session().await;
    let listed = client.ask("resources/list", json!({})).await;
    let uris: Vec<&str> = listed["result"]["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["uri"].as_str().unwrap())
        .collect();
    assert_eq!(uris, ["cognitive://modules", "cognitive://modules/alpha"]);
    let read = client.ask("resources/read", json!({ "uri": "cognitive://modules/alpha" })).await;
    let text = read["result"]["contents"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap()["input"]["required"], json!(["text"]));
    for uri in ["cognitive://modules/gone", "cognitive://modules/../alpha", "file:///etc/passwd"] {
        assert!(client.ask("resources/read", json!({ "uri": uri })).await["error"].is_object(), "{uri}");
    }
    let prompts = client.ask("prompts/list", json!({})).await;
    let argument = json!({ "name": "text", "description": "What to judge", "required": true });
    assert_eq!(prompts["result"]["prompts"][0]["arguments"], json!([argument]));
    let asked = client.ask("prompts/get", json!({ "name": "alpha", "arguments": { "text": "hello" } })).await;
    let text = asked["result"]["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(text.contains("`alpha`") && text.contains("hello"), "{text}");
    assert_eq!(client.ask("prompts/get", json!({ "name": "alpha" })).await["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn a_module_that_is_added_is_told_to_clients_of_both_revisions() {
    let bench = Bench::new(&["alpha"], ToolSurface::All);
    let mut session = bench.session().await;
    let mut stateless = bench.stateless(json!({}));
    stateless.send("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } })).await;
    stateless.hear("notifications/subscriptions/acknowledged").await;
    session.ask("tools/list", json!({})).await;
    bench.stub_modules.put("beta", json!({}));
    session.hear("notifications/tools/list_changed").await;
    stateless.hear("notifications/tools/list_changed").await;
    assert_eq!(names(&session.ask("tools/list", json!({})).await), ["alpha", "beta"]);
}

/// The clock is paused, so no periodic scan happens before the change is reported.
#[tokio::test(start_paused = true)]
async fn who_says_that_a_module_has_changed_has_clients_told_at_once() {
    let bench = Bench::new(&["alpha"], ToolSurface::All);
    let mut session = bench.session().await;
    session.ask("tools/list", json!({})).await;
    let began = tokio::time::Instant::now();
    bench.stub_modules.put("beta", json!({}));
    // A task that is never idle keeps the paused clock from advancing.
    let saying = async {
        loop {
            bench.server.rescan();
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = session.hear("notifications/tools/list_changed") => {}
        () = saying => {}
    }
    assert_eq!(began.elapsed(), std::time::Duration::ZERO);
}

/// The clock is paused, so all requests fall within the validity of one scan.
#[tokio::test(start_paused = true)]
async fn a_client_that_asks_again_and_again_costs_one_look() {
    let bench = Bench::new(&["alpha", "beta", "gamma"], ToolSurface::Search);
    let mut client = bench.stateless(json!({}));
    for _ in 0..50 {
        let found = client.call("cognitive_list", json!({ "query": "judge" })).await;
        assert_eq!(found["structuredContent"]["total"], 3);
    }
    let seen = |count: &std::sync::atomic::AtomicUsize| count.load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!((seen(&bench.stub_modules.looks), seen(&bench.stub_modules.reads)), (1, 3));
}
