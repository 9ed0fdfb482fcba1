//! A request body whose schema is borrowed. Schemas are large and every call of a module sends the same one, so a wire
//! writes `null` where it belongs, and it is filled in while the body becomes text. No wire sends any other `null`.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;

/// What a wire writes in place of the schema.
pub(crate) const PLACE: Value = Value::Null;

/// A body as text.
pub(crate) fn text(body: &Value, schema: Option<&Value>) -> Vec<u8> {
    let written = match schema {
        Some(schema) => serde_json::to_vec(&Filled { body, schema }),
        None => serde_json::to_vec(body),
    };
    // Neither a map with other keys than text nor a writer that fails is here.
    written.unwrap_or_default()
}

struct Filled<'a> {
    body: &'a Value,
    schema: &'a Value,
}

impl Serialize for Filled<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let inner = |body| Filled { body, schema: self.schema };
        match self.body {
            Value::Null => self.schema.serialize(serializer),
            Value::Object(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (name, value) in members {
                    map.serialize_entry(name, &inner(value))?;
                }
                map.end()
            }
            Value::Array(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(&inner(item))?;
                }
                list.end()
            }
            other => other.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_schema_is_filled_in_at_its_place() {
        let schema = json!({ "type": "object", "enum": [null] });
        let body = json!({ "a": [1, "null"], "format": { "schema": PLACE } });
        let expected = json!({ "a": [1, "null"], "format": { "schema": schema } });
        assert_eq!(text(&body, Some(&schema)), expected.to_string().into_bytes());
        assert_eq!(text(&json!({ "a": 1 }), None), br#"{"a":1}"#);
    }
}
