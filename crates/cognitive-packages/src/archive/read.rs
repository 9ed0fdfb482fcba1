//! Reads an archive into memory, and refuses it as a whole at the first invalid entry. Invalid are links, devices,
//! paths that leave the folder, exceeded limits, and names that some system cannot store or treats as equal. Writes
//! nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

use cognitive_contract::text::cut;
use flate2::read::GzDecoder;
use tar::{Archive, Entry, EntryType};

use super::{Files, MAX_BYTES, MAX_FILES, MAX_RATIO, MAX_REPOSITORY, RATIO_FROM};
use crate::PackageError;
use crate::name::path_fault;

/// The kind of archive to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArchiveForm {
    /// A package: one top folder that contains the whole module.
    Package,
    /// A repository: the module is the folder at this path below the top folder; empty for the top folder itself.
    Repository(String),
}

/// The content of an archive.
#[derive(Debug)]
pub struct UnpackedArchive {
    /// The name of the top folder.
    pub top: String,
    /// The files, without hidden ones.
    pub files: Files,
    /// The commit that `git archive` writes into its archives.
    pub commit: Option<String>,
}

/// Reads an archive.
pub fn read(bytes: &[u8], form: &ArchiveForm) -> Result<UnpackedArchive, PackageError> {
    let limit = match form {
        ArchiveForm::Package => limit_of(bytes),
        ArchiveForm::Repository(_) => MAX_REPOSITORY,
    };
    let mut archive = Archive::new(BoundedReader { inner: GzDecoder::new(bytes), left: limit });
    let mut reading = ArchiveReading {
        form,
        top: None,
        files: Files::new(),
        folded: BTreeMap::new(),
        bytes: 0,
        commit: None,
    };
    for entry in archive.entries().map_err(unreadable)? {
        reading.entry(entry.map_err(unreadable)?)?;
    }
    // Read to the very end, where gzip verifies its checksum.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(unreadable)?;
    reading.finish()
}

/// The maximum unpacked size of these bytes, with some room for the overhead of tar.
fn limit_of(bytes: &[u8]) -> u64 {
    let by_ratio = (bytes.len() as u64).saturating_mul(MAX_RATIO).max(RATIO_FROM);
    by_ratio.min(MAX_BYTES + (MAX_FILES as u64 * 2_048))
}

struct ArchiveReading<'a> {
    form: &'a ArchiveForm,
    top: Option<String>,
    files: Files,
    /// File and folder names by their lower-case form, as a case-insensitive system sees them.
    folded: BTreeMap<String, String>,
    bytes: u64,
    commit: Option<String>,
}

impl ArchiveReading<'_> {
    fn entry<R: Read>(&mut self, mut entry: Entry<'_, R>) -> Result<(), PackageError> {
        let kind = entry.header().entry_type();
        if kind == EntryType::XGlobalHeader {
            self.commit = commit_of(&mut entry).or(self.commit.take());
            return Ok(());
        }
        let path = entry.path_bytes();
        let path =
            str::from_utf8(&path).map_err(|_| PackageError::new("a name in the archive is not UTF-8"))?;
        let path = path.strip_suffix('/').unwrap_or(path).to_owned();
        // `tar .` writes this prefix for every path.
        let path = path.strip_prefix("./").unwrap_or(&path).to_owned();
        if let Some(fault) = path_fault(&path) {
            return Err(refused_archive(&path, fault));
        }
        let (top, below) = path.split_once('/').unwrap_or((&path, ""));
        if *self.top.get_or_insert_with(|| top.to_owned()) != *top {
            return Err(refused_archive(&path, "a package has only one folder at its top level"));
        }
        let Some(inside) = self.inner_path(below) else { return Ok(()) };
        match kind {
            EntryType::Directory => Ok(()),
            EntryType::Regular | EntryType::Continuous if inside.is_empty() => {
                Err(refused_archive(&path, "it is outside the folder of the module"))
            }
            EntryType::Regular | EntryType::Continuous => self.file(inside.to_owned(), &mut entry),
            EntryType::Symlink | EntryType::Link => Err(refused_archive(&path, "it is a link")),
            _ => Err(refused_archive(&path, "it is not a regular file")),
        }
    }

    /// The path inside the module; `None` for other entries.
    fn inner_path<'p>(&self, below: &'p str) -> Option<&'p str> {
        let inside = match self.form {
            ArchiveForm::Package => below,
            ArchiveForm::Repository(folder) if folder.is_empty() => below,
            ArchiveForm::Repository(folder) => below.strip_prefix(folder.as_str())?.strip_prefix('/')?,
        };
        // The same rule as in packing: hidden files belong to tools, not to the module.
        let is_hidden = inside.split('/').any(|part| part.starts_with('.'));
        (!is_hidden).then_some(inside)
    }

    fn file<R: Read>(&mut self, inside: String, entry: &mut Entry<'_, R>) -> Result<(), PackageError> {
        if self.files.len() == MAX_FILES {
            return Err(refused_archive(&inside, "a package has at most 1,000 files"));
        }
        let size = entry.size();
        self.bytes = self.bytes.saturating_add(size);
        if self.bytes > MAX_BYTES {
            return Err(refused_archive(&inside, "the files of a package have at most 50 MiB in total"));
        }
        self.fold(&inside)?;
        // The size in the header is not trusted: memory grows only with the bytes that arrive.
        let mut bytes = Vec::new();
        entry.take(size).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 != size {
            return Err(refused_archive(&inside, "the archive ends within this file"));
        }
        self.files.insert(inside, bytes);
        Ok(())
    }

    /// Registers the names of a file and its parent folders; refuses duplicates.
    fn fold(&mut self, inside: &str) -> Result<(), PackageError> {
        let ends = inside.match_indices('/').map(|(at, _)| at).chain([inside.len()]);
        let parents: BTreeSet<usize> = ends.collect();
        for end in parents {
            let Some(name) = inside.get(..end) else { continue };
            let known = self.folded.entry(name.to_lowercase()).or_insert_with(|| name.to_owned());
            if *known != name {
                return Err(refused_archive(
                    inside,
                    "on some systems its name is equal to that of another file",
                ));
            }
        }
        let is_folder_of_another = self
            .files
            .range(format!("{inside}/")..)
            .next()
            .is_some_and(|(next, _)| next.strip_prefix(inside).is_some_and(|rest| rest.starts_with('/')));
        let has_file_above = inside
            .match_indices('/')
            .any(|(at, _)| inside.get(..at).is_some_and(|above| self.files.contains_key(above)));
        if self.files.contains_key(inside) || is_folder_of_another || has_file_above {
            return Err(refused_archive(inside, "the archive contains it twice"));
        }
        Ok(())
    }

    fn finish(self) -> Result<UnpackedArchive, PackageError> {
        let empty = || match self.form {
            ArchiveForm::Repository(folder) if !folder.is_empty() => PackageError::new(format!(
                "the repository has no files in this folder: `{}`",
                cut(folder, 120)
            )),
            _ => PackageError::new("the archive is empty"),
        };
        if self.files.is_empty() {
            return Err(empty());
        }
        let top = self.top.ok_or_else(empty)?;
        Ok(UnpackedArchive { top, files: self.files, commit: self.commit })
    }
}

/// The commit from the record that `git archive` writes, `52 comment=…`.
fn commit_of<R: Read>(entry: &mut Entry<'_, R>) -> Option<String> {
    let mut text = String::new();
    entry.take(1_024).read_to_string(&mut text).ok()?;
    let commit = text.lines().find_map(|line| line.split_once(" comment=")).map(|(_, commit)| commit)?;
    let is_hash = matches!(commit.len(), 40 | 64) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| commit.to_owned())
}

/// A reader that fails, instead of ending silently, when there is more than allowed.
struct BoundedReader<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for BoundedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left = self
            .left
            .checked_sub(read as u64)
            .ok_or_else(|| io::Error::other("it unpacks to more than the limit of a package"))?;
        Ok(read)
    }
}

fn refused_archive(path: &str, reason: &str) -> PackageError {
    PackageError::new(format!("invalid archive: {reason}: `{}`", cut(&escape_name(path), 120)))
}

/// Escapes an untrusted name so that it cannot control a terminal.
fn escape_name(path: &str) -> String {
    cognitive_contract::text::escape_controls(path).into_owned()
}

#[expect(clippy::needless_pass_by_value, reason = "the form that `map_err` wants")]
fn unreadable(error: io::Error) -> PackageError {
    PackageError::new(format!("cannot read the archive: {error}"))
        .hint("A package is a gzipped tar archive with one folder, as made by `cogn pack`")
}
