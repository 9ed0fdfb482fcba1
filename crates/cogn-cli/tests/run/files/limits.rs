//! Scarce resources: few open files, and deeply nested arguments.

use std::process::Stdio;

use cognitive_testkit::Home;
use serde_json::json;

use super::support::{answering, output, place, run};

#[test]
fn a_value_that_nests_without_end_is_e1000() {
    let place = place();
    answering(&place, &json!({}));
    for (levels, code) in [(127, None), (128, Some("E1000")), (60_000, Some("E1000"))] {
        let set = format!("a{}=1", ".a".repeat(levels - 1));
        let output = place.cogn(&["run", "./m", "--set", &set, "--reply", "reply"]);
        let envelope = output.envelope();
        assert_eq!(envelope["error"]["code"].as_str(), code, "{levels}: {envelope}");
        assert_eq!(output.code, Some(i32::from(code.is_some())), "{levels}");
        if code.is_some() {
            let hint = envelope["error"]["suggestion"].as_str().unwrap_or_default();
            assert!(hint.contains("--set options.depth=3"), "{envelope}");
        }
    }
}

#[test]
fn few_open_files_are_an_envelope_or_an_error_and_never_a_panic() {
    let place = place();
    answering(&place, &json!({}));
    let live = ["run", "./m", "--input", "{}", "--provider", "ollama", "--model", "x"];
    let live = [&live[..], &["--base-url", "http://127.0.0.1:1"]].concat();
    // This address does not exist here, so the server exits by itself.
    let serve = ["serve", "--host", "203.0.113.1", "--provider", "ollama", "--model", "x"];
    let mut envelopes = 0;
    for files in 5..=24 {
        for args in [&run(&[])[..], &run(&["--stream"]), &live, &["list"], &["validate", "./m"], &serve] {
            let script = format!("ulimit -n {files} && exec \"$0\" \"$@\"");
            let mut shell = Home::new("/bin/sh").command(&["-c", &script, env!("CARGO_BIN_EXE_cogn")], &[]);
            let output = output(shell.args(args).current_dir(place.folder()).stdout(Stdio::piped()));
            // With so few files the program cannot be loaded, so there is no output.
            if files < 8 && output.code == Some(127) {
                continue;
            }
            assert!(matches!(output.code, Some(0 | 1)), "{files} {args:?}: {:?} {}", output.code, output.err);
            assert!(!output.err.contains("panicked"), "{files} {args:?}: {}", output.err);
            if args[0] == "run" {
                let value = &output.json;
                assert!(value["ok"].is_boolean() || value["final"] == true, "{files} {args:?}: {value}");
                envelopes += 1;
            } else {
                // A server in a pipe writes its errors as JSON.
                let is_told = ["error: ", r#""level":"error""#].iter().any(|word| output.err.contains(word));
                assert!(output.code == Some(0) || is_told, "{files} {args:?}: {}", output.err);
            }
        }
    }
    assert!(envelopes > 40, "{envelopes}");
}
