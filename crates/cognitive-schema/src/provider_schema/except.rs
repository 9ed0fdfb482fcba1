//! Excluded values for narrowing targets: replaces a plain `not` with listed values by other keywords, type by type.

use serde_json::{Map, Value, json};

use super::emit::EnvelopeEmitter;
use super::merge::{excluded_values, merge};
use crate::text::type_word;
use crate::validate::Section;

/// Every JSON type. Integers are numbers.
pub(super) const ALL_TYPES: [&str; 6] = ["object", "array", "string", "number", "boolean", "null"];

/// Next to the values of a plain `not`: the author's original keyword, if it was another one.
pub(super) const WRITTEN: &str = "$comment";

/// The maximum number of excluded numbers that are converted. Each one adds a range to the schema.
const MAX_VALUES: usize = 16;
/// The maximum number of characters of all excluded strings, for the same reason.
const MAX_CHARACTERS: usize = 200;

/// Returns whether a plain schema excludes exactly this value.
pub(super) fn excludes(node: &Map<String, Value>, value: &Value) -> bool {
    node.get("not").is_some_and(|not| excluded_values(not).contains(value))
}

impl EnvelopeEmitter<'_> {
    /// The schema for one type without its excluded values, as one or more alternatives.
    pub(super) fn without_excluded(
        &mut self,
        kind: &str,
        node: &Map<String, Value>,
        path: &str,
    ) -> Vec<Map<String, Value>> {
        let Some(not) = node.get("not") else { return vec![node.clone()] };
        let is_of_kind = |value: &Value| match type_word(value) {
            "integer" | "number" => matches!(kind, "integer" | "number"),
            other => other == kind,
        };
        let mut values: Vec<Value> = excluded_values(not).into_iter().filter(is_of_kind).collect();
        let mut rest = node.clone();
        rest.shift_remove("not");
        if !values.is_empty()
            && let Ok(judge) = Section::standalone(&Value::Object(rest.clone()))
        {
            values.retain(|value| judge.accepts(value));
        }
        if values.is_empty() {
            return vec![rest];
        }
        let rules = match kind {
            "boolean" => Some(booleans(&values)),
            "integer" | "number" => numbers(kind, &values),
            "string" => strings(&values).map(|rule| vec![rule]),
            _ => Some(other_sizes(kind, &values)),
        };
        let Some(rules) = rules else {
            let written = not.get(WRITTEN).and_then(Value::as_str).unwrap_or("not");
            self.losses.note_dropped(path, written);
            return vec![rest];
        };
        let joined =
            rules.into_iter().map(|rule| merge(Value::Object(rest.clone()), rule, path, self.losses));
        joined.filter_map(|part| part.as_object().cloned()).collect()
    }
}

fn booleans(values: &[Value]) -> Vec<Value> {
    let left = [true, false].into_iter().filter(|value| !values.contains(&json!(value)));
    left.map(|value| json!({ "const": value })).collect()
}

/// The ranges between the values.
fn numbers(kind: &str, values: &[Value]) -> Option<Vec<Value>> {
    if values.len() > MAX_VALUES {
        return None;
    }
    let mut values: Vec<(f64, &Value)> =
        values.iter().map(|value| Some((value.as_f64()?, value))).collect::<Option<_>>()?;
    if kind == "integer" {
        values.retain(|(number, _)| number.fract() == 0.0);
    }
    values.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut gaps = Vec::new();
    let mut gap = Map::new();
    for (_, value) in values {
        gap.insert("exclusiveMaximum".to_owned(), value.clone());
        gaps.push(Value::Object(gap));
        gap = Map::from_iter([("exclusiveMinimum".to_owned(), value.clone())]);
    }
    gaps.push(Value::Object(gap));
    Some(gaps)
}

/// Arrays that are longer or shorter than all of these; objects that are smaller, or lack one member of each.
fn other_sizes(kind: &str, values: &[Value]) -> Vec<Value> {
    let size =
        |value: &Value| value.as_array().map_or_else(|| value.as_object().map_or(0, Map::len), Vec::len);
    let longer = values.iter().map(size).max().unwrap_or(0) + 1;
    let shorter = values.iter().map(size).min().unwrap_or(0).checked_sub(1);
    let mut rules = Vec::new();
    if kind == "array" {
        rules.push(json!({ "minItems": longer }));
        rules.extend(shorter.map(|most| json!({ "maxItems": most })));
        return rules;
    }
    // Larger objects would need invented names, and a grammar cannot detect duplicate names.
    if longer == 1 {
        rules.push(json!({ "minProperties": longer }));
    }
    if let Some(most) = shorter {
        rules.push(json!({ "maxProperties": most }));
        let names = values.iter().filter_map(|value| value.as_object()?.keys().next());
        let absent: Map<String, Value> = names.map(|name| (name.clone(), Value::Bool(false))).collect();
        rules.push(json!({ "properties": absent }));
    }
    rules
}

/// A pattern that matches every other string.
fn strings(values: &[Value]) -> Option<Value> {
    let words: Vec<Vec<char>> =
        values.iter().filter_map(Value::as_str).map(|word| word.chars().collect()).collect();
    let characters: usize = words.iter().map(Vec::len).sum();
    let can_be_written = |letter: &char| !letter.is_control() || "\t\n\r".contains(*letter);
    if characters > MAX_CHARACTERS || !words.iter().flatten().all(can_be_written) {
        return None;
    }
    let words: Vec<&[char]> = words.iter().map(Vec::as_slice).collect();
    Some(json!({ "pattern": format!("^(?:{})$", other_strings_pattern(&words)) }))
}

/// The alternatives of a pattern for all strings but these. At each letter, a string ends too early, differs, or
/// continues.
fn other_strings_pattern(words: &[&[char]]) -> String {
    let mut ways = Vec::new();
    if !words.iter().any(|word| word.is_empty()) {
        ways.push(String::new());
    }
    let mut letters: Vec<char> = words.iter().filter_map(|word| word.first().copied()).collect();
    letters.sort_unstable();
    letters.dedup();
    let class: String = letters.iter().map(|letter| escape(*letter)).collect();
    ways.push(if class.is_empty() { r"[\s\S]+".to_owned() } else { format!(r"[^{class}][\s\S]*") });
    for letter in letters {
        let rests: Vec<&[char]> = words
            .iter()
            .filter(|word| word.first() == Some(&letter))
            .filter_map(|word| word.get(1..))
            .collect();
        ways.push(format!("{}(?:{})", escape(letter), other_strings_pattern(&rests)));
    }
    ways.join("|")
}

fn escape(letter: char) -> String {
    match letter {
        '\t' => r"\t".to_owned(),
        '\n' => r"\n".to_owned(),
        '\r' => r"\r".to_owned(),
        letter if letter.is_ascii_punctuation() => format!("\\{letter}"),
        letter => letter.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::accepts;

    #[test]
    fn d_05_a_pattern_can_say_all_strings_but_some() {
        let excluded = ["", "a", "abc", "abd", "[x]", "日本", "a b\\", "t\t"];
        let schema = strings(&excluded.map(|word| json!(word))).unwrap();
        for word in excluded {
            assert!(!accepts(&schema, &json!(word)), "{word}");
        }
        for word in ["b", "ab", "abcd", "abe", "[x", "日", "日本\n", "A", " ", "a b"] {
            assert!(accepts(&schema, &json!(word)), "{word} {schema}");
        }
        assert_eq!(strings(&[json!("bell\u{7}")]), None);
    }

    #[test]
    fn d_05_numbers_are_the_gaps_between_those_that_may_not_be() {
        let gaps = numbers("number", &[json!(3), json!(1.5)]).unwrap();
        assert_eq!(
            json!(gaps),
            json!([{ "exclusiveMaximum": 1.5 }, { "exclusiveMinimum": 1.5, "exclusiveMaximum": 3 }, { "exclusiveMinimum": 3 }])
        );
        assert_eq!(numbers("integer", &[json!(1.5)]).unwrap(), [json!({})]);
    }
}
