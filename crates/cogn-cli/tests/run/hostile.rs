//! Hostile modules: each ends in a clear error, writes nothing and downloads nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use cognitive_library::{Folder, Mode, validate};
use cognitive_testkit::Home;

use crate::home;

const MANIFEST: &str = "name: m\nversion: 1.0.0\nresponsibility: r\ntier: decision\nexcludes: [x]\n";
const SCHEMA: &str = r#"{"input": {"type": "object"}, "data": {"required": ["rationale"], "properties": {"rationale": {"type": "string"}}}, "$defs": {"extensions": {}}}"#;

/// A module folder on disk with one file replaced.
struct Bad {
    home: Home,
}

impl Bad {
    fn new(file: &str, content: &[u8]) -> Self {
        let home = home();
        for (name, text) in [("module.yaml", MANIFEST), ("schema.json", SCHEMA), ("prompt.md", "p")] {
            home.write(&format!("m/{name}"), text);
        }
        if !file.is_empty() {
            home.write(&format!("m/{file}"), content);
        }
        Self { home }
    }

    fn folder(&self) -> Folder {
        Folder::Disk(self.home.path("m"))
    }

    /// Returns the messages of all errors; the folder must be unchanged.
    fn errors(&self) -> Vec<String> {
        let before = tree(self.home.folder());
        let report = validate(&self.folder(), Mode::Standard);
        assert_eq!(before, tree(self.home.folder()), "validation wrote something");
        assert!(!report.valid(), "accepted");
        report.findings.iter().map(|finding| finding.message.clone()).collect()
    }
}

fn tree(root: &Path) -> BTreeMap<String, u64> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(root).unwrap().flatten() {
        let meta = entry.path().symlink_metadata().unwrap();
        files.insert(entry.path().display().to_string(), meta.len());
        if meta.is_dir() {
            files.extend(tree(&entry.path()));
        }
    }
    files
}

fn says(errors: &[String], words: &str) {
    assert!(errors.iter().any(|error| error.contains(words)), "nothing says `{words}`: {errors:?}");
}

#[test]
fn sec_020_billion_laughs() {
    let mut yaml = vec!["a0: &a0 [x, x, x, x, x, x, x, x, x, x]".to_owned()];
    for level in 1..12 {
        yaml.push(format!("a{level}: &a{level} [{}]", vec![format!("*a{}", level - 1); 10].join(", ")));
    }
    let errors = Bad::new("module.yaml", yaml.join("\n").as_bytes()).errors();
    assert_eq!(errors.len(), 1, "{errors:?}");
}

#[test]
fn a_huge_schema_is_not_even_read() {
    let bad = Bad::new("", b"");
    let file = fs::File::create(bad.home.path("m/schema.json")).unwrap();
    file.set_len(200 << 20).unwrap();
    says(&bad.errors(), "is larger than the limit of 8 MiB");
}

#[test]
fn deep_json_is_refused() {
    let deep = format!("{{\"input\": {}{}, \"data\": {{}}}}", "[".repeat(10_000), "]".repeat(10_000));
    says(&Bad::new("schema.json", deep.as_bytes()).errors(), "recursion limit exceeded");
}

#[cfg(unix)]
#[test]
fn sec_022_links_lead_nowhere_else() {
    let bad = Bad::new("", b"");
    let schema = bad.home.path("m/schema.json");
    fs::remove_file(&schema).unwrap();
    std::os::unix::fs::symlink("schema.json", &schema).unwrap();
    says(&bad.errors(), "cannot be read");
    fs::remove_file(&schema).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", &schema).unwrap();
    says(&bad.errors(), "leads out of the module through a link");
    let looped = bad.home.path("loop");
    std::os::unix::fs::symlink("loop", &looped).unwrap();
    assert!(!validate(&Folder::Disk(looped), Mode::Standard).valid());
}

#[cfg(unix)]
#[test]
fn a_pipe_is_not_opened() {
    let bad = Bad::new("", b"");
    let manifest = bad.home.path("m/module.yaml");
    fs::remove_file(&manifest).unwrap();
    assert!(Command::new("mkfifo").arg(&manifest).status().unwrap().success());
    says(&bad.errors(), "is not a regular file");
}

#[test]
fn other_encodings_are_refused() {
    says(&Bad::new("module.yaml", b"name: caf\xe9\n").errors(), "is not UTF-8 text (byte 9)");
    says(&Bad::new("schema.json", b"\xff\xfe{\x00}\x00").errors(), "is not UTF-8 text");
}

#[test]
fn sch_010_references_leave_neither_the_module_nor_the_machine() {
    for (reference, words) in [
        ("http://127.0.0.1:9/x.json", "`$ref` is never fetched"),
        ("https://example.com/x.json#/a", "`$ref` is never fetched"),
        ("file:///etc/passwd", "`$ref` is never fetched"),
        ("../secret.json", "`$ref` leaves the module"),
        ("/etc/passwd", "`$ref` leaves the module"),
        ("#/input", "refers to itself"),
        ("#/nowhere", "points to nothing"),
    ] {
        let schema = format!(r#"{{"input": {{"$ref": "{reference}"}}, "data": {{}}}}"#);
        says(&Bad::new("schema.json", schema.as_bytes()).errors(), words);
    }
}

#[test]
fn a_name_cannot_climb() {
    let manifest = MANIFEST.replace("name: m", "name: ../../m");
    says(&Bad::new("module.yaml", manifest.as_bytes()).errors(), "`name`: expected text that matches");
    let manifest = format!("{MANIFEST}io: {{input: ../../secret.json#/x}}\n");
    says(&Bad::new("module.yaml", manifest.as_bytes()).errors(), "is outside the module");
}

#[test]
fn schemas_that_explode_or_hang_are_refused_or_bounded() {
    let mut defs: Vec<String> = (0..40)
        .map(|step| {
            format!(r##""d{step}": {{"allOf": [{{"$ref": "#/d{0}"}}, {{"$ref": "#/d{0}"}}]}}"##, step + 1)
        })
        .collect();
    defs.push(r##""d40": {}, "input": {}, "data": {"$ref": "#/d0"}"##.to_owned());
    says(
        &Bad::new("schema.json", format!("{{{}}}", defs.join(",")).as_bytes()).errors(),
        "chain of more than",
    );
    let pattern = r#"{"input": {"pattern": "(((a{1,500}){1,500}){1,500})"}, "data": {}}"#;
    assert!(!Bad::new("schema.json", pattern.as_bytes()).errors().is_empty());
}

#[test]
fn the_command_line_survives_them_too() {
    let bad = Bad::new("module.yaml", b"a: &a [*a]\n");
    let reply = ["--provider", "replay", "--reply", "m/prompt.md"];
    let envelope = bad.home.json(&[&["run", "./m", "--input", "{}"], &reply[..]].concat());
    assert_eq!(envelope["error"]["code"], "E4000");
    assert_eq!(envelope["error"]["details"]["kind"], "module_invalid");
}

#[test]
fn check_survives_deep_and_endless_text() {
    for text in ["[".repeat(10_000), "{\"a\":".repeat(10_000), "\0\0\0".to_owned(), String::new()] {
        let output = home().run(&["check"], &[], &text).expect_exit(1);
        assert!(output.out.contains("not JSON"));
    }
}
