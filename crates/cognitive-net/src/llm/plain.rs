//! The usual frame of chat completions: a piece of text, or the word that it was the last. It is read in place, without a
//! tree of values, because an answer has hundreds of them. Whatever is not exactly that is left to the reader of all frames.

use std::borrow::Cow;
use std::fmt;

use cognitive_contract::large_json;
use serde::de::{IgnoredAny, Visitor};
use serde::{Deserialize, Deserializer};

/// A frame with one piece of text. A member that is not named here, or is of another kind, makes it another frame.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Plain<'a> {
    #[serde(default)]
    model: Option<&'a str>,
    #[serde(borrow)]
    choices: [Choice<'a>; 1],
    #[serde(default)]
    object: Option<&'a str>,
    #[serde(default, rename = "usage")]
    _no_usage: (),
    #[serde(default, rename = "id")]
    _id: Scalar,
    #[serde(default, rename = "created")]
    _created: Scalar,
    #[serde(default, rename = "system_fingerprint")]
    _system_fingerprint: Scalar,
    #[serde(default, rename = "service_tier")]
    _service_tier: Scalar,
    #[serde(default, rename = "provider")]
    _provider: Scalar,
    #[serde(default, rename = "obfuscation")]
    _obfuscation: Scalar,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Choice<'a> {
    delta: Delta,
    #[serde(default)]
    index: Option<u64>,
    #[serde(default, rename = "logprobs")]
    _logprobs: Scalar,
    #[serde(default)]
    finish_reason: Option<&'a str>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Delta {
    /// Only whether there is any: where it stands in the frame is of use too, and found without the parser.
    #[serde(default, deserialize_with = "present")]
    content: bool,
    #[serde(default, rename = "role")]
    _role: Scalar,
    #[serde(default, rename = "refusal")]
    _no_refusal: (),
}

/// A member that says nothing about the text. An object would not do: it could have a member of the same name as the text.
#[derive(Debug, Default)]
struct Scalar;

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(Self)
    }
}

impl Visitor<'_> for Scalar {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("null, a truth value, a number or a text")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }
}

fn present<'de, D: Deserializer<'de>>(source: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(source).map(|_| true)
}

/// What a plain frame says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    /// The model, where it is named.
    pub(crate) model: Option<&'a str>,
    /// The text.
    pub(crate) text: Cow<'a, str>,
    /// Why the model stopped, where it did.
    pub(crate) finish: Option<&'a str>,
    place: Place<'a>,
}

/// Where the text stands in a frame: what is before it, up to its quote, how it is written, and what is after it.
#[derive(Debug, PartialEq, Eq, Default)]
struct Place<'a> {
    before: &'a str,
    written: &'a str,
    after: &'a str,
}

impl<'a> Place<'a> {
    /// A string of JSON holds no quote that is not escaped, so the mark is the name of a member, and no other member of a plain
    /// frame has that name.
    fn find(frame: &'a str) -> Option<Self> {
        let (_, rest) = frame.split_once(MARK).filter(|(_, rest)| !rest.contains(MARK))?;
        let text = rest.trim_start().strip_prefix('"')?;
        let (end, _) = large_json::end_of_string(text.as_bytes(), 0)?;
        let (written, after) = text.split_at_checked(end)?;
        Some(Self { before: frame.get(..frame.len() - text.len())?, written, after })
    }

    /// What is written there. What is rare is left to the parser.
    fn text(&self, frame: &str) -> Option<Cow<'a, str>> {
        let quoted = || frame.get(self.before.len().checked_sub(1)?..frame.len() - self.after.len() + 1);
        inside(self.written).or_else(|| serde_json::from_str(quoted()?).ok().map(Cow::Owned))
    }
}

/// What stands around the text in the frames of one answer. Most of them differ in nothing else, and then only the text has
/// to be read: whatever follows the same beginning up to the same end is the inside of the same string, as long as it is
/// the inside of a string at all.
#[derive(Debug, Default)]
pub(crate) struct Mould {
    /// Up to the quote before the text.
    before: String,
    /// From the quote after it.
    after: String,
}

impl Mould {
    /// Learns from a frame that was read as a plain one what the next may look like.
    pub(crate) fn learn(&mut self, piece: &Piece<'_>) {
        if piece.finish.is_none() && !piece.place.written.is_empty() {
            piece.place.before.clone_into(&mut self.before);
            piece.place.after.clone_into(&mut self.after);
        }
    }

    /// The text of a frame that differs from the learned one in its text alone.
    pub(crate) fn text<'f>(&self, frame: &'f str) -> Option<Cow<'f, str>> {
        if self.before.is_empty() {
            return None;
        }
        inside(frame.strip_prefix(self.before.as_str())?.strip_suffix(self.after.as_str())?)
    }
}

/// What stands before the text of a frame.
const MARK: &str = r#""content":"#;

/// What the inside of a string of JSON says; `None` if it is none, and for what is rare and left to the parser.
fn inside(text: &str) -> Option<Cow<'_, str>> {
    if large_json::is_plain(text.as_bytes()) {
        return Some(text.into());
    }
    // Pieces of an answer are short, and so are the runs between their escapes: looking at each byte is fastest.
    let (mut said, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(place) = rest.bytes().position(large_json::is_special) {
        let (run, escape) = rest.split_at_checked(place)?;
        said.push_str(run);
        let (letter, after) = escape.strip_prefix('\\').and_then(|escape| escape.split_at_checked(1))?;
        said.push(match letter {
            "n" => '\n',
            "t" => '\t',
            "\"" => '"',
            "\\" => '\\',
            "/" => '/',
            _ => return None,
        });
        rest = after;
    }
    said.push_str(rest);
    Some(said.into())
}

/// Reads a plain frame; `None` if it is any other.
pub(crate) fn piece(frame: &str) -> Option<Piece<'_>> {
    let Plain { model, choices: [choice], object, .. } = serde_json::from_str(frame).ok()?;
    // A complaint can come as an object of that name.
    if object == Some("error") {
        return None;
    }
    // Another candidate than the one that was asked for.
    if choice.index.is_some_and(|index| index != 0) {
        return None;
    }
    if !choice.delta.content {
        return Some(Piece { model, text: "".into(), finish: choice.finish_reason, place: Place::default() });
    }
    let place = Place::find(frame)?;
    Some(Piece { model, text: place.text(frame)?, finish: choice.finish_reason, place })
}

#[cfg(test)]
mod tests {
    use reqwest::Url;
    use reqwest::header::HeaderMap;
    use serde_json::Value;

    use super::*;
    use crate::llm::openai::{OPENAI, OpenAi};
    use crate::llm::{Reading, Wire};

    #[test]
    fn a_piece_of_text_is_read_in_place() {
        let frame = r#"{"id":"c-1","object":"chat.completion.chunk","created":1,"model":"gpt","system_fingerprint":null,
            "choices":[{"index":0,"delta":{"role":"assistant","content":"a \"b\"","refusal":null},"logprobs":null,
            "finish_reason":null}],"usage":null}"#;
        let Piece { model, text, finish, place } = piece(frame).unwrap();
        assert_eq!((model, &*text, finish), (Some("gpt"), "a \"b\"", None));
        assert_eq!(format!("{}{}{}", place.before, place.written, place.after), frame);
        let rare = frame.replace("content\":\"a", "content\" :  \"\\u00e9\\r");
        assert_eq!(piece(&rare), None, "a member that is written in another way");
        let rare = frame.replace("content\":\"a", "content\":  \"\\u00e9\\r");
        assert_eq!(piece(&rare).unwrap().text, "é\r \"b\"");
        let last = piece(r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#).unwrap();
        assert_eq!((last.model, &*last.text, last.finish), (None, "", Some("stop")));
    }

    /// What a reader makes of a frame: the text, the model, the end.
    fn made_of(read: impl FnOnce(&mut Reading, &mut dyn FnMut(&str))) -> (String, Option<String>, String) {
        let (mut reading, mut said) = (Reading::default(), String::new());
        read(&mut reading, &mut |text| said.push_str(text));
        (said, reading.model, format!("{:?}", reading.finish))
    }

    #[test]
    fn both_readers_make_the_same_of_a_plain_frame() {
        let url = || Url::parse("http://localhost").unwrap();
        let wire = OpenAi {
            dialect: OPENAI,
            model: String::new(),
            chat: url(),
            models: url(),
            headers: HeaderMap::new(),
        };
        for frame in [
            r#"{"model":"m","choices":[{"index":0,"delta":{"content":"a \"b\" \u00e9\n"},"finish_reason":null}]}"#,
            r#"{"model":"","choices":[{"delta":{"role":"assistant","content":""}}]}"#,
            r#"{"model":"m","choices":[{"delta":{},"finish_reason":"stop"}]}"#,
            r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"length"}]}"#,
            r#"{"choices":[{"delta":{"content":"a"},"finish_reason":""}]}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"content_filter"}],"usage":null}"#,
        ] {
            let plain = made_of(|reading, text| assert!(wire.read_plain(frame, reading, text), "{frame}"));
            let value: Value = serde_json::from_str(frame).unwrap();
            let whole = made_of(|reading, text| wire.read(&value, reading, text).unwrap());
            assert_eq!(plain, whole, "{frame}");
        }
        let stopped = r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"error"}]}"#;
        let untouched = made_of(|reading, text| assert!(!wire.read_plain(stopped, reading, text)));
        assert_eq!(untouched, made_of(|_, _| ()), "a complaint is left to the reader of all frames");
    }

    #[test]
    fn frames_of_one_mould_are_read_like_any_other() {
        let frame = |text: &str, rest: &str| {
            let text = serde_json::to_string(text).unwrap();
            format!(r#"{{"id":"c","choices":[{{"delta":{{"content":{text}}},"finish_reason":null}}]{rest}}}"#)
        };
        let mut mould = Mould::default();
        let first = frame("plain", "");
        assert_eq!(mould.text(&first), None, "nothing is known yet");
        mould.learn(&piece(&first).unwrap());
        for text in ["", "a", "\"", "\\", "a\n\t\"b\" é👍\\", "\"},\"finish_reason\":null}]}"] {
            let next = frame(text, "");
            assert_eq!(mould.text(&next).as_deref(), Some(text), "{next}");
            assert_eq!(piece(&next).unwrap().text, text);
        }
        // What is rare is left to the parser.
        assert_eq!(mould.text(&frame("\u{1}", "")), None);
        assert_eq!(mould.text(&first.replace("plain", r"\u00e9")), None);
        let last = r#"{"id":"c","choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#;
        for other in [
            frame("a", r#","usage":{"prompt_tokens":1}"#).as_str(),
            last,
            // Two strings, and half a string, are not the inside of one.
            r#"{"id":"c","choices":[{"delta":{"content":"a","refusal":"b"},"finish_reason":null}]}"#,
            r#"{"id":"c","choices":[{"delta":{"content":"a\"},"finish_reason":null}]}"#,
            &first[..first.len() - 1],
        ] {
            assert_eq!(mould.text(other), None, "{other}");
        }
        mould.learn(&piece(last).unwrap());
        assert_eq!(mould.text(last), None, "the last frame is no mould");
        let (escaped, mut mould) = (frame("\"quoted\" \\", ""), Mould::default());
        mould.learn(&piece(&escaped).unwrap());
        assert_eq!(mould.text(&frame("next", "")).as_deref(), Some("next"), "a mould of a text with escapes");
        // Spaces stand where the frame has them.
        let (spaced, mut mould) =
            (r#"{"choices":[{"delta":{"role":"assistant","content": "a"}}]}"#, Mould::default());
        mould.learn(&piece(spaced).unwrap());
        assert_eq!(mould.text(&spaced.replace("\"a\"", "\"next\"")).as_deref(), Some("next"));
        assert_eq!(mould.text(&spaced.replace("t\": ", "t\":")), None);
    }

    #[test]
    fn a_frame_with_two_members_of_that_name_is_left_to_the_parser() {
        for other in [
            r#"{"id":{"content":"a"},"choices":[{"delta":{"content":"a"}}]}"#,
            r#"{"choices":[{"delta":{"content":"a"}}],"id":{"content":"b"}}"#,
            r#"{"id":{"content":"b"},"choices":[{"delta":{"content" :"a"}}]}"#,
            r#"{"id":{"content":"b"},"choices":[{"delta":{"con\u0074ent":"a"}}]}"#,
            r#"{"id":{"x\"content":"b"},"choices":[{"delta":{"content" :"a"}}]}"#,
            r#"{"id":{"content":"b"},"choices":[{"delta":{"content" :null}}]}"#,
            r#"{"id":{"content":"b"},"choices":[{"delta":["a"]}]}"#,
            r#"{"id":{"content":"b"},"choices":[{"delta":{"content": "a"}}]}"#,
        ] {
            assert_eq!(piece(other), None, "{other}");
        }
    }

    #[test]
    fn anything_else_is_another_frame() {
        for frame in [
            r#"{"choices":[{"delta":{"content":"a"},"finish_reason":{}}]}"#,
            r#"{"choices":[{"delta":{"content":"a","refusal":"no"}}]}"#,
            r#"{"choices":[{"delta":{"content":"a","reasoning":"hm"}}]}"#,
            r#"{"choices":[{"delta":{"content":"a","tool_calls":[]}}]}"#,
            r#"{"choices":[{"delta":{"content":null}}]}"#,
            r#"{"choices":[{"delta":{"content":"a"}},{"delta":{"content":"b"}}]}"#,
            r#"{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":1}}"#,
            r#"{"choices":[{"delta":{"content":"a"}}],"error":{"message":"m"}}"#,
            r#"{"choices":[{"delta":{"content":"a"}}],"base_resp":{"status_code":1}}"#,
            r#"{"choices":[{"delta":{"content":"a"}}],"object":"error"}"#,
            r#"{"choices":[{"index":1,"delta":{"content":"a"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"a"},"message":{"content":"a"}}]}"#,
            r#"{"choices":[]}"#,
            r#"[{"choices":[{"delta":{"content":"a"}}]}]"#,
            "{",
        ] {
            assert_eq!(piece(frame), None, "{frame}");
        }
    }
}
