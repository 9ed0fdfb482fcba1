//! Checks the metadata of media in an answer: listed types, companions, addresses, paths, times. (MEDIA-017 to
//! MEDIA-019, D-15) Does not check bytes; that happens during decoding, by the rules for media of inputs.
//! Only modules with a `modalities` block have media; for all others such objects are business data.

use cognitive_schema::MAX_VIOLATIONS;
use serde_json::{Map, Value};

use super::item::{Checksum, companion};
use super::kind::{Category, MediaType};
use super::output::each_output;
use crate::code::ErrorCode;
use crate::manifest::Modalities;
use crate::text::{is_moment, pointer};
use crate::violation::{OptionalMember, Violation};

/// Returns the violations in the metadata of the media in `data`. Types that the module does not emit are E3006, all
/// others E3001.
#[must_use]
pub fn check_output(modalities: &Modalities, data: &Map<String, Value>) -> Vec<Violation> {
    let mut found = Vec::new();
    if modalities.declared {
        let gives = Category::ALL.into_iter().any(|category| category.is_given(&modalities.output));
        each_output(data, &mut |place, members| {
            if found.len() < MAX_VIOLATIONS {
                MaybeMedium { place, members, modalities }.judge(gives, &mut found);
            }
        });
    }
    found
}

/// Builds the violation for invalid bytes of a media item. `place` is a pointer from `data`; the examiner supplies the
/// reason.
#[must_use]
pub fn unfit_bytes(place: &str, member: &str, why: &str) -> Violation {
    let place = pointer(&format!("/data{place}"), member);
    Violation::new(place, ErrorCode::SchemaValidationFailed, "media", why)
}

/// An object that may be a media item: its `type` names a source.
struct MaybeMedium<'a> {
    place: &'a str,
    members: &'a Map<String, Value>,
    modalities: &'a Modalities,
}

impl<'a> MaybeMedium<'a> {
    fn text(&self, name: &str) -> Option<&'a str> {
        self.members.get(name).and_then(Value::as_str)
    }

    fn judge(&self, gives: bool, found: &mut Vec<Violation>) {
        let Some(word) = self.text("type") else { return };
        let Some(companion) = companion(word) else { return };
        let is_whole = self.text(companion).is_some() && self.text("media_type").is_some();
        // If the module emits no media, an incomplete item is business data. A complete item is a violation.
        if !gives && !is_whole {
            return;
        }
        let why = self.text("media_type").and_then(|named| self.refusal_reason(named));
        if let Some(why) = why {
            let place = pointer(&format!("/data{}", self.place), "media_type");
            found.push(Violation::new(place, ErrorCode::ConstraintViolation, "modalities.output", why));
            return;
        }
        let mut refuse = |member: &str, why: &str| found.push(unfit_bytes(self.place, member, why));
        // Without a type, bytes cannot be checked, but an address or a path may be a plain link. (C-43)
        match self.members.get("media_type") {
            Some(Value::String(_)) => {}
            Some(_) => refuse("media_type", "is not a string"),
            None if word == "base64" => refuse("media_type", "is missing"),
            None => {}
        }
        match self.members.get(companion) {
            None if self.members.contains_key("media_type") => refuse(companion, "is missing"),
            None => {}
            Some(Value::String(text)) => {
                if let Some(why) = self.unfit(word, text) {
                    refuse(companion, why);
                }
            }
            Some(_) => refuse(companion, "is not a string"),
        }
        for (name, holds, why) in BESIDE {
            if self.members.get(name).is_some_and(|value| !holds(value)) {
                refuse(name, why);
            }
        }
        if let Some(Err(why)) = self.members.get("checksum").map(Checksum::read) {
            refuse("checksum", why);
        }
    }

    /// Returns the reason why the module may not emit this type. (MEDIA-018)
    fn refusal_reason(&self, named: &str) -> Option<String> {
        match MediaType::parse(named).filter(|kind| kind.is_output_type()) {
            None => Some(format!("media type not allowed in answers: `{named}`")),
            Some(kind) if !kind.category().is_given(&self.modalities.output) => {
                Some(format!("the module does not produce media of the kind `{}`", kind.category()))
            }
            Some(_) => None,
        }
    }

    /// Returns the reason why the location of the bytes is invalid.
    fn unfit(&self, word: &str, text: &str) -> Option<&'static str> {
        let is_medium = self.members.contains_key("media_type");
        match word {
            "url" if is_medium && !is_address(text, &["https"]) && inline(text).is_none() => {
                Some("expected an address that begins with `https:`, or `data:` with a type and base64")
            }
            "url" if !is_medium && !is_address(text, &["https", "http"]) && inline(text).is_none() => {
                Some("expected an address that begins with `https:` or `http:`")
            }
            "file" if !is_inside(text) => Some("expected a relative path within its folder"),
            _ => None,
        }
    }
}

/// Further members of a media item, with their rules.
const BESIDE: [OptionalMember; 4] = [
    ("expires_at", |value| value.as_str().is_some_and(is_moment), "expected an RFC 3339 time"),
    ("width", is_count, "expected a whole number, 0 or more"),
    ("height", is_count, "expected a whole number, 0 or more"),
    ("duration_ms", is_count, "expected a whole number, 0 or more"),
];

fn is_count(value: &Value) -> bool {
    value.is_u64() || value.as_f64().is_some_and(|number| number >= 0.0 && number.fract() == 0.0)
}

/// Returns whether the text is a URL with a host and one of these schemes. Never fetched here. Other schemes are
/// rejected, because a viewer could execute them or read local files.
fn is_address(text: &str, schemes: &[&str]) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let plain = !text.contains(|letter: char| letter.is_whitespace() || letter.is_control());
    plain && !host.is_empty() && schemes.iter().any(|known| known.eq_ignore_ascii_case(scheme))
}

/// Splits a `data:` URL into its type and base64 text; `None` for other URLs and other encodings.
#[must_use]
pub fn inline(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once(':')?;
    let (head, text) = rest.split_once(',')?;
    let (before, last) = head.rsplit_once(';')?;
    let is_base64 = scheme.eq_ignore_ascii_case("data") && last.trim().eq_ignore_ascii_case("base64");
    is_base64.then_some((before, text))
}

/// Returns whether a path is relative and stays within its base folder, on any system.
fn is_inside(path: &str) -> bool {
    let parts = || path.split(['/', '\\']);
    let is_absolute = path.starts_with(['/', '\\', '~']) || path.as_bytes().get(1) == Some(&b':');
    let names_something = parts().any(|part| !matches!(part, "" | "."));
    names_something && !is_absolute && !path.contains(char::is_control) && parts().all(|part| part != "..")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::manifest::OutputModality;

    fn verdicts(data: Value, output: &[OutputModality]) -> Vec<String> {
        let modalities = Modalities { declared: !output.is_empty(), input: vec![], output: output.to_vec() };
        let found = check_output(&modalities, data.as_object().unwrap());
        found.iter().map(|violation| format!("{} {}", violation.code.number(), violation.path)).collect()
    }

    const IMAGES: [OutputModality; 2] = [OutputModality::Text, OutputModality::Image];

    #[test]
    fn media_018_only_declared_kinds_and_listed_types() {
        let medium = |kind: &str| json!({ "type": "url", "url": "https://a/b", "media_type": kind });
        let good = json!({ "a": medium("image/png"), "b": [medium("image/webp")] });
        assert_eq!(verdicts(good, &IMAGES), [""; 0]);
        assert_eq!(verdicts(json!({ "a": medium("image/gif") }), &IMAGES), ["E3006 /data/a/media_type"]);
        let deep = json!({ "a": [{ "x": medium("audio/wav") }] });
        assert_eq!(verdicts(deep, &IMAGES), ["E3006 /data/a/0/x/media_type"]);
        assert_eq!(verdicts(json!({ "a": medium("image/gif") }), &[]), [""; 0]);
        let silent = json!({ "a": medium("image/png") });
        assert_eq!(verdicts(silent, &[OutputModality::Text]), ["E3006 /data/a/media_type"]);
    }

    // D-15, MEDIA-017, MEDIA-019: each item has exactly one violation.
    #[test]
    fn the_words_of_media_in_answers_are_judged() {
        let with = |more: Value| {
            let mut medium = json!({ "media_type": "image/png" });
            medium.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            verdicts(json!({ "a": medium }), &IMAGES)
        };
        assert_eq!(with(json!({ "type": "base64" })), ["E3001 /data/a/data"]);
        assert_eq!(with(json!({ "type": "base64", "data": 7 })), ["E3001 /data/a/data"]);
        assert_eq!(
            with(json!({ "type": "base64", "data": "", "media_type": 1 })),
            ["E3001 /data/a/media_type"]
        );
        for url in [
            "javascript:alert(1)",
            "http://a/b",
            "file:///etc/passwd",
            "https://",
            "https://a b",
            "",
            "data:,x",
        ] {
            assert_eq!(with(json!({ "type": "url", "url": url })), ["E3001 /data/a/url"], "{url}");
        }
        for url in ["https://a/b.png?x#y", "HTTPS://a", "data:image/png;base64,QUJD"] {
            assert_eq!(with(json!({ "type": "url", "url": url })), [""; 0], "{url}");
        }
        let paths = [
            "/etc/passwd",
            "../x.png",
            "a/../../x",
            "",
            ".",
            "C:\\x",
            "c:x",
            "\\\\host\\x",
            "~/x",
            "a\\..\\x",
        ];
        for path in paths {
            assert_eq!(with(json!({ "type": "file", "path": path })), ["E3001 /data/a/path"], "{path}");
        }
        assert_eq!(with(json!({ "type": "file", "path": "./out//picture 1.png" })), [""; 0]);
        let url = |more: Value| {
            let mut medium = json!({ "type": "url", "url": "https://a/b" });
            medium.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            with(medium)
        };
        assert_eq!(url(json!({ "expires_at": "tomorrow" })), ["E3001 /data/a/expires_at"]);
        assert_eq!(url(json!({ "expires_at": "2027-01-15T09:00:00Z", "width": 5.0, "height": 0 })), [""; 0]);
        assert_eq!(url(json!({ "width": -1, "duration_ms": 1.5 })).len(), 2);
        assert_eq!(
            url(json!({ "checksum": { "algorithm": "sha1", "value": "0" } })),
            ["E3001 /data/a/checksum"]
        );
    }

    #[test]
    fn media_017_what_has_no_type_may_be_a_plain_link_but_leads_nowhere_else() {
        let alone = |value: Value| verdicts(json!({ "a": value }), &IMAGES);
        assert_eq!(alone(json!({ "type": "url", "url": "http://a/b" })), [""; 0]);
        assert_eq!(alone(json!({ "type": "url" })), [""; 0]);
        assert_eq!(alone(json!({ "type": "url", "url": "javascript:alert(1)" })), ["E3001 /data/a/url"]);
        assert_eq!(alone(json!({ "type": "file", "path": "/etc/passwd" })), ["E3001 /data/a/path"]);
        assert_eq!(alone(json!({ "type": "base64", "data": "QUJD" })), ["E3001 /data/a/media_type"]);
        let half = json!({ "a": { "type": "file", "media_type": "text/plain" } });
        assert_eq!(verdicts(half, &[OutputModality::Text]), [""; 0], "a module without media to give");
    }

    #[test]
    fn data_addresses_are_taken_apart() {
        assert_eq!(inline("data:image/png;base64,QUJD"), Some(("image/png", "QUJD")));
        assert_eq!(inline("DATA:image/png;a=b;BASE64,"), Some(("image/png;a=b", "")));
        assert_eq!(inline("data:image/png,abc"), None);
        assert_eq!(inline("https://a;base64,x"), None);
    }
}
