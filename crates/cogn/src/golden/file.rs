//! Writes a file as a whole or not at all: first under a hidden name beside its place, then renamed.
//! For recorded replies: refuses places outside the module, also through links.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::process;

use cognitive_library::folder::{Folder, safe_relative};

/// Writes a text to a file in one step.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    let name = path.file_name().ok_or_else(|| io::Error::other("it is no name of a file"))?;
    let draft = path.with_file_name(format!(".{}.{}.part", name.to_string_lossy(), process::id()));
    let written = write_new(&draft, text).and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        let _nothing_more_to_do = fs::remove_file(&draft);
    }
    written
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Writes a file of a module. The error is a sentence.
pub(super) fn write_in(folder: &Folder, path: &str, text: &str) -> Result<(), String> {
    let Some(root) = folder.path() else {
        return Err("the module is a part of the program; copy it to a folder to record replies".to_owned());
    };
    let inside = safe_relative(path).ok_or_else(|| format!("points out of the module: `{path}`"))?;
    let failed = |error: io::Error| format!("cannot write `{path}`: {error}");
    let root = root.canonicalize().map_err(failed)?;
    let target = root.join(inside);
    let parent = target.parent().unwrap_or(&root);
    if !parent.canonicalize().map_err(failed)?.starts_with(&root) {
        return Err(format!("leads out of the module through a link: `{path}`"));
    }
    write(&target, text).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_and_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.txt");
        write(&path, "one").unwrap();
        write(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert!(write(&dir.path().join("no/a.txt"), "x").is_err());
        fs::create_dir(dir.path().join("taken")).unwrap();
        fs::write(dir.path().join("taken/file"), "").unwrap();
        assert!(write(&dir.path().join("taken"), "x").is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "nothing is left behind");
    }

    #[test]
    fn sec_022_a_reply_is_written_inside_its_module() {
        let dir = tempfile::tempdir().unwrap();
        let module = dir.path().join("m");
        fs::create_dir_all(module.join("tests")).unwrap();
        let folder = Folder::Disk(module.clone());
        write_in(&folder, "tests/a.reply.txt", "r").unwrap();
        assert_eq!(fs::read_to_string(module.join("tests/a.reply.txt")).unwrap(), "r");
        assert!(write_in(&folder, "../a.reply.txt", "r").unwrap_err().contains("out of the module"));
        let memory = Folder::memory("m", std::collections::BTreeMap::new());
        assert!(write_in(&memory, "tests/a.reply.txt", "r").unwrap_err().contains("part of the program"));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("..", module.join("out")).unwrap();
            assert!(write_in(&folder, "out/a.reply.txt", "r").unwrap_err().contains("through a link"));
            assert!(!dir.path().join("a.reply.txt").exists());
        }
    }
}
