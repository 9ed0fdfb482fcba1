//! Typed clients that common generators create from `/openapi.json`, for all bundled modules: they are generated
//! without warnings, pass their type checkers, and run modules on a real `cogn serve`. A test is skipped if its tools
//! are not installed.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use cognitive_testkit::{
    Act, FakeModel, Home, Lack, ProcessOutput, TestServer, good_answer, skip, stream_reply,
};
use serde_json::{Value, json};

use crate::home;

/// The answers of the model: to `text-classifier`, to `code-reviewer`, and then to every other request.
fn answers() -> Vec<Act> {
    let label = json!({ "rationale": "It is about rain.", "sentiment": "neutral", "label": "weather" });
    let issue = |kind: Value| json!({ "type": kind, "risk": "low", "description": "d" });
    let custom = json!({ "custom": "licence", "reason": "None of the others is about rights" });
    let issues = json!([issue(json!("readability")), issue(custom)]);
    let review =
        json!({ "rationale": "r", "verdict": "comment", "issues": issues, "summary": "Two small things." });
    [label.clone(), review, label].iter().map(|data| Act::stream(stream_reply(&good_answer(data)))).collect()
}

/// Checks the results that every client must report.
fn check(seen: &Value) {
    assert_eq!((&seen["label"], &seen["sentiment"]), (&json!("weather"), &json!("neutral")), "{seen}");
    assert_eq!(
        (&seen["risk"], &seen["kinds"]),
        (&json!("low"), &json!(["readability", "licence"])),
        "{seen}"
    );
    assert_eq!(seen["code"], "E3001", "{seen}");
    assert_eq!(seen["modules"], json!(names()), "{seen}");
}

fn names() -> Vec<String> {
    cognitive_library::Library::default().list().into_iter().map(|found| found.name).collect()
}

/// A server with the bundled modules.
fn start() -> (TestServer, Home) {
    let (home, url) = (home(), FakeModel::script(answers()).url());
    let server =
        TestServer::start(&home, &["--provider", "openai", "--model", "stub", "--base-url", &url], &[]);
    (server, home)
}

/// Returns the output of a program that must succeed.
fn output(program: impl AsRef<OsStr>, folder: &Path, arguments: &[&str]) -> String {
    let mut command = cognitive_testkit::command(&program);
    command.args(arguments).current_dir(folder).env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
    let output = ProcessOutput::run(&mut command).expect_exit(0);
    output.out
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/serve/clients").join(name)
}

/// Returns the folder of a Python that has the generator and the type checker.
fn python() -> Option<PathBuf> {
    let pythons = std::env::var_os("COGN_TEST_PYTHON").unwrap_or_default();
    let folders = std::env::split_paths(&pythons).filter_map(|python| Some(python.parent()?.to_owned()));
    let has_all =
        |folder: &PathBuf| ["openapi-python-client", "mypy"].iter().all(|each| folder.join(each).exists());
    folders.filter(has_all).find(|folder| folder.join("python").exists())
}

#[test]
fn a_generated_python_client_runs_modules_with_types() {
    let Some(python) = python() else { return skip(Lack::PythonGenerator) };
    let (server, _home) = start();
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(
        at.join("generator.yaml"),
        "post_hooks: []\ncontent_type_overrides: {application/x-ndjson: text/plain}\n",
    )
    .unwrap();
    let url = format!("{}/openapi.json", server.url());
    let generate = ["generate", "--url", &url, "--meta", "none", "--output-path", "cogn_client"];
    let strictly = ["--fail-on-warning", "--config", "generator.yaml"];
    output(python.join("openapi-python-client"), at, &[&generate[..], &strictly].concat());
    for name in names() {
        let operation = at.join(format!("cogn_client/api/modules/run_{}.py", name.replace('-', "_")));
        assert!(operation.exists(), "{}", operation.display());
    }
    fs::copy(fixture("typed.py"), at.join("typed.py")).unwrap();
    // The generator's own templates do not pass strict checks; the code that uses them does.
    output(python.join("mypy"), at, &["cogn_client"]);
    output(python.join("mypy"), at, &["--strict", "--follow-imports=silent", "typed.py"]);
    let seen = output(python.join("python"), at, &["typed.py", &server.url()]);
    check(&serde_json::from_str(&seen).unwrap());
}

#[test]
fn a_generated_typescript_client_runs_modules_with_types() {
    let tools = std::env::var_os("COGN_TEST_NODE").map(|folder| PathBuf::from(folder).join("node_modules"));
    let Some(tools) = tools.filter(|tools| tools.join("openapi-fetch").is_dir()) else {
        return skip(Lack::TypescriptGenerator);
    };
    let (server, _home) = start();
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let program = |path: &str| tools.join(path).display().to_string();
    let url = format!("{}/openapi.json", server.url());
    output("node", at, &[&program("openapi-typescript/bin/cli.js"), &url, "-o", "api.d.ts"]);
    let types = fs::read_to_string(at.join("api.d.ts")).unwrap();
    for name in names() {
        assert!(types.contains(&format!("\"/api/run/{name}\": {{")), "{name}");
    }
    fs::copy(fixture("typed.ts"), at.join("typed.ts")).unwrap();
    fs::write(at.join("package.json"), r#"{ "type": "module" }"#).unwrap();
    let options = json!({
        "module": "nodenext", "target": "es2022", "lib": ["es2022", "dom"], "strict": true,
        "noUncheckedIndexedAccess": true, "skipLibCheck": false, "types": [],
    });
    let config = json!({ "compilerOptions": options, "files": ["typed.ts", "api.d.ts"] });
    fs::write(at.join("tsconfig.json"), config.to_string()).unwrap();
    // The search path of Node for packages; creating a real folder needs no permission for links.
    copy(&tools.join("openapi-fetch"), &at.join("node_modules/openapi-fetch"));
    copy(&tools.join("openapi-typescript-helpers"), &at.join("node_modules/openapi-typescript-helpers"));
    output("node", at, &[&program("typescript/bin/tsc"), "-p", "tsconfig.json"]);
    let seen = output("node", at, &["typed.js", &server.url()]);
    check(&serde_json::from_str(&seen).unwrap());
}

/// Writes the types that `cogn types` generates for all bundled modules.
fn write_types(language: &str, file: &Path) {
    let args = ["types", "--bundled", "--lang", language, "--output"];
    output(
        env!("CARGO_BIN_EXE_cogn"),
        file.parent().unwrap(),
        &[&args[..], &[file.to_str().unwrap()]].concat(),
    );
}

#[test]
fn the_types_of_all_modules_pass_the_checker_of_python() {
    let Some(python) = python() else { return skip(Lack::PythonGenerator) };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write_types("python", &at.join("modules.py"));
    let using = "from modules import TextClassifierEnvelope\n\ndef label(answer: TextClassifierEnvelope) -> str:\n    \
                 return answer[\"data\"][\"label\"] if answer[\"ok\"] else answer[\"error\"][\"code\"]\n";
    fs::write(at.join("using.py"), using).unwrap();
    output(python.join("mypy"), at, &["--strict", "modules.py", "using.py"]);
}

#[test]
fn the_types_of_all_modules_pass_the_checker_of_typescript() {
    let tools = std::env::var_os("COGN_TEST_NODE").map(|folder| PathBuf::from(folder).join("node_modules"));
    let Some(compiler) = tools.map(|tools| tools.join("typescript/bin/tsc")).filter(|tsc| tsc.is_file())
    else {
        return skip(Lack::TypescriptGenerator);
    };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write_types("typescript", &at.join("modules.ts"));
    let using = "import type { AdaptiveExplainerData, Modules, TextClassifierEnvelope } from \"./modules\";\n\
                 export const label = (answer: TextClassifierEnvelope): string =>\n  \
                 answer.ok ? answer.data.label : answer.error.code;\n\
                 export const level = (data: AdaptiveExplainerData): string =>\n  \
                 typeof data.level === \"object\" ? data.level.custom : data.level ?? \"none\";\n\
                 export const input: Modules[\"text-classifier\"][\"input\"] = { text: \"x\" };\n";
    fs::write(at.join("using.ts"), using).unwrap();
    let compiler = compiler.display().to_string();
    output("node", at, &[&compiler, "--strict", "--noEmit", "using.ts", "modules.ts"]);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to.join(entry.file_name()));
        } else {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}
