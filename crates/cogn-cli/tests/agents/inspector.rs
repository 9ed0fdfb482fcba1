//! The MCP Inspector, a debugging tool for servers, on the standard streams of `cogn mcp`.

use std::process::Command;

use cognitive_testkit::{Lack, skip};
use serde_json::{Value, json};

use crate::model::recorded;
use crate::stage::{Stage, lasting, mcp_suite, printed_json};

#[test]
fn the_inspector_lists_and_calls_over_the_standard_streams() {
    let Some((node, packages)) = mcp_suite() else { return skip(Lack::McpSuite) };
    let stage = Stage::new();
    let inspect = |method: &[&str]| -> Value {
        let mut command: Command = stage.command(&node);
        command.arg(packages.join("inspector/clients/launcher/build/index.js")).arg("--cli");
        // It passes on only a few standard variables.
        command.args(["-e", "OPENAI_API_KEY=sk-test"]);
        command.arg(env!("CARGO_BIN_EXE_cogn")).args(stage.mcp_arguments()).arg("--method").args(method);
        printed_json(command)
    };
    let names = |listed: &Value, kind: &str| -> Vec<String> {
        let items = listed[kind].as_array().unwrap().iter();
        items.map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    };
    let modules: Vec<String> = recorded().into_iter().map(|each| each.module).collect();
    assert_eq!(names(&inspect(&["tools/list"]), "tools"), modules);
    assert_eq!(names(&inspect(&["prompts/list"]), "prompts"), modules);
    let resources = names(&inspect(&["resources/list"]), "resources");
    assert_eq!(resources[0], "modules");
    assert_eq!(resources[1..], modules);
    let text = "The delivery came two weeks late.";
    let called =
        inspect(&["tools/call", "--tool-name", "text-classifier", "--tool-arg", &format!("text={text}")]);
    let plain = stage.run("text-classifier", &json!({ "text": text }));
    assert_eq!(plain["ok"], true);
    assert_eq!(lasting(called["structuredContent"].clone()), lasting(plain));
}
