//! Arrays with unique items, for narrowing targets. If the items are listed values, the schema lists their selections,
//! in the order of the values. Otherwise a grammar cannot check uniqueness, and that is a loss.

use serde_json::{Map, Value, json};

use super::emit::{EnvelopeEmitter, type_members};
use super::merge::{types_of, values_of};

/// The maximum number of selections that are written out. Their number doubles with each value.
const MAX_SELECTIONS: usize = 256;
/// The maximum number of integers that are written out. Their selections would exceed the limit above.
const MAX_INTEGERS: i64 = 12;

/// The effect of `uniqueItems` on an array.
#[derive(Debug)]
pub(super) enum UniqueItems {
    /// No effect, or none that could be expressed.
    NoMatter,
    /// No such array exists.
    Impossible,
    /// A schema that lists all such arrays.
    OneOf(Map<String, Value>),
}

impl EnvelopeEmitter<'_> {
    /// The arrays without duplicates, if the schema requires them.
    pub(super) fn unique(&mut self, node: &Map<String, Value>, path: &str, level: usize) -> UniqueItems {
        let number = |keyword: &str| node.get(keyword).and_then(Value::as_u64);
        let (least, most) = (number("minItems").unwrap_or(0), number("maxItems").unwrap_or(u64::MAX));
        if node.get("uniqueItems") != Some(&Value::Bool(true)) || most <= 1 {
            return UniqueItems::NoMatter;
        }
        let Some(values) = self.listed_items(node, path, level) else {
            self.losses.note_dropped(path, "uniqueItems");
            return UniqueItems::NoMatter;
        };
        let (least, most) = (to_usize(least), to_usize(most).min(values.len()));
        if least > most {
            return UniqueItems::Impossible;
        }
        let mut lists: Vec<Vec<Value>> = Vec::new();
        for length in least..=most {
            let Some(more) = selections(&values, length, MAX_SELECTIONS - lists.len()) else {
                self.losses.note_tightened(
                    path,
                    "maxItems",
                    format!("at most {} items", length.saturating_sub(1)),
                );
                break;
            };
            lists.extend(more);
        }
        if lists.is_empty() {
            // Even the smallest number of items has too many selections.
            self.losses.note_dropped(path, "uniqueItems");
            return UniqueItems::NoMatter;
        }
        self.losses.note_tightened(path, "uniqueItems", "in the order in which the values are listed");
        let mut said = type_members("array");
        said.insert("enum".to_owned(), json!(lists));
        UniqueItems::OneOf(said)
    }

    /// All values that an item can have, if they are few.
    fn listed_items(&mut self, node: &Map<String, Value>, path: &str, level: usize) -> Option<Vec<Value>> {
        let items = node.get("items")?.as_object()?;
        if values_of(items).is_none()
            && !matches!(types_of(items)?.as_slice(), [one] if matches!(one.as_str(), "boolean" | "integer"))
        {
            return None;
        }
        // Losses of the items are recorded again when the array is written.
        let noted = self.losses.list.len();
        let said = self.schema(&Value::Object(items.clone()), path, level);
        self.losses.list.truncate(noted);
        let Some(said) = said else { return Some(Vec::new()) };
        let branches = said.get("anyOf").and_then(Value::as_array).cloned().unwrap_or_else(|| vec![said]);
        let mut values = Vec::new();
        for branch in branches {
            values.extend(possible_values(branch.as_object()?)?);
        }
        Some(values)
    }
}

fn possible_values(said: &Map<String, Value>) -> Option<Vec<Value>> {
    if let Some(values) = values_of(said) {
        return Some(values);
    }
    match said.get("type")?.as_str()? {
        "boolean" => Some(vec![json!(true), json!(false)]),
        "null" => Some(vec![Value::Null]),
        "integer" => {
            let (least, most) = (said.get("minimum")?.as_i64()?, said.get("maximum")?.as_i64()?);
            let step = said.get("multipleOf").map_or(Some(1), Value::as_i64).filter(|step| *step > 0)?;
            let values = (least..=most).filter(|value| value % step == 0);
            (most.checked_sub(least)? < MAX_INTEGERS).then(|| values.map(|value| json!(value)).collect())
        }
        _ => None,
    }
}

fn to_usize(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// All selections of `length` values, each in the order of the values; `None` if there are more than `room`.
fn selections(values: &[Value], length: usize, room: usize) -> Option<Vec<Vec<Value>>> {
    if length == 0 {
        return (room > 0).then(|| vec![Vec::new()]);
    }
    let mut found = Vec::new();
    for (index, first) in values.iter().enumerate() {
        let rest = values.get(index + 1..).unwrap_or_default();
        if rest.len() + 1 < length {
            break;
        }
        for mut selection in selections(rest, length - 1, room.saturating_sub(found.len()))? {
            selection.insert(0, first.clone());
            found.push(selection);
        }
        if found.len() > room {
            return None;
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d_05_selections_are_in_order_and_not_too_many() {
        let values: Vec<Value> = ["a", "b", "c"].map(|name| json!(name)).to_vec();
        assert_eq!(json!(selections(&values, 2, 9)), json!([["a", "b"], ["a", "c"], ["b", "c"]]));
        assert_eq!(selections(&values, 0, 9), Some(vec![Vec::new()]));
        assert_eq!(selections(&values, 4, 9), Some(Vec::new()));
        assert_eq!(selections(&values, 2, 2), None);
    }
}
