//! Builds the expectation that replaces another after its answer is accepted: the file before and after.
//! Writes nothing; `runner.rs` writes it after the change was shown.

use std::fmt::Write as _;

use serde_json::Value;

use super::case::{ExpectedFile, GoldenCase};
use crate::expect::accept::{AcceptedAnswers, accept};

/// The line width of an expectation file. Longer lines are broken where possible.
const MAX_LINE_WIDTH: usize = 100;

/// A new expectation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedExpectation {
    /// The file in the module.
    pub path: String,
    /// The old content; empty if there was no file.
    pub before: String,
    /// The new content.
    pub after: String,
}

/// Proposes the expectation that an envelope satisfies; the error explains why the answer is not accepted.
pub(super) fn propose(
    case: &GoldenCase,
    expected: Option<&ExpectedFile>,
    envelope: &Value,
    which: AcceptedAnswers,
) -> Result<AcceptedExpectation, String> {
    let members = expected.and_then(|expected| expected.value.as_object());
    let new = accept(members, envelope, which)?;
    Ok(AcceptedExpectation {
        path: case.expected.clone(),
        before: expected.map(|expected| expected.text.clone()).unwrap_or_default(),
        after: format!("{}\n", format_json(&new, 0, true)),
    })
}

/// Returns the text of a first expectation that an envelope satisfies; the error explains why it is not
/// accepted.
pub(crate) fn first_expectation(envelope: &Value) -> Result<String, String> {
    let new = accept(None, envelope, AcceptedAnswers::Failures)?;
    Ok(format!("{}\n", format_json(&new, 0, true)))
}

/// Formats JSON like a hand-written expectation: one member per line, and each value on one line while it
/// fits.
fn format_json(value: &Value, depth: usize, open: bool) -> String {
    let (pieces, left, right): (Vec<(String, &Value)>, _, _) = match value {
        Value::Object(members) => {
            let pieces =
                members.iter().map(|(name, value)| (format!("{}: ", Value::from(name.as_str())), value));
            (pieces.collect(), '{', '}')
        }
        Value::Array(items) => (items.iter().map(|item| (String::new(), item)).collect(), '[', ']'),
        plain => return plain.to_string(),
    };
    if pieces.is_empty() {
        return format!("{left}{right}");
    }
    let line = |(name, value): &(String, &Value)| format!("{name}{}", format_json(value, depth, false));
    let flat = pieces.iter().map(line).collect::<Vec<_>>().join(", ");
    let flat = if left == '{' { format!("{left} {flat} {right}") } else { format!("{left}{flat}{right}") };
    if !open {
        return flat;
    }
    if depth > 0 && flat.chars().count() + 2 * depth < MAX_LINE_WIDTH - 24 {
        return flat;
    }
    let mut text = String::from(left);
    for (index, (name, value)) in pieces.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let _ =
            write!(text, "{comma}\n{}{name}{}", "  ".repeat(depth + 1), format_json(value, depth + 1, true));
    }
    let _ = write!(text, "\n{}{right}", "  ".repeat(depth));
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn short_values_stay_on_one_line_and_long_ones_are_broken() {
        let value = json!({ "ok": true, "data": { "a": [1, "x"], "b": {} } });
        assert_eq!(
            format_json(&value, 0, true),
            "{\n  \"ok\": true,\n  \"data\": { \"a\": [1, \"x\"], \"b\": {} }\n}"
        );
        let long = json!({ "data": { "a": "x".repeat(60), "b": ["y".repeat(40)] } });
        let text = format_json(&long, 0, true);
        assert_eq!(text.lines().count(), 6, "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), long);
    }
}
