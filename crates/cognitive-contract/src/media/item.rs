//! Finds the media items of an input and their positions. (MEDIA-001, MEDIA-002)
//! Reads only the metadata of an item; its bytes are checked later.

use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use crate::code::ErrorCode;
use crate::failure::Failure;
use crate::manifest::Modalities;
use crate::text::{escape, pointer};

/// A media item in an input.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Item<'a> {
    /// Its number among the items, from 0, in the order of the input.
    pub index: usize,
    /// Its position, as a JSON pointer.
    pub place: String,
    /// The location of its bytes.
    pub source: ItemSource<'a>,
    /// The declared type.
    pub declared: Option<&'a str>,
    /// The expected checksum of its bytes.
    pub checksum: Option<Checksum<'a>>,
}

/// The location of an item's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemSource<'a> {
    /// At a URL.
    Url(&'a str),
    /// In the item itself.
    Base64(&'a str),
    /// In a file.
    File(&'a str),
    /// A previous upload, by its id.
    Upload(&'a str),
}

/// The expected checksum of an item's bytes. (EXT-MEDIA)
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(rename = "UploadChecksum")]
pub struct Checksum<'a> {
    /// `sha256`, `md5` or `crc32`.
    #[schemars(extend("enum" = ["sha256", "md5", "crc32"]))]
    pub algorithm: &'a str,
    /// The hexadecimal digits.
    #[schemars(regex(pattern = "^[0-9a-fA-F]+$"))]
    pub value: &'a str,
}

/// Every source type, and its companion member.
const SOURCES: [(&str, &str); 4] =
    [("url", "url"), ("base64", "data"), ("file", "path"), ("upload_ref", "upload_id")];

/// Returns the companion member of a source type.
pub(super) fn companion(word: &str) -> Option<&'static str> {
    SOURCES.iter().find(|(known, _)| *known == word).map(|(_, companion)| *companion)
}

/// The maximum number of items to find. Far above the limit of any run; an input with a million items fails early,
/// before all are collected.
const MAX_FOUND: usize = 1_000;

/// The maximum pointer length of an item, in bytes. Its names come from the caller, and every item carries its own
/// pointer.
const MAX_PLACE_LENGTH: usize = 4_096;

/// Returns the media items of an input in order, at any depth. Ignores context. A module without `modalities` has no
/// media: for it such an object is business data. Fails on an incomplete item.
pub fn find<'a>(modalities: &Modalities, input: &'a Value) -> Result<Vec<Item<'a>>, Failure> {
    let mut walk = ItemWalk::default();
    if let Some(members) = input.as_object().filter(|_| modalities.declared) {
        for (name, value) in members.iter().filter(|(name, _)| *name != crate::context::MEMBER) {
            walk.step(&escape(name), value)?;
        }
    }
    Ok(walk.found)
}

/// A traversal of an input with one shared pointer buffer. A separate pointer for each value would take quadratic time
/// for an input with a long name above many values.
#[derive(Default)]
struct ItemWalk<'a> {
    place: String,
    found: Vec<Item<'a>>,
}

impl<'a> ItemWalk<'a> {
    fn step(&mut self, token: &str, value: &'a Value) -> Result<(), Failure> {
        if !matches!(value, Value::Object(_) | Value::Array(_)) {
            return Ok(());
        }
        let before = self.place.len();
        self.place.push('/');
        self.place.push_str(token);
        self.descend(value)?;
        self.place.truncate(before);
        Ok(())
    }

    fn descend(&mut self, value: &'a Value) -> Result<(), Failure> {
        match value {
            Value::Object(members) => match item(members, &self.place, self.found.len())? {
                Some(item) => self.found.push(item),
                None => members.iter().try_for_each(|(name, value)| self.step(&escape(name), value))?,
            },
            Value::Array(items) => {
                items.iter().enumerate().try_for_each(|(at, value)| self.step(&at.to_string(), value))?;
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        Ok(())
    }
}

fn item<'a>(members: &'a Map<String, Value>, place: &str, index: usize) -> Result<Option<Item<'a>>, Failure> {
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    let Some(word) = text("type") else { return Ok(None) };
    let Some(companion) = companion(word) else { return Ok(None) };
    let Some(value) = members.get(companion) else { return Ok(None) };
    check_item_limits(place, index)?;
    let Some(value) = value.as_str() else { return Err(half(place, companion, "is not a string")) };
    let source = match word {
        "url" => ItemSource::Url(value),
        "base64" => ItemSource::Base64(value),
        "file" => ItemSource::File(value),
        _ => ItemSource::Upload(value),
    };
    let declared = text("media_type");
    // (C-43) A lax schema may allow this; the contract does not.
    if declared.is_none() && matches!(source, ItemSource::Base64(_)) {
        return Err(half(place, "media_type", "is missing"));
    }
    let checksum = members.get("checksum").map(|given| checksum(given, place)).transpose()?;
    Ok(Some(Item { index, place: place.to_owned(), source, declared, checksum }))
}

/// Checks that one more item with this pointer is within the limits.
fn check_item_limits(place: &str, index: usize) -> Result<(), Failure> {
    if index >= MAX_FOUND {
        let message = format!("the request has more than {MAX_FOUND} media items");
        return Err(Failure::new(ErrorCode::MediaTooLarge, message).suggest("Send fewer items"));
    }
    if place.len() > MAX_PLACE_LENGTH {
        let message = format!("the path of a media item exceeds {MAX_PLACE_LENGTH} bytes");
        return Err(Failure::new(ErrorCode::InvalidInput, message).suggest("Use shorter member names"));
    }
    Ok(())
}

fn checksum<'a>(given: &'a Value, place: &str) -> Result<Checksum<'a>, Failure> {
    Checksum::read(given).map_err(|what| half(place, "checksum", what))
}

impl<'a> Checksum<'a> {
    /// Parses `{algorithm, value}`. The error text is a predicate, to be appended to the member's name.
    pub fn read(given: &'a Value) -> Result<Self, &'static str> {
        let text = |name: &str| given.get(name).and_then(Value::as_str);
        let (Some(algorithm), Some(value)) = (text("algorithm"), text("value")) else {
            return Err("needs `algorithm` and `value`");
        };
        let digits = match algorithm {
            "sha256" => Some(64),
            "md5" => Some(32),
            "crc32" => Some(8),
            _ => None,
        };
        let fits = digits == Some(value.len()) && value.bytes().all(|byte| byte.is_ascii_hexdigit());
        if fits { Ok(Self { algorithm, value }) } else { Err("is not a sha256, md5 or crc32 in hex") }
    }
}

fn half(place: &str, member: &str, what: &str) -> Failure {
    let place = pointer(place, member);
    Failure::new(ErrorCode::InvalidInput, format!("`{place}` {what}")).with_detail("path", json!(place))
}

/// Returns the decoded length of a base64 text without decoding it; line breaks do not count. (SEC-002)
#[must_use]
pub fn decoded_length(text: &str) -> u64 {
    let is_break = |byte: &u8| u8::from(*byte == b'\r') + u8::from(*byte == b'\n');
    // Counted bytewise in blocks of at most 255, so that a `u8` counter suffices and the compiler can use SIMD.
    let breaks: usize = text
        .as_bytes()
        .chunks(usize::from(u8::MAX))
        .map(|block| usize::from(block.iter().map(is_break).sum::<u8>()))
        .sum();
    let padding = text
        .bytes()
        .rev()
        .take_while(|byte| matches!(byte, b'=' | b'\r' | b'\n'))
        .filter(|byte| *byte == b'=');
    let digits = text.len() - breaks;
    u64::try_from((digits / 4 * 3).saturating_sub(padding.count())).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use crate::manifest::InputModality;

    use super::*;

    fn declared() -> Modalities {
        Modalities { declared: true, input: vec![InputModality::Image], output: vec![] }
    }

    #[test]
    fn media_001_items_are_found_at_any_depth_in_order() {
        let input = json!({
            "images": [{ "type": "url", "url": "https://a/b" }, { "note": { "type": "file", "path": "x.png" } }],
            "one": { "type": "base64", "media_type": "image/png", "data": "AA==" },
            "up": { "type": "upload_ref", "upload_id": "u1", "media_type": "image/png" },
            "_context": { "c": { "type": "url", "url": "https://never" } },
            "shape": { "type": "circle", "url": "https://no" }, "link": { "type": "url" },
        });
        let found = find(&declared(), &input).unwrap();
        let seen: Vec<(usize, &str, ItemSource<'_>)> =
            found.iter().map(|item| (item.index, item.place.as_str(), item.source)).collect();
        assert_eq!(
            seen,
            [
                (0, "/images/0", ItemSource::Url("https://a/b")),
                (1, "/images/1/note", ItemSource::File("x.png")),
                (2, "/one", ItemSource::Base64("AA==")),
                (3, "/up", ItemSource::Upload("u1")),
            ]
        );
    }

    #[test]
    fn the_number_of_items_and_the_length_of_their_places_are_bounded() {
        let item = json!({ "type": "url", "url": "https://a/b" });
        let code = |input: &Value| find(&declared(), input).map(|found| found.len()).map_err(|f| f.code());
        assert_eq!(code(&json!({ "a": vec![item.clone(); 1_000] })), Ok(1_000));
        assert_eq!(code(&json!({ "a": vec![item.clone(); 1_001] })), Err(ErrorCode::MediaTooLarge));
        assert_eq!(code(&json!({ "a".repeat(4_095): item })), Ok(1));
        assert_eq!(code(&json!({ "a".repeat(4_096): item })), Err(ErrorCode::InvalidInput));
        assert_eq!(code(&json!({ "a~/b": { "c/d": item } })), Ok(1));
        assert_eq!(
            find(&declared(), &json!({ "a~/b": [0, { "c/d": item }] })).unwrap()[0].place,
            "/a~0~1b/1/c~1d"
        );
    }

    #[test]
    fn a_long_name_above_many_values_takes_no_time() {
        // With a separate text for each value, this would write terabytes and take minutes.
        let many = vec![json!({ "b": [0] }); 200_000];
        let input = json!({ "a".repeat(20_000_000): many });
        assert_eq!(find(&declared(), &input).unwrap(), []);
    }

    #[test]
    fn media_002_without_modalities_it_is_business_data() {
        let silent = Modalities { declared: false, ..declared() };
        assert_eq!(find(&silent, &json!({ "a": { "type": "url", "url": "http://10.0.0.1" } })).unwrap(), []);
    }

    #[test]
    fn half_an_item_is_an_input_error_that_names_its_member() {
        for (input, place) in [
            (json!({ "a": { "type": "base64", "data": "AA==" } }), "/a/media_type"),
            (json!({ "a": { "type": "url", "url": 7 } }), "/a/url"),
            (json!({ "a": { "type": "url", "url": "u", "checksum": {} } }), "/a/checksum"),
            (
                json!({ "a": { "type": "url", "url": "u", "checksum": { "algorithm": "sha1", "value": "00" } } }),
                "/a/checksum",
            ),
            (
                json!({ "a": { "type": "url", "url": "u", "checksum": { "algorithm": "crc32", "value": "xyzxyzxy" } } }),
                "/a/checksum",
            ),
        ] {
            let failure = find(&declared(), &input).unwrap_err();
            assert_eq!(failure.code(), ErrorCode::InvalidInput);
            assert!(failure.message().contains(place), "{}", failure.message());
        }
    }

    #[test]
    fn sec_002_the_length_is_known_before_decoding() {
        for (text, length) in
            [("", 0), ("QQ==", 1), ("QUI=", 2), ("QUJD", 3), ("QUJD\r\nQQ==\n", 4), ("=", 0), ("====", 0)]
        {
            assert_eq!(decoded_length(text), length, "{text:?}");
        }
        assert_eq!(decoded_length(&"QUJD\n".repeat(1_000)), 3_000);
        assert_eq!(decoded_length(&"\r\n".repeat(1_000)), 0);
    }
}
