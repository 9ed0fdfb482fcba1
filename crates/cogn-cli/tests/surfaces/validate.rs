//! `cogn validate` on modules as they are published.

use crate::support::{PROMPT, Place, SCHEMA, answer, manifest};

// VAL-002: an example that is no JSON or breaks its schema is found, with its file and line.
#[test]
fn w11_validate_points_at_the_fault_in_an_example() {
    let place = Place::new();
    let manifest = manifest("words", "");
    place.module("words", &[("module.yaml", &manifest), ("prompt.md", PROMPT), ("schema.json", SCHEMA)]);
    place.module("words", &[("examples/input.json", r#"{"text": "t"}"#)]);
    place.module("words", &[("examples/output.json", &answer().to_string())]);
    assert_eq!(place.run(&["validate", "words", "--v22"]).code, 0);
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
            "does not fit the output schema",
        ),
        ("examples/input.json", "{\n\n  \"text\": 5\n}", 3, "does not fit the input schema"),
        (
            "tests/a.expected.json",
            "{\n \"ok\": true,\n \"$example\": {\"ok\": true,\n  \"data\": {}}\n}",
            3,
            "does not fit the output schema",
        ),
    ] {
        let kept = std::fs::read_to_string(place.path(&format!("cognitive/modules/words/{file}"))).ok();
        place.module("words", &[(file, text)]);
        let output = place.run(&["validate", "words"]);
        assert_eq!(output.code, 1, "{file}: {}{}", output.out, output.err);
        let said = output.out + &output.err;
        assert!(said.contains(words) && said.contains(&format!("{file}:{line}")), "{file}: {said}");
        match kept {
            Some(text) => {
                place.module("words", &[(file, &text)]);
            }
            None => std::fs::remove_file(place.path(&format!("cognitive/modules/words/{file}"))).unwrap(),
        }
    }
    assert_eq!(place.run(&["validate", "words"]).code, 0);
}
