//! A module folder, on disk or in memory, and the only way to read a file of it.
//! Refuses what could hurt: files outside the folder (also through links), anything that is not a regular file,
//! files above a limit, text that is not UTF-8.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The largest manifest or prompt.
pub const TEXT_LIMIT: u64 = 1 << 20;
/// The largest schema or test file.
pub const JSON_LIMIT: u64 = 8 << 20;

/// Where the files of a module are.
#[derive(Debug, Clone)]
pub enum Folder {
    /// A directory.
    Disk(PathBuf),
    /// Files that are already here: bundled modules and test cases.
    Memory {
        /// Name to show.
        name: String,
        /// Path → content.
        files: Arc<BTreeMap<String, Vec<u8>>>,
    },
}

/// Why a file could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadError {
    /// There is no such file.
    Missing,
    /// It is there, but not to be read; the text says why.
    Refused(String),
}

impl Folder {
    /// A folder in memory.
    #[must_use]
    pub fn memory(name: &str, files: BTreeMap<String, Vec<u8>>) -> Self {
        Self::Memory { name: name.to_owned(), files: Arc::new(files) }
    }

    /// The last part of the path: what `run <name>` uses.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Disk(path) => {
                let last = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
                // `.` has no name of its own; the directory it stands for has one.
                last(path).or_else(|| last(&path.canonicalize().ok()?)).unwrap_or_default()
            }
            Self::Memory { name, .. } => name.clone(),
        }
    }

    /// How the folder is shown to people.
    #[must_use]
    pub fn display(&self) -> String {
        match self {
            Self::Disk(path) => path.display().to_string(),
            Self::Memory { name, .. } => format!("{name} (bundled)"),
        }
    }

    /// The directory, if there is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Disk(path) => Some(path),
            Self::Memory { .. } => None,
        }
    }

    /// The names of the entries at the top of the folder, exactly as they are written.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        match self {
            Self::Disk(path) => {
                let entries = fs::read_dir(path).into_iter().flatten().flatten();
                entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
            }
            Self::Memory { files, .. } => files.keys().cloned().collect(),
        }
    }

    /// Changes whenever a file that a module is loaded from does: sizes and times of the files at the top.
    /// Files in memory never change.
    #[must_use]
    pub fn stamp(&self) -> Vec<(String, u64, Option<std::time::SystemTime>)> {
        let Self::Disk(path) = self else { return Vec::new() };
        let mut stamp: Vec<_> = fs::read_dir(path)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let meta = fs::metadata(entry.path()).ok()?;
                Some((entry.file_name().into_string().ok()?, meta.len(), meta.modified().ok()))
            })
            .collect();
        stamp.sort();
        stamp
    }

    /// Names of the files in a sub-folder, sorted; empty if there is no such folder.
    #[must_use]
    pub fn names_in(&self, sub: &str) -> Vec<String> {
        let mut names = match self {
            Self::Disk(path) => Self::Disk(path.join(sub)).names(),
            Self::Memory { files, .. } => {
                let prefix = format!("{sub}/");
                files.keys().filter_map(|path| path.strip_prefix(&prefix)).map(str::to_owned).collect()
            }
        };
        names.sort();
        names
    }

    /// Reads a text file. `path` is relative to the folder and stays inside it. A leading BOM is not part of the text.
    pub fn read(&self, path: &str, limit: u64) -> Result<String, ReadError> {
        let inside = safe_relative(path).ok_or_else(|| refused("leaves the module"))?;
        let bytes = match self {
            Self::Disk(root) => read_disk(root, &inside, limit)?,
            Self::Memory { files, .. } => {
                let bytes =
                    files.get(&inside.to_string_lossy().replace('\\', "/")).ok_or(ReadError::Missing)?;
                check_size(bytes.len() as u64, limit)?;
                bytes.clone()
            }
        };
        let text = String::from_utf8(bytes).map_err(|error| {
            refused(&format!("is not UTF-8 text (byte {})", error.utf8_error().valid_up_to()))
        })?;
        Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
    }
}

fn refused(reason: &str) -> ReadError {
    ReadError::Refused(reason.to_owned())
}

/// A relative path without any step upwards; `None` if it is absolute or would leave the folder.
#[must_use]
pub fn safe_relative(path: &str) -> Option<PathBuf> {
    let mut safe = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => safe.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !safe.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(safe)
}

fn read_disk(root: &Path, inside: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
    let io_error = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => ReadError::Missing,
        _ => refused(&format!("cannot be read: {error}")),
    };
    // The folder itself may be a link; what is in it may not lead out again.
    let root = root.canonicalize().map_err(io_error)?;
    let path = root.join(inside).canonicalize().map_err(io_error)?;
    if !path.starts_with(&root) {
        return Err(refused("leads out of the module through a link"));
    }
    // Looked at before it is opened: opening a pipe would wait for a writer for ever.
    let regular =
        |meta: &fs::Metadata| meta.is_file().then_some(()).ok_or_else(|| refused("is not a regular file"));
    let before = fs::metadata(&path).map_err(io_error)?;
    regular(&before)?;
    check_size(before.len(), limit)?;
    let file = fs::File::open(&path).map_err(io_error)?;
    regular(&file.metadata().map_err(io_error)?)?;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(io_error)?;
    check_size(bytes.len() as u64, limit)?;
    Ok(bytes)
}

fn check_size(size: u64, limit: u64) -> Result<(), ReadError> {
    if size > limit {
        return Err(refused(&format!("is larger than the limit of {} MiB", limit >> 20)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(folder: &Folder, path: &str) -> String {
        match folder.read(path, TEXT_LIMIT) {
            Err(ReadError::Refused(reason)) => reason,
            other => panic!("expected a refusal, got {other:?}"),
        }
    }

    #[test]
    fn sec_022_paths_and_links_stay_inside() {
        let dir = tempfile::tempdir().unwrap();
        let module = dir.path().join("m");
        fs::create_dir(&module).unwrap();
        fs::write(dir.path().join("secret.json"), "{}").unwrap();
        fs::write(module.join("own.json"), "{}").unwrap();
        let folder = Folder::Disk(module.clone());
        assert_eq!(reason(&folder, "../secret.json"), "leaves the module");
        assert_eq!(reason(&folder, "/etc/hostname"), "leaves the module");
        assert_eq!(folder.read("a/../own.json", TEXT_LIMIT).unwrap(), "{}");
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("../secret.json", module.join("out.json")).unwrap();
            std::os::unix::fs::symlink("own.json", module.join("in.json")).unwrap();
            std::os::unix::fs::symlink("loop.json", module.join("loop.json")).unwrap();
            assert_eq!(reason(&folder, "out.json"), "leads out of the module through a link");
            assert_eq!(folder.read("in.json", TEXT_LIMIT).unwrap(), "{}");
            assert!(reason(&folder, "loop.json").starts_with("cannot be read"));
        }
    }

    #[test]
    fn fmt_012_a_bom_is_ignored_and_other_encodings_are_refused() {
        let files = BTreeMap::from([
            ("bom".to_owned(), b"\xef\xbb\xbfname: a".to_vec()),
            ("latin".to_owned(), b"caf\xe9".to_vec()),
            ("big".to_owned(), vec![b' '; 2 << 20]),
        ]);
        let folder = Folder::memory("m", files);
        assert_eq!(folder.read("bom", TEXT_LIMIT).unwrap(), "name: a");
        assert_eq!(reason(&folder, "latin"), "is not UTF-8 text (byte 3)");
        assert_eq!(reason(&folder, "big"), "is larger than the limit of 1 MiB");
        assert_eq!(folder.read("none", TEXT_LIMIT), Err(ReadError::Missing));
    }
}
