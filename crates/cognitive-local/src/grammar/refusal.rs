//! Explains why a schema cannot be compiled. The message of the engine does not always name the place, so it is found
//! by trial compilation, which costs time only on errors.

use std::fmt;

use cognitive_contract::text::escape;
use serde_json::Value;

/// A keyword that cannot be enforced while a document is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeywordRefusal {
    /// The keyword, such as `pattern`.
    pub keyword: String,
    /// JSON pointer into the lowered schema.
    pub path: String,
    /// The message of the grammar engine, in one line.
    pub message: String,
}

impl fmt::Display for KeywordRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { keyword, path, message } = self;
        write!(f, "unsupported keyword `{keyword}` at `{path}`: {message}")
    }
}

impl KeywordRefusal {
    /// Finds the keyword that causes the error; `compiles` tries a part of the schema.
    pub(super) fn find(schema: &Value, message: &str, compiles: &dyn Fn(&Value) -> bool) -> Self {
        let (mut node, mut path) = (schema, String::new());
        while let Some((step, child)) = children(node).into_iter().find(|(_, child)| !compiles(child)) {
            path.push_str(&step);
            node = child;
        }
        let keyword = find_unsupported(node, compiles).unwrap_or_else(|| "anyOf".to_owned());
        let message = message.lines().next().unwrap_or_default().to_owned();
        Self { keyword, path, message }
    }
}

/// Returns the schemas directly below a schema, each with its path.
fn children(node: &Value) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    let named = node.get("properties").and_then(Value::as_object).into_iter().flatten();
    found.extend(named.map(|(name, child)| (format!("/properties/{}", escape(name)), child)));
    let branches = node.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    found.extend(branches.enumerate().map(|(index, child)| (format!("/anyOf/{index}"), child)));
    let places = node.get("items").and_then(Value::as_array).into_iter().flatten();
    found.extend(places.enumerate().map(|(index, child)| (format!("/items/{index}"), child)));
    let patterns = node.get("patternProperties").and_then(Value::as_object).into_iter().flatten();
    found.extend(patterns.map(|(name, child)| (format!("/patternProperties/{}", escape(name)), child)));
    for keyword in ["items", "additionalItems", "additionalProperties"] {
        let child = node.get(keyword).filter(|child| child.is_object());
        found.extend(child.map(|child| (format!("/{keyword}"), child)));
    }
    found
}

/// Returns the keyword without which the schema compiles.
fn find_unsupported(node: &Value, compiles: &dyn Fn(&Value) -> bool) -> Option<String> {
    let members = node.as_object()?;
    let without = |keyword: &str| {
        let mut rest = members.clone();
        rest.shift_remove(keyword);
        compiles(&Value::Object(rest))
    };
    // The type determines how all other keywords are read, so it is tried last.
    let others = members.keys().map(String::as_str).filter(|keyword| *keyword != "type");
    others.chain(["type"]).find(|keyword| without(keyword)).map(str::to_owned)
}
