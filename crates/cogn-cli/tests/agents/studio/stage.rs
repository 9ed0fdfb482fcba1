//! The setup of the page tests: a real `cogn serve` with test modules, a model with recorded replies, and Node with a
//! driver for Chromium.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cognitive_testkit::{Lack, TestServer, skip};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::modules::{CHANGED_PROMPT, LINES, known, write_all};
use crate::model::{Model, recorded};

/// Rules that queue runs for review, and stored payloads for the history pages.
const SETTINGS: &str = "audit: {payloads: true}\nreview: {rules: [{when: \"confidence < 0.6\"}]}\n";

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns the folder with the packages that build and drive the page; `None`, after `skip`, if it is missing.
pub(crate) fn packages() -> Option<PathBuf> {
    let folder = std::env::var_os("COGN_TEST_STUDIO").map(PathBuf::from);
    let folder = folder.filter(|folder| folder.join("node_modules/playwright-core").is_dir());
    if folder.is_none() {
        skip(Lack::Studio);
    }
    folder
}

/// A server, a model, and a browser that can be driven.
pub(crate) struct Stage {
    _served: TestServer,
    packages: PathBuf,
    pub(crate) base: String,
    pub(crate) model: Model,
    pub(crate) home: TempDir,
}

impl Stage {
    /// Starts a server without keys, on which everyone may do everything; `None`, after `skip`, if something is
    /// missing.
    pub(crate) fn open() -> Option<Self> {
        Self::start(&[])
    }

    /// Starts a server with more arguments.
    pub(crate) fn start(more: &[&str]) -> Option<Self> {
        Self::serve(more, None)
    }

    /// Starts a server with the embedded model and these weights.
    pub(crate) fn embedded(weights: &Path) -> Option<Self> {
        Self::serve(&[], Some(weights))
    }

    fn serve(more: &[&str], weights: Option<&Path>) -> Option<Self> {
        let packages = packages()?;
        if Command::new("chromium").arg("--version").output().is_err() {
            skip(Lack::Browser);
            return None;
        }
        let home = tempfile::tempdir().unwrap();
        write_all(home.path());
        let editable = home.path().join("cognitive/modules");
        let settings = format!("{SETTINGS}serve: {{edit: [{}]}}\n", json!(editable));
        fs::create_dir_all(home.path().join(".cognitive")).unwrap();
        fs::write(home.path().join(".cognitive/config.yaml"), settings).unwrap();
        let model = Model::start(known().into_iter().chain(recorded()).collect());
        let url = model.url();
        let mut serve = command(home.path());
        serve
            .args(["serve", "--port", "0", "--rate", "0", "--streams", "0", "--grace", "86400", "--quiet"])
            .args(more);
        match weights {
            Some(weights) => serve.args(["--provider", "embedded"]).env("COGN_MODEL", weights),
            None => serve.args(["--provider", "openai", "--model", "stub-audio", "--base-url", &url]),
        };
        let served = TestServer::spawn(&mut serve);
        Some(Self { base: served.url(), _served: served, packages, model, home })
    }

    /// Runs a scenario of this folder in the browser and returns its result.
    pub(crate) fn drive(&self, scenario: &str, more: Value) -> Value {
        let folder = self.home.path().join("scenario");
        fs::create_dir_all(&folder).unwrap();
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents/studio");
        for entry in fs::read_dir(scripts).unwrap().map(Result::unwrap) {
            if entry.path().extension().is_some_and(|kind| kind == "mjs") {
                fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
            }
        }
        let modules = folder.join("node_modules");
        if !modules.exists() {
            std::os::unix::fs::symlink(self.packages.join("node_modules"), modules).unwrap();
        }
        let inputs = recorded();
        let input = |name: &str| inputs.iter().find(|each| each.module == name).unwrap().input.clone();
        let mut world = json!({
            "base": self.base, "changedPrompt": CHANGED_PROMPT, "savedPrompt": "Find all the words.", "lines": LINES,
            "png": input("image-analyzer")["images"][0]["data"], "code": input("code-review-pipeline")["code"],
        });
        world.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let file = folder.join("world.json");
        fs::write(&file, world.to_string()).unwrap();
        let mut node = Command::new("node");
        node.arg(scenario).arg(&file).current_dir(&folder);
        let output = node.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1").output().unwrap();
        let (said, printed) =
            (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
        assert!(output.status.success(), "{scenario}\n{printed}\n{said}");
        serde_json::from_str(printed.lines().last().unwrap_or_default())
            .unwrap_or_else(|error| panic!("{error}: {printed}"))
    }

    /// Returns the output of the program in the home of the server.
    pub(crate) fn cogn(&self, arguments: &[&str]) -> String {
        let output = command(self.home.path()).args(arguments).output().unwrap();
        let (said, printed) =
            (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
        assert!(output.status.success(), "{arguments:?}\n{printed}\n{said}");
        printed.into_owned()
    }
}

fn command(home: &Path) -> Command {
    let mut command = cognitive_testkit::command(env!("CARGO_BIN_EXE_cogn"));
    command.current_dir(home).env_clear().env("HOME", home).env("OPENAI_API_KEY", "sk-test");
    command
}
