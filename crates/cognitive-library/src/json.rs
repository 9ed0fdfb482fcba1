//! JSON files of modules: parsing with a limit on member names, paths, and (in `places`) the position of each value.
//! Refuses everything that the parser refuses, and member names that are too long.

mod places;

use std::borrow::Cow;

use cognitive_contract::json::{JsonError, parse};
use cognitive_contract::text::escape;
use serde_json::Value;

use crate::finding::quote;

pub use places::{JsonIndex, index};

/// The longest member name in a file of a module. Every path below a member repeats its name.
pub const NAME_LIMIT: usize = 1 << 10;
/// The longest path that is written out; a longer one ends at a parent.
const PLACE_LIMIT: usize = 4 << 10;

/// Parses a file of a module, and also refuses member names that are too long. The error message is complete.
pub fn parse_file(text: &str) -> Result<Value, JsonError> {
    let not_json = |error: JsonError| JsonError { message: format!("not JSON: {}", error.message), ..error };
    let value = parse(text).map_err(not_json)?;
    match long_name(&value) {
        None => Ok(value),
        Some(name) => {
            let message = format!("a member name is longer than {NAME_LIMIT} bytes: {}", quote(name));
            Err(JsonError { message, offset: text.find(name).unwrap_or(0) })
        }
    }
}

fn long_name(value: &Value) -> Option<&str> {
    match value {
        Value::Object(members) => members.iter().find_map(|(name, child)| {
            if name.len() > NAME_LIMIT { Some(name.as_str()) } else { long_name(child) }
        }),
        Value::Array(items) => items.iter().find_map(long_name),
        _ => None,
    }
}

/// One step of a path.
#[derive(Debug, Clone)]
pub enum JsonPathStep<'a> {
    /// Into a member, by its name.
    Member(Cow<'a, str>),
    /// Into an item, by its index.
    Item(usize),
}

/// The JSON pointer of a path. A path longer than 4 KiB ends at the last step that fits.
#[must_use]
pub fn pointer_of(path: &[JsonPathStep<'_>]) -> String {
    let mut place = String::new();
    for step in path {
        let token = match step {
            JsonPathStep::Member(name) if name.len() > PLACE_LIMIT => break,
            JsonPathStep::Member(name) => escape(name).into_owned(),
            JsonPathStep::Item(position) => position.to_string(),
        };
        if place.len() + token.len() >= PLACE_LIMIT {
            break;
        }
        place.push('/');
        place.push_str(&token);
    }
    place
}

/// The steps of a JSON pointer, unescaped; `None` if the text is not a pointer.
pub(crate) fn tokens(pointer: &str) -> Option<impl Iterator<Item = Cow<'_, str>>> {
    let inner = if pointer.is_empty() { None } else { Some(pointer.strip_prefix('/')?) };
    Some(inner.into_iter().flat_map(|inner| inner.split('/')).map(|token| {
        if token.contains('~') {
            Cow::Owned(token.replace("~1", "/").replace("~0", "~"))
        } else {
            Cow::Borrowed(token)
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_end_is_refused_and_not_repeated() {
        let name = "n".repeat(100_000);
        let error = parse_file(&format!(r#"[{{"{name}": 1}}]"#)).unwrap_err();
        assert!(error.message.len() < 400 && error.offset == 3, "{error:?}");
        assert!(parse_file(&format!(r#"{{"{}": 1}}"#, "n".repeat(NAME_LIMIT))).is_ok());
        assert_eq!(parse_file("{").unwrap_err().message, "not JSON: EOF while parsing an object");
    }
}
