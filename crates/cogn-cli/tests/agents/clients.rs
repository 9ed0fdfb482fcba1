//! The official MCP clients, for Python and for Node in both of its major versions. Each lists the tools, calls every
//! bundled module, receives progress, cancels a call, and validates the structured content against the tool's schema.

use std::path::Path;
use std::process::Command;

use cognitive_testkit::{Lack, skip};
use serde_json::{Value, json};

use crate::model::recorded;
use crate::stage::{Stage, fixture_path, lasting, node, printed_with_line, python_with};

/// Compares the results of a client with the output of the command line for the same runs.
fn check(stage: &Stage, seen: &Value) {
    let mut compared = 0;
    for each in recorded() {
        let plain = stage.run(&each.module, &each.input);
        let told = &seen["results"][&each.module];
        let structured = as_floats(told["structured"].clone());
        assert_eq!(as_floats(with_media(told)), structured, "{}", each.module);
        assert_eq!(told["is_error"], json!(!plain["ok"].as_bool().unwrap()), "{}", each.module);
        assert_eq!(lasting(structured), as_floats(lasting(plain)), "{}", each.module);
        compared += 1;
    }
    assert!(compared >= 14, "only {compared} modules were compared");
    assert_eq!(seen["tools"].as_array().unwrap().len(), compared, "every module is a tool");

    assert_eq!(
        seen["schemas"],
        json!(compared),
        "every tool announces what it gives, and the client took it"
    );
    let progress = seen["progress"].as_array().unwrap();
    assert!(progress.contains(&json!("begin")), "{progress:?}");
    // MEDIA-017: the client gets the picture as a picture.
    let blocks = seen["results"]["image-generator"]["blocks"].as_array().unwrap();
    let kinds: Vec<&str> = blocks.iter().map(|block| block["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["text", "image"]);
    let picture = &seen["results"]["image-generator"]["structured"]["data"]["images"][0];
    assert_eq!((&blocks[1]["data"], &blocks[1]["mimeType"]), (&picture["data"], &picture["media_type"]));
    // The call that the model held was cancelled.
    assert_eq!(seen["cancelled"], json!(true));
}

/// Returns the envelope of the text, with the bytes of media where the text names a block.
fn with_media(told: &Value) -> Value {
    let blocks = told["blocks"].as_array().unwrap();
    let mut envelope: Value = serde_json::from_str(blocks[0]["text"].as_str().unwrap()).unwrap();
    put_back(&mut envelope, blocks);
    envelope
}

fn put_back(value: &mut Value, blocks: &[Value]) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| put_back(item, blocks)),
        Value::Object(members) => {
            if let Some(place) = members.shift_remove("bytes_in") {
                let number = place.as_str().unwrap().strip_prefix("content[").unwrap().strip_suffix(']');
                let block: usize = number.unwrap().parse().unwrap();
                members.insert("data".to_owned(), blocks[block]["data"].clone());
            }
            members.values_mut().for_each(|member| put_back(member, blocks));
        }
        _ => {}
    }
}

/// Converts numbers to floats, because JavaScript has only one number type.
fn as_floats(value: Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.into_iter().map(as_floats).collect(),
        Value::Object(members) => members
            .into_iter()
            .map(|(name, value)| (name, as_floats(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other,
    }
}

/// Returns the output of a client. It cancels its last call once the model holds it, and ends once the server has
/// disconnected from the model. A client that ends sooner may not have sent the cancellation.
fn seen(stage: &Stage, command: Command) -> Value {
    printed_with_line(command, || stage.model.until_held(1), || stage.model.until_left(1))
}

/// Prepares a script next to the packages that it imports.
fn node_command(stage: &Stage, folder: &Path, world: &Path) -> Command {
    let packages = stage.home.path().join("node_modules");
    std::os::unix::fs::symlink(folder.join("node_modules"), packages).unwrap();
    let copy = stage.home.path().join("client.mjs");
    std::fs::copy(fixture_path("client.mjs"), &copy).unwrap();
    let mut command = stage.command("node");
    command.arg(copy).arg(world);
    command
}

// API-007
#[test]
fn api_007_the_python_client_runs_every_module() {
    let Some(python) = python_with("mcp") else { return skip(Lack::McpClients) };
    let stage = Stage::new();
    let world = stage.world(json!({}));
    let mut command = stage.command(python);
    command.arg(fixture_path("client.py")).arg(world);
    let seen = seen(&stage, command);
    check(&stage, &seen);
    assert_eq!(seen["prompts"], seen["tools"]);
}

#[test]
fn the_strict_client_for_node_takes_every_schema_and_every_answer() {
    let Some(folder) = node() else { return skip(Lack::McpClients) };
    let stage = Stage::new();
    let world = stage.world(json!({}));
    // The client validates every answer against the tool's schema, and throws if it does not match.
    check(&stage, &seen(&stage, node_command(&stage, &folder, &world)));
}

/// Runs the newer client over HTTP. It negotiates the protocol revision, or keeps to an older one.
fn over_http(mode: &str, revision: &str) {
    let Some(folder) = node() else { return skip(Lack::McpClients) };
    let stage = Stage::new();
    let serving = stage.serve("all");
    let options = json!({ "versionNegotiation": { "mode": mode } });
    let world = stage.world(json!({ "url": serving.url, "options": options }));
    let seen = seen(&stage, node_command(&stage, &folder, &world));
    assert_eq!(seen["revision"], revision);
    check(&stage, &seen);
}

#[test]
fn the_newer_client_for_node_runs_every_module_over_http() {
    over_http("auto", "2026-07-28");
}

#[test]
fn the_newer_client_for_node_runs_every_module_in_the_older_revision() {
    over_http("legacy", "2025-11-25");
}
