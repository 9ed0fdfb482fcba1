//! JSON for people: a value without nested objects stays on one line if it fits, as in the bundled modules.

use serde_json::Value;

/// The width at which a line is broken.
const WIDTH: usize = 100;

/// Writes a value with two spaces per level and a final line break. The outermost value always has several lines.
pub(crate) fn pretty_json(value: &Value) -> String {
    let mut text = String::new();
    write_spread(value, 0, &mut text);
    text.push('\n');
    text
}

/// Writes a value that starts at `column`, on one line if possible.
fn place(value: &Value, depth: usize, column: usize, text: &mut String) {
    match one_line(value) {
        Some(line) if column + line.chars().count() < WIDTH => text.push_str(&line),
        _ => write_spread(value, depth, text),
    }
}

fn write_spread(value: &Value, depth: usize, text: &mut String) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            let entries =
                members.iter().map(|(name, member)| (format!("{}: ", Value::from(name.as_str())), member));
            list('{', '}', entries, depth, text);
        }
        Value::Array(items) if !items.is_empty() => {
            list('[', ']', items.iter().map(|item| (String::new(), item)), depth, text);
        }
        _ => text.push_str(&value.to_string()),
    }
}

fn list<'a>(
    open: char,
    close: char,
    entries: impl Iterator<Item = (String, &'a Value)>,
    depth: usize,
    text: &mut String,
) {
    let indent = "  ".repeat(depth + 1);
    text.push(open);
    for (index, (label, value)) in entries.enumerate() {
        text.push_str(if index == 0 { "\n" } else { ",\n" });
        text.push_str(&indent);
        text.push_str(&label);
        place(value, depth + 1, indent.len() + label.chars().count(), text);
    }
    text.push('\n');
    text.push_str(&"  ".repeat(depth));
    text.push(close);
}

/// The value on one line; `None` if it contains nested objects.
fn one_line(value: &Value) -> Option<String> {
    let flat = |value: &Value| !matches!(value, Value::Object(members) if !members.is_empty());
    match value {
        Value::Object(members) if !members.is_empty() => {
            let parts: Option<Vec<String>> = members
                .iter()
                .map(|(name, member)| {
                    let line = one_line(member).filter(|_| flat(member))?;
                    Some(format!("{}: {line}", Value::from(name.as_str())))
                })
                .collect();
            Some(format!("{{ {} }}", parts?.join(", ")))
        }
        Value::Array(items) => {
            let parts: Option<Vec<String>> =
                items.iter().map(|item| one_line(item).filter(|_| flat(item))).collect();
            Some(format!("[{}]", parts?.join(", ")))
        }
        _ => Some(value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn short_values_stay_on_a_line_and_nested_objects_do_not() {
        let value = json!({
            "required": ["a", "b"], "none": [], "empty": {},
            "one": { "type": "string", "enum": ["x\n", "y"] }, "nested": { "one": { "$ref": "#/a" } },
            "list": [{ "k": 1 }],
        });
        let expected = r##"{
  "required": ["a", "b"],
  "none": [],
  "empty": {},
  "one": { "type": "string", "enum": ["x\n", "y"] },
  "nested": {
    "one": { "$ref": "#/a" }
  },
  "list": [
    { "k": 1 }
  ]
}
"##;
        assert_eq!(pretty_json(&value), expected);
        assert_eq!(cognitive_contract::json::parse(&pretty_json(&value)).unwrap(), value);
    }

    #[test]
    fn lines_are_broken_before_they_get_long() {
        let value = json!({ "a": { "description": "d".repeat(80), "type": "string" } });
        assert!(pretty_json(&value).lines().all(|line| line.len() <= WIDTH + 4));
        assert_eq!(pretty_json(&value).lines().count(), 6);
    }
}
