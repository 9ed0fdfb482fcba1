//! Estimates the memory of a parsed JSON text from its bytes, before a value is built. A text with two bytes
//! per value grows a hundredfold, so a limit on its length does not limit memory. One pass, no allocation.
//! Checks no syntax: invalid JSON gets an estimate too, and the parser reports the error.

use cognitive_contract::json::end_of_string;
use cognitive_contract::{ErrorCode, Failure};
use serde_json::Value;

/// The size of a value inside its list. Lists grow by doubling, so up to half of one is empty.
const VALUE: usize = 2 * size_of::<Value>();
/// The size of an object member without its value: name, hash and table slot.
const MEMBER: usize = 96;
/// The size of the first allocation of a list or an object, which has room for four.
const FIRST: usize = 4 * size_of::<Value>() + 64;
/// The overhead of a string. Its characters are already counted by the JSON text itself.
const TEXT: usize = 32;
/// The depth at which counting stops; the parser refuses such a text.
const MAX_DEPTH: usize = 128;

/// The maximum memory for the values of a local input, in bytes. A server has its own limit, because its
/// callers are not trusted.
pub const MAX_COUNT: usize = 1 << 30;

/// Returns the memory that the values of a text will need besides the text itself, in bytes. The estimate is
/// never much too low. Counting stops once it exceeds `most`.
#[must_use]
pub fn size(text: &[u8], most: usize) -> usize {
    let (mut at, mut depth, mut size) = (0, 0_usize, VALUE);
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b'"' => {
                size += TEXT;
                match end_of_string(text, at) {
                    Some((end, _)) => at = end + 1,
                    None => break,
                }
            }
            b',' => size += VALUE,
            b':' => size += MEMBER,
            b'[' | b'{' => {
                depth += 1;
                let rest = text.get(at..).unwrap_or_default();
                let next = rest.iter().find(|byte| !byte.is_ascii_whitespace());
                if !matches!(next, Some(b']' | b'}')) {
                    size += FIRST;
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if size > most || depth > MAX_DEPTH {
            break;
        }
    }
    size
}

/// Returns the same estimate, or an error if it exceeds `most` bytes. (E1005)
pub fn estimate_within(text: &[u8], most: usize) -> Result<usize, Failure> {
    let size = size(text, most);
    if size <= most {
        return Ok(size);
    }
    let message = format!("the values of the input exceed the memory limit, in MiB: {}", most >> 20);
    Err(Failure::new(ErrorCode::InputTooLarge, message)
        .suggest("Send fewer values, or split them among several runs"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The memory of a built value, counted from its content.
    fn counted(value: &Value) -> usize {
        let item = size_of::<Value>();
        match value {
            Value::String(text) => text.capacity(),
            Value::Array(items) => items.capacity() * item + items.iter().map(counted).sum::<usize>(),
            Value::Object(members) if members.is_empty() => 0,
            Value::Object(members) => {
                let each = |(name, value): (&String, &Value)| name.capacity() + counted(value);
                members.len().max(4) * (item + 40) + members.iter().map(each).sum::<usize>()
            }
            _ => 0,
        }
    }

    // H2: the estimate is never below the real size, and not so far above it that ordinary texts are refused.
    #[test]
    fn the_estimate_covers_what_is_built() {
        let many = |piece: &str| format!("[{}0]", piece.repeat(10_000));
        let members: Vec<String> = (0..10_000).map(|number| format!("\"k{number}\":0")).collect();
        for text in [
            many("{\"\":0},"),
            many("0,"),
            many("\"\","),
            many("[0],"),
            many("[],"),
            many("{},"),
            many("{\"a\":{\"b\":[1,2,3]}},"),
            many("\"a few words of text\","),
            format!("{{{}}}", members.join(",")),
        ] {
            let value: Value = serde_json::from_str(&text).unwrap();
            let (estimate, real) = (size(text.as_bytes(), usize::MAX), counted(&value));
            let begins = text.get(..30).unwrap_or(&text);
            assert!(estimate + text.len() >= real, "{begins}: {estimate} for {real}");
            assert!(estimate <= 4 * real.max(1) + 4096, "{begins}: {estimate} for {real}");
        }
    }

    #[test]
    fn what_is_long_but_simple_costs_nothing_besides_its_text() {
        let picture = json!({ "image": { "data": "A".repeat(4 << 20) } }).to_string();
        assert!(size(picture.as_bytes(), usize::MAX) < 4_096);
        let pretty = format!("[{}1]", " ".repeat(1 << 20));
        assert!(size(pretty.as_bytes(), usize::MAX) < 4_096);
    }

    #[test]
    fn it_stops_where_the_answer_is_known() {
        let most = 1 << 20;
        for hostile in ["{\"\":0},", "0,", "[0],", "\"\","] {
            let text = format!("[{}0]", hostile.repeat(most / 8));
            let size = size(text.as_bytes(), most);
            assert!(size > most && size < most + 2 * (VALUE + FIRST), "{hostile}: {size}");
            assert_eq!(estimate_within(text.as_bytes(), most).unwrap_err().code(), ErrorCode::InputTooLarge);
        }
        // The parser refuses deeper texts, so the levels below are never built.
        assert!(size("[".repeat(1 << 20).as_bytes(), usize::MAX) < 200 * (VALUE + FIRST));
        for odd in ["", "\"", "[\"", "nope", "\\", "]]]]"] {
            assert!(estimate_within(odd.as_bytes(), most).is_ok(), "{odd}");
        }
    }
}
