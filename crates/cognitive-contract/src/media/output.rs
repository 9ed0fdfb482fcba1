//! Media in an answer: which objects are meant, and whether the module may give them. (MEDIA-017, MEDIA-018)
//! Their shape is the business of the module's schema; this is about what no schema says.

use serde_json::{Map, Value};

use super::kind::MediaType;
use crate::code::ErrorCode;
use crate::manifest::Modalities;
use crate::text::pointer;
use crate::violation::Violation;

/// A medium in an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Produced<'a> {
    /// Where it stands, as a JSON pointer from `data`.
    pub place: String,
    /// The object.
    pub members: &'a Map<String, Value>,
    /// The type that it names.
    pub media_type: &'a str,
}

/// The media in `data`, at any depth: objects with a `type`, its companion and a `media_type`. An object without the
/// last is for the schema to judge: it may be a plain link.
#[must_use]
pub fn find_output(data: &Map<String, Value>) -> Vec<Produced<'_>> {
    let mut found = Vec::new();
    for (name, value) in data {
        below(value, &pointer("", name), &mut found);
    }
    found
}

fn below<'a>(value: &'a Value, place: &str, found: &mut Vec<Produced<'a>>) {
    match value {
        Value::Object(members) => match media_type(members) {
            Some(media_type) => found.push(Produced { place: place.to_owned(), members, media_type }),
            None => members.iter().for_each(|(name, value)| below(value, &pointer(place, name), found)),
        },
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| below(item, &format!("{place}/{at}"), found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn media_type(members: &Map<String, Value>) -> Option<&str> {
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    let companion = match text("type")? {
        "url" => "url",
        "base64" => "data",
        "file" => "path",
        _ => return None,
    };
    members.get(companion).and_then(Value::as_str)?;
    text("media_type")
}

/// What is wrong with the media in `data`. Only modules that speak of modalities have any.
#[must_use]
pub fn check_output(modalities: &Modalities, data: &Map<String, Value>) -> Vec<Violation> {
    if !modalities.declared {
        return Vec::new();
    }
    let verdict = |produced: Produced<'_>| {
        let place = format!("/data{}/media_type", produced.place);
        let why = match MediaType::parse(produced.media_type).filter(|kind| kind.may_be_produced()) {
            None => format!("`{}` is not a type that an answer may contain", produced.media_type),
            Some(kind) if !kind.category().is_given(&modalities.output) => {
                format!("the module does not give media of the kind `{}`", kind.category())
            }
            Some(_) => return None,
        };
        Some(Violation::new(&place, ErrorCode::ConstraintViolation, "modalities.output", why))
    };
    find_output(data).into_iter().filter_map(verdict).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::manifest::OutputModality;

    fn verdicts(data: Value, declared: bool) -> Vec<String> {
        let modalities =
            Modalities { declared, input: vec![], output: vec![OutputModality::Text, OutputModality::Image] };
        let found = check_output(&modalities, data.as_object().unwrap());
        found.iter().map(|violation| format!("{} {}", violation.code.number(), violation.path)).collect()
    }

    #[test]
    fn media_018_only_declared_kinds_and_listed_types() {
        let medium = |kind: &str| json!({ "type": "url", "url": "https://a/b", "media_type": kind });
        assert_eq!(verdicts(json!({ "a": medium("image/png"), "b": [medium("image/webp")] }), true), [""; 0]);
        assert_eq!(verdicts(json!({ "a": medium("image/gif") }), true), ["E3006 /data/a/media_type"]);
        assert_eq!(
            verdicts(json!({ "a": [{ "x": medium("audio/wav") }] }), true),
            ["E3006 /data/a/0/x/media_type"]
        );
        assert_eq!(verdicts(json!({ "a": medium("image/gif") }), false), [""; 0]);
    }

    #[test]
    fn media_017_a_plain_link_is_no_medium() {
        assert_eq!(verdicts(json!({ "a": { "type": "url", "url": "https://a/b" } }), true), [""; 0]);
        assert_eq!(verdicts(json!({ "a": { "type": "base64", "media_type": "image/gif" } }), true), [""; 0]);
    }
}
