//! `cogn validate` on published modules.

use std::io::{BufRead, BufReader};

use cognitive_testkit::Running;

use super::support::{PROMPT, Place, SCHEMA, answer, manifest};

// VAL-002: an example that is not JSON or violates its schema is reported with file and line.
#[test]
fn validate_points_at_the_fault_in_an_example() {
    let place = Place::new();
    place.finder("words", "");
    place.module("words", &[("examples/input.json", r#"{"text": "t"}"#)]);
    place.module("words", &[("examples/output.json", &answer().to_string())]);
    assert_eq!(place.run(&["validate", "words", "--v22"]).exit(), 0);
    for (file, text, line, words) in [
        (
            "examples/health-product-output.json",
            "{\n  \"rationale\": \"r\"\n  \"word\": \"a\"\n}",
            3,
            "not JSON",
        ),
        (
            "examples/output.json",
            "{\n  \"rationale\": \"r\",\n  \"word\": \"z\"\n}",
            3,
            "does not match the output schema",
        ),
        ("examples/input.json", "{\n\n  \"text\": 5\n}", 3, "does not match the input schema"),
        (
            "tests/a.expected.json",
            "{\n \"ok\": true,\n \"$example\": {\"ok\": true,\n  \"data\": {}}\n}",
            3,
            "does not match the output schema",
        ),
    ] {
        let kept = std::fs::read_to_string(place.path(&format!("cognitive/modules/words/{file}"))).ok();
        place.module("words", &[(file, text)]);
        let output = place.run(&["validate", "words"]);
        assert_eq!(output.exit(), 1, "{file}: {}{}", output.out, output.err);
        let said = output.out + &output.err;
        assert!(said.contains(words) && said.contains(&format!("{file}:{line}")), "{file}: {said}");
        match kept {
            Some(text) => {
                place.module("words", &[(file, &text)]);
            }
            None => std::fs::remove_file(place.path(&format!("cognitive/modules/words/{file}"))).unwrap(),
        }
    }
    assert_eq!(place.run(&["validate", "words"]).exit(), 0);
}

// COMP-030, COMP-070: a composition that can never run is reported before the first run, with the existing
// alternatives.
#[test]
fn comp_030_070_a_composition_is_judged_together_with_its_parts() {
    let place = Place::new();
    let (part, schema) =
        (manifest("words", ""), SCHEMA.replace("\"word\"],", "\"word\"], \"additionalProperties\": false,"));
    place.module("words", &[("module.yaml", &part), ("prompt.md", PROMPT), ("schema.json", &schema)]);
    let whole = |requires: &str, mapping: &str, condition: &str| {
        let composition = format!(
            "composition:\n  requires: [{requires}]\n  dataflow:\n    - from: input\n      to: words\n      mapping: {mapping}\n    - \
             from: words.output\n      to: output\n      condition: \"{condition}\"\n"
        );
        let manifest = manifest("whole", &composition);
        place.module("whole", &[("module.yaml", &manifest), ("prompt.md", PROMPT), ("schema.json", SCHEMA)]);
        let output = place.run(&["validate", "whole"]);
        (output.exit(), output.out)
    };
    let (good, fits) = ("{name: words, version: ^1.0.0}", "{text: $.text}");
    assert_eq!(whole(good, fits, "$.data.word == 'a'").0, 0);
    for (requires, mapping, condition, words) in [
        ("{name: words, version: ^9.0.0}", fits, "true", "`words` is installed in version `1.0.0`"),
        (good, "{txt: $.text}", "true", "`words` requires `text`, but no step provides it"),
        (good, fits, "$.data.wrod == 'a'", "Did you mean `word`?"),
        (good, fits, "$.data.word == 'c'", "this is never `\"c\"`"),
    ] {
        let (code, said) = whole(requires, mapping, condition);
        assert!(code == 1 && said.contains(words), "{words}: {said}");
    }
}

/// Reads lines until one begins with this text.
fn until(lines: &mut impl Iterator<Item = std::io::Result<String>>, words: &str) -> Vec<String> {
    let mut seen = Vec::new();
    while !seen.last().is_some_and(|line: &String| line.starts_with(words)) {
        seen.push(lines.next().unwrap_or_else(|| panic!("{seen:?} has no `{words}`")).unwrap());
    }
    seen
}

#[test]
fn watch_validates_and_tests_again_after_each_change_until_it_is_ended() {
    let place = Place::new();
    assert_eq!(place.run(&["init", "words"]).exit(), 0);
    for (command, good, bad) in
        [("validate", "valid", "invalid"), ("test", "1 passed, 0 failed", "0 passed, 1 failed")]
    {
        let mut process = Running(place.command(&[command, "words", "--watch"]).spawn().unwrap());
        let mut lines = BufReader::new(process.0.stdout.take().unwrap()).lines();
        until(&mut lines, good);
        let prompt = std::fs::read_to_string(place.path("cognitive/modules/words/schema.json")).unwrap();
        place.module("words", &[("schema.json", &prompt.replacen('{', "{,", 1))]);
        assert!(until(&mut lines, bad).iter().any(|line| line.starts_with("changed: ")), "{command}");
        place.module("words", &[("schema.json", &prompt)]);
        until(&mut lines, good);
        assert!(process.0.try_wait().unwrap().is_none());
        // SIGTERM instead of Ctrl-C: tests that run in the background and their children may ignore SIGINT.
        process.signal("TERM");
        assert!(!process.0.wait().unwrap().success());
    }
}
