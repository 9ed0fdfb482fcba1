//! `cognitive.lock`: the installed packages with version, origin and content hashes. (S-27)
//! One readable, diffable file per module folder. An unknown or damaged file is refused and never overwritten.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::PackageError;
use crate::name::check_name;

/// The name of the file.
pub const LOCK_FILE: &str = "cognitive.lock";
/// The version of the file format.
const FORM: u32 = 1;
/// The name of the temporary file.
const DRAFT: &str = ".cognitive.lock.part";
/// The maximum size of the file. Without it, a wrong file would fill the memory.
const MAX_LENGTH: u64 = 8 << 20;

/// The content of the lock file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockFile {
    lockfile: u32,
    /// The packages by name.
    pub modules: BTreeMap<String, LockedModule>,
}

/// One installed package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockedModule {
    /// Its version.
    pub version: String,
    /// The source as the user requested it.
    pub source: String,
    /// The exact origin: a digest, a commit or an archive.
    pub resolved: String,
    /// The hash of the archive.
    pub sha256: String,
    /// The hash of the files.
    pub tree: String,
    /// The key that signed the package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed_by: Option<String>,
}

impl Default for LockFile {
    fn default() -> Self {
        Self { lockfile: FORM, modules: BTreeMap::new() }
    }
}

impl LockFile {
    /// Creates a lock file with one package.
    pub(crate) fn with_module(name: &str, module: &LockedModule) -> Self {
        Self { lockfile: FORM, modules: BTreeMap::from([(name.to_owned(), module.clone())]) }
    }

    /// Reads the file. A missing file counts as empty.
    pub fn read(path: &Path) -> Result<Self, PackageError> {
        let text = match read_bounded(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(PackageError::io("read", path)(error)),
        };
        Self::parse(&text).map_err(|reason| {
            PackageError::new(format!("invalid lock file `{}`: {reason}", path.display()))
                .hint("Restore it from version control, or remove it and add the modules again")
        })
    }

    fn parse(text: &str) -> Result<Self, String> {
        let file: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if file.lockfile != FORM {
            return Err(format!("a newer program wrote it: `{}`", file.lockfile));
        }
        for (name, module) in &file.modules {
            check_name(name).map_err(|refused| refused.message().to_owned())?;
            let is_hash = |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            if !is_hash(&module.sha256) || !is_hash(&module.tree) {
                return Err(format!("a hash of `{name}` does not have 64 hexadecimal digits"));
            }
        }
        Ok(file)
    }

    /// Writes the file atomically. The caller must hold the lock on the module folder.
    pub(crate) fn write(&self, path: &Path) -> Result<(), PackageError> {
        let draft = path.with_file_name(DRAFT);
        let written = serde_json::to_string_pretty(self).map_err(io::Error::from).and_then(|text| {
            fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
            // A leftover of a killed process, or a planted link, which is removed and not followed.
            remove_draft(path);
            let mut file = OpenOptions::new().write(true).create_new(true).open(&draft)?;
            writeln!(file, "{text}")?;
            file.sync_all()?;
            fs::rename(&draft, path)
        });
        written.map_err(PackageError::io("write", path))
    }
}

/// Removes the temporary file of a killed process.
pub(crate) fn remove_draft(path: &Path) {
    let _mostly_not_there = fs::remove_file(path.with_file_name(DRAFT));
}

fn read_bounded(path: &Path) -> io::Result<String> {
    // Opening a pipe would wait for a writer, and a device may never end.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    let read = fs::File::open(path)?.take(MAX_LENGTH + 1).read_to_string(&mut text)?;
    if read as u64 > MAX_LENGTH { Err(io::Error::other("it is too large")) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> LockedModule {
        LockedModule {
            version: "1.0.0".to_owned(),
            source: "oci://host/m:1".to_owned(),
            resolved: "oci://host/m@sha256:00".to_owned(),
            sha256: "a".repeat(64),
            tree: "b".repeat(64),
            signed_by: None,
        }
    }

    #[test]
    fn what_is_written_is_read_again_and_no_file_is_an_empty_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(LOCK_FILE);
        assert_eq!(LockFile::read(&path).unwrap(), LockFile::default());
        let mut lock = LockFile::default();
        lock.modules.insert("m".to_owned(), entry());
        lock.write(&path).unwrap();
        assert_eq!(LockFile::read(&path).unwrap(), lock);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_is_not_understood_is_refused() {
        let good = |name: &str, form: u32| {
            let modules = BTreeMap::from([(name.to_owned(), entry())]);
            serde_json::to_string(&LockFile { lockfile: form, modules }).unwrap()
        };
        assert!(LockFile::parse(&good("m", 1)).is_ok());
        let other_hash = good("m", 1).replace(&"a".repeat(64), "a");
        for text in ["", "{}", "[]", &good("m", 2), &good("../x", 1), &other_hash] {
            assert!(LockFile::parse(text).is_err(), "{text}");
        }
    }
}
