//! The modules that come with the binary: the ordinary folders below `modules/`, held in memory.

use std::collections::BTreeMap;

use crate::folder::Folder;

/// Module, path inside it and content. Written by the build script.
static FILES: &[(&str, &str, &str)] = &include!(concat!(env!("OUT_DIR"), "/bundled_files.rs"));

/// The names of the bundled modules, sorted.
pub fn names() -> impl Iterator<Item = &'static str> {
    let mut last = None;
    FILES.iter().map(|(module, _, _)| *module).filter(move |module| last.replace(*module) != Some(*module))
}

/// Returns a bundled module by its name.
#[must_use]
pub fn find(name: &str) -> Option<Folder> {
    let of_module = FILES.iter().filter(|(module, _, _)| *module == name);
    let files: BTreeMap<String, Vec<u8>> =
        of_module.map(|(_, path, content)| ((*path).to_owned(), content.as_bytes().to_vec())).collect();
    (!files.is_empty()).then(|| Folder::memory(name, files))
}
