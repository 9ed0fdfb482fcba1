//! The rules of this repository, as tests: file headers, correct maps and introductions, allowed dependencies, one
//! way to skip tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::{root, tests_index};

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn every_file_says_in_its_first_line_what_it_is_for() {
    for file in tests_index::rust_files(&root()) {
        let text = fs::read_to_string(&file).unwrap();
        let first = text.lines().find(|line| !line.starts_with("#!")).unwrap_or_default();
        assert!(first.starts_with("//! "), "{} starts without a word on what it is for", file.display());
    }
}

#[test]
fn no_file_grows_beyond_what_one_can_read() {
    for file in tests_index::rust_files(&root()) {
        let lines = fs::read_to_string(&file).unwrap().lines().count();
        assert!(lines <= 600, "{} has {lines} lines; split it", file.display());
    }
}

// The list of stages is a table of contents; longer code belongs in a stage.
#[test]
fn the_pipeline_fits_two_screens() {
    let lines = read("crates/cognitive-runtime/src/pipeline.rs").lines().count();
    assert!(lines <= 120, "pipeline.rs has {lines} lines; move work into a stage");
}

/// The names and parameter counts, without `self`, of all functions in a text up to its tests.
fn parameter_counts(text: &str) -> Vec<(String, usize)> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = lines.collect::<Vec<_>>().join("\n");
    code.split("fn ").skip(1).filter_map(counted).collect()
}

/// Parses one function, from its name on.
fn counted(rest: &str) -> Option<(String, usize)> {
    let name: String = rest.chars().take_while(|each| each.is_alphanumeric() || *each == '_').collect();
    let after = rest.strip_prefix(name.as_str())?;
    // Generics may precede the list; `fn(` is a type.
    let start = if after.starts_with('<') { after.find(">(")? + 1 } else { 0 };
    let list = after.get(start..)?.strip_prefix('(').filter(|_| !name.is_empty())?;
    let (mut depth, mut parameters, mut current) = (0_i32, Vec::new(), String::new());
    for (at, each) in list.char_indices() {
        match each {
            ')' if depth == 0 => break,
            ',' if depth == 0 => parameters.push(std::mem::take(&mut current)),
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            '>' if !list.get(..at).is_some_and(|before| before.ends_with('-')) => depth -= 1,
            _ => {}
        }
        current.push(each);
    }
    parameters.push(current);
    let is_self = |parameter: &str| parameter.trim_end().ends_with("self") && !parameter.contains(':');
    let given = parameters.iter().map(|each| each.trim_start_matches(',').trim());
    Some((name, given.filter(|each| !each.is_empty() && !is_self(each)).count()))
}

// A function with more than five parameters needs a type for them.
#[test]
fn no_function_of_the_runtime_has_more_than_five_parameters() {
    let sample = "fn a<F: Fn(u8) -> u8>(&mut self, b: (u8, u8), c: &dyn Fn(u8) -> Map<u8, u8>,) {} fn d() {}";
    assert_eq!(parameter_counts(sample), [("a".to_owned(), 2), ("d".to_owned(), 0)]);
    let mut seen = 0;
    let folder = root().join("crates/cognitive-runtime/src");
    for file in tests_index::rust_files(&root()).into_iter().filter(|file| file.starts_with(&folder)) {
        for (name, parameters) in parameter_counts(&fs::read_to_string(&file).unwrap()) {
            assert!(parameters <= 5, "{}: {name} has {parameters} parameters", file.display());
            seen += 1;
        }
    }
    assert!(seen > 300, "only {seen} functions were found; has the check gone blind?");
}

/// The texts in backticks that look like paths of this repository.
fn paths_in(text: &str) -> Vec<&str> {
    let quoted = text.split('`').skip(1).step_by(2);
    let tops = ["crates/", "conformance/", "modules/", "docs/", "fuzz/", "xtask/"];
    quoted
        .filter(|word| tops.iter().any(|top| word.starts_with(top)) && !word.contains([' ', '*', '{']))
        .collect()
}

#[test]
fn maps_name_only_what_exists() {
    for page in ["ARCHITECTURE.md", "README.md", "CONTRIBUTING.md"] {
        let text = read(page);
        let paths = paths_in(&text);
        for path in &paths {
            assert!(root().join(path).exists(), "{page} names {path}, which does not exist");
        }
        if page == "ARCHITECTURE.md" {
            assert!(paths.len() > 30, "the map names {} paths; has the check gone blind?", paths.len());
        }
    }
}

/// The section `# Modules` in the introduction of a crate, without comment marks.
fn modules_section(text: &str) -> String {
    let lines =
        text.lines().skip_while(|line| line.starts_with("#!")).map_while(|line| line.strip_prefix("//!"));
    let lines =
        lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).skip_while(|line| *line != "# Modules");
    lines.skip(1).take_while(|line| !line.starts_with("# ")).collect::<Vec<_>>().join("\n")
}

/// The modules and files that such a section names: `run`, `stages::call`, `bin/cog/main.rs`. Other words in backticks,
/// such as types, options and pages, contain another kind of character.
fn modules_in(section: &str) -> Vec<&str> {
    let is_module = |word: &str| {
        word.chars().all(|each| each.is_ascii_lowercase() || each.is_ascii_digit() || "_:".contains(each))
    };
    let words = section.split('`').skip(1).step_by(2);
    words
        .filter(|word| {
            is_module(word) || Path::new(word).extension().is_some_and(|extension| extension == "rs")
        })
        .collect()
}

/// Returns whether a name stands for a module or file of a crate, or for another crate.
fn module_exists(source: &Path, name: &str) -> bool {
    let path = name.replace("::", "/");
    let files = [path.clone(), format!("{path}.rs"), format!("{path}/mod.rs")];
    files.iter().any(|file| source.join(file).is_file())
        || root().join("crates").join(name.replace('_', "-")).is_dir()
}

// A reader finds every public module of a crate in its introduction, and nothing that is gone.
#[test]
fn each_crate_introduces_its_modules() {
    let sample = "//! A crate of `gone`.\n//!\n//! # Modules\n//!\n//! - `run`, [`Host`], [`ids`](mod@ids),\n//!   `a::b`: \
                  `docs/x.md`.\n//!\n//! # Features\n//!\n//! `net`\n\npub mod run;\n";
    assert_eq!(modules_in(&modules_section(sample)), ["run", "ids", "a::b"]);
    let mut named = 0;
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let source = entry.unwrap().path().join("src");
        let text = fs::read_to_string(source.join("lib.rs")).unwrap();
        let section = modules_section(&text);
        let modules = modules_in(&section);
        for module in &modules {
            let exists = module_exists(&source, module);
            assert!(exists, "{}/lib.rs introduces `{module}`, which does not exist", source.display());
        }
        let declared = text.lines().filter_map(|line| line.strip_suffix(';')?.split_once("mod "));
        assert!(
            !modules.is_empty() || declared.clone().next().is_none(),
            "{}/lib.rs has no section `# Modules`",
            source.display()
        );
        for (_, module) in declared.filter(|(before, _)| *before == "pub ") {
            assert!(modules.contains(&module), "{}/lib.rs does not introduce `{module}`", source.display());
        }
        named += modules.len();
    }
    assert!(named > 250, "only {named} modules were found; has the check gone blind?");
}

/// The link targets of a page, without those on other hosts and within the page.
fn links_in(text: &str) -> Vec<&str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let paths = targets.map(|(target, _)| target.split('#').next().unwrap_or_default());
    paths.filter(|path| !path.is_empty() && !path.contains(':')).collect()
}

#[test]
fn links_lead_somewhere() {
    let docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|page| root().join(page));
    let mut followed = 0;
    for page in docs.filter(|path| path.extension().is_some_and(|end| end == "md")).chain(pages) {
        let text = fs::read_to_string(&page).unwrap();
        for link in links_in(&text) {
            let target = page.parent().unwrap().join(link);
            assert!(target.exists(), "{} links to {link}, which does not exist", page.display());
            followed += 1;
        }
    }
    assert!(followed > 20, "only {followed} links were found; has the check gone blind?");
}

/// The allowed dependencies of each crate within the workspace.
const ARROWS: [(&str, &[&str]); 24] = [
    ("cognitive-batch", &["cognitive-contract", "cognitive-ports", "cognitive-runtime", "cognitive-schema"]),
    ("cognitive-contract", &["cognitive-schema"]),
    ("cognitive-http", &["cognitive-contract", "cognitive-mcp", "cognitive-ports", "cognitive-runtime"]),
    ("cognitive-import", &["cognitive-contract", "cognitive-library"]),
    ("cognitive-library", &["cognitive-contract", "cognitive-schema"]),
    ("cognitive-llama", &[]),
    ("cognitive-local", &["cognitive-contract", "cognitive-llama", "cognitive-schema"]),
    ("cognitive-mcp", &["cognitive-contract", "cognitive-runtime", "cognitive-schema"]),
    ("cognitive-media", &["cognitive-contract"]),
    ("cognitive-net", &["cognitive-contract", "cognitive-ports", "cognitive-schema"]),
    ("cognitive-packages", &["cognitive-contract", "cognitive-library"]),
    ("cognitive-ports", &["cognitive-contract"]),
    ("cognitive-runtime", &["cognitive-contract", "cognitive-ports", "cognitive-schema"]),
    ("cognitive-schema", &[]),
    ("cognitive-store", &["cognitive-contract", "cognitive-ports"]),
    ("cognitive-testkit", &["cognitive-contract", "cognitive-library", "cognitive-schema"]),
    ("cogn", &["cognitive-contract", "cognitive-setup"]),
    (
        "cognitive-setup",
        &[
            "cognitive-contract",
            "cognitive-library",
            "cognitive-local",
            "cognitive-media",
            "cognitive-net",
            "cognitive-ports",
            "cognitive-runtime",
            "cognitive-store",
        ],
    ),
    (
        "cogn-cli",
        &[
            "cognitive-batch",
            "cognitive-contract",
            "cognitive-http",
            "cognitive-import",
            "cognitive-library",
            "cognitive-mcp",
            "cognitive-media",
            "cognitive-net",
            "cognitive-packages",
            "cognitive-ports",
            "cognitive-runtime",
            "cognitive-schema",
            "cognitive-setup",
            "cognitive-store",
            "cognitive-testing",
            "cognitive-typegen",
        ],
    ),
    (
        "cogn-python",
        &[
            "cogn",
            "cognitive-contract",
            "cognitive-library",
            "cognitive-runtime",
            "cognitive-schema",
            "cognitive-setup",
            "cognitive-testing",
            "cognitive-typegen",
        ],
    ),
    (
        "cogn-restate",
        &["cogn", "cognitive-contract", "cognitive-ports", "cognitive-runtime", "cognitive-setup"],
    ),
    ("cognitive-typegen", &["cognitive-contract", "cognitive-schema"]),
    ("cognitive-wasm", &["cognitive-contract", "cognitive-schema"]),
    (
        "cognitive-testing",
        &[
            "cognitive-contract",
            "cognitive-library",
            "cognitive-media",
            "cognitive-net",
            "cognitive-ports",
            "cognitive-runtime",
            "cognitive-schema",
            "cognitive-setup",
        ],
    ),
];

/// Dependencies that would add I/O to a crate that must have none.
const DOORS: [(&str, &[&str]); 9] = [
    // Only the CLI writes to a terminal.
    ("cognitive-setup", &["clap", "anstream", "anstyle", "indicatif"]),
    ("cogn", &["clap", "anstream", "anstyle", "indicatif"]),
    ("cognitive-testing", &["clap", "anstream", "anstyle", "indicatif"]),
    // Its types are flags of the CLI, too; clap is optional there.
    ("cognitive-contract", &["tokio", "reqwest", "tempfile", "rustix", "anstream"]),
    ("cognitive-ports", &["tokio", "reqwest", "tempfile", "rustix", "clap", "anstream"]),
    ("cognitive-schema", &["tokio", "reqwest", "tempfile", "rustix", "clap", "anstream"]),
    ("cognitive-runtime", &["tokio", "reqwest", "tempfile", "rustix", "clap", "anstream"]),
    ("cognitive-wasm", &["tokio", "reqwest", "tempfile", "rustix", "clap", "anstream"]),
    ("cognitive-typegen", &["tokio", "reqwest", "tempfile", "rustix", "clap", "anstream"]),
];

fn dependencies(name: &str) -> Vec<String> {
    let manifest = read(&format!("crates/{name}/Cargo.toml"));
    let section =
        manifest.split("\n[").find(|section| section.starts_with("dependencies]")).unwrap_or_default();
    let names = section.lines().skip(1).filter_map(|line| line.split(['.', ' ', '=']).next());
    names.filter(|name| !name.is_empty() && !name.starts_with('#')).map(str::to_owned).collect()
}

#[test]
fn dependencies_point_in_one_direction() {
    let crates: BTreeMap<&str, &[&str]> = ARROWS.into();
    let on_disk = fs::read_dir(root().join("crates")).unwrap().count();
    assert_eq!(on_disk, crates.len(), "a new crate needs its line in ARROWS");
    for (name, allowed) in ARROWS {
        let found = dependencies(name);
        // The inference engine has no dependencies.
        assert_eq!(found.is_empty(), name == "cognitive-llama", "{name}: the manifest was not understood");
        for dependency in found.iter().filter(|each| crates.contains_key(each.as_str())) {
            assert!(allowed.contains(&dependency.as_str()), "{name} may not depend on {dependency}");
        }
    }
    for (name, doors) in DOORS {
        for dependency in dependencies(name) {
            assert!(
                !doors.contains(&dependency.as_str()),
                "{name} has no door, so it may not depend on {dependency}"
            );
        }
    }
}

// The compiler finds a page without a name, a sign, a letter or an import: `App.svelte` has them by page.
#[test]
fn each_studio_page_can_be_reached_and_is_explained() {
    let (router, app) = (read("studio/src/lib/router.svelte.ts"), read("studio/src/App.svelte"));
    let list = router.split_once("export const PAGES = [").unwrap().1.split(']').next().unwrap();
    let pages: BTreeSet<String> = list.split('"').skip(1).step_by(2).map(str::to_owned).collect();
    let files = fs::read_dir(root().join("studio/src/pages")).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "svelte"));
    let files: BTreeSet<String> =
        files.map(|path| path.file_stem().unwrap().to_string_lossy().to_lowercase()).collect();
    assert_eq!(pages, files, "PAGES of studio/src/lib/router.svelte.ts, and the files in studio/src/pages");
    let letters = app.split_once("const LETTERS").unwrap().1.split_once(" = {").unwrap().1;
    let letters = letters.split('}').next().unwrap().split('"').skip(1).step_by(2);
    assert_eq!(
        letters.collect::<BTreeSet<_>>().len(),
        pages.len(),
        "two pages have one letter in App.svelte"
    );
    let guide = read("docs/studio.md").to_lowercase();
    for page in &pages {
        assert!(guide.contains(&format!("**{page}.**")), "docs/studio.md does not explain the page `{page}`");
    }
}

// SCH-007: a bundled module that may have insights describes them.
#[test]
fn sch_007_bundled_modules_that_take_insights_describe_them() {
    let mut described = 0;
    for module in fs::read_dir(root().join("modules")).unwrap().map(|entry| entry.unwrap().path()) {
        let (Ok(manifest), Ok(schema)) =
            (fs::read_to_string(module.join("module.yaml")), fs::read_to_string(module.join("schema.json")))
        else {
            continue;
        };
        if manifest.contains("overflow:\n  enabled: true") {
            let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
            let data = &schema["data"]["properties"]["extensions"];
            assert_eq!(data["$ref"], "#/$defs/extensions", "{}", module.display());
            let items = &schema["$defs"]["extensions"]["properties"]["insights"]["items"];
            assert_eq!(
                items["required"],
                serde_json::json!(["text", "suggested_mapping"]),
                "{}",
                module.display()
            );
            described += 1;
        }
    }
    assert!(described >= 6, "only {described} modules were looked at");
}

// A test that skips itself in another way is neither counted nor named, and strict runs do not fail.
#[test]
fn tests_are_skipped_in_one_way() {
    for file in tests_index::rust_files(&root())
        .into_iter()
        .filter(|file| !file.to_string_lossy().contains("benches"))
    {
        let text = fs::read_to_string(&file).unwrap();
        assert!(
            !text.contains(concat!("println!(\"ski", "pped")),
            "{}: use `cognitive_testkit::skip`",
            file.display()
        );
    }
}

// Under `nohup` a program that is started in another way ignores the signal that a test ends it by.
#[test]
fn tests_start_the_program_in_one_way() {
    for file in tests_index::rust_files(&root())
        .into_iter()
        .filter(|file| !file.to_string_lossy().contains("benches"))
    {
        let text = fs::read_to_string(&file).unwrap();
        assert!(
            !text.contains(concat!("Command::new(env!(\"CARGO", "_BIN_EXE")),
            "{}: use `cognitive_testkit::command`",
            file.display()
        );
    }
}

#[test]
fn nothing_names_a_machine() {
    let words = [concat!("/wo", "rk/"), concat!("/ro", "ot/")];
    for part in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", ".ci/run", "Cargo.toml"] {
        assert!(!words.iter().any(|word| read(part).contains(word)), "{part}");
    }
    for file in tests_index::rust_files(Path::new(&root())) {
        let text = fs::read_to_string(&file).unwrap();
        assert!(!words.iter().any(|word| text.contains(word)), "{}", file.display());
    }
}
