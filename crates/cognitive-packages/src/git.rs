//! Fetches a folder of a git repository with the program `git`. Disables hooks, submodules, symlinks, password prompts
//! and every protocol except the one of the address. Filters and credential helpers come only from the user's own git
//! configuration. The repository is bare, and the files of the one folder are read as an archive, so no untrusted
//! content is ever checked out.

use std::path::Path;
use std::process::{Command, Stdio};

use cognitive_contract::text::{cut, escape_controls};

use crate::PackageError;
use crate::archive::{self, ArchiveForm, Files};

/// Git configuration for every command.
const SETTINGS: [&str; 9] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.symlinks=false",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "protocol.allow=never",
    "protocol.ext.allow=never",
    "transfer.fsckObjects=true",
    "gc.auto=0",
];

/// The files of a folder, and their commit.
#[derive(Debug)]
pub struct GitFolder {
    /// The files.
    pub files: Files,
    /// The commit hash, 40 hexadecimal digits.
    pub commit: String,
}

/// Fetches one folder of a repository.
pub fn fetch(url: &str, path: &str, reference: Option<&str>) -> Result<GitFolder, PackageError> {
    let place =
        tempfile::tempdir().map_err(|error| PackageError::new(format!("cannot create a folder: {error}")))?;
    let run = |arguments: &[&str]| git(place.path(), url, arguments);
    run(&["init", "--quiet", "--bare", "."])?;
    run(&[
        "fetch",
        "--quiet",
        "--depth",
        "1",
        "--no-tags",
        "--no-recurse-submodules",
        "--",
        url,
        reference.unwrap_or("HEAD"),
    ])
    .map_err(|error| error.hint("Check the address and your access with `git ls-remote ADDRESS`"))?;
    let commit = run(&["rev-parse", "--verify", "FETCH_HEAD^{commit}"])?;
    let commit = String::from_utf8_lossy(&commit).trim().to_owned();
    // The archive of one folder has its files at the top. The prefix adds the top folder that every other package has.
    let tree = if path.is_empty() { commit.clone() } else { format!("{commit}:{path}") };
    let archive = run(&["archive", "--format=tar.gz", "--prefix=repository/", &tree])
        .map_err(|error| error.hint("Check that the repository has this folder"))?;
    let files = archive::read(&archive, &ArchiveForm::Repository(String::new()))?.files;
    Ok(GitFolder { files, commit })
}

fn git(place: &Path, url: &str, arguments: &[&str]) -> Result<Vec<u8>, PackageError> {
    let mut command = Command::new("git");
    for setting in SETTINGS {
        command.args(["-c", setting]);
    }
    command.args(["-c", &format!("protocol.{}.allow=always", protocol(url))]);
    command
        .args(arguments)
        .current_dir(place)
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_DIR", ".")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_EXTERNAL_DIFF")
        .stdin(Stdio::null());
    let output = command.output().map_err(|error| {
        PackageError::new(format!("cannot start `git`: {error}"))
            .hint("Install git, or use another source such as `github:` or an archive")
    })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    // The first error is the cause; later ones only follow from it.
    let is_complaint = |line: &&str| line.starts_with("error: ") || line.starts_with("fatal: ");
    let first = said.lines().find(is_complaint).or_else(|| said.lines().next_back());
    let said = first.unwrap_or("it gives no reason");
    Err(PackageError::new(format!("git failed: {}", escape_controls(cut(said.trim(), 300)))))
}

fn protocol(url: &str) -> &'static str {
    match url.split_once("://").map(|(scheme, _)| scheme) {
        Some("https") => "https",
        Some("file") => "file",
        _ => "ssh",
    }
}
