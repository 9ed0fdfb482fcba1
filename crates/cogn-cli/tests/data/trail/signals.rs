//! A run that is stopped by a signal, and a client that disconnects: an envelope if there is a reader, and always a
//! record.

use std::os::unix::process::ExitStatusExt;

use serde_json::{Value, json};

use super::fixture::{Act, Home, Server, Service, signal};

// SIGTERM and SIGHUP end a run like Ctrl-C: envelope, record, and exit code 128 plus the number of the signal.
#[test]
fn signals_end_a_run_with_an_envelope_and_a_record() {
    let home = Home::new("");
    let service = Service::start(|_| Act::Hold);
    for (name, code) in [("TERM", 143), ("HUP", 129), ("INT", 130)] {
        let child = home.run(&service, &format!("<{name}>"), name);
        assert!(service.was_asked(name));
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.status.signal()), (Some(code), None), "{name}");
        let envelope: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&envelope["ok"], &envelope["error"]["code"]), (&json!(false), &json!("E2010")), "{name}");
        assert_eq!(envelope["error"]["details"]["kind"], "cancelled");
        let records = home.records();
        let run = records.iter().find(|record| record["user"] == name && record["event"] == "run").unwrap();
        assert_eq!((&run["code"], &run["receipt"]["end"]), (&json!("E2010"), &json!("cancelled")));
    }
}

// A killed run leaves the record of its start, which is shown as unfinished.
#[test]
fn a_run_that_is_killed_is_unfinished() {
    let home = Home::new("");
    let service = Service::start(|_| Act::Hold);
    let mut child = home.run(&service, "<killed>", "ann");
    assert!(service.was_asked("killed"));
    child.kill().unwrap();
    child.wait().unwrap();
    let records = home.records();
    assert_eq!(records.len(), 1);
    assert_eq!((&records[0]["event"], &records[0]["outcome"]), (&json!("call"), &json!("unfinished")));
    assert_eq!((&records[0]["user"], &records[0]["model"]), (&json!("ann"), &json!("openai/stub")));
    for args in [["audit", "list"].as_slice(), &["audit", "show", records[0]["trace_id"].as_str().unwrap()]] {
        let said = String::from_utf8(home.cogn(args).stdout).unwrap();
        assert!(said.contains("unfinished"), "{said}");
    }
}

// With `nohup`, closing the terminal ends nothing.
#[test]
fn a_run_that_is_to_outlive_its_terminal_does() {
    let home = Home::new("");
    let service = Service::start(|text| if text == "kept" { Act::Hold } else { Act::Answer });
    let script = "trap '' HUP; exec \"$@\"";
    let program = env!("CARGO_BIN_EXE_cogn");
    let mut command = cognitive_testkit::command("sh");
    let run = ["run", "talk", "--set", "text=<kept>", "--provider", "openai"];
    command.args(["-c", script, "sh", program]).args(run);
    command.args(["--model", "stub", "--base-url", &service.url]).current_dir(home.path()).env_clear();
    command.env("HOME", home.path()).env("OPENAI_API_KEY", "k").env("PATH", "/usr/bin:/bin");
    let child =
        command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    assert!(service.was_asked("kept"));
    signal(&child, "HUP");
    signal(&child, "TERM");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143), "the first signal was not heard");
}

// A client that disconnects leaves a record, a count and a log line. S-18: the audit records `cancelled`.
#[test]
fn a_client_that_hangs_up_leaves_a_record_a_count_and_a_line() {
    let home = Home::new("");
    let service = Service::start(|_| Act::Hold);
    let args =
        ["serve", "--port", "0", "--provider", "openai", "--base-url", &service.url, "--model", "stub"];
    let mut server = Server::begin(&mut home.command(&args));
    let stream = server.ask("", &json!({ "text": "<gone>" })).unwrap();
    assert!(service.was_asked("gone"));
    drop(stream);
    assert!(service.was_left("gone"));
    // The log line is the last output about a request: everything else is complete then.
    server.wait_for_line("\"status\":499");
    let (_, metrics) = server.get_text("GET /metrics", &[], "");
    let counted = "cogn_runs_total{module=\"talk\",model=\"openai/stub\",outcome=\"E2010\"} 1";
    assert!(metrics.contains(counted), "{metrics}");
    server.stop();
    let records = home.records();
    let events: Vec<&Value> = records.iter().map(|record| &record["event"]).collect();
    assert_eq!(events, ["call", "run"]);
    assert_eq!((&records[1]["code"], &records[1]["receipt"]["end"]), (&json!("E2010"), &json!("cancelled")));
    assert_eq!(records[1]["model"], "openai/stub");
}
