//! All files of a module as bytes, for callers that export the whole folder. Limits number and size. Skips hidden files
//! and refuses links and devices, so that nothing from outside the folder gets in.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use cognitive_contract::{ErrorCode, Failure};

use crate::folder::{Folder, ReadError, read_file};

/// The highest number of files in a module. Without it, a module in a home folder would be read with everything else
/// there.
const MAX_FILES: usize = 1_000;
/// The size limit of all files together. All of them are held in memory.
const MAX_BYTES: u64 = 64 << 20;
/// The highest nesting depth of folders. Without it, deep trees would be walked without an end.
const MAX_DEPTH: usize = 8;

/// Returns the files by their paths inside the folder, with `/` as separator, sorted.
pub fn files_of(folder: &Folder) -> Result<BTreeMap<String, Vec<u8>>, Failure> {
    match folder {
        Folder::Memory { files, .. } => Ok((**files).clone()),
        Folder::Disk(root) => {
            let mut walk = FolderWalk { files: BTreeMap::new(), left: MAX_BYTES };
            walk.folder(root, "", 0)?;
            Ok(walk.files)
        }
        Folder::Draft(draft) => {
            let mut files = files_of(&draft.base)?;
            for (path, text) in &draft.files {
                match text {
                    Some(text) => files.insert(path.clone(), text.as_bytes().to_vec()),
                    None => files.remove(path),
                };
            }
            let size: u64 = files.values().map(|bytes| bytes.len() as u64).sum();
            if files.len() > MAX_FILES || size > MAX_BYTES {
                let message =
                    format!("a module has at most {MAX_FILES} files of {} MiB in total", MAX_BYTES >> 20);
                return Err(Failure::new(ErrorCode::InputTooLarge, message));
            }
            Ok(files)
        }
    }
}

struct FolderWalk {
    files: BTreeMap<String, Vec<u8>>,
    left: u64,
}

impl FolderWalk {
    fn folder(&mut self, folder: &Path, inside: &str, depth: usize) -> Result<(), Failure> {
        if depth > MAX_DEPTH {
            return Err(copy_refusal(folder, "folders are nested too deeply"));
        }
        let unreadable = |error: io::Error| copy_refusal(folder, &error.to_string());
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let path = entry.path();
            let name =
                entry.file_name().into_string().map_err(|_| copy_refusal(&path, "its name is not UTF-8"))?;
            if name.starts_with('.') {
                continue;
            }
            let kind = entry.file_type().map_err(|error| copy_refusal(&path, &error.to_string()))?;
            let inside = if inside.is_empty() { name } else { format!("{inside}/{name}") };
            if kind.is_dir() {
                self.folder(&path, &inside, depth + 1)?;
            } else if kind.is_file() {
                self.file(&path, inside)?;
            } else {
                return Err(copy_refusal(&path, "it is a link or not a regular file"));
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, inside: String) -> Result<(), Failure> {
        if self.files.len() == MAX_FILES {
            return Err(copy_refusal(path, &format!("a module has at most {MAX_FILES} files")));
        }
        let bytes = read_file(path, self.left).map_err(|error| match error {
            ReadError::Refused(reason) => copy_refusal(path, &format!("it {reason}")),
            ReadError::Missing => copy_refusal(path, "it no longer exists"),
        })?;
        self.left = self.left.saturating_sub(bytes.len() as u64);
        self.files.insert(inside, bytes);
        Ok(())
    }
}

fn copy_refusal(path: &Path, reason: &str) -> Failure {
    Failure::new(ErrorCode::InvalidInput, format!("cannot copy `{}`: {reason}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_inside_comes_along_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("tests/deep")).unwrap();
        for (name, bytes) in
            [("module.yaml", &b"name: m"[..]), ("tests/deep/a.png", &[0, 159]), (".env", b"KEY=1")]
        {
            fs::write(dir.path().join(name), bytes).unwrap();
        }
        let files = files_of(&Folder::Disk(dir.path().to_owned())).unwrap();
        assert_eq!(files.keys().collect::<Vec<_>>(), ["module.yaml", "tests/deep/a.png"]);
        assert_eq!(files["tests/deep/a.png"], [0, 159]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_refused_wherever_it_leads() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("prompt.md")).unwrap();
        let refused = files_of(&Folder::Disk(dir.path().to_owned())).unwrap_err();
        assert!(refused.message().ends_with("it is a link or not a regular file"), "{}", refused.message());
    }
}
