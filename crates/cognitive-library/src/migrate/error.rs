//! The reasons why a module was not migrated. In all cases its folder is unchanged.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use cognitive_contract::{ErrorCode, Failure};

use crate::finding::Finding;
use crate::load::ModuleLoadError;

/// The reason why a module was not migrated.
#[derive(Debug)]
#[non_exhaustive]
pub enum MigrateError {
    /// The folder has no module file.
    NotAModule {
        /// The folder as shown to users.
        folder: String,
    },
    /// The format is too old for an automatic conversion.
    ManualReview {
        /// The folder's name.
        name: String,
    },
    /// The module is invalid, or only its author can decide its new form.
    Invalid {
        /// The folder's name.
        name: String,
        /// Everything that prevents the migration.
        findings: Vec<Finding>,
    },
    /// Another process wrote to the folder after the plan was made.
    Changed {
        /// The path relative to the module.
        file: String,
    },
    /// The folder contains an entry that cannot be copied, such as a pipe.
    Unsupported {
        /// The path of the entry.
        path: PathBuf,
        /// The reason why it cannot be copied.
        reason: &'static str,
    },
    /// The file system refused.
    Io {
        /// The failed operation, such as `copy`.
        tried: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The error of the file system.
        error: io::Error,
    },
}

impl MigrateError {
    /// Replaces the internal path of the folder in the error by the path that the user knows.
    pub(super) fn with_path_shown_as(self, path: &Path, name: &Path) -> Self {
        let known = |path_of: PathBuf| match path_of.strip_prefix(path) {
            Ok(inside) => name.join(inside),
            Err(_) => path_of,
        };
        match self {
            Self::Unsupported { path, reason } => Self::Unsupported { path: known(path), reason },
            Self::Io { tried, path, error } => Self::Io { tried, path: known(path), error },
            other => other,
        }
    }

    /// Wraps a file system error with the failed operation, for `map_err`.
    pub(super) fn io(tried: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::Io { tried, path, error }
    }

    /// The remedy.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotAModule { .. } => None,
            Self::ManualReview { name } => Some(format!(
                "Write `module.yaml`, `prompt.md` and `schema.json` by hand; `cogn init` creates a \
                 template for `{name}`"
            )),
            Self::Invalid { name, findings } => findings
                .iter()
                .find_map(|finding| finding.hint.clone())
                .or_else(|| Some(format!("Run `cogn validate {name}` to see every finding with its place"))),
            Self::Changed { .. } => Some("Run the migration again".to_owned()),
            Self::Unsupported { .. } => Some("Move it out of the module, then migrate again".to_owned()),
            Self::Io { .. } => Some("The module is unchanged; nothing was written to it".to_owned()),
        }
    }

    /// The error as the CLI and the server report it.
    pub fn into_failure(self) -> Failure {
        let (message, hint) = (self.to_string(), self.hint());
        let failure = match self {
            Self::NotAModule { folder } => return ModuleLoadError::NotAModule { folder }.into_failure(),
            Self::ManualReview { .. } | Self::Invalid { .. } | Self::Unsupported { .. } => {
                Failure::module_invalid(message)
            }
            Self::Changed { .. } | Self::Io { .. } => Failure::new(ErrorCode::InternalError, message),
        };
        match hint {
            Some(hint) => failure.suggest(hint),
            None => failure,
        }
    }
}

impl fmt::Display for MigrateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAModule { folder } => write!(f, "no module in: `{folder}`"),
            Self::ManualReview { name } => {
                write!(f, "module format v0 requires manual review and is not converted: `{name}`")
            }
            Self::Invalid { name, findings } => {
                let shown: Vec<String> = findings.iter().take(3).map(Finding::summary).collect();
                write!(f, "module `{name}` cannot be migrated: {}", shown.join("; "))
            }
            Self::Changed { file } => write!(f, "the folder changed during the migration: `{file}`"),
            Self::Unsupported { path, reason } => write!(f, "{reason}: `{}`", path.display()),
            Self::Io { tried, path, error } => write!(f, "cannot {tried} `{}`: {error}", path.display()),
        }
    }
}

impl std::error::Error for MigrateError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            Self::NotAModule { .. }
            | Self::ManualReview { .. }
            | Self::Invalid { .. }
            | Self::Changed { .. }
            | Self::Unsupported { .. } => None,
        }
    }
}
