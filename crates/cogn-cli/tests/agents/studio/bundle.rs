//! The committed page is exactly what its sources build, byte for byte, and it is small. The decompressed contents are
//! compared, because another version of zlib compresses to other bytes.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use cognitive_testkit::{Lack, skip};
use flate2::read::GzDecoder;

use super::stage::{packages, root};

/// The maximum compressed size of all files of the page.
const MOST: u64 = 250 * 1024;

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.path().is_dir() {
            found.extend(files(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}

/// Returns the decompressed files of a built page by their paths.
fn unpacked(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let read = |path: PathBuf| {
        let bytes = fs::read(&path).unwrap();
        let name = path.strip_prefix(folder).unwrap().display().to_string();
        let Some(name) = name.strip_suffix(".gz").map(str::to_owned) else { return (name, bytes) };
        let mut text = Vec::new();
        GzDecoder::new(bytes.as_slice()).read_to_end(&mut text).unwrap();
        (name, text)
    };
    files(folder).into_iter().map(read).collect()
}

/// Returns the committed page.
pub(crate) fn committed() -> BTreeMap<String, Vec<u8>> {
    unpacked(&root().join("studio/dist"))
}

#[test]
fn the_committed_page_is_what_its_sources_make() {
    let Some(packages) = packages() else { return };
    if Command::new("npm").arg("--version").output().is_err() {
        return skip(Lack::Node);
    }
    let folder = tempfile::tempdir().unwrap();
    let mut build = Command::new(root().join("studio/build"));
    build.arg(folder.path()).env("COGN_STUDIO_PACKAGES", packages);
    let output = build.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let (made, committed) = (unpacked(folder.path()), committed());
    let names = |page: &BTreeMap<String, Vec<u8>>| page.keys().cloned().collect::<Vec<_>>();
    assert_eq!(
        names(&made),
        names(&committed),
        "`studio/build` makes other files; run it and commit `studio/dist`"
    );
    for (name, bytes) in &made {
        assert!(committed[name] == *bytes, "`studio/build` makes another file; run it and commit: {name}");
    }
}

#[test]
fn the_page_is_small() {
    let sizes = files(&root().join("studio/dist")).into_iter().map(|path| {
        let is_packed = path.extension().is_some_and(|kind| kind == "gz");
        if is_packed { fs::metadata(path).unwrap().len() } else { 0 }
    });
    let total: u64 = sizes.sum();
    assert!(total > 0 && total <= MOST, "{total} bytes");
}

/// The address of a registry in the lock file would bind every build to that host.
#[test]
fn the_lock_file_names_no_registry() {
    let lock = fs::read_to_string(root().join("studio/package-lock.json")).unwrap();
    assert!(!lock.contains("\"resolved\"") && !lock.contains("https://reg"), "`npm install` wrote addresses");
}
