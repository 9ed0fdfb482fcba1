//! Parses JSON texts that are mostly one long string, such as a base64 image, without copying that string.
//! Validates nothing itself: the parser sees the text with a short marker in place of each long string. A
//! refused text stays unchanged, so that the caller can report the error.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::ops::Range;

use cognitive_contract::json::end_of_string;
use serde_json::Value;

/// The minimum length of a long string, in bytes. Copying a shorter one is faster than finding it.
const LONG: usize = 256 << 10;
/// Parses a JSON text with long strings and reuses its buffer for the longest of them; the text is empty
/// afterwards. Returns `None` for any other text, including invalid JSON. Such a text stays unchanged, to be
/// parsed as usual.
pub fn parse(text: &mut String) -> Option<Value> {
    if text.len() < LONG {
        return None;
    }
    let places = long_strings(text.as_bytes());
    // The text cannot contain the marker, which is random and newer than the text.
    let mark = format!("{:016x}{:016x}-", random(), random());
    let mut value = serde_json::from_str(&mark_strings(text, &places, &mark)?).ok()?;
    restore_strings(&mut value, &mark, &mut take_strings(text, places));
    Some(value)
}

fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Finds the long strings that are values without escapes, and returns their ranges without quotes. For invalid
/// JSON the ranges are arbitrary; that text fails to parse afterwards.
fn long_strings(text: &[u8]) -> Vec<Range<usize>> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(open) = text.get(at..).and_then(|rest| rest.iter().position(|byte| *byte == b'"')) {
        let start = at + open + 1;
        let Some((end, plain)) = end_of_string(text, start) else { break };
        at = end + 1;
        let mut after =
            text.get(at..).unwrap_or_default().iter().skip_while(|byte| byte.is_ascii_whitespace());
        if plain && end - start >= LONG && after.next() != Some(&b':') {
            found.push(start..end);
        }
    }
    found
}

/// Returns a string member of the top-level object, unless it contains escapes. Scans the bytes without
/// building a value, for callers that need one member before they parse the rest.
#[must_use]
pub fn member<'a>(text: &'a [u8], name: &str) -> Option<&'a str> {
    let (mut at, mut depth, mut is_name) = (0, 0_usize, false);
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b'"' => {
                let (end, _) = end_of_string(text, at)?;
                let is_wanted = depth == 1 && is_name && text.get(at..end) == Some(name.as_bytes());
                at = end + 1;
                if is_wanted {
                    return string_after_colon(text.get(at..)?);
                }
            }
            b'{' | b'[' => {
                depth += 1;
                is_name = depth == 1 && *byte == b'{';
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' => is_name = true,
            b':' => is_name = false,
            _ => {}
        }
    }
    None
}

fn string_after_colon(text: &[u8]) -> Option<&str> {
    let value = text.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start().strip_prefix(b"\"")?;
    let (end, plain) = end_of_string(value, 0)?;
    std::str::from_utf8(value.get(..end)?).ok().filter(|_| plain)
}

/// Returns the text with markers in place of the long strings; `None` if there are none.
fn mark_strings(text: &str, places: &[Range<usize>], mark: &str) -> Option<String> {
    let (mut short, mut at) = (String::new(), 0);
    for (number, place) in places.iter().enumerate() {
        short.push_str(text.get(at..place.start)?);
        short.push_str(mark);
        short.push_str(&number.to_string());
        at = place.end;
    }
    short.push_str(text.get(at..).filter(|_| at > 0)?);
    Some(short)
}

/// Returns the long strings. All but the longest are copied; the longest keeps the buffer of the text.
fn take_strings(text: &mut String, places: Vec<Range<usize>>) -> Vec<String> {
    let longest = places.iter().enumerate().max_by_key(|(_, place)| place.len()).map(|(number, _)| number);
    let copy = |(number, place): (usize, &Range<usize>)| match text.get(place.clone()) {
        Some(long) if Some(number) != longest => long.to_owned(),
        _ => String::new(),
    };
    let mut strings: Vec<String> = places.iter().enumerate().map(copy).collect();
    let mut whole = std::mem::take(text);
    if let Some((place, string)) = longest.and_then(|at| places.get(at).zip(strings.get_mut(at))) {
        whole.truncate(place.end);
        whole.drain(..place.start);
        // One of many long strings must not keep the memory of all.
        if whole.capacity() / 2 > whole.len() {
            whole.shrink_to_fit();
        }
        *string = whole;
    }
    strings
}

fn restore_strings(value: &mut Value, mark: &str, strings: &mut [String]) {
    match value {
        Value::String(text) => {
            let number = text.strip_prefix(mark).and_then(|number| number.parse::<usize>().ok());
            if let Some(string) = number.and_then(|number| strings.get_mut(number)) {
                *text = std::mem::take(string);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| restore_strings(item, mark, strings)),
        Value::Object(members) => {
            members.values_mut().for_each(|member| restore_strings(member, mark, strings));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn long(letter: &str, more: usize) -> String {
        letter.repeat(LONG + more)
    }

    #[test]
    fn it_is_the_value_that_the_parser_gives() {
        let (a, b) = (long("a", 1), long("é", 0));
        for text in [
            json!({ "x": [{ "data": a, "n": 1 }, b, "short"], "y": a }).to_string(),
            json!(a).to_string(),
            format!(r#" {{ "k" : "{a}" , "k" : 1 }} "#),
            format!(r#"{{"{a}" : "{b}"}}"#),
            format!(r#"["{a}\n{a}", "\"{a}", "{a}\\", "{b}"]"#),
        ] {
            let (mut taken, usual) = (text.clone(), serde_json::from_str(&text).unwrap());
            assert!(parse(&mut taken) == Some(usual) && taken.is_empty());
        }
    }

    #[test]
    fn other_texts_are_left_alone() {
        let a = long("a", 1);
        let broken = [
            r#"["A""#,
            r#"["A", nope]"#,
            r#""A"#,
            r#"{"A"}"#,
            r#"["A"]]"#,
            "A",
            "[\"\n\", \"A\"]",
            "[\"A\n\"]",
        ];
        for text in broken.iter().chain(&["[1]", "", r#"{"A": 1}"#, r#"["A\n"]"#]) {
            let text = text.replace('A', &a);
            let mut left = text.clone();
            assert!(parse(&mut left).is_none() && left == text);
        }
    }

    #[test]
    fn a_member_is_found_without_reading_the_rest() {
        let found = |text: &str| member(text.as_bytes(), "module").map(str::to_owned);
        for text in [
            r#"{"module":"m"}"#,
            r#" { "input" : {"module": "x", "a": ["module", {"module": "y"}]}, "module" : "m" }"#,
            r#"{"a": "module", "b": ["module", "module"], "module": "m", broken"#,
        ] {
            assert_eq!(found(text).as_deref(), Some("m"), "{text}");
        }
        for text in [
            "",
            "[]",
            r#"["module", "m"]"#,
            r#"{"module": 1}"#,
            r#"{"module": "a\n"}"#,
            r#"{"a": {"module": "m"}}"#,
            r#"{"module"#,
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }

    #[test]
    fn the_longest_string_is_not_copied() {
        let mut text = json!({ "type": "base64", "more": long("b", 0), "data": long("a", LONG) }).to_string();
        let memory = text.as_ptr();
        let value = parse(&mut text).unwrap();
        assert_eq!(value["data"].as_str().unwrap().as_ptr(), memory);
        assert_eq!(value["data"], json!(long("a", LONG)));
    }

    #[test]
    fn many_strings_take_no_more_than_their_own_room() {
        let mut text = json!(vec![long("a", 0); 8]).to_string();
        let value = parse(&mut text).unwrap();
        let Value::Array(items) = value else { panic!("{}", value["0"]) };
        let room = items.iter().map(|item| if let Value::String(text) = item { text.capacity() } else { 0 });
        assert!(room.sum::<usize>() < 9 * LONG);
    }
}
