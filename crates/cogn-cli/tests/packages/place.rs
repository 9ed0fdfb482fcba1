//! A temporary project and home, modules to pack, and snapshots of the file tree.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cognitive_testkit::{ProcessOutput, good_answer};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A place that is isolated from this machine.
pub(crate) struct Place {
    dir: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["project", "home", "temporary"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        fs::write(dir.path().join("home/precious"), "mine").unwrap();
        Self { dir }
    }

    /// Returns a path in the project.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("project").join(name)
    }

    /// Returns a path next to the project.
    pub(crate) fn sibling(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = cognitive_testkit::command(env!("CARGO_BIN_EXE_cogn"));
        command
            .args(args)
            .current_dir(self.dir.path().join("project"))
            .env_clear()
            .env("HOME", self.dir.path().join("home"))
            .env("TMPDIR", self.dir.path().join("temporary"))
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("COGN_OFFLINE", "1");
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> ProcessOutput {
        ProcessOutput::run(&mut self.command(args))
    }

    /// Runs a command that must succeed, and returns its JSON.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let said = self.run(&[args, &["--json"]].concat());
        assert_eq!(said.code, Some(0), "{args:?}: {}", said.err);
        serde_json::from_str(&said.out).unwrap()
    }

    /// Runs a command that must be refused with this message and change nothing.
    pub(crate) fn refused(&self, args: &[&str], words: &str) -> ProcessOutput {
        let before = self.everything();
        let said = self.run(args);
        assert_eq!(said.code, Some(1), "{args:?}: {}{}", said.out, said.err);
        assert!(said.err.starts_with("error: ") && said.err.contains(words), "{args:?}: {}", said.err);
        assert!(!said.err.contains("panicked") && said.err.len() < 2_000, "{}", said.err);
        let after = self.everything();
        let changed =
            before.iter().filter(|(path, content)| after.get(*path) != Some(content)).map(|(path, _)| path);
        let new = after.keys().filter(|path| !before.contains_key(*path));
        let different: Vec<_> = changed.chain(new).collect();
        assert!(different.is_empty(), "{args:?} changed {different:?}");
        said
    }

    /// Returns every file and folder of this place with its contents, without the empty module folder.
    pub(crate) fn everything(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let mut found = BTreeMap::new();
        walk(self.dir.path(), &mut found);
        let modules = [self.path("cognitive"), self.path("cognitive/modules")];
        found.retain(|path, content| content.is_some() || !modules.contains(path));
        found
    }

    /// Reads the lock file.
    pub(crate) fn lock(&self) -> Value {
        let text = fs::read_to_string(self.path("cognitive.lock")).unwrap_or_else(|_| "{}".to_owned());
        serde_json::from_str(&text).unwrap()
    }

    /// Returns the entry of a module in the lock file.
    pub(crate) fn locked(&self, name: &str) -> Value {
        self.lock()["modules"][name].clone()
    }

    /// Writes a module next to the project, and returns its path.
    pub(crate) fn module(&self, name: &str, version: &str) -> String {
        let folder = self.sibling(&format!("sources/{version}/{name}"));
        fs::create_dir_all(folder.join("tests")).unwrap();
        for (path, text) in module_files(name, version) {
            fs::write(folder.join(path), text).unwrap();
        }
        folder.display().to_string()
    }

    /// Packs such a module, and returns the path of the archive.
    pub(crate) fn packed(&self, name: &str, version: &str) -> String {
        let (folder, out) = (self.module(name, version), self.sibling("packages"));
        let said = self.run(&["pack", &folder, "-o", out.to_str().unwrap()]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        said.out.trim().to_owned()
    }

    /// Returns whether the installed module runs, with a recorded reply.
    pub(crate) fn runs(&self, name: &str) -> bool {
        let reply = self.sibling("reply.json");
        let answer = good_answer(&json!({ "rationale": "Because.", "label": "a" }));
        fs::write(&reply, answer.to_string()).unwrap();
        let run = ["run", name, "--set", "text=x", "--provider", "replay", "--reply"];
        self.run(&[&run[..], &[reply.to_str().unwrap()]].concat()).code == Some(0)
    }
}

/// Returns the files of a working module.
pub(crate) fn module_files(name: &str, version: &str) -> [(&'static str, String); 5] {
    let manifest = format!(
        "name: {name}\nversion: {version}\nresponsibility: Label texts of version {version}.\ntier: decision\n"
    );
    let schema = r#"{"input": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}},
        "data": {"type": "object", "required": ["rationale", "label"],
        "properties": {"rationale": {"type": "string"}, "label": {"type": "string"}}}}"#;
    [
        ("module.yaml", manifest),
        ("prompt.md", "Label the text.".to_owned()),
        ("schema.json", schema.to_owned()),
        ("tests/one.input.json", r#"{"text": "x"}"#.to_owned()),
        ("tests/one.expected.json", r#"{"label": "a"}"#.to_owned()),
    ]
}

fn walk(folder: &Path, found: &mut BTreeMap<PathBuf, Option<Vec<u8>>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let meta = path.symlink_metadata().unwrap();
        if meta.is_dir() {
            found.insert(path.clone(), None);
            walk(&path, found);
        } else if meta.is_symlink() {
            found
                .insert(path.clone(), Some(fs::read_link(&path).unwrap().display().to_string().into_bytes()));
        } else {
            found.insert(path.clone(), Some(fs::read(&path).unwrap()));
        }
    }
}
