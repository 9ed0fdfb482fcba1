//! The token cost of a tool list with many modules: a client sends it to its model with every request.

use serde_json::{Value, json};

use crate::project::home_with_modules;
use crate::stage::{Stage, printed_json};

/// Returns the cost of the tools from `cogn mcp --cost`, in tokens.
fn cost(stage: &Stage, more: &[&str]) -> Value {
    let mut command = stage.command(env!("CARGO_BIN_EXE_cogn"));
    command.args(["mcp", "--cost", "--json"]).args(more).args(stage.provider());
    printed_json(command)
}

// API-007
#[test]
fn api_007_three_hundred_modules_cost_a_client_no_more_than_two_thousand_tokens() {
    let stage = Stage::in_home(home_with_modules(300), Vec::new());
    let usual = cost(&stage, &[]);
    let names: Vec<&Value> = usual["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    let four = ["cognitive_list", "cognitive_info", "cognitive_run", "cognitive_validate"].map(Value::from);
    assert_eq!(names, four.iter().collect::<Vec<_>>());
    assert!(usual["total"].as_u64().unwrap() <= 2_000, "{usual}");
    // A client that wants all tools gets them, and the cost is reported.
    let all = cost(&stage, &["--tools", "all"]);
    assert!(all["tools"].as_array().unwrap().len() > 300, "{}", all["total"]);
    assert!(all["total"].as_u64().unwrap() > 20_000, "{}", all["total"]);
    println!("300 modules: {} tokens; a tool for each: {}", json!(usual["total"]), json!(all["total"]));
}
