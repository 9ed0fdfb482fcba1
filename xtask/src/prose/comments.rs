//! Reads the comments outside of Rust: TypeScript, Svelte, CSS, Python, TOML, YAML and shell scripts. Knows comments that
//! begin a line and doc strings; a comment after code is not read.

use std::fs;
use std::path::{Path, PathBuf};

/// The folders with such files. `modules/` belongs to the authors of modules, and models read a part of it.
const FOLDERS: [&str; 5] = [".ci", "crates", "packaging", "studio", "typescript"];
/// Folders of built, generated or installed files.
const SKIPPED: [&str; 7] = ["dist", "expected", "node_modules", "out", "snapshots", "target", "__pycache__"];
/// Files that are generated from Rust types, whose descriptions are measured there.
const GENERATED: [&str; 1] = ["wireTypes.ts"];
/// The extensions of such files. Scripts have none.
const EXTENSIONS: [&str; 15] = [
    "", "conf", "css", "env", "js", "mjs", "py", "pyi", "service", "sh", "svelte", "toml", "ts", "yaml",
    "yml",
];
/// The marks that begin a comment.
const MARKS: [&str; 9] = ["<!--", "///", "//!", "//", "/**", "/*", "* ", "# ", "\"\"\""];
/// The marks that end one.
const ENDS: [&str; 3] = ["*/", "-->", "\"\"\""];

/// The files with comments.
pub(super) fn files(root: &Path) -> Vec<PathBuf> {
    fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() {
                if !SKIPPED.contains(&name.as_str()) {
                    walk(&path, files);
                }
                continue;
            }
            let extension = path.extension().unwrap_or_default().to_string_lossy();
            if EXTENSIONS.contains(&extension.as_ref()) && !GENERATED.contains(&name.as_str()) {
                files.push(path);
            }
        }
    }
    let mut files: Vec<PathBuf> = ["Cargo.toml", "deny.toml"].map(|file| root.join(file)).into();
    for folder in FOLDERS {
        walk(&root.join(folder), &mut files);
    }
    files.sort();
    files
}

/// The text of the comments, with line numbers.
pub(super) fn lines(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    // The open literal in three quotes, if any: true for a doc string, false for a value.
    let mut open: Option<bool> = None;
    for (at, line) in text.lines().map(str::trim).enumerate() {
        let body = MARKS.iter().find_map(|mark| line.strip_prefix(mark));
        let is_read = open.unwrap_or(body.is_some());
        if line.matches("\"\"\"").count() % 2 == 1 {
            open = open.is_none().then(|| line.starts_with("\"\"\""));
        }
        if is_read {
            let body = body.unwrap_or(line);
            let end = ENDS.iter().find_map(|end| body.strip_suffix(end));
            found.push((at + 1, end.unwrap_or(body).trim()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_lines_that_begin_with_a_mark() {
        let script = "#!/bin/sh\n# One\nx=1 # no\n// Two\n/** Three */\n<!-- Four -->\n * Five\n#id {\n";
        assert_eq!(lines(script), [(2, "One"), (4, "Two"), (5, "Three"), (6, "Four"), (7, "Five")]);
    }

    #[test]
    fn doc_strings_go_on_to_their_end() {
        let python = "\"\"\"One\ntwo\n\nthree.\"\"\"\nx = 1\n    \"\"\"Four.\"\"\"\nn = 2\n\"\"\"\nFive\n\"\"\"\ny = 3\nz = \"\"\"\n# no\n\"\"\"\n# Six\n";
        let expected = [
            (1, "One"),
            (2, "two"),
            (3, ""),
            (4, "three."),
            (6, "Four."),
            (8, ""),
            (9, "Five"),
            (10, ""),
            (15, "Six"),
        ];
        assert_eq!(lines(python), expected);
    }
}
