//! Redacts media items for models, logs and records: a URL without user name, password, query and fragment, and a file
//! by its name only. Signed URLs and local paths are meant only for the component that fetches them.

use serde_json::{Map, Value};

use super::item::companion;
use crate::address::{bare_url, base_name};

/// Redacts every item of a value, at any depth. Bytes and all other values stay unchanged.
pub fn hide_secrets(value: &mut Value) {
    match value {
        Value::Object(members) => {
            hide_in_item(members);
            members.values_mut().for_each(hide_secrets);
        }
        Value::Array(items) => items.iter_mut().for_each(hide_secrets),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns whether a value may contain an item to redact. Most inputs contain none, and an input must be hashed before
/// it is changed.
#[must_use]
pub fn holds_secrets(value: &Value) -> bool {
    match value {
        Value::Object(members) => {
            let word = members.get("type").and_then(Value::as_str);
            word.is_some_and(|word| matches!(word, "url" | "file")) || members.values().any(holds_secrets)
        }
        Value::Array(items) => items.iter().any(holds_secrets),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Redacts one object if it is a media item.
pub(crate) fn hide_in_item(members: &mut Map<String, Value>) {
    let Some(word) = members.get("type").and_then(Value::as_str) else { return };
    let show: fn(&str) -> String = match word {
        "url" => bare_url,
        "file" => |path| base_name(path).to_owned(),
        _ => return,
    };
    let Some(Value::String(text)) = companion(word).and_then(|name| members.get_mut(name)) else { return };
    // `data:` URLs contain no credentials, and are long.
    if !text.starts_with("data:") {
        *text = show(text);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn items_lose_what_opens_a_door_at_any_depth() {
        let mut value = json!({
            "a": [{ "type": "url", "url": "https://me:pw@h/x.png?sig=s#f", "media_type": "image/png" }],
            "b": { "c": { "type": "file", "path": "/home/ann/x.pdf", "more": { "type": "url", "url": "http://h?k" } } },
            "d": { "type": "base64", "data": "QUJD", "media_type": "image/png" },
            "e": { "type": "url", "url": 7 }, "f": { "url": "https://h?stays=1" }, "g": "https://h?stays=1",
            "h": { "type": "url", "url": "data:image/png;base64,QUJD" },
        });
        hide_secrets(&mut value);
        assert_eq!(
            value,
            json!({
                "a": [{ "type": "url", "url": "https://h/x.png", "media_type": "image/png" }],
                "b": { "c": { "type": "file", "path": "x.pdf", "more": { "type": "url", "url": "http://h" } } },
                "d": { "type": "base64", "data": "QUJD", "media_type": "image/png" },
                "e": { "type": "url", "url": 7 }, "f": { "url": "https://h?stays=1" }, "g": "https://h?stays=1",
                "h": { "type": "url", "url": "data:image/png;base64,QUJD" },
            })
        );
    }
}
