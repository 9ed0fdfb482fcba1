//! The reasons why no module was created, each with a remedy.

use std::path::PathBuf;
use std::{error, fmt, io};

/// The reason why no module was created.
#[derive(Debug)]
#[non_exhaustive]
pub enum InitError {
    /// The name breaks the rules.
    Name {
        /// The name as it was given.
        name: String,
        /// A similar name that follows the rules, if one exists.
        suggestion: Option<String>,
    },
    /// The path exists already. It was not touched.
    Exists {
        /// The existing path.
        path: PathBuf,
    },
    /// The file system refused. No part of the module is left behind.
    Write {
        /// The folder that should have been created.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl InitError {
    /// Returns the remedy, as one sentence without final period.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Name { suggestion: Some(name), .. } => format!("Use `{name}`"),
            Self::Name { suggestion: None, .. } => "Use a name such as `my-module`".to_owned(),
            Self::Exists { .. } => "Choose another name, or move the existing files away".to_owned(),
            Self::Write { .. } => "Choose a writable folder; no partial module was left behind".to_owned(),
        }
    }
}

impl fmt::Display for InitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name { name, .. } => write!(
                f,
                "a module name has lower-case letters, digits and hyphens, starts with a letter and has at most 64 characters, found: `{name}`"
            ),
            Self::Exists { path } => write!(f, "the path already exists: `{}`", path.display()),
            Self::Write { path, source } => write!(f, "cannot create `{}`: {source}", path.display()),
        }
    }
}

impl error::Error for InitError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Write { source, .. } => Some(source),
            Self::Name { .. } | Self::Exists { .. } => None,
        }
    }
}
