//! The key of stored context: a pattern from the author, filled with variables of the run.
//! A variable without a value yields no key at all: an empty text in its place would mix users.

/// The variables of a pattern.
#[derive(Clone, Copy)]
pub struct Variables<'a> {
    /// The name of the module.
    pub module: &'a str,
    /// SHA-256 of the canonical input without context, in lower-case hex. Called only if the pattern needs it.
    pub input_hash: &'a dyn Fn() -> String,
    /// The user.
    pub user_id: Option<&'a str>,
    /// The session.
    pub session_id: Option<&'a str>,
}

/// A key and its bindings: the entry is valid only for that session and that input.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Key {
    /// The text.
    pub text: String,
    /// The session, if the pattern names it.
    pub session: Option<String>,
    /// The hash of the input, if the pattern names it.
    pub input_hash: Option<String>,
    /// The pattern, for readers: an entry is found where it gives the same key. Absent if a person set the entry.
    pub pattern: Option<String>,
}

impl Key {
    /// A key without bindings.
    #[must_use]
    pub fn plain(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }
}

/// The longest key, in bytes. The ids in it come from callers, so it needs a limit.
const MAX_LENGTH: usize = 1_024;

/// The pattern of a type whose author sets none. The state and the history of a session are shared by its modules, a
/// profile belongs to its user, and everything else stays with the module. (D-22)
#[must_use]
pub fn default_pattern(kind: &str) -> String {
    match kind {
        "session_state" | "conversation_history" => format!("${{session_id}}:{kind}"),
        "user_profile" => format!("${{user_id}}:{kind}"),
        "analysis_cache" => "${module}:${input_hash}".to_owned(),
        _ => format!("${{module}}:${{session_id}}:{kind}"),
    }
}

/// The variables of a pattern.
const VARIABLES: [&str; 4] = ["module", "input_hash", "user_id", "session_id"];

/// Returns why no run can fill a pattern, whatever its variables are.
#[must_use]
pub fn pattern_fault(pattern: &str) -> Option<String> {
    if pattern.is_empty() {
        return Some("the key pattern is empty".to_owned());
    }
    let mut rest = pattern;
    while let Some((_, after)) = rest.split_once("${") {
        let Some((name, behind)) = after.split_once('}') else {
            return Some("a variable of the key pattern has no `}`".to_owned());
        };
        if !VARIABLES.contains(&name) {
            return Some(format!("unknown variable in the key pattern: `${{{name}}}`"));
        }
        rest = behind;
    }
    None
}

/// Fills a pattern. Returns `None` for an unknown variable, a variable without a value, an unclosed brace, or a key
/// that would be empty or too long. Inserted values are not scanned for variables again.
#[must_use]
pub fn key(pattern: &str, variables: &Variables<'_>) -> Option<Key> {
    let mut key = Key { pattern: Some(pattern.to_owned()), ..Key::default() };
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, behind) = after.split_once('}')?;
        key.text.push_str(before);
        let value = match name {
            "module" => variables.module.to_owned(),
            "input_hash" => key.input_hash.insert((variables.input_hash)()).clone(),
            "user_id" => variables.user_id?.to_owned(),
            "session_id" => key.session.insert(variables.session_id?.to_owned()).clone(),
            _ => return None,
        };
        if value.is_empty() {
            return None;
        }
        key.text.push_str(&value);
        rest = behind;
    }
    key.text.push_str(rest);
    Some(key).filter(|key| !key.text.is_empty() && key.text.len() <= MAX_LENGTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(pattern: &str, user_id: Option<&str>, session_id: Option<&str>) -> Option<String> {
        let variables = Variables { module: "m", input_hash: &|| "abc".to_owned(), user_id, session_id };
        key(pattern, &variables).map(|key| key.text)
    }

    #[test]
    fn ctx_030_patterns_are_filled() {
        assert_eq!(filled("${module}:${input_hash}", None, None).as_deref(), Some("m:abc"));
        assert_eq!(
            filled("u/${user_id}/${session_id}$", Some("ann"), Some("s")).as_deref(),
            Some("u/ann/s$")
        );
        for (kind, expected) in [
            ("session_state", "s:session_state"),
            ("conversation_history", "s:conversation_history"),
            ("user_profile", "u:user_profile"),
            ("previous_result", "m:s:previous_result"),
            ("analysis_cache", "m:abc"),
            ("x", "m:s:x"),
        ] {
            assert_eq!(filled(&default_pattern(kind), Some("u"), Some("s")).as_deref(), Some(expected));
        }
        assert_eq!(filled("fixed", None, None).as_deref(), Some("fixed"));
    }

    // CTX-032: never an empty substitution.
    #[test]
    fn ctx_032_a_variable_without_value_gives_no_key() {
        for pattern in ["${user_id}:x", "${session_id}", "${no_such}", "${module", "a${", ""] {
            assert_eq!(filled(pattern, None, None), None, "{pattern}");
        }
        assert_eq!(filled("${user_id}:x", Some(""), None), None);
        assert_eq!(filled(&default_pattern("x"), Some("ann"), None), None);
        assert_eq!(filled("${user_id}", Some(&"u".repeat(MAX_LENGTH + 1)), None), None);
    }

    #[test]
    fn sec_023_what_is_filled_in_is_not_read_again() {
        assert_eq!(filled("${user_id}", Some("${module}"), None).as_deref(), Some("${module}"));
    }

    #[test]
    fn a_key_is_bound_to_what_its_pattern_names() {
        let asked = std::cell::Cell::new(0);
        let hash = || {
            asked.set(asked.get() + 1);
            "abc".to_owned()
        };
        let variables =
            Variables { module: "m", input_hash: &hash, user_id: Some("u"), session_id: Some("s") };
        let pattern = Some("${user_id}".to_owned());
        assert_eq!(key("${user_id}", &variables), Some(Key { pattern, ..Key::plain("u") }));
        assert_eq!(key("${session_id}", &variables).unwrap().session.as_deref(), Some("s"));
        assert_eq!(asked.get(), 0);
        assert_eq!(key("${input_hash}", &variables).unwrap().input_hash.as_deref(), Some("abc"));
    }
}
