//! The party that a failure blames (ERR-008): the caller after a cancel, the operator for the configuration.

use std::io::{BufRead, BufReader};

use cognitive_testkit::Running;
use serde_json::{Value, json};

use super::support::{Place, answer, endless_service};

fn place() -> Place {
    let place = Place::new();
    place.finder("words", "response: {mode: both}\n");
    place
}

// ERR-008: the user pressed Ctrl-C; the provider is not at fault.
#[cfg(unix)]
#[test]
fn a_run_that_the_user_cancels_does_not_blame_the_provider() {
    let place = place();
    let service = endless_service();
    let args = ["run", "words", "--set", "text=x", "--stream", "--provider", "openai", "--model", "stub"];
    let child = place.command(&args).args(["--base-url", &service]).spawn().unwrap();
    let mut child = Running(child);
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    // Once part of the answer exists, the signal handler is installed too.
    assert!(lines.by_ref().any(|line| line.contains("It is")));
    child.signal("INT");
    let last: Value = serde_json::from_str(&lines.last().unwrap()).unwrap();
    assert_eq!(last["error"]["code"], "E2010", "{last}");
    assert_eq!(
        last["meta"]["explain"], "Cancelled by the caller: the run was cancelled by the user",
        "{last}"
    );
    assert_eq!(last["error"]["details"]["kind"], "cancelled", "{last}");
    assert_eq!(child.0.wait().unwrap().code(), Some(130));
}

// ERR-008, D-16: the operator owns the configuration. The input was not read, and the runtime is not broken.
#[test]
fn a_faulty_configuration_is_not_the_fault_of_the_input() {
    let place = place();
    for (text, reason) in [
        ("modle: large\n", "unknown setting `modle`"),
        ("timeout_seconds: soon\n", "invalid type"),
        ("provider: [\n", "cognitive.yaml"),
        ("exec_min_confidence: 7\n", "`exec_min_confidence` must be from 0 to 1"),
        ("media: {max_size_mb: 4000}\n", "`media.max_size_mb` must be from 1 to"),
        ("media: {trusted_origins: [here]}\n", "invalid origin in `media.trusted_origins`"),
    ] {
        place.write("cognitive.yaml", text);
        let output = place.replay("words", &answer().to_string(), &["--set", "text=x", "--trust-project"]);
        let envelope = output.envelope();
        assert_eq!((output.exit(), &envelope["error"]["code"]), (1, &json!("E4001")), "{text} {envelope}");
        let explain = envelope["meta"]["explain"].as_str().unwrap();
        assert!(explain.starts_with("Configuration is invalid: ") && explain.contains(reason), "{explain}");
        assert_eq!(envelope["error"]["details"]["kind"], "configuration", "{envelope}");
        assert!(envelope["error"]["suggestion"].is_string(), "{envelope}");
    }
}

// v2.2 §0.0.3, GEN-006: the configuration of a runtime as printed in the specification.
#[test]
fn gen_006_the_printed_runtime_config_is_tolerated() {
    let place = place();
    place.write("cognitive.yaml", "# runtime config\ncognitive:\n  spec_versions:\n    - \"2.2\"    # Full support\n    - \"2.1\"    # Compatibility mode\n");
    let output = place.replay("words", &answer().to_string(), &["--set", "text=x"]);
    assert_eq!((output.exit(), output.envelope()["data"]["word"].as_str()), (0, Some("a")), "{}", output.out);
    place.write("cognitive.yaml", "cognitive: {spec_versions: ['2.2']}\nprovder: openai\n");
    let output = place.replay("words", &answer().to_string(), &["--set", "text=x"]);
    assert!(output.out.contains("unknown setting `provder`"), "{}", output.out);
}
