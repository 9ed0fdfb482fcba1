//! Writes recorded replies into a module. Refuses paths outside it, also through links.

use std::fs;
use std::io;
use std::path::PathBuf;

use cognitive_library::folder::{Folder, safe_relative};
use cognitive_setup::out_file;

/// Writes a file of a module. The error is a sentence.
pub(super) fn write_in(folder: &Folder, path: &str, text: &str) -> Result<(), String> {
    let target = place_in(folder, path)?;
    out_file::write(&target, text.as_bytes()).map_err(|error| format!("cannot write `{path}`: {error}"))
}

/// Removes a file of a module, if it is there. The error is a sentence.
pub(super) fn remove_in(folder: &Folder, path: &str) -> Result<(), String> {
    match fs::remove_file(place_in(folder, path)?) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(format!("cannot remove `{path}`: {error}"))
        }
        _ => Ok(()),
    }
}

/// Returns the path of a module's file on disk, if it may be changed.
fn place_in(folder: &Folder, path: &str) -> Result<PathBuf, String> {
    let Some(root) = folder.path() else {
        return Err("the module is built into the program; copy it to a folder to record replies".to_owned());
    };
    let inside = safe_relative(path).ok_or_else(|| format!("is outside the module: `{path}`"))?;
    let failed = |error: io::Error| format!("cannot write `{path}`: {error}");
    let root = root.canonicalize().map_err(failed)?;
    let target = root.join(inside);
    let parent = target.parent().unwrap_or(&root);
    if !parent.canonicalize().map_err(failed)?.starts_with(&root) {
        return Err(format!("leads out of the module through a link: `{path}`"));
    }
    // A link or device would be written through, and may lead outside as well.
    if fs::symlink_metadata(&target).is_ok_and(|there| !there.is_file()) {
        return Err(format!("exists already and is not a plain file: `{path}`"));
    }
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sec_022_a_reply_is_written_inside_its_module() {
        let dir = tempfile::tempdir().unwrap();
        let module = dir.path().join("m");
        fs::create_dir_all(module.join("tests")).unwrap();
        let folder = Folder::Disk(module.clone());
        write_in(&folder, "tests/a.reply.txt", "r").unwrap();
        assert_eq!(fs::read_to_string(module.join("tests/a.reply.txt")).unwrap(), "r");
        assert!(write_in(&folder, "../a.reply.txt", "r").unwrap_err().contains("outside the module"));
        remove_in(&folder, "tests/a.reply.txt").unwrap();
        remove_in(&folder, "tests/a.reply.txt").unwrap();
        assert!(!module.join("tests/a.reply.txt").exists());
        assert!(remove_in(&folder, "../a.reply.txt").unwrap_err().contains("outside the module"));
        let memory = Folder::memory("m", std::collections::BTreeMap::new());
        assert!(write_in(&memory, "tests/a.reply.txt", "r").unwrap_err().contains("built into the program"));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("..", module.join("out")).unwrap();
            assert!(write_in(&folder, "out/a.reply.txt", "r").unwrap_err().contains("through a link"));
            assert!(!dir.path().join("a.reply.txt").exists());
            std::os::unix::fs::symlink("../../b.reply.txt", module.join("tests/b.reply.txt")).unwrap();
            assert!(write_in(&folder, "tests/b.reply.txt", "r").unwrap_err().contains("not a plain file"));
            assert!(!dir.path().join("b.reply.txt").exists());
        }
    }
}
