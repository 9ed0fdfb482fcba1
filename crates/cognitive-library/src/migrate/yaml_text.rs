//! Writes a manifest for people: short comments, one block per key, and additions to an existing text. Parses every
//! text again before returning it, and refuses one with another meaning.

use serde_json::{Map, Value};

use super::prompt::{gap, newline};
use crate::yaml;

/// The comment above the block of a key.
fn comment(key: &str) -> Option<&'static str> {
    Some(match key {
        "tier" => "Freedom of the module: exec, decision or exploration.",
        "excludes" => "Things that the module must not do.",
        "policies" => "Permissions of a run.",
        "overflow" => "Observations beyond the schema go to data.extensions.insights.",
        "enums" => "Permits {custom, reason} for a value that is not in an enum.",
        "compat" => {
            "Also accepts answers in the older form. Remove once the model answers with the envelope."
        }
        "constraints" => "Guarantees of the v1 format that still apply.",
        _ => return None,
    })
}

/// Renders a whole manifest; `None` if its YAML would parse to another value.
pub(super) fn render(manifest: &Map<String, Value>) -> Option<String> {
    let mut text = String::new();
    for (key, value) in manifest {
        let block = block(key, value)?;
        // Blank lines separate the blocks, but not the lines that name the module.
        if block.contains('#') || block.matches('\n').count() > 1 {
            text.push_str(gap(&text));
        }
        text.push_str(&block);
    }
    says(&text, manifest).then_some(text)
}

/// Appends the blocks that `target` has and `old` lacks; `None` if they cannot be appended.
pub(super) fn append(text: &str, old: &Map<String, Value>, target: &Map<String, Value>) -> Option<String> {
    let mut added = String::new();
    for (key, value) in target.iter().filter(|(key, _)| !old.contains_key(*key)) {
        if !added.is_empty() {
            added.push('\n');
        }
        added.push_str(&block(key, value)?);
    }
    if added.is_empty() {
        return says(text, target).then(|| text.to_owned());
    }
    let (head, tail) = split_at_end_marker(text);
    let added = indent(&added, indentation(text));
    // A block scalar can keep trailing blank lines as part of its value, so the second attempt adds none.
    let tight = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
    [gap(head), tight].into_iter().find_map(|between| {
        let added = format!("{between}{added}").replace('\n', newline(text));
        let candidate = format!("{head}{added}{tail}");
        says(&candidate, target).then_some(candidate)
    })
}

/// Returns whether a text parses to exactly this manifest.
pub(super) fn says(text: &str, manifest: &Map<String, Value>) -> bool {
    matches!(yaml::parse(text), Ok(Value::Object(read)) if read == *manifest)
}

fn block(key: &str, value: &Value) -> Option<String> {
    let lone = Map::from_iter([(key.to_owned(), value.clone())]);
    let text = yaml::write(&lone).ok()?;
    let comment = comment(key).map_or(String::new(), |comment| format!("# {comment}\n"));
    Some(format!("{comment}{}\n", text.trim_end_matches('\n')))
}

/// Splits a text before the `...` line that ends its document.
fn split_at_end_marker(text: &str) -> (&str, &str) {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_end() == "..." {
            return text.split_at(start);
        }
        start += line.len();
    }
    (text, "")
}

/// The indentation of the first key.
fn indentation(text: &str) -> &str {
    let is_content = |line: &&str| {
        let start = line.trim_start();
        !(start.is_empty() || start.starts_with('#') || line.starts_with("---") || line.starts_with('%'))
    };
    let first = text.lines().find(is_content).unwrap_or_default();
    first.get(..first.len() - first.trim_start().len()).unwrap_or_default()
}

fn indent(text: &str, by: &str) -> String {
    let line = |line: &str| if line.trim().is_empty() { line.to_owned() } else { format!("{by}{line}") };
    text.split_inclusive('\n').map(line).collect()
}

/// Replaces values of a text, given by JSON pointer. Skips values that it cannot find; the caller checks the result.
pub(super) fn replace_values(text: &str, edits: &[(String, String, String)]) -> String {
    let spans = yaml::spans(text);
    let mut places: Vec<_> =
        edits.iter().filter_map(|(at, from, to)| Some((spans.get(at)?.clone(), from, to))).collect();
    // From the end, so that earlier positions stay valid.
    places.sort_by_key(|(span, _, _)| std::cmp::Reverse(span.start));
    let mut text = text.to_owned();
    for (span, from, to) in places {
        if let Some(old) = text.get(span.clone()) {
            let new = old.replacen(from.as_str(), to, 1);
            text.replace_range(span, &new);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    /// Appends a tier and two blocks to a text.
    fn check(text: &str) -> Option<String> {
        let old = map(yaml::parse(text).unwrap());
        let mut target = old.clone();
        target.extend(map(json!({ "tier": "decision", "enums": { "strategy": "extensible" } })));
        append(text, &old, &target)
    }

    const ADDED: &str = "# Freedom of the module: exec, decision or exploration.\ntier: decision\n\n\
        # Permits {custom, reason} for a value that is not in an enum.\nenums:\n  strategy: extensible\n";

    #[test]
    fn mig_003_the_authors_text_stays_and_blocks_follow() {
        for text in [
            "name: a # mine\n",
            "# top\n---\nname: a\n",
            "%YAML 1.2\n---\nname: a\nlist:\n- x\n",
            "name: a\n\n",
            "name: a\nlong: >\n  folded\n  text\n",
        ] {
            let expected = format!("{text}{}{ADDED}", if text.ends_with("\n\n") { "" } else { "\n" });
            assert_eq!(check(text), Some(expected), "{text}");
        }
        for text in ["name: a", "name: a\nb: |\n  text"] {
            assert_eq!(check(text), Some(format!("{text}\n\n{ADDED}")));
        }
    }

    #[test]
    fn mig_003_end_markers_indentation_and_line_breaks_are_respected() {
        assert_eq!(check("name: a\n...\n# after\n"), Some(format!("name: a\n\n{ADDED}...\n# after\n")));
        let indented = check("# c\n  name: a\n  b: 1\n").unwrap();
        assert!(
            indented.contains("\n  tier: decision\n") && indented.contains("\n    strategy:"),
            "{indented}"
        );
        let crlf = check("name: a\r\nb: 1\r\n").unwrap();
        assert!(crlf.starts_with("name: a\r\n") && !crlf.replace("\r\n", "").contains('\n'));
    }

    #[test]
    fn mig_003_what_cannot_be_appended_to_is_not() {
        for text in ["{name: a, b: [1]}\n", "{\"name\": \"a\"}", "--- {name: a}\n"] {
            assert_eq!(check(text), None, "{text}");
        }
        // Trailing blank lines are part of this value; only the attempt without a blank line preserves it.
        let kept = check("name: a\nb: |+\n  text\n").unwrap();
        assert!(kept.starts_with("name: a\nb: |+\n  text\n# Freedom"), "{kept}");
    }

    #[test]
    fn a_rendered_manifest_reads_well_and_says_the_same() {
        let manifest = map(json!({
            "name": "a", "version": "1.0.0", "responsibility": "One: thing", "tier": "exec",
            "excludes": ["no", "1.0", "- x", "multi\nline\n"], "x-odd": { "n": null, "f": 1.5, "e": [] },
        }));
        let text = render(&manifest).unwrap();
        assert!(
            text.starts_with("name: a\nversion: \"1.0.0\"\nresponsibility: \"One: thing\"\n\n# Freedom of"),
            "{text}"
        );
        assert!(says(&text, &manifest));
    }

    #[test]
    fn values_are_replaced_where_they_stand() {
        let text = "io:\n  input: './schema.json#/output/a' # why\n  data: ./schema.json#/output\n";
        let edit = |at: &str| (at.to_owned(), "#/output".to_owned(), "#/data".to_owned());
        assert_eq!(
            replace_values(text, &[edit("/io/input"), edit("/io/data"), edit("/io/none")]),
            "io:\n  input: './schema.json#/data/a' # why\n  data: ./schema.json#/data\n"
        );
    }
}
