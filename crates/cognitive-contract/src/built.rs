//! What a JSON text takes in memory once it is read, told from its bytes before a value is built. A text of two bytes per
//! value grows a hundredfold, so a limit on its length is no limit on memory. One pass, no allocation; judges no syntax:
//! a text that is no JSON gives what its signs say, and whoever parses it says the rest.

use serde_json::Value;

use crate::code::ErrorCode;
use crate::failure::Failure;
use crate::large_json;

/// What a value takes in the list that holds it. Lists grow by doubling, so up to half of one is empty.
const VALUE: usize = 2 * size_of::<Value>();
/// What a member takes besides its value: its name, its hash and its place in the table.
const MEMBER: usize = 96;
/// What the first value of a list or an object costs: room is made for four.
const FIRST: usize = 4 * size_of::<Value>() + 64;
/// What a text takes besides its letters, which the JSON text itself has had room for.
const TEXT: usize = 32;
/// Levels that the parser builds; it refuses the next one.
const MAX_DEPTH: usize = 128;

/// The most that the values of an input may take which somebody reads on their own machine, in bytes. A server has a
/// limit of its own, by what it takes from strangers.
pub const MAX_COUNT: usize = 1 << 30;

/// The memory that the values of a text will take besides the text itself, in bytes: never much less than it will be.
/// Once it is above `most`, the rest of the text is not looked at.
#[must_use]
pub fn size(text: &[u8], most: usize) -> usize {
    let (mut at, mut depth, mut size) = (0, 0_usize, VALUE);
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b'"' => {
                size += TEXT;
                match large_json::end_of_string(text, at) {
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

/// The same for a text whose values may take at most so many bytes. (E1005)
pub fn within(text: &[u8], most: usize) -> Result<usize, Failure> {
    let size = size(text, most);
    if size <= most {
        return Ok(size);
    }
    let message =
        format!("the values of the input would take more memory than allowed, in MiB: {}", most >> 20);
    Err(Failure::new(ErrorCode::InputTooLarge, message)
        .suggest("Send fewer values, or share them among several runs"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// What a value takes, counted from what it holds.
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

    // H2: the estimate is never below what is built, and not so far above it that honest texts suffer.
    #[test]
    fn h2_the_estimate_covers_what_is_built() {
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
    fn h2_what_is_long_but_simple_costs_nothing_besides_its_text() {
        let picture = json!({ "image": { "data": "A".repeat(4 << 20) } }).to_string();
        assert!(size(picture.as_bytes(), usize::MAX) < 4_096);
        let pretty = format!("[{}1]", " ".repeat(1 << 20));
        assert!(size(pretty.as_bytes(), usize::MAX) < 4_096);
    }

    #[test]
    fn h2_it_stops_where_the_answer_is_known() {
        let most = 1 << 20;
        for hostile in ["{\"\":0},", "0,", "[0],", "\"\","] {
            let text = format!("[{}0]", hostile.repeat(most / 8));
            let size = size(text.as_bytes(), most);
            assert!(size > most && size < most + 2 * (VALUE + FIRST), "{hostile}: {size}");
            assert_eq!(within(text.as_bytes(), most).unwrap_err().code(), ErrorCode::InputTooLarge);
        }
        // The parser refuses what is deeper, so nothing below is ever built.
        assert!(size("[".repeat(1 << 20).as_bytes(), usize::MAX) < 200 * (VALUE + FIRST));
        for odd in ["", "\"", "[\"", "nope", "\\", "]]]]"] {
            assert!(within(odd.as_bytes(), most).is_ok(), "{odd}");
        }
    }
}
