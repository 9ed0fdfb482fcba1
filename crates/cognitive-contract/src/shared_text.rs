//! A text that many calls send, such as the instructions of a module. It is stored once and serialised to JSON
//! once.
//! It is immutable.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// A text and its JSON form. Cheap to clone.
#[derive(Clone, Default)]
pub struct SharedText(Arc<TextAndJson>);

#[derive(Default)]
struct TextAndJson {
    text: String,
    json: OnceLock<String>,
}

impl SharedText {
    /// Returns the text as a JSON string, including quotes.
    #[must_use]
    pub fn json(&self) -> &str {
        // Serialising a string cannot fail.
        self.0.json.get_or_init(|| serde_json::to_string(&self.0.text).unwrap_or_default())
    }

    /// Returns a new text with `more` appended.
    #[must_use]
    pub fn with(&self, more: &str) -> Self {
        Self::from([self, more].concat())
    }
}

impl From<String> for SharedText {
    fn from(text: String) -> Self {
        Self(Arc::new(TextAndJson { text, json: OnceLock::new() }))
    }
}

impl Deref for SharedText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0.text
    }
}

impl PartialEq for SharedText {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for SharedText {}

impl fmt::Debug for SharedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for SharedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_form_in_json() {
        let text = SharedText::from("a \"b\"\n".to_owned());
        assert_eq!(text.json(), r#""a \"b\"\n""#);
        assert!(std::ptr::eq(text.json(), text.clone().json()), "it is written once");
        assert_eq!(&*text.with("c"), "a \"b\"\nc");
    }
}
