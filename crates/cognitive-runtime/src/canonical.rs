//! The canonical form of a value (RFC 8785), written piece by piece into a hash. Copies no text: an input
//! with media can be one string of a hundred megabytes. Numbers are left to the library that knows their
//! rules.

use cognitive_contract::json::is_plain;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// Feeds the canonical form of a value into a hash.
pub(crate) fn feed(value: &Value, hash: &mut Sha256) {
    match value {
        Value::Object(members) => feed_members(members, None, hash),
        Value::Array(items) => {
            hash.update(b"[");
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    hash.update(b",");
                }
                feed(item, hash);
            }
            hash.update(b"]");
        }
        Value::String(text) => feed_text(text, hash),
        Value::Null | Value::Bool(_) | Value::Number(_) => feed_scalar(value, hash),
    }
}

/// Feeds an object, optionally without one of its members.
pub(crate) fn feed_members(members: &Map<String, Value>, without: Option<&str>, hash: &mut Sha256) {
    let mut members: Vec<(&String, &Value)> =
        members.iter().filter(|(name, _)| Some(name.as_str()) != without).collect();
    members.sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
    hash.update(b"{");
    for (at, (name, value)) in members.into_iter().enumerate() {
        if at > 0 {
            hash.update(b",");
        }
        feed_text(name, hash);
        hash.update(b":");
        feed(value, hash);
    }
    hash.update(b"}");
}

fn feed_text(text: &str, hash: &mut Sha256) {
    if is_plain(text.as_bytes()) {
        hash.update(b"\"");
        hash.update(text.as_bytes());
        hash.update(b"\"");
    } else {
        hash.update(serde_json::to_string(text).unwrap_or_default().as_bytes());
    }
}

fn feed_scalar(value: &Value, hash: &mut Sha256) {
    let text = serde_json_canonicalizer::to_vec(value).unwrap_or_else(|_| value.to_string().into_bytes());
    hash.update(&text);
}

#[cfg(test)]
mod tests {
    use cognitive_contract::text::hex;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn ours(value: &Value) -> String {
        let mut hash = Sha256::new();
        feed(value, &mut hash);
        hex(&hash.finalize())
    }

    fn theirs(value: &Value) -> String {
        hex(&Sha256::digest(serde_json_canonicalizer::to_vec(value).unwrap()))
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(|number| json!(number)),
            any::<i32>().prop_map(|number| json!(number)),
            any::<String>().prop_map(Value::String),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
                prop::collection::vec((any::<String>(), inner), 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_is_the_canonical_form(value in values()) {
            prop_assert_eq!(ours(&value), theirs(&value));
        }
    }

    #[test]
    fn long_texts_and_strange_names_too() {
        let mut text = "a".repeat(10_000);
        assert_eq!(ours(&json!(text)), theirs(&json!(text)));
        text.push_str("\u{1}\"\\\n\u{7f}é\u{1F600}");
        assert_eq!(ours(&json!(text)), theirs(&json!(text)));
        let names = json!({ "\u{FB33}": 1, "\u{1F600}": 2, "\r": 3, "1": 4, "": 5 });
        assert_eq!(ours(&names), theirs(&names));
    }

    #[test]
    fn a_member_can_be_left_out() {
        let mut hash = Sha256::new();
        let whole = json!({ "b": 1, "_context": { "x": 1 }, "a": 2 });
        feed_members(whole.as_object().unwrap(), Some("_context"), &mut hash);
        assert_eq!(hex(&hash.finalize()), theirs(&json!({ "a": 2, "b": 1 })));
    }
}
