//! The package `cogn-client` as programs use it: in Node, in Deno and in a browser, against a real `cogn serve` whose
//! model replays recorded replies. A test is skipped if its tools are not installed.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in a test, a panic is the report"
)]

mod stage;

use std::path::PathBuf;
use std::process::Command;

use cognitive_testkit::{Lack, port_to_name, skip};
use serde_json::{Value, json};

use crate::model::recorded;
use stage::{KEY, Server, Stage, examples, output};

/// Checks the results of the scenario, in every environment.
fn check(seen: &Value, server: &Server) {
    let sync = seen["sync"].as_str().unwrap_or_else(|| panic!("{seen:#}"));
    let envelope: Value = serde_json::from_str(sync).unwrap();
    assert_eq!((&envelope["ok"], &envelope["data"]["words"]), (&json!(true), &json!(["winter", "snow"])));
    for transport in ["sse", "ndjson", "websocket"] {
        assert_eq!(seen[transport], sync, "{transport}");
        assert_eq!(seen[format!("{transport} chunks")], seen["sse chunks"], "{transport}");
        assert_eq!(seen[format!("{transport} resumed")], true, "{transport}");
        assert_eq!(seen[format!("{transport} cancelled")], json!(["E2010", "cancelled"]), "{transport}");
    }
    let broken_off: Value = serde_json::from_str(seen["wasm broken off"].as_str().unwrap()).unwrap();
    assert_eq!(broken_off["error"]["code"], "E2010");
    assert_eq!(broken_off["partial_data"]["rationale"], envelope["data"]["rationale"]);
    for (what, expected) in [
        ("two over one socket", json!(true)),
        ("snapshot", json!(true)),
        ("whole", json!(true)),
        ("uploaded", json!(true)),
        ("ready", json!(true)),
        ("wasm envelope", json!([])),
        ("wasm stream", json!([])),
        ("wasm assembled", json!(true)),
        ("wasm violations", json!(["/data", "/meta/confidence", "/meta/risk", "/meta/explain"])),
        ("wasm data", json!(["/words", "/rationale"])),
        ("wasm input", json!(true)),
        ("wasm refuses", json!(["E1001", "E1001"])),
        ("left", json!("cancelled")),
        ("late", json!(["E2002", "timeout"])),
        ("health", json!("ok")),
        ("capabilities", json!("cogn")),
        ("unknown", json!("E4006")),
        ("no file", json!("E1019")),
        ("stranger", json!("E4007")),
        ("module", json!(["winter", "snow"])),
        ("text", json!(["winter", "snow"])),
    ] {
        assert_eq!(seen[what], expected, "{what}");
    }
    assert_eq!(seen["modules"].as_array().unwrap().len(), recorded().len() + 1);
    // S-18: each of the five cancelled runs ended its model call, long before the grace period of the server.
    server.model.until_left(5);
}

#[test]
fn ext_rec_api_006_the_client_works_in_node() {
    let Some(stage) = Stage::get() else { return };
    let server = Server::start(&[]);
    check(&stage.node(&["node.mjs", &server.world(json!({}))]), &server);
}

#[test]
fn the_client_works_in_deno() {
    let Some(stage) = Stage::get() else { return };
    let deno = std::env::var_os("COGN_TEST_DENO").map(PathBuf::from).filter(|program| program.is_file());
    let Some(deno) = deno else { return skip(Lack::Deno) };
    let server = Server::start(&[]);
    let package = "./node_modules/cogn-client/dist";
    let imports = json!({ "imports": {
        "cogn-client": format!("{package}/index.js"), "cogn-client/contract": format!("{package}/contract.js"),
    } });
    std::fs::write(stage.path().join("imports.json"), imports.to_string()).unwrap();
    let world = server.world(json!({}));
    let run = ["run", "--no-remote", "--no-npm", "--no-config", "--allow-net=127.0.0.1", "--allow-read"];
    let deno =
        [&[deno.to_str().unwrap()], &run[..], &["--import-map=imports.json", "deno.js", &world]].concat();
    check(&stage.node(&[&["with-proxy.mjs", &world], &deno[..]].concat()), &server);
}

#[test]
fn the_client_works_in_a_browser() {
    let Some(stage) = Stage::get() else { return };
    if Command::new("chromium").arg("--version").output().is_err() {
        return skip(Lack::Browser);
    }
    // The server must know the page's origin before the page is served.
    let port = port_to_name().to_string();
    let server = Server::start(&["--cors", &format!("http://127.0.0.1:{port}")]);
    let profile = tempfile::tempdir().unwrap();
    let world = server.world(json!({}));
    check(&stage.node(&["browser.mjs", &world, profile.path().to_str().unwrap(), &port]), &server);
}

// ENV-001, API-003: the same contract on every transport.
#[test]
fn env_001_every_module_answers_the_same_bytes_on_every_way() {
    let Some(stage) = Stage::get() else { return };
    let server = Server::start(&[]);
    let case = |each: &crate::model::Recorded| {
        let cli = server.by_command_line(&each.module, &each.input);
        json!({ "module": each.module, "input": each.input, "cli": cli })
    };
    let cases: Vec<Value> = recorded().iter().map(case).collect();
    let seen = stage.node(&["equal.mjs", &server.world(json!({ "cases": cases }))]);
    let (mut ways, mut streamed) = (0, 0);
    for each in recorded() {
        let seen = &seen[&each.module];
        assert_eq!((&seen["violations"], &seen["input"]), (&json!([]), &Value::Null), "{}", each.module);
        let texts = seen["texts"].as_object().unwrap();
        let cli = &texts["cli"];
        for (way, text) in texts {
            assert_eq!(text, cli, "{}: {way}", each.module);
            ways += 1;
            streamed += usize::from(way.ends_with("by wasm"));
        }
    }
    // Each module in at least six ways, plus the streams that WebAssembly assembles.
    assert!(ways >= recorded().len() * 6 && streamed > recorded().len(), "{ways} {streamed}");
}

// EXT-REC: wherever a connection breaks, nothing is lost or duplicated, and no model is called twice.
#[test]
fn ext_rec_a_stream_survives_a_cut_at_every_position() {
    let Some(stage) = Stage::get() else { return };
    let server = Server::start(&[]);
    // Every byte of an event stream; the other two transports are cut less often, to save time.
    let strides = json!({ "sse": 1, "ndjson": 7, "websocket": 7 });
    let seen = stage.node(&["cuts.mjs", &server.world(json!({ "strides": strides }))]);
    println!("{seen}");
    assert_eq!(seen["wrong"], json!([]), "{seen}");
    let count = |name: &str| seen[name].as_u64().unwrap();
    assert!(count("resumed") > 1_000, "{seen}");
    // A socket that was cut before it sent the run made no request.
    let (asked, most) = server.model.calls();
    assert!(most == 1 && asked as u64 >= count("whole"), "{most} {asked} {seen}");
}

#[test]
fn every_failure_of_the_client_is_an_envelope() {
    let Some(stage) = Stage::get() else { return };
    stage.node(&["failures.mjs"]);
}

/// The code in `docs/typescript.md` is compiled with the strictest rules, and run here.
#[test]
fn the_programs_of_the_page_run() {
    let Some(stage) = Stage::get() else { return };
    let server = Server::start(&[]);
    let examples = examples();
    assert!(examples.len() > 3);
    for (name, _) in examples {
        let file = name.replace(".ts", ".js");
        let code = std::fs::read_to_string(stage.path().join(&file)).unwrap();
        let code = code.replace("http://localhost:8000", &server.base).replace("YOUR_KEY", KEY);
        let file = format!("run-{file}").replace(".js", ".mjs");
        std::fs::write(stage.path().join(&file), code).unwrap();
        let printed = output("node", stage.path(), &["--experimental-websocket", &file]);
        assert!(!printed.trim().is_empty(), "{name} prints nothing");
    }
}
