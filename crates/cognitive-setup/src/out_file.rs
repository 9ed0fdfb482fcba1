//! Writes the output files that users name, for every command. A regular file is replaced atomically: the bytes go to a
//! temporary name in the same folder, which is then renamed. An existing device, pipe or link is written through and
//! never replaced: `--junit /dev/null` must not create a regular file there.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;

/// The number of temporary names that are tried before it fails; only a killed process leaves one behind. Without the
/// limit, a folder full of such files would be searched without end.
const NAMES: u32 = 100;

/// Writes a file.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(there) if there.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(there) if there.is_file() => match replace(path, bytes, Some(there.permissions())) {
            // The file may be writable although its folder is not.
            Err(error) if is_closed(&error) => write_through(path, bytes, false),
            done => done,
        },
        Ok(there) => write_through(path, bytes, there.is_symlink()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => replace(path, bytes, None),
        Err(error) => Err(error),
    }
}

fn is_closed(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// Writes to the existing target. A link may point to a file that does not exist yet.
fn write_through(path: &Path, bytes: &[u8], create: bool) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).truncate(true).create(create).open(path)?;
    file.write_all(bytes)?;
    file.flush()
}

fn replace(path: &Path, bytes: &[u8], permissions: Option<Permissions>) -> io::Result<()> {
    let (draft, mut file) = create_draft(path)?;
    let written = file.write_all(bytes).and_then(|()| {
        permissions.map_or(Ok(()), |permissions| file.set_permissions(permissions))?;
        file.sync_all()?;
        fs::rename(&draft, path)
    });
    if written.is_err() {
        let _nothing_more_to_do = fs::remove_file(&draft);
    }
    written
}

/// Creates a file in the same folder. Its name is short because the target's own name may have the maximum length.
fn create_draft(path: &Path) -> io::Result<(PathBuf, File)> {
    if path.file_name().is_none() {
        return Err(io::Error::other("it is not a file name"));
    }
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for number in 0..NAMES {
        let draft = path.with_file_name(format!(".cogn-{}-{number}.part", process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&draft) {
            Ok(file) => return Ok((draft, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_and_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.txt");
        write(&path, b"one").unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert!(write(&dir.path().join("no/a.txt"), b"x").is_err());
        fs::create_dir(dir.path().join("taken")).unwrap();
        assert!(write(&dir.path().join("taken"), b"x").is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "nothing is left behind");
        let longest = dir.path().join("n".repeat(255));
        write(&longest, b"x").unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn what_may_be_done_with_a_file_stays() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.txt");
        write(&path, b"one").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
