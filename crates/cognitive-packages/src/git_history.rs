//! Reads the history of a folder with the program `git`: the commits that changed it, and its files in each. Only
//! reads, uses no network, and runs nothing that a repository may configure: no hook, no filter, no signature check. A
//! folder without history yields an empty result, not an error.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use cognitive_contract::text::{cut, escape_controls};

/// Git configuration for every command.
const SETTINGS: [&str; 6] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "log.showSignature=false",
    "protocol.allow=never",
    // A setting for one protocol wins over the line above, also one in the repository's own configuration. This
    // protocol starts any program.
    "protocol.ext.allow=never",
    "gc.auto=0",
];
/// The number of digits of a commit hash in results.
const DIGITS: usize = 12;
/// The maximum number of files in a folder, and of bytes in all of them. A commit may contain anything, and its files
/// are held in memory.
const MAX_FILES: usize = 1_000;
const MAX_BYTES: u64 = 16 << 20;

/// A commit that changed a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderCommit {
    /// The first digits of its hash.
    pub id: String,
    /// The commit time, in RFC 3339.
    pub at: String,
    /// The first line of the commit message.
    pub subject: String,
}

/// The commits that changed a folder, newest first.
#[must_use]
pub fn commits(folder: &Path, most: usize) -> Vec<FolderCommit> {
    let most = format!("--max-count={most}");
    let format = "--format=%H%x09%cI%x09%s";
    let said = git(folder, &["log", "--no-color", "--no-show-signature", &most, format, "--", "."], "");
    let said = String::from_utf8_lossy(&said.unwrap_or_default()).into_owned();
    let commit = |line: &str| {
        let mut parts = line.splitn(3, '\t');
        let (hash, at, subject) = (parts.next()?, parts.next()?, parts.next()?);
        let id = hash.get(..DIGITS).filter(|id| is_hexadecimal(id))?.to_owned();
        Some(FolderCommit {
            id,
            at: cut(at, 40).to_owned(),
            subject: escape_controls(cut(subject, 200)).into_owned(),
        })
    };
    said.lines().filter_map(commit).collect()
}

/// The files of a folder in a commit, by path; `None` if there are none or more than a module may have. Omits links,
/// submodules and hidden files.
#[must_use]
pub fn files_at(folder: &Path, commit: &str) -> Option<BTreeMap<String, Vec<u8>>> {
    if commit.len() != DIGITS || !is_hexadecimal(commit) {
        return None;
    }
    let listed = git(folder, &["ls-tree", "-r", "-z", "-l", commit, "--", "."], "")?;
    let listed = String::from_utf8(listed).ok()?;
    let (mut blobs, mut total) = (Vec::new(), 0_u64);
    for line in listed.split('\0').filter(|line| !line.is_empty()) {
        let (about, path) = line.split_once('\t')?;
        let mut about = about.split_ascii_whitespace();
        let (mode, _, hash, size) = (about.next()?, about.next()?, about.next()?, about.next()?);
        let is_hidden = path.split('/').any(|part| part.starts_with('.'));
        if !mode.starts_with("100") || is_hidden {
            continue;
        }
        total += size.parse::<u64>().ok()?;
        blobs.push((path.to_owned(), hash.to_owned()));
    }
    if blobs.is_empty() || blobs.len() > MAX_FILES || total > MAX_BYTES {
        return None;
    }
    let wanted: String = blobs.iter().flat_map(|(_, hash)| [hash.as_str(), "\n"]).collect();
    let printed = git(folder, &["cat-file", "--batch"], &wanted)?;
    let mut bytes = printed.as_slice();
    let mut files = BTreeMap::new();
    for (path, _) in blobs {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let size = String::from_utf8_lossy(bytes.get(..end)?).rsplit(' ').next()?.parse::<usize>().ok()?;
        let text = bytes.get(end + 1..end + 1 + size)?;
        files.insert(path, text.to_vec());
        bytes = bytes.get(end + 2 + size..)?;
    }
    Some(files)
}

fn is_hexadecimal(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The output of git; `None` if it fails.
fn git(folder: &Path, arguments: &[&str], input: &str) -> Option<Vec<u8>> {
    let mut command = Command::new("git");
    for setting in SETTINGS {
        command.args(["-c", setting]);
    }
    command
        .args(arguments)
        .current_dir(folder)
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let mut pipe = child.stdin.take()?;
    let input = input.to_owned();
    // Written in a separate thread: git answers while it reads, so sequential I/O could deadlock.
    let writer = std::thread::spawn(move || pipe.write_all(input.as_bytes()));
    let output = child.wait_with_output().ok()?;
    let _git_may_have_read_enough = writer.join();
    output.status.success().then_some(output.stdout)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn told(folder: &Path, arguments: &[&str]) {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@a.example", "-c", "commit.gpgSign=false"]);
        let output = command.args(arguments).current_dir(folder).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    #[test]
    fn a_repository_cannot_allow_a_protocol_that_starts_programs() {
        let dir = tempfile::tempdir().unwrap();
        told(dir.path(), &["init", "--quiet", "."]);
        told(dir.path(), &["config", "protocol.ext.allow", "always"]);
        let allowed = git(dir.path(), &["config", "--get", "protocol.ext.allow"], "").unwrap();
        assert_eq!(String::from_utf8_lossy(&allowed).trim(), "never");
    }

    #[test]
    fn a_folder_is_as_it_was_in_each_commit() {
        let dir = tempfile::tempdir().unwrap();
        let module = dir.path().join("modules/m");
        fs::create_dir_all(module.join("tests")).unwrap();
        assert_eq!(commits(&module, 9), [], "no repository, no past");
        told(dir.path(), &["init", "--quiet", "."]);
        assert_eq!(commits(&module, 9), [], "no commit, no past");
        for (prompt, said) in [("old", "First\n\nMore of it"), ("new", "Second \u{1b}[31m")] {
            fs::write(module.join("prompt.md"), prompt).unwrap();
            fs::write(module.join("tests/a.bin"), [0, 255, 10, 13]).unwrap();
            fs::write(module.join(".env"), "SECRET").unwrap();
            told(dir.path(), &["add", "--all"]);
            told(dir.path(), &["commit", "--quiet", "-m", said]);
        }
        fs::write(dir.path().join("elsewhere.txt"), "x").unwrap();
        told(dir.path(), &["add", "--all"]);
        told(dir.path(), &["commit", "--quiet", "-m", "Not about it"]);
        fs::write(module.join("prompt.md"), "not committed").unwrap();
        let all = commits(&module, 9);
        assert_eq!(all.len(), 2, "{all:?}");
        assert!(all[1].subject == "First" && !all[0].subject.contains('\u{1b}'), "{all:?}");
        assert_eq!(commits(&module, 1).len(), 1);
        let prompt = |commit: &FolderCommit| {
            let files = files_at(&module, &commit.id).unwrap();
            assert_eq!(files.keys().collect::<Vec<_>>(), ["prompt.md", "tests/a.bin"]);
            assert_eq!(files["tests/a.bin"], [0, 255, 10, 13]);
            String::from_utf8(files["prompt.md"].clone()).unwrap()
        };
        assert_eq!((prompt(&all[0]), prompt(&all[1])), ("new".to_owned(), "old".to_owned()));
        for none in ["HEAD", "--help", "0123456789ab", "0123456789abc", ""] {
            assert_eq!(files_at(&module, none), None, "{none}");
        }
    }
}
