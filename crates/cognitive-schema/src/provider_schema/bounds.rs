//! Limits on the length of an embedded model's answer, and on the size of a schema. A small model that can continue
//! forever does, so the grammar has a limit where the author set none. Its answers are a subset of the valid ones.

use serde_json::{Map, Value, json};

/// The maximum number of items in an array or members in a map. Small models repeat items until a limit stops them.
pub(super) const MAX_ITEMS: u64 = 8;
/// The maximum number of characters in a rationale: three or four sentences.
const RATIONALE: u64 = 400;
/// The maximum number of characters in any other text. Small models write until a limit stops them.
const TEXT: u64 = 200;
/// Nine digits: enough for milliseconds of a week and for most identifiers.
pub(super) const MAX_INTEGER: i64 = 999_999_999;
/// Enough for percentages, pixels, seconds and prices.
pub(super) const MAX_NUMBER: i64 = 1_000_000;
/// Two decimals. Without a step, one sample wrote `0.9222…` without end.
pub(super) const STEP: f64 = 0.01;

/// The limit for the string at `path`.
pub(super) fn most_characters(path: &str) -> u64 {
    let is_rationale = path.starts_with("/properties/data/") && path.ends_with("/rationale");
    if is_rationale { RATIONALE } else { TEXT }
}

/// Our bound. If the author's opposite bound is outside ours, it is moved beyond that bound by the same distance.
pub(super) fn move_beyond(ours: Value, opposite: Option<f64>, keyword: &str) -> Value {
    let (Some(limit), Some(opposite)) = (ours.as_f64(), opposite) else { return ours };
    let is_outside = if keyword == "minimum" { opposite < limit } else { opposite > limit };
    if !is_outside {
        return ours;
    }
    let moved = opposite + limit;
    if moved.fract() == 0.0 {
        format!("{moved:.0}").parse::<i64>().map_or(ours, |whole| json!(whole))
    } else {
        json!(moved)
    }
}

/// Returns whether a number's range is wide enough to leave a choice with two decimals.
pub(super) fn is_wide(said: &Map<String, Value>) -> bool {
    range(said).is_none_or(|(least, most)| most - least >= 0.1)
}

/// A small part of a range.
pub(super) fn small_step(said: &Map<String, Value>) -> f64 {
    range(said).map_or(STEP, |(least, most)| (most - least).max(0.0) / 64.0)
}

fn range(said: &Map<String, Value>) -> Option<(f64, f64)> {
    let bound = |inclusive: &str, exclusive: &str| {
        said.get(inclusive).or_else(|| said.get(exclusive)).and_then(Value::as_f64)
    };
    Some((bound("minimum", "exclusiveMinimum")?, bound("maximum", "exclusiveMaximum")?))
}

/// Returns whether the bounds of a string or number exclude every value.
pub(super) fn contradict(said: &Map<String, Value>) -> bool {
    let number = |keyword: &str| said.get(keyword).and_then(Value::as_f64);
    let exceeds = |least: &str, most: &str| matches!((number(least), number(most)), (Some(least), Some(most)) if least > most);
    let meets = |least: &str, most: &str| matches!((number(least), number(most)), (Some(least), Some(most)) if least >= most);
    exceeds("minLength", "maxLength")
        || exceeds("minimum", "maximum")
        || meets("exclusiveMinimum", "maximum")
        || meets("minimum", "exclusiveMaximum")
        || meets("exclusiveMinimum", "exclusiveMaximum")
        || has_no_multiple(said)
}

/// Returns whether no multiple of the step is between the bounds.
fn has_no_multiple(said: &Map<String, Value>) -> bool {
    let (Some((least, most)), Some(step)) = (range(said), said.get("multipleOf").and_then(Value::as_f64))
    else {
        return false;
    };
    // The last digits of a quotient are unreliable, so in doubt the grammar engine decides.
    let near = 1e-9 * (least.abs().max(most.abs()) / step).max(1.0);
    step > 0.0 && (least / step - near).ceil() > (most / step + near).floor()
}

/// The counts that services limit.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ServiceCounts {
    pub properties: usize,
    pub unions: usize,
    /// Characters of member names and listed values.
    pub characters: usize,
}

/// Counts the parts of a provider schema.
pub(super) fn measure(schema: &Value) -> ServiceCounts {
    let mut counts = ServiceCounts::default();
    count(schema, &mut counts);
    counts
}

fn count(schema: &Value, counts: &mut ServiceCounts) {
    let Value::Object(members) = schema else { return };
    for (keyword, value) in members {
        match (keyword.as_str(), value) {
            ("properties" | "$defs", Value::Object(named)) => {
                if keyword == "properties" {
                    counts.properties += named.len();
                }
                for (name, schema) in named {
                    counts.characters += name.chars().count();
                    count(schema, counts);
                }
            }
            ("anyOf", Value::Array(branches)) => {
                counts.unions += 1;
                for branch in branches {
                    count(branch, counts);
                }
            }
            ("type", Value::Array(_)) => counts.unions += 1,
            ("items" | "additionalProperties", schema) => count(schema, counts),
            ("enum", Value::Array(values)) => {
                counts.characters +=
                    values.iter().filter_map(Value::as_str).map(|text| text.chars().count()).sum::<usize>();
            }
            ("const", Value::String(text)) => counts.characters += text.chars().count(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d_05_a_rationale_may_be_longer_than_other_texts() {
        assert_eq!(most_characters("/properties/data/properties/rationale"), 400);
        assert_eq!(most_characters("/properties/data/oneOf/1/properties/rationale"), 400);
        assert_eq!(most_characters("/properties/meta/properties/explain"), 200);
    }

    #[test]
    fn d_05_a_bound_of_ours_never_contradicts_the_author() {
        assert_eq!(move_beyond(json!(10), Some(5.0), "maximum"), json!(10));
        assert_eq!(move_beyond(json!(10), Some(500.0), "maximum"), json!(510));
        assert_eq!(move_beyond(json!(-10), Some(-500.5), "minimum"), json!(-510.5));
    }

    #[test]
    fn d_05_schemas_are_counted_as_services_count_them() {
        let schema = json!({ "properties": { "ab": { "type": ["string", "null"] }, "c": { "anyOf": [{ "enum": ["xyz"] }] } } });
        assert_eq!(measure(&schema), ServiceCounts { properties: 2, unions: 2, characters: 6 });
    }
}
