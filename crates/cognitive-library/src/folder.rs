//! A module folder, on disk or in memory, and the only way to read its files. Refuses files outside the folder (also
//! through links) and anything that is not a regular file. Refuses text that is not UTF-8, and files above a limit, each
//! or together. Never waits for a pipe.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::draft_folder::DraftFolder;
use crate::platform;

/// The size limit of a manifest or prompt. No prompt is longer, and without a limit a wrong file would fill the
/// memory.
pub const TEXT_LIMIT: u64 = 1 << 20;
/// The size limit of a schema or test file. A parsed file takes many times its size.
pub const JSON_LIMIT: u64 = 8 << 20;
/// The size limit of all files of one kind together: those of the contract, those of the tests. Many files below the
/// other limits would otherwise add up.
pub const TOTAL_LIMIT: u64 = 16 << 20;

/// The storage of a module's files.
#[derive(Debug, Clone)]
pub enum Folder {
    /// A directory.
    Disk(PathBuf),
    /// Files in memory: bundled modules and test cases.
    Memory {
        /// The name to show.
        name: String,
        /// The files: path → content.
        files: Arc<BTreeMap<String, Vec<u8>>>,
    },
    /// A folder with some files replaced and not saved.
    Draft(Arc<DraftFolder>),
}

/// The reason why a file could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadError {
    /// The file does not exist.
    Missing,
    /// The file exists, but must not be read. The text is the reason.
    Refused(String),
}

/// A read budget: the size limit of each file, and of all files read with the same budget.
#[derive(Debug, Clone)]
pub struct Budget {
    each: u64,
    total: u64,
    left: u64,
    spent: bool,
}

impl Budget {
    /// Creates an unused budget.
    #[must_use]
    pub const fn new(each: u64, total: u64) -> Self {
        Self { each, total, left: total, spent: false }
    }

    /// Returns whether a file was refused because of the files before it. Further reads would fail too.
    #[must_use]
    pub const fn is_spent(&self) -> bool {
        self.spent
    }

    fn check(&mut self, size: u64) -> Result<(), ReadError> {
        if size > self.each {
            return Err(read_refusal(&format!("is larger than the limit of {} MiB", self.each >> 20)));
        }
        if size > self.left {
            self.spent = true;
            let total = self.total >> 20;
            return Err(read_refusal(&format!(
                "is not read: with the files before it, it exceeds the limit of {total} MiB in total"
            )));
        }
        Ok(())
    }

    fn take(&mut self, size: u64) -> Result<(), ReadError> {
        self.check(size)?;
        self.left = self.left.saturating_sub(size);
        Ok(())
    }
}

impl Folder {
    /// Creates a folder in memory.
    #[must_use]
    pub fn memory(name: &str, files: BTreeMap<String, Vec<u8>>) -> Self {
        Self::Memory { name: name.to_owned(), files: Arc::new(files) }
    }

    /// The last part of the path, which is the name in `run <name>`.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Disk(path) => {
                let last = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
                // `.` has no name; the directory it refers to has one.
                last(path).or_else(|| last(&path.canonicalize().ok()?)).unwrap_or_default()
            }
            Self::Memory { name, .. } => name.clone(),
            Self::Draft(draft) => draft.base.name(),
        }
    }

    /// The folder as shown to users.
    #[must_use]
    pub fn display(&self) -> String {
        match self {
            Self::Disk(path) => path.display().to_string(),
            Self::Memory { name, .. } => format!("{name} (bundled)"),
            Self::Draft(draft) => format!("{} (draft)", draft.base.display()),
        }
    }

    /// The directory, unless the folder is in memory.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Disk(path) => Some(path),
            Self::Memory { .. } => None,
            Self::Draft(draft) => draft.base.path(),
        }
    }

    /// The names of the entries at the top of the folder, exactly as written.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        match self {
            Self::Disk(path) => {
                let entries = fs::read_dir(path).into_iter().flatten().flatten();
                entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
            }
            Self::Memory { files, .. } => files.keys().cloned().collect(),
            Self::Draft(draft) => draft.names(),
        }
    }

    /// A stamp that changes with the files that a module is loaded from: sizes and times of the files at the top, in
    /// `examples` and in `trained`. It is constant for files in memory, and a draft has the stamp of its base folder.
    #[must_use]
    pub fn stamp(&self) -> Vec<(String, u64, Option<std::time::SystemTime>)> {
        let path = match self {
            Self::Disk(path) => path,
            Self::Memory { .. } => return Vec::new(),
            Self::Draft(draft) => return draft.base.stamp(),
        };
        let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
        let mut stamp: Vec<_> = entries(path)
            .chain(entries(&path.join("examples")))
            .chain(entries(&path.join("trained")))
            .filter_map(|entry| {
                let meta = fs::metadata(entry.path()).ok()?;
                Some((entry.file_name().into_string().ok()?, meta.len(), meta.modified().ok()))
            })
            .collect();
        stamp.sort();
        stamp
    }

    /// The names in a subfolder, sorted; empty if the subfolder does not exist or leads out of this folder.
    #[must_use]
    pub fn names_in(&self, sub: &str) -> Vec<String> {
        let mut names = match self {
            Self::Disk(root) => {
                let path = safe_relative(sub).and_then(|inside| locate(root, &inside).ok());
                path.map(|path| Self::Disk(path).names()).unwrap_or_default()
            }
            Self::Memory { files, .. } => {
                let prefix = format!("{sub}/");
                files.keys().filter_map(|path| path.strip_prefix(&prefix)).map(str::to_owned).collect()
            }
            Self::Draft(draft) => draft.names_in(sub),
        };
        names.sort();
        names
    }

    /// Reads a text file. `path` is relative to the folder and must stay inside it. Drops a leading BOM.
    pub fn read(&self, path: &str, limit: u64) -> Result<String, ReadError> {
        self.read_within(path, &mut Budget::new(limit, limit))
    }

    /// Reads a text file that must fit into the rest of a budget.
    pub fn read_within(&self, path: &str, budget: &mut Budget) -> Result<String, ReadError> {
        let inside = relative(path)?;
        let bytes = match self {
            Self::Draft(_) if is_hidden(&inside) => return Err(ReadError::Missing),
            Self::Draft(draft) => match draft.change_of(&inside) {
                None => return draft.base.read_within(path, budget),
                Some(changed) => {
                    let text = changed.ok_or(ReadError::Missing)?;
                    budget.take(text.len() as u64)?;
                    text.as_bytes().to_vec()
                }
            },
            Self::Disk(root) => read_regular(&locate(root, &inside)?, budget)?,
            Self::Memory { files, .. } => {
                let bytes = in_memory(files, &inside)?;
                budget.take(bytes.len() as u64)?;
                bytes.clone()
            }
        };
        let text = String::from_utf8(bytes).map_err(|error| {
            read_refusal(&format!("is not UTF-8 text (byte {})", error.utf8_error().valid_up_to()))
        })?;
        Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
    }

    /// Checks that a file exists and may be read, without reading it. Its content can still be invalid.
    pub fn check(&self, path: &str, limit: u64) -> Result<(), ReadError> {
        let inside = relative(path)?;
        let size = match self {
            Self::Draft(_) if is_hidden(&inside) => return Err(ReadError::Missing),
            Self::Draft(draft) => match draft.change_of(&inside) {
                None => return draft.base.check(path, limit),
                Some(changed) => changed.ok_or(ReadError::Missing)?.len() as u64,
            },
            Self::Disk(root) => size_of_regular(&locate(root, &inside)?)?,
            Self::Memory { files, .. } => in_memory(files, &inside)?.len() as u64,
        };
        Budget::new(limit, limit).check(size)
    }
}

fn relative(path: &str) -> Result<PathBuf, ReadError> {
    safe_relative(path).ok_or_else(|| read_refusal("is outside the module"))
}

/// Returns whether a path leads through a hidden name. A draft comes from a client, and must not name such files.
fn is_hidden(inside: &Path) -> bool {
    inside.components().any(|part| part.as_os_str().to_string_lossy().starts_with('.'))
}

fn in_memory<'a>(files: &'a BTreeMap<String, Vec<u8>>, inside: &Path) -> Result<&'a Vec<u8>, ReadError> {
    files.get(&inside.to_string_lossy().replace('\\', "/")).ok_or(ReadError::Missing)
}

fn read_refusal(reason: &str) -> ReadError {
    ReadError::Refused(reason.to_owned())
}

/// Normalises a relative path. Returns `None` if it is absolute or has a step upwards that leaves the folder.
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

fn io_error(error: io::Error) -> ReadError {
    match error.kind() {
        io::ErrorKind::NotFound => ReadError::Missing,
        _ => read_refusal(&format!("cannot be read: {error}")),
    }
}

/// Returns the real path of a file in a folder. The folder itself may be a link; its entries must not lead out of it.
fn locate(root: &Path, inside: &Path) -> Result<PathBuf, ReadError> {
    let root = root.canonicalize().map_err(io_error)?;
    let path = root.join(inside).canonicalize().map_err(io_error)?;
    if !path.starts_with(&root) {
        return Err(read_refusal("leads out of the module through a link"));
    }
    Ok(path)
}

fn size_of_regular(path: &Path) -> Result<u64, ReadError> {
    let meta = fs::metadata(path).map_err(io_error)?;
    if meta.is_file() { Ok(meta.len()) } else { Err(read_refusal("is not a regular file")) }
}

/// Reads a regular file, given by its real path.
fn read_regular(path: &Path, budget: &mut Budget) -> Result<Vec<u8>, ReadError> {
    // Checked before opening: opening a device can have side effects, and most refusals are found here.
    budget.check(size_of_regular(path)?)?;
    let file = open_regular(path).map_err(io_error)?;
    let mut bytes = Vec::new();
    let most = budget.each.min(budget.left);
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(io_error)?;
    budget.take(bytes.len() as u64)?;
    Ok(bytes)
}

/// Reads a file with a fixed name, such as a configuration. Follows links, but reads only a regular file, and at most
/// the limit. The path may be under an untrusted user's control, so this never waits.
pub fn read_file(path: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
    let path = path.canonicalize().map_err(io_error)?;
    read_regular(&path, &mut Budget::new(limit, limit))
}

/// Opens a regular file, given by its real path, for reading. A concurrent writer can replace the file with a pipe or a
/// link at any moment: this neither waits for the pipe nor follows the link, and returns an error.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let file = platform::open_nofollow(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok(file)
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
        assert_eq!(reason(&folder, "../secret.json"), "is outside the module");
        assert_eq!(reason(&folder, "/etc/hostname"), "is outside the module");
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

    #[cfg(unix)]
    #[test]
    fn sec_022_a_folder_that_lies_elsewhere_is_not_listed() {
        let dir = tempfile::tempdir().unwrap();
        let module = dir.path().join("m");
        fs::create_dir_all(module.join("cases")).unwrap();
        fs::create_dir(dir.path().join("private")).unwrap();
        fs::write(dir.path().join("private/a.input.json"), "{}").unwrap();
        fs::write(module.join("cases/b.input.json"), "{}").unwrap();
        std::os::unix::fs::symlink("../private", module.join("tests")).unwrap();
        std::os::unix::fs::symlink("cases", module.join("examples")).unwrap();
        let folder = Folder::Disk(module);
        assert_eq!(folder.names_in("tests"), [""; 0]);
        assert_eq!(folder.names_in("../private"), [""; 0]);
        assert_eq!(folder.names_in("examples"), ["b.input.json"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_or_a_link_in_the_place_of_a_file_is_neither_waited_for_nor_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (pipe, link, file) = (dir.path().join("pipe"), dir.path().join("link"), dir.path().join("file"));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        fs::write(&file, "x").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(open_regular(&file).is_ok());
        assert_eq!(open_regular(&pipe).unwrap_err().to_string(), "not a regular file");
        assert!(open_regular(&link).is_err());
        assert!(open_regular(dir.path()).is_err());
        assert_eq!(
            Folder::Disk(dir.path().to_owned()).check("pipe", 9),
            Err(read_refusal("is not a regular file"))
        );
    }

    #[test]
    fn files_share_a_budget_and_looking_at_one_costs_nothing() {
        let files = BTreeMap::from(["a", "b", "c"].map(|name| (name.to_owned(), vec![b' '; 6 << 20])));
        let folder = Folder::memory("m", files);
        let mut budget = Budget::new(JSON_LIMIT, TOTAL_LIMIT);
        assert!(folder.read_within("a", &mut budget).is_ok() && folder.read_within("b", &mut budget).is_ok());
        assert_eq!(folder.check("c", JSON_LIMIT), Ok(()));
        assert!(!budget.is_spent());
        let refusal = folder.read_within("c", &mut budget);
        assert!(matches!(refusal, Err(ReadError::Refused(reason)) if reason.contains("16 MiB in total")));
        assert!(budget.is_spent());
        assert_eq!(folder.check("c", TEXT_LIMIT), Err(read_refusal("is larger than the limit of 1 MiB")));
        assert_eq!(folder.check("d", TEXT_LIMIT), Err(ReadError::Missing));
    }
}
