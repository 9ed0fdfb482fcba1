//! Options that other documents tell people to type, and what they see of defaults.

use serde_json::json;

use crate::support::{PROMPT, Place, SCHEMA, answer, manifest};

// CLI-003: the option of other runtimes is understood. Calls in a prompt are followed with it and without it.
#[test]
fn cli_003_subagent_is_understood_and_calls_are_followed_anyway() {
    let place = Place::new();
    let files = |prompt| {
        [("module.yaml", manifest("words", "")), ("prompt.md", prompt), ("schema.json", SCHEMA.to_owned())]
    };
    for (name, prompt) in
        [("words", PROMPT.to_owned()), ("asks", format!("{PROMPT}@call:words($ARGUMENTS)\n"))]
    {
        let files =
            files(prompt).map(|(file, text)| (file, text.replace("name: words", &format!("name: {name}"))));
        place.module(name, &files.each_ref().map(|(file, text)| (*file, text.as_str())));
    }
    let answered = answer().to_string();
    for more in [
        &["--args", "health product", "-s"][..],
        &["--args", "x", "--subagent", "--pretty"],
        &["--args", "x"],
    ] {
        let more: Vec<&str> = more.iter().copied().chain(["--trace=json"]).collect();
        let output = place.replay("asks", &answered, &more);
        assert_eq!(
            (output.code, output.json()["data"]["word"].as_str()),
            (0, Some("a")),
            "{more:?} {}",
            output.err
        );
        assert!(output.err.contains("words"), "{more:?}: the called module ran: {}", output.err);
    }
}

// MAN-003, CLI-002: what `info --json` shows is what counts, also for a composition.
#[test]
fn man_003_info_shows_the_defaults_of_a_composition_too() {
    let place = Place::new();
    let shown = place.run(&["info", "code-review-pipeline", "--json"]).json();
    let composition = &shown["manifest"]["composition"];
    assert_eq!(
        (&composition["max_depth"], &composition["routing"]),
        (&json!(5), &json!([])),
        "{composition}"
    );
    assert_eq!(composition["requires"][0]["fallback"], json!(null), "{composition}");
    assert!(composition["requires"][0].as_object().unwrap().contains_key("fallback"), "{composition}");
    let plain = place.run(&["info", "summarizer", "--json"]).json();
    assert_eq!(
        plain["manifest"]["response"],
        json!({ "mode": "both", "chunk_type": "delta", "buffer_size": 0 })
    );
}
