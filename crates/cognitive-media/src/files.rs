//! Reads files named by media items. A local caller may name any readable file; a remote caller only files below the
//! roots that the operator configured (SEC-010). Only regular files, never those of `/proc`, `/dev` and `/sys`. The
//! opened file is checked again, because its path can change in between. (S-33)

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;
use cognitive_contract::{ErrorCode, Failure};

use crate::fault::{no_file, too_many_bytes};
use crate::platform;

/// The system folders whose files expose the machine.
const FORBIDDEN: [&str; 3] = ["/proc", "/dev", "/sys"];

/// The access rules for files.
#[derive(Debug, Clone, Default)]
pub(crate) struct MediaFiles {
    roots: Vec<PathBuf>,
}

impl MediaFiles {
    /// Creates the rules. Ignores roots that do not exist.
    pub(crate) fn within_roots(roots: &[PathBuf]) -> Self {
        Self { roots: roots.iter().filter_map(|root| fs::canonicalize(root).ok()).collect() }
    }

    /// Reads a file. (E1011, E1012, E4007)
    pub(crate) fn read(
        &self,
        path: &str,
        folder: Option<&Path>,
        remote: bool,
        largest: u64,
    ) -> Result<Bytes, Failure> {
        self.read_with(path, folder, remote, largest, || ())
    }

    /// Reads a file. Tests pass a hook that runs between the check of the path and the opening.
    fn read_with(
        &self,
        path: &str,
        folder: Option<&Path>,
        remote: bool,
        largest: u64,
        meanwhile: impl FnOnce(),
    ) -> Result<Bytes, Failure> {
        let path = complete(path, folder)?;
        let real = match fs::canonicalize(&path) {
            Ok(real) => real,
            // The answer must not reveal which files exist outside the roots.
            Err(_) if remote && !self.allows(&plain(&path)) => return Err(forbidden_file()),
            Err(error) => return Err(unreadable(&error)),
        };
        self.check(&real, remote)?;
        let kind = fs::symlink_metadata(&real).map_err(|error| unreadable(&error))?.file_type();
        if !kind.is_file() {
            return Err(no_file("not_a_file", "the path is not a regular file"));
        }
        meanwhile();
        let file = platform::open_nofollow(&real).map_err(|error| unreadable(&error))?;
        let found = file.metadata().map_err(|error| unreadable(&error))?;
        if !found.is_file() {
            return Err(no_file("not_a_file", "the path is not a regular file"));
        }
        self.check(&path_of(&file, &real)?, remote)?;
        if found.len() > largest {
            return Err(too_many_bytes(largest));
        }
        take(file, found.len(), largest)
    }

    fn allows(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| path.starts_with(root))
    }

    fn check(&self, real: &Path, remote: bool) -> Result<(), Failure> {
        if remote && !self.allows(real) {
            return Err(forbidden_file());
        }
        if FORBIDDEN.iter().any(|place| real.starts_with(place)) {
            return Err(no_file("forbidden", "system files are forbidden"));
        }
        Ok(())
    }
}

/// Resolves a path against its folder.
fn complete(path: &str, folder: Option<&Path>) -> Result<PathBuf, Failure> {
    let named = Path::new(path);
    match folder {
        _ if path.is_empty() || path.contains('\0') => {
            Err(no_file("not_found", "the path is empty or has a NUL character"))
        }
        _ if named.is_absolute() => Ok(named.to_owned()),
        Some(folder) => Ok(folder.join(named)),
        None => Err(no_file("not_found", "a relative path needs the folder of a module")
            .suggest("Give an absolute path")),
    }
}

/// Resolves `.` and `..` without reading the disk.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, component| {
        match component {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
        plain
    })
}

fn forbidden_file() -> Failure {
    Failure::new(ErrorCode::PermissionDenied, "remote callers may not read files of this machine")
        .suggest("Send the bytes as `base64`, or upload them first")
}

fn unreadable(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => no_file("not_found", "no such file"),
        io::ErrorKind::PermissionDenied => no_file("unreadable", "permission denied"),
        _ => no_file("unreadable", "the file cannot be read"),
    }
}

/// Returns the real path of an opened file.
fn path_of(file: &File, path: &Path) -> Result<PathBuf, Failure> {
    let found = platform::path_of(file, path).map_err(|error| unreadable(&error))?;
    found.ok_or_else(|| no_file("changed", "the file was replaced while it was opened"))
}

/// Reads all bytes, but no more than `largest`, even if the file grows meanwhile.
fn take(file: File, length: u64, largest: u64) -> Result<Bytes, Failure> {
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    let read = file.take(largest.saturating_add(1)).read_to_end(&mut bytes);
    let read = read.map_err(|error| unreadable(&error))?;
    if u64::try_from(read).is_ok_and(|read| read <= largest) {
        Ok(bytes.into())
    } else {
        Err(too_many_bytes(largest))
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct FilePath {
        _kept: tempfile::TempDir,
        root: PathBuf,
        outside: PathBuf,
    }

    fn place() -> FilePath {
        let kept = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(kept.path()).unwrap();
        let (root, outside) = (base.join("root"), base.join("outside"));
        fs::create_dir_all(root.join("below")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(root.join("below/a.png"), b"inside").unwrap();
        fs::write(outside.join("secret.png"), b"secret").unwrap();
        FilePath { _kept: kept, root, outside }
    }

    fn read(place: &FilePath, path: impl AsRef<Path>, remote: bool) -> Result<Bytes, String> {
        let files = MediaFiles::within_roots(std::slice::from_ref(&place.root));
        told(files.read(path.as_ref().to_str().unwrap(), Some(&place.root), remote, 100))
    }

    fn told(result: Result<Bytes, Failure>) -> Result<Bytes, String> {
        result.map_err(|failure| {
            let code = failure.code().number();
            let envelope = serde_json::to_value(failure.into_envelope()).unwrap();
            let reason = envelope["error"]["details"]["reason"].as_str().unwrap_or("").to_owned();
            format!("{code} {reason}")
        })
    }

    #[test]
    fn media_012_absolute_or_relative_to_the_folder_of_the_module() {
        let place = place();
        assert_eq!(read(&place, "below/a.png", false).unwrap(), "inside");
        assert_eq!(read(&place, place.root.join("below/a.png"), false).unwrap(), "inside");
        assert_eq!(read(&place, "../outside/secret.png", false).unwrap(), "secret");
        assert_eq!(read(&place, "gone.png", false).unwrap_err(), "E1012 not_found");
        assert_eq!(read(&place, "below", false).unwrap_err(), "E1012 not_a_file");
        assert_eq!(read(&place, "", false).unwrap_err(), "E1012 not_found");
        let homeless = MediaFiles::default().read("a.png", None, false, 100);
        assert_eq!(told(homeless).unwrap_err(), "E1012 not_found");
    }

    #[test]
    fn sec_010_from_outside_only_below_the_roots() {
        let place = place();
        assert_eq!(read(&place, "below/a.png", true).unwrap(), "inside");
        for path in
            ["/etc/passwd", "/etc/there-is-no-such-file", "../outside/secret.png", "../outside/gone.png"]
        {
            assert_eq!(read(&place, path, true).unwrap_err(), "E4007 ", "{path}");
        }
        let nowhere = MediaFiles::default().read("below/a.png", Some(&place.root), true, 100);
        assert_eq!(told(nowhere).unwrap_err(), "E4007 ");
        assert_eq!(read(&place, "below/gone.png", true).unwrap_err(), "E1012 not_found");
        // A sibling whose name starts with the name of the root is not below it.
        fs::create_dir(place.root.with_file_name("rooted")).unwrap();
        fs::write(place.root.with_file_name("rooted").join("x"), b"x").unwrap();
        assert_eq!(read(&place, "../rooted/x", true).unwrap_err(), "E4007 ");
    }

    #[test]
    fn sec_010_links_are_followed_before_anything_is_decided() {
        let place = place();
        symlink(place.outside.join("secret.png"), place.root.join("link.png")).unwrap();
        symlink(&place.outside, place.root.join("folder")).unwrap();
        symlink(place.root.join("below/a.png"), place.root.join("fine.png")).unwrap();
        assert_eq!(read(&place, "link.png", true).unwrap_err(), "E4007 ");
        assert_eq!(read(&place, "folder/secret.png", true).unwrap_err(), "E4007 ");
        assert_eq!(read(&place, "fine.png", true).unwrap(), "inside");
        assert_eq!(read(&place, "link.png", false).unwrap(), "secret");
    }

    #[test]
    fn files_of_the_system_are_not_read() {
        let place = place();
        symlink("/proc/self/environ", place.root.join("environ.png")).unwrap();
        for path in ["/proc/self/environ", "/proc/self/fd/0", "/dev/zero", "/dev/null", "environ.png"] {
            let refused = read(&place, path, false).unwrap_err();
            assert!(refused.starts_with("E1012 "), "{path}: {refused}");
        }
        assert_eq!(read(&place, "/proc/version", false).unwrap_err(), "E1012 forbidden");
    }

    #[test]
    fn a_pipe_is_no_file_and_nobody_waits_for_it() {
        let place = place();
        let pipe = place.root.join("pipe.png");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert_eq!(read(&place, "pipe.png", false).unwrap_err(), "E1012 not_a_file");
    }

    #[test]
    fn what_was_opened_is_looked_at_again() {
        let place = place();
        let files = MediaFiles::within_roots(std::slice::from_ref(&place.root));
        let read = |path: &str, meanwhile: &dyn Fn()| {
            told(files.read_with(path, Some(&place.root), true, 100, meanwhile))
        };
        // The file becomes a link, which is not followed.
        let file = place.root.join("below/a.png");
        let exchanged = read("below/a.png", &|| {
            fs::remove_file(&file).unwrap();
            symlink(place.outside.join("secret.png"), &file).unwrap();
        });
        assert_eq!(exchanged.unwrap_err(), "E1012 unreadable");
        // A folder in the path becomes a link, so the opened file is outside the root.
        fs::create_dir(place.root.join("way")).unwrap();
        fs::write(place.root.join("way/secret.png"), b"harmless").unwrap();
        let exchanged = read("way/secret.png", &|| {
            fs::remove_dir_all(place.root.join("way")).unwrap();
            symlink(&place.outside, place.root.join("way")).unwrap();
        });
        assert_eq!(exchanged.unwrap_err(), "E4007 ");
    }

    #[test]
    fn sec_002_a_file_is_cut_off_at_the_limit() {
        let place = place();
        fs::write(place.root.join("large"), vec![0; 101]).unwrap();
        fs::write(place.root.join("full"), vec![0; 100]).unwrap();
        assert_eq!(read(&place, "large", false).unwrap_err(), "E1011 ");
        assert_eq!(read(&place, "full", false).unwrap().len(), 100);
    }
}
