//! Loads vector files from disk, as cases in a fixed order.
//! Refuses an unknown file instead of skipping it: a skipped file would be a case that silently passes.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cognitive_contract::json;
use cognitive_library::Folder;
use cognitive_library::folder::{JSON_LIMIT, ReadError};
use serde_json::Value;

use super::case::{self, Vector};
use super::official;

/// The maximum depth of folders that are searched for vectors. Without it, a wrong path would be searched without
/// end.
const MAX_FOLDER_DEPTH: usize = 8;

/// An error while loading a directory of vectors.
#[derive(Debug)]
#[non_exhaustive]
pub enum VectorLoadError {
    /// A file system operation failed.
    Io {
        /// The path that cannot be read.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// A file is not a vector file, or one of its cases is malformed.
    Invalid {
        /// The file.
        path: PathBuf,
        /// The fault in it.
        reason: String,
    },
    /// The directory contains no cases.
    Empty {
        /// The directory.
        path: PathBuf,
    },
}

impl VectorLoadError {
    /// Suggests a fix to the reader.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Io { .. } | Self::Empty { .. } => {
                "Name a directory with vector files, such as `conformance`"
            }
            Self::Invalid { .. } => "`conformance/README.md` describes the format of vector files",
        }
    }
}

impl fmt::Display for VectorLoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, error } => write!(f, "cannot read `{}`: {error}", path.display()),
            Self::Invalid { path, reason } => {
                write!(f, "`{}` is not a vector file: {reason}", path.display())
            }
            Self::Empty { path } => write!(f, "no vectors in: `{}`", path.display()),
        }
    }
}

impl std::error::Error for VectorLoadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            Self::Invalid { .. } | Self::Empty { .. } => None,
        }
    }
}

/// Loads every `*.json` below a directory, sorted by path, cases in the order of their file.
pub fn load(directory: &Path) -> Result<Vec<Vector>, VectorLoadError> {
    let mut files = Vec::new();
    gather(directory, "", 0, &mut files)?;
    files.sort();
    let invalid = |file: &str| {
        let path = directory.join(file);
        move |reason| VectorLoadError::Invalid { path, reason }
    };
    let mut loaded = LoadedVectors::default();
    for file in &files {
        let content = read(directory, file).map_err(invalid(file))?;
        loaded.add(file, content).map_err(invalid(file))?;
    }
    for (index, total) in &loaded.promised {
        loaded.check_total(index, *total).map_err(invalid(index))?;
    }
    if loaded.cases.is_empty() {
        return Err(VectorLoadError::Empty { path: directory.to_owned() });
    }
    Ok(loaded.cases)
}

/// The cases loaded so far, and the promises that are checked at the end.
#[derive(Default)]
struct LoadedVectors {
    cases: Vec<Vector>,
    ids: HashSet<String>,
    /// Folder → number of cases in its group files. Index totals do not include official vectors.
    counts: HashMap<String, usize>,
    /// Index files, and the number of cases that each promises for its folder.
    promised: Vec<(String, usize)>,
}

impl LoadedVectors {
    fn add(&mut self, file: &str, content: VectorFile) -> Result<(), String> {
        let cases = match content {
            VectorFile::Index { total } => {
                self.promised.push((file.to_owned(), total));
                return Ok(());
            }
            VectorFile::Official(case) => vec![*case],
            VectorFile::Group(cases) => {
                *self.counts.entry(folder_of(file)).or_default() += cases.len();
                cases
            }
        };
        // Ids must be unique: a report by id would hide one of two cases.
        if let Some(case) = cases.iter().find(|case| !self.ids.insert(case.id.clone())) {
            return Err(format!("two cases have the id: `{}`", case.id));
        }
        self.cases.extend(cases);
        Ok(())
    }

    fn check_total(&self, index: &str, total: usize) -> Result<(), String> {
        let count = self.counts.get(&folder_of(index)).copied().unwrap_or_default();
        if count == total { Ok(()) } else { Err(format!("the index promises {total} cases, found {count}")) }
    }
}

fn folder_of(file: &str) -> String {
    file.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned()
}

/// Collects the paths of the JSON files, relative to the directory and with `/`. Does not follow links to
/// directories.
fn gather(
    directory: &Path,
    below: &str,
    depth: usize,
    files: &mut Vec<String>,
) -> Result<(), VectorLoadError> {
    // Joining an empty path would append a slash to the name that the user gave.
    let path = if below.is_empty() { directory.to_owned() } else { directory.join(below) };
    let failed = |error| VectorLoadError::Io { path: path.clone(), error };
    for entry in fs::read_dir(&path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let inside = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        if name.starts_with('.') {
            continue;
        }
        if entry.file_type().map_err(failed)?.is_dir() {
            if depth < MAX_FOLDER_DEPTH {
                gather(directory, &inside, depth + 1, files)?;
            }
        } else if Path::new(&name).extension().is_some_and(|extension| extension == "json") {
            files.push(inside);
        }
    }
    Ok(())
}

enum VectorFile {
    /// A group file of ours.
    Group(Vec<Vector>),
    /// A file of the specification.
    Official(Box<Vector>),
    /// The index of a folder, with its number of cases.
    Index { total: usize },
}

/// Determines the kind of a file from its content.
fn read(directory: &Path, file: &str) -> Result<VectorFile, String> {
    let text = Folder::Disk(directory.to_owned()).read(file, JSON_LIMIT).map_err(|error| match error {
        ReadError::Missing => "it no longer exists".to_owned(),
        ReadError::Refused(reason) => format!("it {reason}"),
    })?;
    let document = json::parse(&text).map_err(|error| format!("not JSON: {}", error.message))?;
    if document.get("cases").is_some() {
        return case::group_vectors(document).map(VectorFile::Group);
    }
    if document.get("$test").is_some() {
        return official::case(file, &document).map(|case| VectorFile::Official(Box::new(case)));
    }
    match document.get("format").and_then(Value::as_str) {
        Some("cognitive-modules-conformance-vectors") => {
            let total = document.get("total").and_then(Value::as_u64).and_then(|total| total.try_into().ok());
            total
                .map(|total| VectorFile::Index { total })
                .ok_or_else(|| "an index needs a `total`".to_owned())
        }
        _ => Err("expected an object with `cases` or `$test`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn load_files(files: &[(&str, String)]) -> Result<Vec<Vector>, VectorLoadError> {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        load(directory.path())
    }

    fn group(name: &str, ids: &[&str]) -> String {
        let case = |id: &&str| {
            json!({
                "id": id, "title": "t", "requirements": [], "level": 1, "strength": "must", "basis": "seed",
                "source": "s", "op": "normalize_code", "given": { "code": "x" }, "expect": { "code": "x" },
            })
        };
        let cases: Vec<Value> = ids.iter().map(case).collect();
        json!({ "group": name, "description": "d", "cases": cases }).to_string()
    }

    fn index(total: u64) -> String {
        json!({ "format": "cognitive-modules-conformance-vectors", "total": total, "groups": [] }).to_string()
    }

    fn official() -> String {
        let header = json!({ "name": "n", "description": "d", "expects": "reject", "conformance_level": 1 });
        json!({ "$test": header, "envelope": {} }).to_string()
    }

    fn reason(files: &[(&str, String)]) -> String {
        load_files(files).unwrap_err().to_string()
    }

    #[test]
    fn files_are_sorted_and_found_below_folders() {
        let cases = load_files(&[
            ("z.json", group("z", &["z-2", "z-1"])),
            ("a.json", group("a", &["a-1"])),
            ("b/c.json", group("c", &["c-1"])),
            ("index.json", index(3)),
            ("b/d.json", official()),
            ("README.md", "not a vector".to_owned()),
            (".hidden.json", "not a vector".to_owned()),
        ]);
        let ids: Vec<String> = cases.unwrap().into_iter().map(|case| case.id).collect();
        assert_eq!(ids, ["a-1", "c-1", "b/d", "z-2", "z-1"]);
    }

    #[test]
    fn nothing_is_left_out_silently() {
        assert!(reason(&[("a.json", "{".to_owned())]).contains("a.json` is not a vector file: not JSON"));
        assert!(
            reason(&[("a.json", "[]".to_owned())]).contains("expected an object with `cases` or `$test`")
        );
        assert!(reason(&[("a.json", r#"{"case": []}"#.to_owned())]).contains("expected an object"));
        assert!(reason(&[("a.json", group("a", &["x", "x"]))]).contains("two cases have the id: `x`"));
        let short = reason(&[("a.json", group("a", &["x"])), ("index.json", index(2))]);
        assert!(short.contains("promises 2 cases, found 1"), "{short}");
        let strange = group("a", &["x"]).replace("\"level\":1", "\"level\":5");
        assert!(reason(&[("a.json", strange)]).contains("level from 1 to 4, found 5"));
        assert!(reason(&[]).contains("no vectors in"));
        assert!(load(Path::new("/no/such/directory")).unwrap_err().to_string().contains("cannot read"));
    }
}
