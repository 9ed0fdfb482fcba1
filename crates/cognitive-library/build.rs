//! Lists the bundled modules below `modules/` as `include_str!` lines, which embed them in the binary.
//! Reads only this tree; a module needs no registration beyond its folder. Skips hidden entries, such as the cache of a
//! test runner.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The path from the folder of this crate. It is relative, so that checkouts with a shared target directory never see
/// each other's modules: cargo and the compiler both resolve it in the checkout that is being built.
const MODULES: &str = "../../modules";

fn main() -> io::Result<()> {
    emit(&format!("cargo::rerun-if-changed={MODULES}"));
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?).join(MODULES);
    let mut files = Vec::new();
    walk(&root, &mut files)?;
    files.sort();
    let mut table = String::from("[\n");
    for file in &files {
        let name = file.strip_prefix(&root).map_err(io::Error::other)?;
        let name = name.to_string_lossy().replace('\\', "/");
        let Some((module, path)) = name.split_once('/') else { continue };
        let full = format!("/{MODULES}/{name}");
        let text = format!("include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), {full:?}))");
        writeln!(table, "    ({module:?}, {path:?}, {text}),").map_err(io::Error::other)?;
    }
    table.push_str("]\n");
    let out = PathBuf::from(env::var("OUT_DIR").map_err(io::Error::other)?);
    fs::write(out.join("bundled_files.rs"), table)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')) {
            continue;
        }
        if path.is_dir() { walk(&path, files)? } else { files.push(path) }
    }
    Ok(())
}

fn emit(line: &str) {
    println!("{line}");
}
