//! The hints for an agent after a failed call: they must name tools, because an agent can neither type commands nor
//! send HTTP requests.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::stage::Stage;

/// Returns the errors of calls of `cogn mcp`, in call order.
fn errors(stage: &Stage, tools: &str, calls: &[(&str, Value)]) -> Vec<Value> {
    let mut mcp = stage.command(env!("CARGO_BIN_EXE_cogn"));
    mcp.args(["mcp", "--tools", tools]).args(stage.provider());
    let mut process = mcp.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = process.stdin.take().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {} });
    let mut ask = |(tool, arguments): &(&str, Value)| {
        let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        writeln!(input, "{request}").unwrap();
        let answer: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        answer["result"]["structuredContent"]["error"].clone()
    };
    let told = calls.iter().map(&mut ask).collect();
    drop(input);
    process.wait().unwrap();
    told
}

#[test]
fn a_failed_call_suggests_what_an_agent_can_do() {
    let stage = Stage::new();
    let run = |module: &str, input: Value| ("cognitive_run", json!({ "module": module, "input": input }));
    let misspelt = "text-clasifier";
    let calls = [
        ("cognitive_info", json!({ "module": misspelt })),
        run(misspelt, json!({ "text": "a" })),
        ("cognitive_validate", json!({ "module": "nothing-like-it" })),
        run("text-classifier", json!({ "text": 1 })),
        run("text-classifier", json!("no object")),
        ("cognitive_run", json!({ "args": "x" })),
    ];
    let told = errors(&stage, "search", &calls);
    let near = "Did you mean `text-classifier`? `cognitive_list` lists all modules";
    assert_eq!((&told[0]["suggestion"], &told[1]["suggestion"]), (&json!(near), &json!(near)));
    assert_eq!(told[2]["suggestion"], "`cognitive_list` lists all modules");
    assert_eq!(told[3]["suggestion"], "`cognitive_info` shows the module's input");
    let own = errors(&stage, "all", &[("text-classifier", json!({}))]);
    assert_eq!(own[0]["suggestion"], "The `inputSchema` of this tool shows the module's input");
    for error in told.iter().chain(&own) {
        let suggestion = error["suggestion"].as_str().unwrap();
        let foreign = ["`cogn ", "`--", "GET /"].into_iter().find(|words| suggestion.contains(words));
        assert_eq!(foreign, None, "{error}");
    }
}
