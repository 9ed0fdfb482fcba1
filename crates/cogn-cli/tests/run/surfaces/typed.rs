//! Options that other documents tell users to type, and the displayed defaults.

use cognitive_testkit::ProcessOutput;
use serde_json::json;

use super::support::{PROMPT, Place, SCHEMA, answer, manifest};

// CLI-003: the option of other runtimes is accepted. Calls in a prompt are followed with and without it.
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
            (output.exit(), output.envelope()["data"]["word"].as_str()),
            (0, Some("a")),
            "{more:?} {}",
            output.err
        );
        assert!(output.err.contains("words"), "{more:?}: the called module ran: {}", output.err);
    }
}

// MAN-003, CLI-002: `info --json` shows the effective values, also for a composition.
#[test]
fn man_003_info_shows_the_defaults_of_a_composition_too() {
    let place = Place::new();
    let shown = place.run(&["info", "code-review-pipeline", "--json"]).envelope();
    let composition = &shown["manifest"]["composition"];
    assert_eq!(
        (&composition["max_depth"], &composition["routing"]),
        (&json!(5), &json!([])),
        "{composition}"
    );
    assert_eq!(composition["requires"][0]["fallback"], json!(null), "{composition}");
    assert!(composition["requires"][0].as_object().unwrap().contains_key("fallback"), "{composition}");
    let plain = place.run(&["info", "summarizer", "--json"]).envelope();
    assert_eq!(
        plain["manifest"]["response"],
        json!({ "mode": "both", "chunk_type": "delta", "buffer_size": 0 })
    );
}

// CLI-002: the commands of the seed and of the documentation, without those of packages, registry and MCP.
#[test]
fn cli_002_help_lists_the_commands() {
    let help = Place::new().run(&["--help"]).out;
    let commands: Vec<&str> = help
        .lines()
        .filter(|line| line.starts_with("  "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    for command in ["run", "migrate", "validate", "list", "info", "init", "doctor", "test", "serve", "verify"]
    {
        assert!(commands.contains(&command), "{command}: {help}");
    }
}

// FMT-013: a module in the user's folder is listed and runs by name, in every project.
#[test]
fn fmt_013_a_module_in_the_folder_of_the_user_is_listed_and_runs() {
    let place = Place::new();
    let own = manifest("words", "");
    for (file, text) in [("module.yaml", own.as_str()), ("prompt.md", PROMPT), ("schema.json", SCHEMA)] {
        place.write(&format!(".cognitive/modules/words/{file}"), text);
    }
    // In a folder that is not the home folder, where these modules would be those of the project.
    std::fs::create_dir(place.path("work")).unwrap();
    let in_work = |args: &[&str]| ProcessOutput::run(place.command(args).current_dir(place.path("work")));
    let listed = in_work(&["list", "--json"]).envelope();
    let words = listed
        .as_array()
        .unwrap()
        .iter()
        .find(|module| module["name"] == "words")
        .unwrap_or_else(|| panic!("{listed}"));
    assert_eq!(words["origin"], "user", "{words}");
    place.write("work/reply.txt", answer().to_string());
    let run = ["run", "words", "--provider", "replay", "--reply", "reply.txt", "--set", "text=x"];
    assert_eq!(in_work(&run).exit(), 0);
}
