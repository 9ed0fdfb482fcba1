//! The errors of the store, as messages for people. Decides nothing: the caller decides whether a run continues
//! without its record.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{error, fmt, io};

use rusqlite::ErrorCode;

/// A problem and the file that it affects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreError {
    path: PathBuf,
    problem: Problem,
}

/// The kinds of problems with a store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The path is not a regular file, but for example a directory, a symbolic link or a FIFO.
    NotAFile(&'static str),
    /// The file or its folder cannot be created, opened or made private.
    Inaccessible(String),
    /// A newer version of this program wrote the file; writing to it could damage it.
    Newer {
        /// The version of the file.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// A database of another program.
    Foreign,
    /// The lock was not available within the patience.
    Busy(Duration),
    /// The server cannot be reached, or it closed the connection.
    Unreachable(String),
    /// The server did not answer within this time.
    Silent(Duration),
    /// The store is read-only.
    ReadOnly,
    /// The disk is full.
    Full,
    /// Not a database, or a damaged one.
    Damaged(String),
    /// Any other error of the database.
    Failed(String),
}

impl StoreError {
    pub(crate) fn new(path: &Path, problem: Problem) -> Self {
        Self { path: path.to_owned(), problem }
    }

    /// Returns the file that the problem affects.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the problem.
    #[must_use]
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// Returns a remedy, if one is known.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self.problem {
            Problem::NotAFile(_) | Problem::Foreign => Some("Choose another path for the store"),
            Problem::Inaccessible(_) | Problem::ReadOnly => {
                Some("Check the owner and the permissions of the file and its folder")
            }
            Problem::Newer { .. } => Some("Update this program"),
            Problem::Busy(_) => Some("Try again, or find the process that locks the file"),
            Problem::Unreachable(_) | Problem::Silent(_) => {
                Some("Check that the database server runs and that this machine may connect to it")
            }
            Problem::Full => Some("Free some disk space"),
            Problem::Damaged(_) => Some("Move the file away; a new one is created with the next run"),
            Problem::Failed(_) => None,
        }
    }
}

impl Problem {
    /// Classifies an `SQLite` error. `patience` is the time that the call was allowed to wait.
    pub(crate) fn from_sqlite(error: &rusqlite::Error, patience: Duration) -> Self {
        match error.sqlite_error_code() {
            Some(
                ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed,
            ) => Self::Busy(patience),
            Some(ErrorCode::ReadOnly) => Self::ReadOnly,
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged(error.to_string()),
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                Self::Inaccessible(error.to_string())
            }
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly,
            _ => Self::Inaccessible(error.to_string()),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAFile(what) => write!(f, "it is {what}, not a regular file"),
            Self::Inaccessible(why) => write!(f, "it cannot be opened: {why}"),
            Self::Newer { found, known } => {
                write!(f, "a newer version of this program wrote it (schema {found}, known are 1 to {known})")
            }
            Self::Foreign => f.write_str("it is the database of another program"),
            Self::Busy(patience) => {
                write!(f, "other processes locked it for {:.1} s", patience.as_secs_f64())
            }
            Self::Unreachable(why) => write!(f, "the server cannot be reached: {why}"),
            Self::Silent(limit) => write!(f, "the server did not answer within {:.1} s", limit.as_secs_f64()),
            Self::ReadOnly => f.write_str("it cannot be written"),
            Self::Full => f.write_str("the disk is full"),
            Self::Damaged(why) => write!(f, "it is damaged or not a database: {why}"),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "store `{}`: {}", self.path.display(), self.problem)
    }
}

impl error::Error for StoreError {}
