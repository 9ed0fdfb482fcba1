//! Why a module was not migrated. Whatever the reason, its folder is as it was.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use cognitive_contract::{ErrorCode, Failure};

use crate::finding::Finding;
use crate::load::ModuleLoadError;

/// Why a module was not migrated.
#[derive(Debug)]
#[non_exhaustive]
pub enum MigrateError {
    /// There is no module file in the folder.
    NotAModule {
        /// The folder as shown to people.
        folder: String,
    },
    /// The format is too old to be converted without a person.
    ManualReview {
        /// The folder's name.
        name: String,
    },
    /// The module is not valid as it stands, or only its author can decide what its new form is.
    Invalid {
        /// The folder's name.
        name: String,
        /// Everything that stands in the way.
        findings: Vec<Finding>,
    },
    /// Somebody else wrote to the folder after it was planned.
    Changed {
        /// Module-relative path.
        file: String,
    },
    /// The folder holds something that cannot be copied, such as a pipe.
    Unsupported {
        /// Where it is.
        path: PathBuf,
        /// What is the matter with it.
        reason: &'static str,
    },
    /// The file system refused.
    Io {
        /// What was tried, such as `copy`.
        tried: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
}

impl MigrateError {
    /// The same about a folder that was reached by another path than people know.
    pub(super) fn seen_as(self, path: &Path, name: &Path) -> Self {
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

    /// For `map_err`: an error of the file system, with what was tried.
    pub(super) fn io(tried: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::Io { tried, path, error }
    }

    /// What the reader can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotAModule { .. } => None,
            Self::ManualReview { name } => Some(format!(
                "Write `module.yaml`, `prompt.md` and `schema.json` by hand; `cogn init` makes a pattern for `{name}`"
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

    /// The error as surfaces report it.
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
            Self::Changed { file } => write!(f, "the folder changed since it was planned: `{file}`"),
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
