//! The files that one command reads and writes, compared before it starts. Two outputs in one file, or an output that
//! replaces an input, would destroy paid answers.
//!
//! Files are compared, not names: links, other spellings of a folder and files that do not exist yet are resolved.
//! Devices and pipes are exempt, since any number of outputs may go to `/dev/null`.

use std::fs;
use std::path::{Component, Path, PathBuf};

use cognitive_contract::{ErrorCode, Failure};

use crate::platform;

/// The most links in a row that are followed; the system follows as many. Without it, links in a circle would never
/// end.
const LINKS: usize = 40;

/// The use that a command makes of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathUse {
    /// The command reads this file.
    Read,
    /// The command writes this file, or into this folder.
    Write,
    /// The program keeps its own files in this folder, which must contain nothing else.
    Own,
}

/// A path of a command line.
#[derive(Debug)]
pub(crate) struct NamedPath<'a> {
    /// The name in messages, such as `` `-o` ``.
    what: &'a str,
    path: &'a Path,
    used: PathUse,
}

impl<'a> NamedPath<'a> {
    /// A file to read. `-` is stdin, not a file.
    pub(crate) fn read(what: &'a str, path: Option<&'a Path>) -> Option<Self> {
        Self::new(what, path.filter(|path| path.as_os_str() != "-"), PathUse::Read)
    }

    /// A file to write.
    pub(crate) fn write(what: &'a str, path: Option<&'a Path>) -> Option<Self> {
        Self::new(what, path, PathUse::Write)
    }

    /// A folder that only the command uses.
    pub(crate) fn folder(what: &'a str, path: Option<&'a Path>) -> Option<Self> {
        Self::new(what, path, PathUse::Own)
    }

    fn new(what: &'a str, path: Option<&'a Path>, used: PathUse) -> Option<Self> {
        path.map(|path| Self { what, path, used })
    }
}

/// Refuses a command that would write one file twice, or overwrite its input.
pub(crate) fn refuse_collisions<'a>(
    named: impl IntoIterator<Item = Option<NamedPath<'a>>>,
) -> Result<(), Failure> {
    let named: Vec<NamedPath<'_>> = named.into_iter().flatten().collect();
    for (at, second) in named.iter().enumerate() {
        for first in named.iter().take(at) {
            if let Some(message) = collision(first, second) {
                let output = [second, first].into_iter().find(|named| named.used == PathUse::Write);
                let hint = match output {
                    Some(output) => format!("Name another output with {}", output.what),
                    None => "Name another output, or move the file".to_owned(),
                };
                return Err(Failure::new(ErrorCode::InvalidInput, message).suggest(hint));
            }
        }
    }
    Ok(())
}

fn collision(first: &NamedPath<'_>, second: &NamedPath<'_>) -> Option<String> {
    let paths = if first.path == second.path {
        format!("`{}`", second.path.display())
    } else {
        format!("`{}`, `{}`", first.path.display(), second.path.display())
    };
    match (first.used, second.used) {
        (PathUse::Read, PathUse::Read) | (PathUse::Own, PathUse::Own) => None,
        (PathUse::Own, _) => is_inside(second.path, first.path)
            .then(|| format!("{} is in the folder of {}: {paths}", second.what, first.what)),
        (_, PathUse::Own) => is_inside(first.path, second.path)
            .then(|| format!("{} is in the folder of {}: {paths}", first.what, second.what)),
        _ => is_same(first.path, second.path)
            .then(|| format!("{} and {} are the same file: {paths}", first.what, second.what)),
    }
}

/// Returns whether two paths lead to one file or folder, which need not exist yet.
pub(crate) fn is_same(first: &Path, second: &Path) -> bool {
    match (identity(first), identity(second)) {
        (PathIdentity::Place(first), PathIdentity::Place(second)) => {
            if platform::folds_case() {
                first.to_string_lossy().to_lowercase() == second.to_string_lossy().to_lowercase()
            } else {
                first == second
            }
        }
        (PathIdentity::File(first), PathIdentity::File(second)) => first == second,
        _ => false,
    }
}

fn is_inside(path: &Path, folder: &Path) -> bool {
    resolve_path(path).starts_with(resolve_path(folder))
}

/// The identity of a file.
enum PathIdentity {
    /// The device and the inode number of an existing file: its hard links share them.
    File((u64, u64)),
    /// The path of a file that does not exist yet, or of any file on a system without inode numbers.
    Place(PathBuf),
    /// A device or a pipe.
    Stream,
}

fn identity(path: &Path) -> PathIdentity {
    match fs::metadata(path) {
        Ok(there) if !there.is_file() && !there.is_dir() => PathIdentity::Stream,
        Ok(there) => platform::file_id(&there)
            .map_or_else(|| PathIdentity::Place(resolve_path(path)), PathIdentity::File),
        Err(_) => PathIdentity::Place(resolve_path(path)),
    }
}

/// Resolves a path as far as it exists: the real path of its deepest existing folder, and the rest as written.
fn resolve_path(path: &Path) -> PathBuf {
    let mut path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // A file that is opened through a link that leads nowhere appears where the link leads.
    for _ in 0..LINKS {
        let Ok(target) = fs::read_link(&path) else { break };
        path = path.parent().map_or_else(|| target.clone(), |folder| folder.join(&target));
    }
    let (mut parts, mut missing) = (path.components(), Vec::new());
    loop {
        if let Ok(real) = parts.as_path().canonicalize() {
            return missing.into_iter().rev().fold(real, |mut place, part| {
                match part {
                    Component::ParentDir => drop(place.pop()),
                    Component::CurDir => {}
                    part => place.push(part),
                }
                place
            });
        }
        match parts.next_back() {
            Some(part) => missing.push(part),
            None => return path,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(files: &[(&str, &Path, PathUse)]) -> Option<Failure> {
        let named = files.iter().map(|(what, path, used)| NamedPath::new(what, Some(path), *used));
        refuse_collisions(named).err()
    }

    #[test]
    fn what_is_written_twice_or_over_an_input_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        let (read, write) = (PathUse::Read, PathUse::Write);
        assert!(refused(&[("a", &one, write), ("b", &two, write), ("c", &two.join("x"), write)]).is_none());
        assert!(refused(&[("a", &one, read), ("b", &one, read)]).is_none());
        let failure = refused(&[("the rows", &one, read), ("`-o`", &one, write)]).unwrap();
        assert_eq!(failure.message(), format!("the rows and `-o` are the same file: `{}`", one.display()));
        assert_eq!(failure.suggestion(), Some("Name another output with `-o`"));
        let failure = refused(&[("`-o`", &one, write), ("`--reply`", &one, read)]).unwrap();
        assert_eq!(failure.suggestion(), Some("Name another output with `-o`"));
    }

    #[test]
    fn spellings_of_one_place_are_one_place_before_and_after_it_is_there() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        let plain = dir.path().join("new");
        let others = ["./new", "sub/../new", "sub/./../new", "none/../new"];
        for other in others {
            assert!(is_same(&plain, &dir.path().join(other)), "{other}");
        }
        assert!(!is_same(&plain, &dir.path().join("sub/new")));
        fs::write(&plain, "").unwrap();
        assert!(is_same(&plain, &dir.path().join("sub/../new")));
        assert!(!is_same(&plain, &dir.path().join("sub/new")));
    }

    #[cfg(unix)]
    #[test]
    fn links_lead_to_one_file() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("sub")).unwrap();
        symlink("sub", at("folder")).unwrap();
        assert!(is_same(&at("sub/new"), &at("folder/new")), "a file that is not there yet");
        symlink("new", at("first")).unwrap();
        symlink("first", at("second")).unwrap();
        assert!(is_same(&at("new"), &at("second")), "links that lead nowhere yet");
        symlink("ring", at("ring")).unwrap();
        assert!(!is_same(&at("new"), &at("ring")));
        fs::write(at("new"), "").unwrap();
        fs::hard_link(at("new"), at("sub/hard")).unwrap();
        assert!(is_same(&at("second"), &at("folder/hard")));
        assert!(!is_same(Path::new("/dev/null"), Path::new("/dev/null")), "any number of outputs");
    }

    #[test]
    fn nothing_else_is_written_into_a_folder_of_the_command() {
        let dir = tempfile::tempdir().unwrap();
        let (own, beside) = (dir.path().join("o.work"), dir.path().join("o"));
        let file = dir.path().join("./o.work/journal");
        assert!(refused(&[("a", &own, PathUse::Own), ("b", &beside, PathUse::Write)]).is_none());
        for used in [PathUse::Read, PathUse::Write] {
            let failure = refused(&[("b", &file, used), ("the batch", &own, PathUse::Own)]).unwrap();
            assert!(failure.message().starts_with("b is in the folder of the batch: "), "{failure:?}");
            assert!(failure.suggestion().unwrap().starts_with("Name another output"), "{failure:?}");
        }
    }
}
