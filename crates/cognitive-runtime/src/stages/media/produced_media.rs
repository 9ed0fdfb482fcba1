//! Media that a model produced in addition to its text: inserted where its data refers to them, before the contract
//! is checked. (MEDIA-017) The data refers to a medium by number, because no model should have to write base64.

use cognitive_contract::Module;
use cognitive_contract::media::{Category, ReportedMedia};
use cognitive_contract::ports::Provider;
use serde_json::{Map, Value};

/// The prefix of a medium's number in `data`, in place of its base64.
const MARK: &str = "attached:";

/// The limit of insertions into one answer, unless more media were reported. Each is a copy, and a model could ask
/// for a million.
const MAX_INSERTED_MEDIA: usize = 20;

/// The instruction for a model that can produce media.
pub(crate) const HINT: &str = "\nMedia that you produce beside your text are numbered from 0. Where the answer holds one, write \
{\"type\": \"base64\", \"media_type\": \"…\", \"data\": \"attached:0\"} with its number; the bytes are put there for you.\n";

/// Returns whether the answer of this provider to this module may contain media.
pub(crate) fn may_produce(module: &Module, provider: &dyn Provider) -> bool {
    let modalities = &module.manifest.modalities;
    let gives = |category: Category| category.is_given(&modalities.output) && provider.gives(category);
    modalities.declared && Category::ALL.into_iter().any(gives)
}

/// Inserts the reported media into the answer. An unknown number, or one beyond the limit, stays as it is, and the
/// contract check refuses it.
pub(crate) fn insert(answer: &mut Map<String, Value>, media: &[ReportedMedia]) {
    if media.is_empty() {
        return;
    }
    if let Some(data) = answer.get_mut("data") {
        report_below(data, media, &mut MAX_INSERTED_MEDIA.max(media.len()));
    }
}

fn report_below(value: &mut Value, media: &[ReportedMedia], left: &mut usize) {
    match value {
        Value::Object(members) => {
            if let Some(number) = medium_number(members)
                && let Some(medium) = media.get(number).filter(|_| *left > 0)
            {
                *left -= 1;
                members.insert("media_type".to_owned(), Value::String(medium.media_type.clone()));
                members.insert("data".to_owned(), Value::String(medium.base64.clone()));
            } else {
                members.values_mut().for_each(|value| report_below(value, media, left));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| report_below(item, media, left)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The number of the medium that an object refers to.
fn medium_number(members: &Map<String, Value>) -> Option<usize> {
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
        let reported =
            |kind: &str, text: &str| ReportedMedia { media_type: kind.into(), base64: text.into() };
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
            &[ReportedMedia { media_type: "image/png".into(), base64: "AAAA".into() }],
        );
        let items = answer["data"]["a"].as_array().unwrap();
        assert_eq!(items.iter().filter(|item| **item == medium).count(), 30);
    }
}
