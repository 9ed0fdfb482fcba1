//! A folder with unsaved changes to some of its files: an author tries them before saving. Refuses paths that leave the
//! folder, hidden files, and more files than a module may have.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};
use std::sync::Arc;

use cognitive_contract::text::{cut, hex};
use cognitive_contract::{ErrorCode, Failure};
use sha2::{Digest, Sha256};

use crate::folder::{Folder, TOTAL_LIMIT};

/// The highest number of files in a draft. A draft comes from a client and is held in memory.
const MAX_FILES: usize = 100;
/// The length of the longest path, in bytes. Longer paths cannot be created on every system.
const MAX_PATH_LENGTH: usize = 200;
/// The highest number of components in a path. No module nests deeper, and deep trees are slow to walk.
const MAX_DEPTH: usize = 6;

/// A folder and the files that override its own.
#[derive(Debug, Clone)]
pub struct DraftFolder {
    pub(crate) base: Folder,
    /// The changed files by normalised path; `None` deletes a file.
    pub(crate) files: BTreeMap<String, Option<String>>,
}

impl Folder {
    /// Returns this folder with these files replaced; `None` deletes a file. (E1001, E1005)
    pub fn with_draft(&self, files: &BTreeMap<String, Option<String>>) -> Result<Self, Failure> {
        let refused = |path: &str, why: &str| {
            let message = format!("{why}: `{}`", cut(path, MAX_PATH_LENGTH));
            Failure::new(ErrorCode::InvalidInput, message).suggest(
                "Name files by their paths in the module, such as `prompt.md` or `tests/a.input.json`",
            )
        };
        let size: usize =
            files.iter().map(|(path, text)| path.len() + text.as_ref().map_or(0, String::len)).sum();
        if files.len() > MAX_FILES || size as u64 > TOTAL_LIMIT {
            let message =
                format!("a draft has at most {MAX_FILES} files of {} MiB in total", TOTAL_LIMIT >> 20);
            return Err(Failure::new(ErrorCode::InputTooLarge, message));
        }
        for path in files.keys() {
            if !is_plain(path) {
                return Err(refused(path, "not a path of a module file"));
            }
            let below =
                |other: &&String| other.strip_prefix(path.as_str()).is_some_and(|rest| rest.starts_with('/'));
            if files.keys().any(|other| below(&other)) {
                return Err(refused(path, "the path is both a file and a folder"));
            }
        }
        Ok(Self::Draft(Arc::new(DraftFolder { base: self.clone(), files: files.clone() })))
    }
}

/// Returns whether a path is in the one accepted form: relative, without `..`, nothing hidden.
fn is_plain(path: &str) -> bool {
    let parts = Path::new(path).components();
    let is_normal = |part: Component<'_>| match part {
        Component::Normal(name) => name.to_str().is_some_and(|name| !name.starts_with('.')),
        _ => false,
    };
    path.len() <= MAX_PATH_LENGTH
        && !path.is_empty()
        && !path.contains(['\\', ':'])
        && !path.chars().any(char::is_control)
        && parts.clone().count() <= MAX_DEPTH
        && parts.clone().all(is_normal)
        // `a//b` and `a/./b` are other spellings of `a/b`.
        && parts.map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/") == path
}

impl DraftFolder {
    /// Returns the change to a file: no change, deleted, or its new text.
    #[expect(clippy::option_option, reason = "a removed file differs from a file without an entry")]
    pub(crate) fn change_of(&self, inside: &Path) -> Option<Option<&String>> {
        self.files.get(&*inside.to_string_lossy().replace('\\', "/")).map(Option::as_ref)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: BTreeSet<String> = self.base.names().into_iter().collect();
        self.apply(&mut names, |path| path.split('/').next());
        names.into_iter().collect()
    }

    pub(crate) fn names_in(&self, sub: &str) -> Vec<String> {
        let mut names: BTreeSet<String> = self.base.names_in(sub).into_iter().collect();
        self.apply(&mut names, |path| path.strip_prefix(sub)?.strip_prefix('/'));
        names.into_iter().collect()
    }

    fn apply<'a>(&'a self, names: &mut BTreeSet<String>, name: impl Fn(&'a str) -> Option<&'a str>) {
        for (path, text) in &self.files {
            let Some(shown) = name(path) else { continue };
            if text.is_some() {
                names.insert(shown.to_owned());
            } else if path.ends_with(shown) {
                names.remove(shown);
            }
        }
    }
}

/// The hash that identifies a draft: all of its changes.
#[must_use]
pub fn draft_hash(files: &BTreeMap<String, Option<String>>) -> String {
    let mut all = Sha256::new();
    for (path, text) in files {
        let length = text.as_ref().map_or_else(|| "-".to_owned(), |text| text.len().to_string());
        all.update(format!("{} {path} {length} ", path.len()));
        all.update(text.as_deref().unwrap_or_default());
    }
    hex(&all.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::{ReadError, TEXT_LIMIT};

    fn base() -> Folder {
        let files =
            ["module.yaml", "prompt.md", "tests/a.input.json"].map(|path| (path.to_owned(), b"old".to_vec()));
        Folder::memory("m", files.into_iter().collect())
    }

    fn draft(files: &[(&str, Option<&str>)]) -> Result<Folder, Failure> {
        base().with_draft(
            &files.iter().map(|(path, text)| ((*path).to_owned(), text.map(str::to_owned))).collect(),
        )
    }

    #[test]
    fn a_draft_stands_in_front_of_its_folder() {
        let draft = draft(&[
            ("prompt.md", Some("new")),
            ("tests/a.input.json", None),
            ("tests/b.input.json", Some("b")),
        ])
        .unwrap();
        assert_eq!(draft.read("prompt.md", TEXT_LIMIT).unwrap(), "new");
        assert_eq!(draft.read("x/../prompt.md", TEXT_LIMIT).unwrap(), "new");
        assert_eq!(draft.read("module.yaml", TEXT_LIMIT).unwrap(), "old");
        assert_eq!(draft.read("tests/a.input.json", TEXT_LIMIT), Err(ReadError::Missing));
        assert_eq!(draft.names_in("tests"), ["b.input.json"]);
        assert_eq!(draft.check("tests/a.input.json", TEXT_LIMIT), Err(ReadError::Missing));
        assert_eq!((draft.name(), draft.display()), ("m".to_owned(), "m (bundled) (draft)".to_owned()));
        let files = crate::files_of(&draft).unwrap();
        assert_eq!(files.keys().collect::<Vec<_>>(), ["module.yaml", "prompt.md", "tests/b.input.json"]);
    }

    // A schema of the draft may name any path, also one that the draft itself must not have.
    #[test]
    fn a_hidden_file_is_not_there_for_a_draft() {
        let hidden =
            [".env", ".git/config", "tests/.secret"].map(|path| (path.to_owned(), b"KEY=1".to_vec()));
        let base = Folder::memory("m", hidden.into_iter().collect());
        let draft =
            base.with_draft(&BTreeMap::from([("prompt.md".to_owned(), Some("p".to_owned()))])).unwrap();
        for path in [".env", "./.env", "x/../.env", ".git/config", "tests/.secret"] {
            assert_eq!(draft.read(path, TEXT_LIMIT), Err(ReadError::Missing), "{path}");
            assert_eq!(draft.check(path, TEXT_LIMIT), Err(ReadError::Missing), "{path}");
        }
        assert_eq!(base.read(".env", TEXT_LIMIT).unwrap(), "KEY=1", "the author's own folder");
    }

    #[test]
    fn paths_that_lead_elsewhere_are_no_files_of_a_module() {
        for path in [
            "../prompt.md",
            "/etc/passwd",
            "a/../../b",
            "./prompt.md",
            "a//b",
            "a/./b",
            "",
            ".env",
            "tests/.git/config",
            "C:\\x",
            "a\\b",
            "c:x",
            "a/b/c/d/e/f/g",
            "prompt.md/",
            "a\0b",
            &"x".repeat(300),
        ] {
            assert_eq!(draft(&[(path, Some(""))]).unwrap_err().code(), ErrorCode::InvalidInput, "{path:?}");
        }
        assert!(draft(&[("a", Some("")), ("a/b", Some(""))]).is_err(), "not both");
        assert!(draft(&[("a", Some("")), ("a.b", Some(""))]).is_ok());
        let huge = "x".repeat(usize::try_from(TOTAL_LIMIT).unwrap() + 1);
        assert_eq!(draft(&[("prompt.md", Some(&huge))]).unwrap_err().code(), ErrorCode::InputTooLarge);
    }

    #[test]
    fn another_draft_has_another_hash() {
        let hash = |path: &str, text: Option<&str>| {
            draft_hash(&BTreeMap::from([(path.to_owned(), text.map(str::to_owned))]))
        };
        let all = [hash("a", None), hash("a", Some("")), hash("a", Some("-")), hash("b", None)];
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
    }
}
