//! Media that a model produced beside its text: put where its data says, before the contract judges the whole.
//! (MEDIA-017) The data names a medium by its number, because no model should have to write base64.

use cognitive_contract::Module;
use cognitive_contract::media::{Category, Reported};
use cognitive_contract::ports::Provider;
use serde_json::{Map, Value};

/// What stands in `data` in place of the base64 of a medium, before its number.
const MARK: &str = "attached:";

/// How often media are put into one answer. Each time is a copy, and a model could ask for a million.
const MAX_INSERTED_MEDIA: usize = 20;

/// What the model is told if it can produce media.
pub(crate) const HINT: &str = "\nMedia that you produce beside your text are numbered from 0. Where the answer holds one, write \
{\"type\": \"base64\", \"media_type\": \"…\", \"data\": \"attached:0\"} with its number; the bytes are put there for you.\n";

/// Whether the answer of this provider to this module may come with media beside its text.
pub(crate) fn may_produce(module: &Module, provider: &dyn Provider) -> bool {
    let modalities = &module.manifest.modalities;
    let gives = |category: Category| category.is_given(&modalities.output) && provider.gives(category);
    modalities.declared && Category::ALL.into_iter().any(gives)
}

/// Puts the media that were reported into the answer. A number that was not reported stays as it is, and the contract
/// judges it; so does one beyond the most.
pub(crate) fn insert(answer: &mut Map<String, Value>, media: &[Reported]) {
    if media.is_empty() {
        return;
    }
    if let Some(data) = answer.get_mut("data") {
        below(data, media, &mut MAX_INSERTED_MEDIA.max(media.len()));
    }
}

fn below(value: &mut Value, media: &[Reported], left: &mut usize) {
    match value {
        Value::Object(members) => {
            if let Some(number) = named(members)
                && let Some(medium) = media.get(number).filter(|_| *left > 0)
            {
                *left -= 1;
                members.insert("media_type".to_owned(), Value::String(medium.media_type.clone()));
                members.insert("data".to_owned(), Value::String(medium.base64.clone()));
            } else {
                members.values_mut().for_each(|value| below(value, media, left));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| below(item, media, left)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The number of the medium that an object stands for.
fn named(members: &Map<String, Value>) -> Option<usize> {
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    text("type").filter(|kind| *kind == "base64")?;
    text("data")?.strip_prefix(MARK)?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn media_017_what_was_produced_stands_where_the_data_says() {
        let medium = |number: u8| json!({ "type": "base64", "media_type": "image/gif", "data": format!("attached:{number}") });
        let mut answer =
            json!({ "ok": true, "data": { "a": [medium(1), medium(7)], "b": { "c": "attached:0" } } });
        let reported = |kind: &str, text: &str| Reported { media_type: kind.into(), base64: text.into() };
        let media = vec![reported("image/png", "AAAA"), reported("image/jpeg", "BBBB")];
        insert(answer.as_object_mut().unwrap(), &media);
        let inserted = json!({ "type": "base64", "media_type": "image/jpeg", "data": "BBBB" });
        assert_eq!(answer["data"], json!({ "a": [inserted, medium(7)], "b": { "c": "attached:0" } }));
    }

    #[test]
    fn one_medium_does_not_become_a_million() {
        let medium = json!({ "type": "base64", "media_type": "image/png", "data": "attached:0" });
        let mut answer = json!({ "ok": true, "data": { "a": vec![medium.clone(); 50] } });
        insert(
            answer.as_object_mut().unwrap(),
            &[Reported { media_type: "image/png".into(), base64: "AAAA".into() }],
        );
        let items = answer["data"]["a"].as_array().unwrap();
        assert_eq!(items.iter().filter(|item| **item == medium).count(), 30);
    }
}
