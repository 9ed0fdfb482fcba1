//! The error of packing, installing and removing: the cause, and a hint for the user. Never carries a key.

use std::fmt;
use std::path::Path;

use cognitive_contract::Failure;

/// A refused operation. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageError {
    message: String,
    hint: Option<String>,
}

impl PackageError {
    /// Creates an error from its cause. Values are in back quotes, the last one after a colon.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    /// Adds a hint for the user.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Maps an I/O error on a file or folder.
    pub fn io(verb: &str, path: &Path) -> impl Fn(std::io::Error) -> Self {
        move |error| Self::new(format!("cannot {verb} `{}`: {error}", path.display()))
    }

    /// The cause of the error.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The hint, if there is one.
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
