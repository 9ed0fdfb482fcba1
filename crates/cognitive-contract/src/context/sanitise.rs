//! Sanitises context before a model or a log sees it. Removes values under secret-like names and access details in the
//! addresses and paths of media, and cuts long texts.
//! Works on a copy: the caller's object stays unchanged.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::media::hide_in_item;
use crate::text::{cut, fits};

/// Words in a member's name that mark its value as a secret.
const TELLING: [&str; 4] = ["password", "token", "secret", "key"];

/// The replacement for a secret text. Secrets of other types are removed.
pub const REDACTED: &str = "[REDACTED]";

/// The longest text, in code points. A longer one would crowd out the input in the prompts of all later runs.
pub const MAX_LENGTH: usize = 10_000;

/// Removes secrets and cuts long texts.
#[derive(Debug, Clone, Default)]
pub struct Sanitiser {
    /// Names that the operator declared harmless, in lower case.
    exempt: BTreeSet<String>,
}

impl Sanitiser {
    /// A sanitiser that ignores members with these names, such as `keywords`. Case does not matter; only a whole name
    /// matches.
    #[must_use]
    pub fn ignoring_names(names: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        Self { exempt: names.into_iter().map(|name| name.as_ref().to_lowercase()).collect() }
    }

    /// Returns a copy without secrets and long texts, at every depth.
    #[must_use]
    pub fn clean(&self, members: &Map<String, Value>) -> Map<String, Value> {
        let clean = |(name, value): (&String, &Value)| {
            let value = match value {
                Value::String(_) if self.is_telling(name) => Value::from(REDACTED),
                _ if self.is_telling(name) => return None,
                other => self.clean_value(other),
            };
            Some((name.clone(), value))
        };
        members.iter().filter_map(clean).collect()
    }

    fn clean_value(&self, value: &Value) -> Value {
        match value {
            Value::Object(members) => {
                let mut members = self.clean(members);
                // A media item from an earlier step: its address or path was meant only for the component that fetched
                // it.
                hide_in_item(&mut members);
                Value::Object(members)
            }
            Value::Array(items) => items.iter().map(|item| self.clean_value(item)).collect(),
            Value::String(text) if !fits(text, MAX_LENGTH) => Value::from(cut(text, MAX_LENGTH)),
            other => other.clone(),
        }
    }

    fn is_telling(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        TELLING.iter().any(|word| name.contains(word)) && !self.exempt.contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn clean(sanitiser: &Sanitiser, value: Value) -> Value {
        Value::Object(sanitiser.clean(value.as_object().unwrap()))
    }

    // CTX-041, C-53: texts are redacted, other values under such a name are removed.
    #[test]
    fn ctx_041_sec_024_telling_names_at_any_depth_and_in_any_case() {
        let given = json!({
            "API_KEY": "a", "list": [{ "AccessToken": "b", "n": 1 }, [{ "client_secret": { "deep": "c" } }]],
            "password_hint": 7, "to\u{212a}en": "d", "plain": "key",
        });
        let expected = json!({
            "API_KEY": REDACTED, "list": [{ "AccessToken": REDACTED, "n": 1 }, [{}]],
            "to\u{212a}en": REDACTED, "plain": "key",
        });
        assert_eq!(clean(&Sanitiser::default(), given), expected);
    }

    #[test]
    fn ctx_041_operators_can_spare_names() {
        let given = json!({ "Keywords": ["a"], "monkey": "b", "key": "c" });
        let sanitiser = Sanitiser::ignoring_names(["keywords", "MONKEY"]);
        assert_eq!(clean(&sanitiser, given), json!({ "Keywords": ["a"], "monkey": "b", "key": REDACTED }));
    }

    #[test]
    fn ctx_042_long_texts_are_cut_in_code_points() {
        let given = json!({ "a": ["😀".repeat(10_001), "x".repeat(10_000)] });
        let cleaned = clean(&Sanitiser::default(), given);
        assert_eq!(cleaned["a"][0].as_str().unwrap().chars().count(), 10_000);
        assert_eq!(cleaned["a"][1].as_str().unwrap().len(), 10_000);
    }
}
