//! Lists the bundled modules below `modules/` as `include_str!` lines, so that the binary carries them.
//! Reads the tree and nothing else; a module needs no registration beyond its folder.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?).join("../../modules");
    let root = root.canonicalize()?;
    let mut files = Vec::new();
    walk(&root, &mut files)?;
    files.sort();
    let mut table = String::from("[\n");
    for file in &files {
        let name = file.strip_prefix(&root).map_err(io::Error::other)?;
        let name = name.to_string_lossy().replace('\\', "/");
        let Some((module, path)) = name.split_once('/') else { continue };
        let full = file.to_string_lossy();
        writeln!(table, "    ({module:?}, {path:?}, include_str!({full:?})),").map_err(io::Error::other)?;
    }
    table.push_str("]\n");
    let out = PathBuf::from(env::var("OUT_DIR").map_err(io::Error::other)?);
    fs::write(out.join("bundled_files.rs"), table)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    emit(&format!("cargo::rerun-if-changed={}", folder.display()));
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { walk(&path, files)? } else { files.push(path) }
    }
    Ok(())
}

fn emit(line: &str) {
    println!("{line}");
}
