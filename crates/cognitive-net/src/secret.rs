//! The key of a service. It can be sent, but not shown: `Debug` and `Display` are the same for every key.

use std::fmt;

use zeroize::Zeroizing;

/// A key. Its memory is overwritten on drop.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Creates a key, without the surrounding white space that files and shells often add; `None` if it is empty.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = Zeroizing::new(text.into());
        let trimmed = text.trim();
        (!trimmed.is_empty()).then(|| Self(Zeroizing::new(trimmed.to_owned())))
    }

    /// Returns the key, for the header that carries it and for the redactor that removes it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret([redacted])")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // ERR-015: printing a key by accident reveals nothing.
    #[test]
    fn err_015_a_key_is_never_shown() {
        let key = Secret::new(" sk-very-secret\n").unwrap();
        assert_eq!(key.reveal(), "sk-very-secret");
        assert_eq!(format!("{key} {key:?} {key:#?}"), "[redacted] Secret([redacted]) Secret([redacted])");
    }

    #[test]
    fn an_empty_variable_is_no_key() {
        assert!(Secret::new("").is_none());
        assert!(Secret::new(" \n").is_none());
    }
}
