//! The replies that the bundled modules have in their golden tests.

use std::fs;
use std::path::{Path, PathBuf};

/// The first line of each module's prompt, which identifies it, and the reply of its first successful golden test. Modules without one
/// are left out.
#[must_use]
pub fn bundled_replies(modules: &Path) -> Vec<(String, String)> {
    entries(modules).iter().filter_map(|folder| module_reply(folder)).collect()
}

fn module_reply(folder: &Path) -> Option<(String, String)> {
    let prompt = fs::read_to_string(folder.join("prompt.md")).ok()?;
    let name = folder.file_name()?.to_string_lossy();
    // The reply of a composition's part has its own file: `case.part.reply.txt`.
    let is_own = |path: &PathBuf| {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        file.strip_suffix(".reply.txt").is_some_and(|case| !case.contains('.') || case.ends_with(&*name))
    };
    let own = entries(&folder.join("tests")).into_iter().filter(is_own);
    let mut replies = own.filter_map(|path| fs::read_to_string(path).ok());
    let reply = replies.find(|text| text.replace(' ', "").contains("\"ok\":true"))?;
    Some((prompt.lines().next()?.to_owned(), reply))
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}
