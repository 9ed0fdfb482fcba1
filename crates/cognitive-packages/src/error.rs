//! Why something was not packed, installed or removed: what happened, and what can be done. Never carries a key.

use std::fmt;
use std::path::Path;

use cognitive_contract::Failure;

/// A refusal. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageError {
    message: String,
    hint: Option<String>,
}

impl PackageError {
    /// What happened; values in back quotes, the last one after a colon.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    /// Says what can be done about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// A file or folder that the system does not let us use.
    pub fn io(verb: &str, path: &Path) -> impl Fn(std::io::Error) -> Self {
        move |error| Self::new(format!("cannot {verb} `{}`: {error}", path.display()))
    }

    /// What happened.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What can be done, if anything is known.
    #[must_use]
    pub fn suggestion(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for PackageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for PackageError {}

impl From<Failure> for PackageError {
    fn from(failure: Failure) -> Self {
        let error = Self::new(failure.message());
        match failure.suggestion() {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}
