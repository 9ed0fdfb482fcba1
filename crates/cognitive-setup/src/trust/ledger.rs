//! The files that the user trusts: for each folder the hash of its `cognitive.yaml`, in one file that only the user can
//! read. A changed file no longer matches its hash. The list is written atomically.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use cognitive_library::folder::{self, ReadError};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::platform;

/// The maximum size of the list. No real list is larger, and a larger file would only fill the memory.
const MAX_LEDGER_BYTES: u64 = 4 << 20;

/// One file that is trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedFile {
    /// Its folder, as a real path.
    pub folder: String,
    /// The hash of the file.
    pub sha256: String,
    /// The time when it was trusted.
    pub since: String,
}

/// All trusted files, sorted by folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    trusted: Vec<TrustedFile>,
}

impl Ledger {
    /// Returns the path of the list.
    #[must_use]
    pub fn path(home: &Path) -> PathBuf {
        home.join(".cognitive/trusted.json")
    }

    /// Reads the list; a missing file is an empty list. An unreadable one is an error, because an empty list would
    /// overwrite it.
    pub fn read(home: &Path) -> Result<Self, String> {
        let path = Self::path(home);
        let broken = |reason: &str| format!("`{}` {reason}", path.display());
        match folder::read_file(&path, MAX_LEDGER_BYTES) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|_| broken("is not a list of trusted files")),
            Err(ReadError::Missing) => Ok(Self::default()),
            Err(ReadError::Refused(reason)) => Err(broken(&reason)),
        }
    }

    /// Returns the trusted file of a folder.
    #[must_use]
    pub fn find(&self, folder: &Path) -> Option<&TrustedFile> {
        let folder = folder.to_str()?;
        self.trusted.iter().find(|known| known.folder == folder)
    }

    /// Returns all files.
    #[must_use]
    pub fn all(&self) -> &[TrustedFile] {
        &self.trusted
    }

    /// Adds a file and replaces an older entry of the same folder.
    pub fn add(&mut self, folder: &Path, sha256: &str) -> Result<(), String> {
        // A lossy conversion of a name that is not UTF-8 could match another folder.
        let Some(folder) = folder.to_str() else {
            return Err("the folder name is not UTF-8".to_owned());
        };
        self.trusted.retain(|known| known.folder != folder);
        let since = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        self.trusted.push(TrustedFile { folder: folder.to_owned(), sha256: sha256.to_owned(), since });
        self.trusted.sort_by(|one, other| one.folder.cmp(&other.folder));
        Ok(())
    }

    /// Removes a folder and returns whether it was in the list.
    pub fn remove(&mut self, folder: &str) -> bool {
        let before = self.trusted.len();
        self.trusted.retain(|known| known.folder != folder);
        self.trusted.len() < before
    }

    /// Writes the list.
    pub fn write(&self, home: &Path) -> Result<(), String> {
        let path = Self::path(home);
        write(&path, self).map_err(|error| format!("cannot write `{}`: {error}", path.display()))
    }
}

fn write(path: &Path, ledger: &Ledger) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    if !folder.is_dir() {
        platform::create_private_folder(folder)?;
    }
    // Other users can never read it: `tempfile` creates every file with private permissions.
    let mut file = tempfile::Builder::new().prefix(".trusted").tempfile_in(folder)?;
    serde_json::to_writer_pretty(&mut file, ledger)?;
    file.write_all(b"\n")?;
    file.as_file().sync_all()?;
    // A link at this path is replaced; its target is not changed.
    fs::rename(file.into_temp_path().keep()?, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_list_is_private_and_survives_being_written() {
        use std::os::unix::fs::PermissionsExt as _;

        let home = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::read(home.path()).unwrap();
        ledger.add(Path::new("/b"), "2").unwrap();
        ledger.add(Path::new("/a"), "1").unwrap();
        ledger.add(Path::new("/b"), "3").unwrap();
        ledger.write(home.path()).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&Ledger::path(home.path())), 0o600);
        assert_eq!(mode(&home.path().join(".cognitive")), 0o700);
        let mut read = Ledger::read(home.path()).unwrap();
        assert_eq!(read, ledger);
        assert_eq!(read.find(Path::new("/b")).unwrap().sha256, "3");
        assert!(read.remove("/b") && !read.remove("/b"));
        assert_eq!(read.all().len(), 1);
    }

    #[test]
    fn a_list_that_cannot_be_read_is_not_taken_for_an_empty_one() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join(".cognitive")).unwrap();
        fs::write(Ledger::path(home.path()), "[]").unwrap();
        assert!(Ledger::read(home.path()).unwrap_err().ends_with("is not a list of trusted files"));
    }
}
