//! Validates every module in README.md and the pages of `docs/`, and every module folder in the examples of the crates.
//! On a page, a module is three blocks, each after a text that names its file. A composition is a block that begins
//! with its key.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cognitive_library::yaml;
use cognitive_library::{Folder, Library, Mode, validate_with};

use crate::{Project, around, told};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn pages() -> Vec<(String, String)> {
    let mut files = vec![root().join("README.md")];
    files.extend(std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path()));
    files.retain(|file| file.extension().is_some_and(|ending| ending == "md"));
    files.sort();
    let read = |file: PathBuf| {
        (file.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(&file).unwrap())
    };
    files.into_iter().map(read).collect()
}

/// Fenced blocks, each with the last line of text before it.
fn blocks(page: &str) -> Vec<(String, String)> {
    let mut blocks: Vec<(String, String)> = Vec::new();
    let (mut before, mut open) = (String::new(), None::<String>);
    for line in page.lines() {
        match (&mut open, line.starts_with("```")) {
            (None, true) => open = Some(String::new()),
            (Some(text), true) => {
                blocks.push((std::mem::take(&mut before), std::mem::take(text)));
                open = None;
            }
            (Some(text), false) => text.extend([line, "\n"]),
            (None, false) if !line.trim().is_empty() => line.clone_into(&mut before),
            (None, false) => {}
        }
    }
    blocks
}

/// Folders of modules: `NAME/FILE` in backticks before a block.
fn modules(page: &str) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut modules: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for (before, text) in blocks(page) {
        let named = before.split('`').skip(1).step_by(2).find_map(|word| {
            let word = word.strip_prefix("cognitive/modules/").or(word.strip_prefix("./")).unwrap_or(word);
            let (module, file) = word.split_once('/')?;
            let known = ["module.yaml", "prompt.md", "schema.json"].contains(&file)
                || file.starts_with("tests/")
                || file.starts_with("examples/");
            known.then(|| (module.to_owned(), file.to_owned()))
        });
        if let Some((module, file)) = named {
            modules.entry(module).or_default().insert(file, text);
        }
    }
    modules
}

#[test]
fn every_module_of_the_documents_is_clean() {
    let library = Library::default();
    let mut names = Vec::new();
    for (page, text) in pages() {
        for (name, files) in modules(&text) {
            if !files.contains_key("module.yaml") || !files.contains_key("schema.json") {
                continue;
            }
            let bytes = files.into_iter().map(|(path, text)| (path, text.into_bytes())).collect();
            let report = validate_with(around(&library), &Folder::memory(&name, bytes), Mode::Standard);
            let found: Vec<_> = report.findings.iter().map(|each| told(each, &report)).collect();
            assert!(found.is_empty(), "{page}, {name}: {found:#?}");
            names.push(name);
        }
    }
    assert!(names.contains(&"ticket-triage".to_owned()), "{names:?}");
}

/// Puts each block that begins with `composition:` into a module with an open contract. Findings about modules that
/// exist only on the page are expected, and no others.
#[test]
fn every_composition_of_the_documents_is_clean() {
    let project = Project::new();
    let mut count = 0;
    for (page, text) in pages() {
        for (_, block) in blocks(&text).into_iter().filter(|(_, block)| block.starts_with("composition:")) {
            assert!(yaml::parse(&block).is_ok(), "{page}: {block}");
            let head = "name: shown\nversion: 1.0.0\nresponsibility: Shown.\ntier: decision\nexcludes: [x]\noverflow: {enabled: false}\n";
            let files = BTreeMap::from([
                ("module.yaml".to_owned(), format!("{head}enums: {{strategy: strict}}\n{block}")),
                ("prompt.md".to_owned(), "Answer with an envelope.\n".to_owned()),
                ("schema.json".to_owned(), r#"{"input": {"type": "object"}, "data": {"type": "object", "required": ["rationale"], "properties": {"rationale": {"type": "string"}}, "additionalProperties": true}, "meta": {"required": ["confidence", "risk", "explain"], "properties": {"explain": {"maxLength": 280}}}}"#.to_owned()),
            ]);
            let report = project.validate("shown", &files);
            let found = report.findings.iter().map(|each| told(each, &report));
            let found: Vec<_> = found.filter(|(_, words)| !words.contains("is not installed")).collect();
            assert!(found.is_empty(), "{page}: {found:#?}\n{block}");
            count += 1;
        }
    }
    assert!(count >= 3, "{count}");
}

#[test]
fn every_module_among_the_examples_of_the_crates_is_clean() {
    let library = Library::default();
    let mut open: Vec<PathBuf> = std::fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().path().join("examples"))
        .collect();
    while let Some(folder) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        open.extend(entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()));
        if folder.join("module.yaml").exists() {
            let report = validate_with(around(&library), &Folder::Disk(folder.clone()), Mode::Standard);
            let found: Vec<_> = report.findings.iter().map(|each| told(each, &report)).collect();
            assert!(found.is_empty(), "{}: {found:#?}", folder.display());
        }
    }
}
