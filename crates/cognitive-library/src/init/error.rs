//! Why no module was created, and what to do about it.

use std::path::PathBuf;
use std::{error, fmt, io};

/// Why no module was created.
#[derive(Debug)]
#[non_exhaustive]
pub enum InitError {
    /// The name breaks the rules.
    Name {
        /// The name as it was given.
        name: String,
        /// A name near it that follows the rules, if there is one.
        suggestion: Option<String>,
    },
    /// Something is there already. It was not touched.
    Exists {
        /// Where.
        path: PathBuf,
    },
    /// The file system refused. Nothing of the module is left behind.
    Write {
        /// The folder that was to be created.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl InitError {
    /// What to do about it, as one sentence without final period.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Name { suggestion: Some(name), .. } => format!("Use `{name}`"),
            Self::Name { suggestion: None, .. } => "Use a name such as `my-module`".to_owned(),
            Self::Exists { .. } => "Choose another name, or move away what is there first".to_owned(),
            Self::Write { .. } => {
                "Choose a place where you may write; nothing of the module was left behind".to_owned()
            }
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
            Self::Exists { path } => write!(f, "something exists already at: `{}`", path.display()),
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
