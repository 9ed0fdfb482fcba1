//! The setup of the TypeScript tests: the package as users install it, built once from its sources, a real `cogn serve`
//! and a stub model.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cognitive_testkit::{Home, Lack, TestServer, skip};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::model::{Model, recorded, words};

pub(crate) const KEY: &str = "the-key-of-this-test-0123456789";
/// The bytes that pass the proxy before it cuts the first connection: more than the headers of a stream, less than a
/// stream.
const CUT_AFTER: usize = 900;

const MANIFEST: &str = "name: words\nversion: 1.0.0\nresponsibility: Find words\ntier: decision\nexcludes: []\nresponse:\n  mode: both\n";
const SCHEMA: &str = r#"{
  "input": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}},
  "data": {"type": "object", "required": ["rationale", "words"], "properties": {
    "rationale": {"type": "string"}, "words": {"type": "array", "items": {"type": "string"}}}}
}"#;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns the output of a program that must succeed.
pub(crate) fn output(program: impl AsRef<OsStr>, folder: &Path, arguments: &[&str]) -> String {
    let mut command = cognitive_testkit::command(&program);
    command.args(arguments).current_dir(folder).env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
    let output = command.env("OPENAI_API_KEY", "sk-test").output().unwrap();
    let (said, printed) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    let program = program.as_ref().display();
    assert!(output.status.success(), "{program} {arguments:?}\n{printed}\n{said}");
    printed.into_owned()
}

/// A folder with the package in `node_modules`, the programs of the tests, and the types of all bundled modules.
pub(crate) struct Stage {
    folder: TempDir,
}

/// Returns the TypeScript compiler, if it is installed.
fn compiler() -> Option<String> {
    let tools = PathBuf::from(std::env::var_os("COGN_TEST_NODE")?);
    let compiler = tools.join("node_modules/typescript/bin/tsc");
    compiler.is_file().then(|| compiler.display().to_string())
}

impl Stage {
    /// Returns the stage, built on first use; `None`, after `skip`, if something is missing.
    pub(crate) fn get() -> Option<&'static Self> {
        static STAGE: OnceLock<Stage> = OnceLock::new();
        let Some(compiler) = compiler() else {
            skip(Lack::TypescriptGenerator);
            return None;
        };
        let Some(wasm) = std::env::var_os("COGN_TEST_WASM").map(PathBuf::from).filter(|file| file.is_file())
        else {
            skip(Lack::Wasm);
            return None;
        };
        Some(STAGE.get_or_init(|| Self::build(&compiler, &wasm)))
    }

    fn build(compiler: &str, wasm: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (at, sources) = (folder.path(), root().join("typescript"));
        fs::write(at.join("package.json"), r#"{ "type": "module" }"#).unwrap();
        // The published archive itself, installed as users install it.
        let pack = sources.join("pack").display().to_string();
        let (compiler_is, wasm_is) = (format!("TSC={compiler}"), format!("WASM={}", wasm.display()));
        let archive = output("env", at, &[&compiler_is, &wasm_is, &pack, "."]);
        output("npm", at, &["install", "--offline", "--silent", "--no-audit", "--no-fund", archive.trim()]);
        for entry in fs::read_dir(sources.join("tests")).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), at.join(entry.file_name())).unwrap();
        }
        let types = at.join("modules.ts").display().to_string();
        let written = ["types", "--bundled", "--lang", "typescript", "--output", &types];
        output(env!("CARGO_BIN_EXE_cogn"), at, &written);
        for (name, text) in examples() {
            fs::write(at.join(name), text).unwrap();
        }
        let config = json!({
            "extends": sources.join("tsconfig.json"),
            "compilerOptions": { "rootDir": ".", "outDir": ".", "declaration": false },
            "include": ["*.ts"], "exclude": ["node_modules"],
        });
        fs::write(at.join("tsconfig.json"), config.to_string()).unwrap();
        output("node", at, &[compiler, "-p", "tsconfig.json"]);
        Self { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the result of a test program.
    pub(crate) fn node(&self, arguments: &[&str]) -> Value {
        // Node has WebSocket without this flag since version 22, and still accepts the flag.
        let printed = output("node", self.path(), &[&["--experimental-websocket"], arguments].concat());
        serde_json::from_str(printed.lines().last().unwrap_or_default())
            .unwrap_or_else(|error| panic!("{error}: {printed}"))
    }
}

/// Returns the programs in `docs/typescript.md`: each TypeScript block that names a file.
pub(crate) fn examples() -> Vec<(String, String)> {
    let page = fs::read_to_string(root().join("docs/typescript.md")).unwrap();
    let blocks = page.split("```ts file=").skip(1).filter_map(|rest| rest.split("\n```").next());
    blocks
        .filter_map(|block| block.split_once('\n'))
        .map(|(name, text)| (name.to_owned(), text.to_owned()))
        .collect()
}

/// A server with the bundled modules and one that streams. It is killed when this value is dropped.
pub(crate) struct Server {
    _served: TestServer,
    pub(crate) base: String,
    pub(crate) model: Model,
    home: Home,
}

impl Server {
    pub(crate) fn start(more: &[&str]) -> Self {
        let home = Home::new(env!("CARGO_BIN_EXE_cogn")).with("OPENAI_API_KEY", "sk-test");
        home.module("words", MANIFEST, "Find the words.", &serde_json::from_str(SCHEMA).unwrap());
        let model = Model::start(recorded().into_iter().chain([words()]).collect());
        let mut args = vec!["--rate", "0", "--streams", "0", "--grace", "86400"];
        let provider = provider(&model);
        args.extend(provider.iter().map(String::as_str).chain(more.iter().copied()));
        let served = TestServer::start(&home, &args, &[("COGNITIVE_API_KEY", KEY)]);
        Self { base: served.url(), _served: served, model, home }
    }

    /// Writes the parameters of the test programs and returns the file name.
    pub(crate) fn world(&self, more: Value) -> String {
        let image = recorded().into_iter().find(|each| each.module == "image-analyzer").unwrap().input;
        let mut world = json!({ "base": self.base, "key": KEY, "cutAfter": CUT_AFTER, "image": image });
        let members = world.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        self.home.write("world.json", world.to_string());
        self.home.path("world.json").display().to_string()
    }

    /// Returns the envelope that the command line prints for the same run.
    pub(crate) fn by_command_line(&self, module: &str, input: &Value) -> String {
        let input = input.to_string();
        let provider = provider(&self.model);
        let run = ["run", module, "--input", &input];
        let args: Vec<&str> = run.into_iter().chain(provider.iter().map(String::as_str)).collect();
        self.home.cogn(&args).out
    }
}

fn provider(model: &Model) -> Vec<String> {
    let url = model.url();
    ["--provider", "openai", "--model", "stub-audio", "--base-url", &url].map(str::to_owned).to_vec()
}
