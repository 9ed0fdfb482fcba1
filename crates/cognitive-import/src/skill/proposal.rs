//! Proposes the schema of a skill's answer from an example in its text: a JSON block below a heading about the output.
//! Types come from the example, and no member is required.

use serde_json::{Map, Value, json};

/// Words in headings and lines that announce an answer.
const ANNOUNCES: [&str; 7] = ["output", "response", "result", "answer", "return", "report", "respond"];
/// The maximum nesting of an example. Deeper ones would overflow the stack.
const MAX_DEPTH: usize = 12;

/// The schema of the first example of an answer, and its line in the text, from 0.
pub(super) fn shown_answer(body: &str) -> Option<(Value, usize)> {
    let mut announced = false;
    let mut block: Option<(usize, String)> = None;
    for (number, line) in body.lines().enumerate() {
        let bare = line.trim();
        match &mut block {
            Some((start, text)) if bare.starts_with("```") => {
                if let Ok(shown @ Value::Object(_)) = serde_json::from_str::<Value>(text) {
                    return Some((shape(&shown, 0), *start));
                }
                block = None;
                announced = false;
            }
            Some((_, text)) => {
                text.push_str(line);
                text.push('\n');
            }
            None if announced && matches!(bare, "```json" | "```jsonc" | "```") => {
                block = Some((number, String::new()));
            }
            // A block in another language: its end must not start a new block.
            None if bare.starts_with("```") && bare != "```" => announced = false,
            None if !bare.is_empty() => {
                let lower = bare.to_lowercase();
                let speaks = ANNOUNCES.iter().any(|word| lower.contains(word));
                announced = if bare.starts_with('#') { speaks } else { announced || speaks };
            }
            None => {}
        }
    }
    None
}

fn shape(value: &Value, depth: usize) -> Value {
    if depth > MAX_DEPTH {
        return json!({});
    }
    match value {
        Value::Object(members) => {
            let members: Map<String, Value> =
                members.iter().map(|(name, member)| (name.clone(), shape(member, depth + 1))).collect();
            json!({ "type": "object", "properties": members })
        }
        Value::Array(items) => {
            json!({ "type": "array", "items": items.first().map_or(json!({}), |item| shape(item, depth + 1)) })
        }
        Value::String(_) => json!({ "type": "string" }),
        Value::Number(_) => json!({ "type": "number" }),
        Value::Bool(_) => json!({ "type": "boolean" }),
        Value::Null => json!({}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_below_a_heading_about_the_output_counts() {
        let body = "# Review\n\n```json\n{\"in\": 1}\n```\n\n## Output format\n\n```json\n{\"score\": 3, \"notes\": [\"a\"]}\n```\n";
        let (schema, line) = shown_answer(body).unwrap();
        assert_eq!(line, 8);
        assert_eq!(schema["properties"]["notes"], json!({ "type": "array", "items": { "type": "string" } }));
        assert_eq!(schema.get("required"), None);
        assert_eq!(shown_answer("# Output\n\n```json\nno\n```\n"), None);
        assert_eq!(shown_answer("# Input\n\n```json\n{}\n```\n"), None);
    }
}
