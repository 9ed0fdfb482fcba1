//! Expands generated values in vectors: `{"$gen": "repeat", "text": "x", "count": 300}` becomes 300 times
//! `x`.
//! Refuses unknown generators.

use serde_json::{Map, Value};

use super::media_files;
use super::ops::VectorStop;

/// The longest text. A longer one tests nothing that this one does not.
const MAX_TEXT_BYTES: usize = 64 << 20;

/// Returns the value with every generator replaced by its output.
pub(super) fn expand(value: &Value) -> Result<Value, VectorStop> {
    match value {
        Value::Object(members) => match members.get("$gen") {
            Some(generator) => generate(generator.as_str().unwrap_or_default(), members),
            None => {
                let expanded = members.iter().map(|(name, value)| Ok((name.clone(), expand(value)?)));
                expanded.collect::<Result<Map<_, _>, VectorStop>>().map(Value::Object)
            }
        },
        Value::Array(items) => items.iter().map(expand).collect::<Result<_, _>>().map(Value::Array),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(value.clone()),
    }
}

fn generate(generator: &str, members: &Map<String, Value>) -> Result<Value, VectorStop> {
    match generator {
        "repeat" => repeat(members),
        "media" => media_files::generate(members),
        _ => Err(VectorStop::Broken(format!("unknown generator: `{generator}`"))),
    }
}

fn repeat(members: &Map<String, Value>) -> Result<Value, VectorStop> {
    let text = members.get("text").and_then(Value::as_str);
    let count = members.get("count").and_then(Value::as_u64).and_then(|count| usize::try_from(count).ok());
    let (Some(text), Some(count)) = (text, count) else {
        return Err(VectorStop::Broken("`repeat` needs `text` and a whole number `count`".to_owned()));
    };
    if text.len().checked_mul(count).is_none_or(|length| length > MAX_TEXT_BYTES) {
        return Err(VectorStop::Broken(format!(
            "`repeat` supports no text above {} MiB",
            MAX_TEXT_BYTES >> 20
        )));
    }
    Ok(Value::String(text.repeat(count)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn repeats_wherever_they_stand() {
        let value = json!({ "a": [{ "$gen": "repeat", "text": "ab", "count": 3 }, 1], "b": null });
        assert_eq!(expand(&value), Ok(json!({ "a": ["ababab", 1], "b": null })));
    }

    #[test]
    fn what_is_no_generator_is_refused() {
        for broken in [
            json!([{ "$gen": "media", "kind": "png" }]),
            json!({ "$gen": "noise" }),
            json!({ "$gen": 1 }),
            json!({ "$gen": "repeat", "text": "x", "count": -1 }),
            json!({ "$gen": "repeat", "text": "xx", "count": u64::MAX }),
        ] {
            assert!(matches!(expand(&broken), Err(VectorStop::Broken(_))), "{broken}");
        }
    }
}
