//! `cogn init`, every option with every tier: the golden test passes, the module is valid without a warning, and every
//! printed command works.

use serde_json::json;

use super::support::{Place, answering_service};

/// The options of one module: none, each alone, and all that can be combined.
const OPTIONS: [&[&str]; 11] = [
    &[],
    &["--streaming"],
    &["--full"],
    &["--full", "--streaming"],
    &["--media", "image"],
    &["--media", "audio"],
    &["--media", "video"],
    &["--media", "document"],
    &["--context"],
    &["--compose"],
    &["--streaming", "--media", "image", "--media", "document", "--context", "--compose"],
];

/// Splits words like a shell; supports only double quotes.
fn words(command: &str) -> Vec<String> {
    let pieces = command.split('"').enumerate();
    let mut words = vec![String::new()];
    for (place, piece) in pieces {
        if place % 2 == 1 {
            words.last_mut().unwrap().push_str(piece);
            continue;
        }
        for (at, word) in piece.split(' ').enumerate() {
            if at > 0 {
                words.push(String::new());
            }
            words.last_mut().unwrap().push_str(word);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn test_001_every_kind_of_new_module_keeps_what_init_promises() {
    let place = Place::new();
    let mut commands = 0;
    for tier in ["exec", "decision", "exploration"] {
        for (number, options) in OPTIONS.iter().enumerate() {
            let name = format!("{tier}-{number}");
            let made = place.run(&[&["init", &name, "--tier", tier], *options].concat());
            assert_eq!(made.exit(), 0, "{}", made.err);
            let reply = std::fs::read_to_string(
                place.path(&format!("cognitive/modules/{name}/tests/example.reply.txt")),
            );
            let base = answering_service(&reply.unwrap());
            let printed: Vec<&str> =
                made.err.lines().filter_map(|line| line.trim().strip_prefix("cogn ")).collect();
            assert!(printed.len() >= 3, "{}", made.err);
            for command in printed {
                let typed = words(command);
                let typed: Vec<&str> = typed.iter().map(String::as_str).collect();
                // A new user has a key or the embedded model; here a stub replaces both.
                let mut process = place.command(&typed);
                let output =
                    process.env("OPENAI_BASE_URL", &base).env("LLM_PROVIDER", "openai").output().unwrap();
                let said = String::from_utf8_lossy(&output.stdout).into_owned()
                    + &String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{name} {options:?}: cogn {command}\n{said}");
                assert!(
                    !command.starts_with("validate") || said.trim_end().ends_with("\nvalid"),
                    "{name}: {said}"
                );
                assert!(
                    !command.starts_with("test") || said.contains("1 passed, 0 failed"),
                    "{name}: {said}"
                );
                commands += 1;
            }
        }
    }
    assert_eq!(commands, 3 * OPTIONS.len() * 3);
}

#[test]
fn a_new_module_is_three_short_files_and_a_test() {
    let place = Place::new();
    assert_eq!(place.run(&["init", "mine"]).exit(), 0);
    let module = place.path("cognitive/modules/mine");
    let count = |file: &str| std::fs::read_to_string(module.join(file)).unwrap().lines().count();
    assert!(count("module.yaml") <= 8 && count("prompt.md") <= 4 && count("schema.json") <= 29);
    let manifest = std::fs::read_to_string(module.join("module.yaml")).unwrap();
    let first = manifest.lines().next().unwrap();
    let schema = first.strip_prefix("# yaml-language-server: $schema=").unwrap();
    let schema: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(module.join(schema)).unwrap()).unwrap();
    assert_eq!(schema["required"], json!(["name", "version", "responsibility"]));
    // The model gets the answer format exactly once.
    let prompt = place.run(&["prompt", "mine", "--set", "text=Hello"]);
    assert_eq!(prompt.out.matches("## Response format").count(), 1, "{}{}", prompt.out, prompt.err);
    assert!(!prompt.out.contains("$ENVELOPE"));
}
