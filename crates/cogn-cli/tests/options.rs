//! The documented command line: the list of commands, the options of `run`, the default provider, the report of
//! `doctor` and the arguments of `migrate`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test, a panic is the report")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;

#[expect(dead_code, reason = "shared with tests that need more of it")]
#[path = "providers/stub.rs"]
mod stub;

use stub::{Act, Stub, good, streamed};

/// The output of a process.
struct Output {
    code: i32,
    out: String,
    err: String,
}

impl Output {
    fn envelope(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("{}{}", self.out, self.err))
    }
}

/// A folder that is both project and home, isolated from this machine.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    fn run(&self, args: &[&str], environment: &[(&str, &str)], stdin: &str) -> Output {
        let mut child = cognitive_testkit::command(env!("CARGO_BIN_EXE_cogn"))
            .args(args)
            .current_dir(self.0.path())
            .env_clear()
            .env("HOME", self.0.path())
            .env("COGN_OFFLINE", "1")
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that does not read its input may close the pipe.
        let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
        let output = child.wait_with_output().unwrap();
        Output {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs `summarizer` with a saved reply.
    fn replayed(&self, args: &[&str], stdin: &str) -> Output {
        self.write("reply.txt", &good().to_string());
        self.run(&[&["run", "summarizer", "--reply", "reply.txt"], args].concat(), &[], stdin)
    }
}

#[test]
fn cli_002_009_help_and_version_name_every_command_and_the_program() {
    let place = Place::new();
    let help = place.run(&["--help"], &[], "");
    assert_eq!((help.code, help.err.as_str()), (0, ""));
    let listed: Vec<&str> = help.out.lines().filter_map(|line| line.split_whitespace().next()).collect();
    for command in ["run", "migrate", "validate", "list", "info", "init", "doctor", "test", "serve", "verify"]
    {
        assert!(listed.contains(&command), "{command}: {}", help.out);
        let own = place.run(&[command, "--help"], &[], "");
        assert!(own.code == 0 && own.out.contains(&format!("cogn {command}")), "{}", own.out);
    }
    let version = place.run(&["--version"], &[], "");
    assert!(version.code == 0 && version.out.contains(env!("CARGO_PKG_VERSION")), "{}", version.out);
}

#[test]
fn cli_003_input_comes_from_a_file_from_stdin_or_as_text() {
    let place = Place::new();
    let input = r#"{"text": "A long text."}"#;
    place.write("input.json", input);
    for (args, stdin) in [(&["input.json"][..], ""), (&[], input), (&["-"], input)] {
        let output = place.replayed(args, stdin);
        assert_eq!(output.envelope()["data"]["summary"], "Short.", "{args:?}");
    }
    let nothing = place.replayed(&[], "{}").envelope();
    assert_eq!(nothing["error"]["code"], "E1001", "it was stdin that was read: {nothing}");
    for args in [&["--args", "a text"][..], &["-a", "a text"]] {
        assert_eq!(place.replayed(args, "").envelope()["ok"], true, "{args:?}");
    }
}

// CLI-003, CLI-011: an output file, indentation, and no schemas. Text that is not an envelope is still refused.
#[test]
fn cli_003_011_the_options_of_run_do_what_they_say() {
    let place = Place::new();
    let set = ["--set", "text=A long text."];
    for (name, option) in [("short.json", "-o"), ("long.json", "--output")] {
        let output = place.replayed(&[&set[..], &[option, name]].concat(), "");
        let written: Value = serde_json::from_str(&fs::read_to_string(place.path(name)).unwrap()).unwrap();
        assert_eq!(written, output.envelope());
    }
    assert_eq!(place.replayed(&set, "").out.lines().count(), 1);
    assert!(place.replayed(&[&set[..], &["--pretty"]].concat(), "").out.lines().count() > 5);
    let unchecked = place.replayed(&["--input", r#"{"no": "text"}"#, "--no-validate"], "");
    assert_eq!(unchecked.envelope()["ok"], true, "{}", unchecked.out);
    place.write(
        "bare.txt",
        r#"{"ok": true, "meta": {"confidence": 7, "risk": "low", "explain": "e"}, "data": {}}"#,
    );
    let args = ["run", "summarizer", "--reply", "bare.txt", "--no-validate", "--input", "{}"];
    assert_eq!(place.run(&args, &[], "").envelope()["error"]["code"], "E3001");
}

#[test]
fn cli_003_005_flags_win_over_the_environment_that_names_provider_model_and_key() {
    let service = Stub::start(vec![Act::stream(streamed(&good()))]);
    let place = Place::new();
    let url = service.url();
    let environment = [
        ("LLM_PROVIDER", "minimax"),
        ("LLM_MODEL", "of-the-environment"),
        ("MINIMAX_API_KEY", "sk-minimax"),
        ("OPENAI_API_KEY", "sk-openai"),
    ];
    let usual = ["run", "summarizer", "--set", "text=A long text.", "--base-url", &url];
    for more in [&[][..], &["-m", "of-the-flag"], &["--model", "of-the-flag", "--provider", "openai"]] {
        let output = place.run(&[&usual[..], more].concat(), &environment, "");
        assert_eq!(output.envelope()["ok"], true, "{}", output.out);
    }
    let asked = service.asked();
    for (asked, model, key) in [
        (&asked[0], "of-the-environment", "sk-minimax"),
        (&asked[1], "of-the-flag", "sk-minimax"),
        (&asked[2], "of-the-flag", "sk-openai"),
    ] {
        assert!(asked.contains(model) && asked.contains(&format!("Bearer {key}")), "{model} {key}: {asked}");
    }
}

// D-02: the program has no stub provider.
#[test]
fn d_02_there_is_no_stub_and_a_saved_reply_takes_its_place() {
    let place = Place::new();
    let run = ["run", "summarizer", "--set", "text=A long text."];
    for (args, environment) in [(&["--provider", "stub"][..], &[][..]), (&[], &[("LLM_PROVIDER", "stub")])] {
        let envelope = place.run(&[&run[..], args].concat(), environment, "").envelope();
        assert_eq!(envelope["error"]["code"], "E4001", "{envelope}");
    }
    place.write("reply.txt", &good().to_string());
    let replay = [&run[..], &["--provider", "replay", "--reply", "reply.txt"]].concat();
    assert_eq!(place.run(&replay, &[("LLM_PROVIDER", "stub")], "").envelope()["data"]["summary"], "Short.");
}

#[cfg(feature = "local")]
#[test]
fn cli_005_d_02_without_any_configuration_the_embedded_model_answers() {
    let Some(weights) = cognitive_testkit::weights() else { return };
    let place = Place::new();
    let kept = place.path(".cache/cogn/models");
    fs::create_dir_all(&kept).unwrap();
    // The folder that `cogn model pull` uses, so that no variable is needed.
    fs::hard_link(&weights, kept.join(weights.file_name().unwrap()))
        .or_else(|_| fs::copy(&weights, kept.join(weights.file_name().unwrap())).map(drop))
        .unwrap();
    let output = place.run(&["run", "text-classifier", "--set", "text=What a wonderful day!"], &[], "");
    let envelope = output.envelope();
    assert!(envelope["meta"]["model"].as_str().unwrap().starts_with("embedded/"), "{envelope}");
}

// API-009: the default addresses that a server listens on.
#[test]
fn api_009_a_server_listens_on_this_machine_alone_unless_told_otherwise() {
    let help = Place::new().run(&["serve", "--help"], &[], "").out;
    let default = |option: &str| {
        let described = help.split_once(&format!("--{option} <")).unwrap().1;
        described.split_once("[default: ").unwrap().1.split(']').next().unwrap().to_owned()
    };
    assert_eq!((default("host").as_str(), default("port").as_str()), ("127.0.0.1", "8000"), "{help}");
}

// CAP-003, CAP-001: the command and the server report the same.
#[test]
fn cap_001_003_the_server_declares_what_the_command_prints() {
    let place = Place::new();
    // A provider that needs no weights; it gets no requests.
    let key = ("OPENAI_API_KEY", "sk-test");
    let mut server = cognitive_testkit::command(env!("CARGO_BIN_EXE_cogn"))
        .args(["serve", "--port", "0", "--quiet"])
        .current_dir(place.0.path())
        .env_clear()
        .env("HOME", place.0.path())
        .envs([key])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(server.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
    let address = said.split("http://").nth(1).unwrap().split([' ', ',', '\n']).next().unwrap();
    let mut connection = TcpStream::connect(address).unwrap();
    connection
        .write_all(b"GET /capabilities HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    let declared: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    let printed: Value = serde_json::from_str(&place.run(&["capabilities"], &[key], "").out).unwrap();
    assert_eq!(declared, printed);
    assert_eq!(printed["capabilities"]["supported_transports"], json!(["sse", "websocket", "ndjson"]));
}

#[test]
fn cli_006_migrate_knows_its_short_names_and_can_do_without_a_backup() {
    let place = Place::new();
    let manifest =
        "---\nname: old\nversion: 1.0.0\nresponsibility: Answer\nexcludes: [guessing]\n---\nAnswer.\n";
    place.write("cognitive/modules/old/MODULE.md", manifest);
    place.write(
        "cognitive/modules/old/schema.json",
        r#"{"input": {"type": "object"}, "output": {"type": "object"}}"#,
    );
    let folders = || fs::read_dir(place.path("cognitive/modules")).unwrap().count();
    for args in [&["migrate", "old", "-n"][..], &["migrate", "-a", "--dry-run"]] {
        assert_eq!(place.run(args, &[], "").code, 0, "{args:?}");
        assert!(folders() == 1 && !place.path("cognitive/modules/old/module.yaml").exists(), "{args:?}");
    }
    assert_eq!(place.run(&["migrate", "-a", "--no-backup"], &[], "").code, 0);
    assert!(place.path("cognitive/modules/old/module.yaml").exists());
    assert_eq!(folders(), 1, "no backup was asked for");
}

/// Reads a page of this repository.
fn page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)).unwrap()
}

/// Returns the next code block in a text, and the rest.
fn next_block(text: &str) -> (&str, &str) {
    let (_, rest) = text.split_once("```").unwrap();
    let (block, rest) = rest.split_once("```").unwrap();
    (block.split_once('\n').unwrap().1, rest)
}

#[test]
fn the_module_on_the_first_page_is_valid_and_gives_the_answer_that_is_shown() {
    let readme = page("README.md");
    let place = Place::new();
    let mut rest = readme.split_once("## A whole module on one screen").unwrap().1;
    for name in ["module.yaml", "prompt.md", "schema.json"] {
        let (intro, _) = rest.split_once("```").unwrap();
        assert!(intro.contains(&format!("`ticket-triage/{name}`")), "{intro}");
        let (text, after) = next_block(rest);
        place.write(&format!("ticket-triage/{name}"), text);
        rest = after;
    }
    let (shown, _) = next_block(rest);
    let (command, answer) = shown.split_once('\n').unwrap();
    assert!(command.starts_with("$ cogn run ./ticket-triage --set ticket="), "{command}");
    let answer = answer.replace(",…", "");
    let expected: Value = serde_json::from_str(&answer).unwrap();
    place.write("reply.txt", &answer);
    let valid = place.run(&["validate", "./ticket-triage"], &[], "");
    assert_eq!(valid.code, 0, "{}{}", valid.out, valid.err);
    let set = "ticket=I was charged twice this month.";
    let ran = place.run(&["run", "./ticket-triage", "--set", set, "--reply", "reply.txt"], &[], "");
    let envelope = ran.envelope();
    assert_eq!((ran.code, &envelope["data"]), (0, &expected["data"]));
    for (member, value) in expected["meta"].as_object().unwrap() {
        assert_eq!(&envelope["meta"][member], value);
    }
}

#[test]
fn cli_010_golden_tests_run_for_a_module_or_for_all_of_them() {
    let place = Place::new();
    let one = place.run(&["test", "summarizer"], &[], "");
    let all = place.run(&["test", "--all"], &[], "");
    let told = |output: &Output| {
        let last = output.out.lines().last().unwrap_or_default();
        last.split(' ').next().and_then(|count| count.parse::<u32>().ok()).unwrap_or_default()
    };
    assert_eq!((one.code, all.code), (0, 0), "{}{}", one.out, all.out);
    assert!(0 < told(&one) && told(&one) < told(&all), "{}{}", one.out, all.out);
    let sum = all.out.lines().last().unwrap();
    assert!(page("docs/tour.md").contains(&format!("…\n{sum}\n")), "docs/tour.md should say: {sum}");
    let wordy = place.run(&["test", "summarizer", "-v"], &[], "");
    assert!(wordy.out.contains(" ms") && !one.out.contains(" ms"), "{}", wordy.out);
}

#[test]
fn cli_007_doctor_lists_providers_and_modules_and_never_a_key() {
    let place = Place::new();
    let environment = [("ANTHROPIC_API_KEY", "sk-very-secret")];
    let told = place.run(&["doctor", "--json"], &environment, "");
    let health: Value = serde_json::from_str(&told.out).unwrap();
    let providers = health["providers"].as_array().unwrap();
    for (name, configured) in [("openai", false), ("anthropic", true), ("gemini", false), ("ollama", false)] {
        let state = providers.iter().find(|provider| provider["name"] == name).unwrap();
        assert_eq!(state["configured"], json!(configured), "{state}");
    }
    let listed = place.run(&["list", "--json"], &[], "");
    let listed: Value = serde_json::from_str(&listed.out).unwrap();
    assert_eq!(health["modules"], json!(listed.as_array().unwrap().len()));
    let words = place.run(&["doctor"], &environment, "");
    assert!(
        words.out.contains("anthropic") && words.out.contains(&health["modules"].to_string()),
        "{}",
        words.out
    );
    assert!(![told, words].iter().any(|each| format!("{}{}", each.out, each.err).contains("sk-very-secret")));
}

/// Returns the answer of a Restate server about a registered worker.
fn deployment() -> Value {
    let handlers = json!([{ "name": "run", "ty": "Workflow" }, { "name": "envelope", "ty": "Shared" }]);
    let services =
        json!([{ "name": "multi-reviewer", "ty": "Workflow", "revision": 3, "handlers": handlers }]);
    json!({ "id": "dp_17", "services": services })
}

#[test]
fn deploy_restate_registers_a_worker_and_shows_what_was_found() {
    let json_head = "content-type: application/json\r\n";
    let stub = Stub::start(vec![Act::reply(201, json_head, deployment().to_string())]);
    let (place, admin) = (Place::new(), format!("http://{}", stub.place));
    let words = ["deploy", "restate", "--admin", &admin, "--service", "http://127.0.0.1:9080", "--force"];
    let told = place.run(&words, &[], "");
    assert_eq!(told.code, 0, "{}", told.err);
    assert!(told.out.contains("multi-reviewer") && told.out.contains("envelope run"), "{}", told.out);
    assert!(told.err.contains("registered 1 service as dp_17"), "{}", told.err);
    let asked = stub.asked().remove(0);
    assert!(asked.starts_with("POST /deployments ") && asked.contains(r#""force":true"#), "{asked}");
    let said: Value =
        serde_json::from_str(&place.run(&[&words[..], &["--json"]].concat(), &[], "").out).unwrap();
    assert_eq!((&said["id"], &said["services"][0]["kind"]), (&json!("dp_17"), &json!("workflow")));
}

#[test]
fn deploy_restate_says_who_is_not_there() {
    let place = Place::new();
    let refused = Stub::start(vec![Act::reply(400, "", r#"{"message": "error when calling the worker"}"#)]);
    let (admin, nobody) = (format!("http://{}", refused.place), "http://127.0.0.1:9".to_owned());
    for (admin, service, said) in [
        (
            admin.as_str(),
            "http://127.0.0.1:9080",
            "refused the worker (400 Bad Request): error when calling the worker",
        ),
        (nobody.as_str(), "http://127.0.0.1:9080", "the Restate server at http://127.0.0.1:9 is not there"),
        ("nonsense", "http://127.0.0.1:9080", "`--admin` is not `http://HOST:PORT`"),
        (nobody.as_str(), "nonsense", "`--service` is not `http://HOST:PORT`"),
    ] {
        let told = place.run(&["deploy", "restate", "--admin", admin, "--service", service], &[], "");
        assert!(told.code == 1 && told.out.is_empty() && told.err.contains(said), "{}{}", told.out, told.err);
    }
}
