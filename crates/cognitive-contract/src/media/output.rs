//! Finds media in an answer, and replaces bytes that were moved elsewhere with a reference. (MEDIA-017, MEDIA-019)
//! Does not validate, decode or store anything.

use serde_json::{Map, Value};

use super::item::companion;
use super::kind::MediaType;
use crate::envelope::Envelope;
use crate::text::{cut, escape};

/// A media item in an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProducedMedia<'a> {
    /// Its position, as a JSON pointer from `data`.
    pub place: String,
    /// The object.
    pub members: &'a Map<String, Value>,
    /// The declared type.
    pub media_type: &'a str,
}

/// The most media of an answer that are found, and the longest pointer to one in bytes. The model controls both, so
/// they need a limit.
const MAX_FOUND: usize = 1_000;
const MAX_PLACE_LENGTH: usize = 4_096;

/// The longest file name, without the extension and a suffix that makes it unique. Most file systems refuse names
/// above 255 bytes, and a letter has up to four of them.
const MAX_NAME_LENGTH: usize = 120;

/// Returns the media in `data`, at any depth: objects with a `type`, its companion and a `media_type`. An object
/// without a `media_type` is left to the schema: it may be a plain link. Ignores media after the first thousand, and
/// media whose pointer is too long.
#[must_use]
pub fn find_output(data: &Map<String, Value>) -> Vec<ProducedMedia<'_>> {
    let mut found = Vec::new();
    each_output(data, &mut |place, members| {
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        let complete = text("type").and_then(companion).is_some_and(|name| text(name).is_some());
        if let Some(media_type) = text("media_type").filter(|_| complete)
            && found.len() < MAX_FOUND
            && place.len() <= MAX_PLACE_LENGTH
        {
            found.push(ProducedMedia { place: place.to_owned(), members, media_type });
        }
    });
    found
}

/// A callback for a possible media item: its pointer and its object.
type Show<'s, 'a> = dyn FnMut(&str, &'a Map<String, Value>) + 's;

/// Calls `show` for every object of `data` whose `type` is a source that answers may use. All pointers share one
/// buffer, so that a long name above many values is not copied for each of them.
pub(super) fn each_output<'a>(data: &'a Map<String, Value>, show: &mut Show<'_, 'a>) {
    let mut place = String::new();
    data.iter().for_each(|(name, value)| step(value, &escape(name), &mut place, show));
}

fn step<'a>(value: &'a Value, token: &str, place: &mut String, show: &mut Show<'_, 'a>) {
    let before = place.len();
    place.push('/');
    place.push_str(token);
    match value {
        Value::Object(members) => {
            // Only callers use `upload_ref`; an answer never refers to an upload.
            let word = members.get("type").and_then(Value::as_str).filter(|word| *word != "upload_ref");
            if word.and_then(companion).is_some() {
                show(place, members);
            }
            members.iter().for_each(|(name, value)| step(value, &escape(name), place, show));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| step(item, &at.to_string(), place, show));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    place.truncate(before);
}

/// A media item whose bytes are in the answer itself, as base64.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EmbeddedMedia<'a> {
    /// Its position, as a JSON pointer from `data`.
    pub place: String,
    /// Its type.
    pub media_type: MediaType,
    /// Its bytes, in base64.
    pub text: &'a str,
}

impl EmbeddedMedia<'_> {
    /// Returns a file name for its bytes: its position plus the extension of its type. The name is safe and short
    /// enough for every system. Two positions may produce the same name.
    #[must_use]
    pub fn file_name(&self) -> String {
        let place = self.place.trim_start_matches('/');
        let name = place.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
        format!("{}.{}", cut(&name, MAX_NAME_LENGTH), self.media_type.extension())
    }
}

/// The new location of an item's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the members of a medium, by their names in the specification")]
pub enum MediaLocation {
    /// Into a file.
    File { path: String },
    /// At a URL that expires at a time, in RFC 3339. (MEDIA-019)
    Url { url: String, expires_at: String },
}

/// Returns the media of an answer that can be moved: base64, with a supported type.
#[must_use]
pub fn embedded_media(envelope: &Envelope) -> Vec<EmbeddedMedia<'_>> {
    let found = envelope.data().map(find_output).unwrap_or_default();
    found.into_iter().filter_map(as_base64).collect()
}

fn as_base64(medium: ProducedMedia<'_>) -> Option<EmbeddedMedia<'_>> {
    let member = |name: &str| medium.members.get(name).and_then(Value::as_str);
    member("type").filter(|word| *word == "base64")?;
    let (media_type, text) = (MediaType::parse(medium.media_type)?, member("data")?);
    Some(EmbeddedMedia { place: medium.place, media_type, text })
}

/// Replaces the bytes of a media item in an answer with their new location. Its other members stay.
pub fn refer(envelope: &mut Envelope, place: &str, moved: MediaLocation) {
    let Some(members) = envelope.data_mut().and_then(|data| at(data, place)) else { return };
    members.shift_remove("data");
    let mut put = |name: &str, value: String| members.insert(name.to_owned(), Value::String(value));
    match moved {
        MediaLocation::File { path } => {
            put("type", "file".to_owned());
            put("path", path);
        }
        MediaLocation::Url { url, expires_at } => {
            put("type", "url".to_owned());
            put("url", url);
            put("expires_at", expires_at);
        }
    }
}

/// Returns the object at a pointer from `data`.
fn at<'a>(data: &'a mut Map<String, Value>, place: &str) -> Option<&'a mut Map<String, Value>> {
    let place = place.strip_prefix('/')?;
    let (first, rest) = place.split_at(place.find('/').unwrap_or(place.len()));
    let member = data.get_mut(&first.replace("~1", "/").replace("~0", "~"))?;
    member.pointer_mut(rest)?.as_object_mut()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(data: &Value) -> Envelope {
        let meta = json!({ "confidence": 1, "risk": "low", "explain": "e" });
        Envelope::from_value(json!({ "ok": true, "meta": meta, "data": data })).unwrap()
    }

    #[test]
    fn media_017_what_stands_as_base64_can_be_referred_to_instead() {
        let medium = json!({ "type": "base64", "media_type": "image/png", "data": "UE5H", "width": 1 });
        let odd = json!({ "type": "base64", "media_type": "image/tiff", "data": "UE5H" });
        let link = json!({ "type": "url", "media_type": "image/png", "url": "https://a/b" });
        let mut envelope = answer(&json!({ "rationale": "r", "a/b~": [odd, link, medium], "one": medium }));
        let found: Vec<(String, String, String)> = embedded_media(&envelope)
            .iter()
            .map(|medium| (medium.place.clone(), medium.file_name(), medium.text.to_owned()))
            .collect();
        let expected = |place: &str, name: &str| (place.to_owned(), name.to_owned(), "UE5H".to_owned());
        assert_eq!(found, [expected("/a~1b~0/2", "a-1b-0-2.png"), expected("/one", "one.png")]);
        refer(&mut envelope, "/a~1b~0/2", MediaLocation::File { path: "x.png".to_owned() });
        let expires_at = "2027-01-15T09:00:00Z".to_owned();
        refer(&mut envelope, "/one", MediaLocation::Url { url: "/f/1".to_owned(), expires_at });
        refer(&mut envelope, "/nowhere/0", MediaLocation::File { path: "y".to_owned() });
        let file = json!({ "type": "file", "media_type": "image/png", "width": 1, "path": "x.png" });
        let url = json!({
            "type": "url", "media_type": "image/png", "width": 1, "url": "/f/1", "expires_at": "2027-01-15T09:00:00Z"
        });
        let data = envelope.data().unwrap();
        assert_eq!(data["a/b~"], json!([odd, link, file]));
        assert_eq!(data["one"], url);
        assert_eq!(embedded_media(&envelope), []);
    }
}
