//! `cogn serve` with the settings of its operator: flags, environment and `serve:` of a configuration file; the offered
//! modules, the access rules, and the rate limits. All requests go to the real program.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in a test, a panic is the report"
)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Creates a home directory that is also the project, with one user module.
fn home(config: &str) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    let module = home.path().join("cognitive/modules/words");
    fs::create_dir_all(&module).unwrap();
    fs::write(module.join("module.yaml"), "name: words\nversion: 1.0.0\nresponsibility: Find words\n")
        .unwrap();
    fs::write(module.join("prompt.md"), "Find the words.").unwrap();
    fs::write(module.join("schema.json"), r#"{"input": {"type": "object"}, "data": {"type": "object"}}"#)
        .unwrap();
    // The user's file, which needs no trust.
    fs::create_dir_all(home.path().join(".cognitive")).unwrap();
    fs::write(home.path().join(".cognitive/config.yaml"), config).unwrap();
    home
}

fn command(home: &TempDir, args: &[&str], environment: &[(&str, &str)]) -> Command {
    let mut command = cognitive_testkit::command(env!("CARGO_BIN_EXE_cogn"));
    // A service that nobody reaches: no run gets that far.
    command.arg("serve").args(args).args(["--provider", "openai", "--base-url", "http://127.0.0.1:9"]);
    command.current_dir(home.path()).env_clear().env("HOME", home.path()).env("OPENAI_API_KEY", "sk-test");
    command.envs(environment.iter().copied()).stderr(Stdio::piped());
    command
}

/// A running server. It is killed when this value is dropped.
struct Server {
    child: Child,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(home: &TempDir, args: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut child = command(home, args, environment).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
        let address = said.split("http://").nth(1).unwrap_or_else(|| panic!("{said}"));
        let address = address.split([' ', ',', '\n']).next().unwrap().to_owned();
        Self { child, address }
    }

    /// Status and body of an answer.
    fn ask(&self, first_line: &str, headers: &str, body: &str) -> (u16, Value) {
        let mut connection = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        let head = format!("{first_line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}");
        write!(connection, "{head}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
            .unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer}"));
        (head[9..12].parse().unwrap(), serde_json::from_str(body).unwrap())
    }

    fn modules(&self) -> Vec<String> {
        let (_, list) = self.ask("GET /api/modules", "", "");
        list["modules"]
            .as_array()
            .unwrap()
            .iter()
            .map(|each| each["name"].as_str().unwrap().to_owned())
            .collect()
    }
}

/// Returns the output of a server that fails to start.
fn refusal(home: &TempDir, args: &[&str], environment: &[(&str, &str)]) -> String {
    let output = command(home, args, environment).output().unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_file_and_the_environment_can_set_what_flags_set() {
    let config =
        "serve: {host: 127.0.0.1, port: 0, modules: [words, summarizer], keys: {app: APP_KEY}, rate: 1}\n";
    let home = home(config);
    let key = [("APP_KEY", "a-key-of-some-length")];
    let server = Server::start(&home, &["--quiet"], &key);
    assert_eq!(server.ask("GET /api/modules", "", "").0, 401, "the file asks for a key");
    let bearer = "authorization: Bearer a-key-of-some-length\r\n";
    let (_, list) = server.ask("GET /api/modules", bearer, "");
    let names: Vec<&Value> = list["modules"].as_array().unwrap().iter().map(|each| &each["name"]).collect();
    assert_eq!(names, [&json!("summarizer"), &json!("words")]);
    let run = || server.ask("POST /api/run/summarizer", bearer, "{}").0;
    assert_eq!((run(), run()), (400, 429), "one run per minute");
    assert_eq!(server.ask("POST /api/run/text-classifier", bearer, "{}").0, 429, "what is not there counts");
    let said = refusal(&home, &[], &[]);
    assert!(said.contains("`serve.keys.app`") && said.contains("`APP_KEY`"), "{said}");
    // The environment overrides the file, and a flag overrides both.
    let both = [key[0], ("COGN_SERVE_MODULES", "words"), ("COGN_SERVE_RATE", "0")];
    let server = Server::start(&home, &["--quiet"], &both);
    assert_eq!(server.ask("GET /api/modules/summarizer", bearer, "").0, 404);
    for _ in 0..3 {
        assert_eq!(server.ask("POST /api/run/absent", bearer, "{}").0, 404, "no limit");
    }
    let server = Server::start(&home, &["--quiet", "--modules", "summarizer"], &both);
    assert_eq!(server.ask("GET /api/modules/summarizer", bearer, "").0, 200);
}

#[test]
fn a_project_that_nobody_trusts_opens_no_server_to_others() {
    let home = home("");
    let outside = "serve: {host: 0.0.0.0, cors: ['https://thief.example'], port: 0, modules: [words]}\n";
    let project = home.path().join("project");
    fs::create_dir_all(&project).unwrap();
    fs::write(project.join("cognitive.yaml"), outside).unwrap();
    let mut held = command(&home, &["--modules", "summarizer"], &[]);
    let mut child = held.current_dir(&project).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.as_mut().unwrap()).lines().map_while(Result::ok);
    let warning = lines.next().unwrap();
    let listening = lines.next().unwrap();
    drop(lines);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(warning.contains("`serve.host`, `serve.cors`"), "{warning}");
    assert!(listening.contains("http://127.0.0.1:") && !listening.contains(":8000"), "{listening}");
}

#[test]
fn which_modules_are_offered_is_the_operators_choice() {
    let home = home("");
    let all = Server::start(&home, &["--port", "0", "--quiet"], &[]).modules();
    assert!(all.len() > 10 && all.contains(&"words".to_owned()), "{all:?}");
    assert_eq!(Server::start(&home, &["--port", "0", "--quiet", "--no-bundled"], &[]).modules(), ["words"]);
    let named = ["--port", "0", "--quiet", "--modules", "words,multi-reviewer"];
    assert_eq!(Server::start(&home, &named, &[]).modules(), ["multi-reviewer", "words"]);
    let said = refusal(&home, &["--modules", "wrods"], &[]);
    assert!(said.contains("module not found: `wrods`") && said.contains("`words`"), "{said}");
}

// Local callers have no default rate limit.
#[test]
fn callers_on_this_machine_are_not_limited_unless_somebody_says_so() {
    let home = home("");
    let server = Server::start(&home, &["--port", "0", "--quiet"], &[]);
    let run = |headers: &str| server.ask("POST /api/run/summarizer", headers, "{}").0;
    for _ in 0..70 {
        assert_eq!(run(""), 400);
    }
    let forwarded = "x-forwarded-for: 203.0.113.7\r\n";
    // As many as it takes: while the first sixty are answered, a slow machine lets more of them in.
    assert!((0..10_000).any(|_| run(forwarded) == 429), "behind a proxy there is a limit");
    let limited = Server::start(&home, &["--port", "0", "--quiet", "--rate", "2"], &[]);
    let run = || limited.ask("POST /api/run/summarizer", "", "{}").0;
    assert_eq!((run(), run(), run()), (400, 400, 429));
}

/// The keys of a test, in the format of the file.
const KEYS: &str = "app 0123456789abcdef-app\nann 0123456789abcdef-ann author\n\n# both\nben 0123456789abcdef-ben run,review\n";

/// Writes a key file that only its owner can read, so that there is no warning.
fn write_keys(home: &TempDir, keys: &str) {
    let path = home.path().join("keys.txt");
    fs::write(&path, keys).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    }
}

fn bearer(name: &str) -> String {
    format!("authorization: Bearer 0123456789abcdef-{name}\r\n")
}

// A key runs modules unless its line, or the configuration, grants other roles.
#[test]
fn keys_have_the_roles_that_their_operator_gives_them() {
    let home = home("serve: {keys: {eva: {env: EVA_KEY, roles: [admin]}, old: OLD_KEY}}\n");
    write_keys(&home, KEYS);
    let variables = [("EVA_KEY", "0123456789abcdef-eva"), ("OLD_KEY", "0123456789abcdef-old")];
    let server = Server::start(&home, &["--port", "0", "--keys", "keys.txt"], &variables);
    for (name, roles) in [
        ("app", json!(["run"])),
        ("ann", json!(["author"])),
        ("ben", json!(["run", "review"])),
        ("eva", json!(["run", "author", "review", "admin"])),
        ("old", json!(["run"])),
    ] {
        let (status, session) = server.ask("GET /v1/session", &bearer(name), "");
        assert_eq!((status, &session["name"], &session["roles"]), (200, &json!(name), &roles));
        assert_eq!(session["has"]["runs"], true, "the audit of this user answers");
    }
    let (status, refused) = server.ask("GET /v1/models", &bearer("app"), "");
    assert_eq!((status, &refused["error"]["details"]["role"]), (403, &json!("author")));
    let (_, models) = server.ask("GET /v1/models", &bearer("ann"), "");
    assert!(models["models"][0]["name"].as_str().unwrap().starts_with("openai/"), "{models}");
    let (status, runs) = server.ask("GET /v1/runs", &bearer("eva"), "");
    assert_eq!((status, &runs["runs"]), (200, &json!([])));
}

#[test]
fn a_role_that_nobody_knows_stops_the_start() {
    let home = home("");
    fs::write(home.path().join("keys.txt"), "app 0123456789abcdef-app rnu\n").unwrap();
    let output = command(&home, &["--port", "0", "--keys", "keys.txt"], &[]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("unknown role: `rnu`"), "{said}");
    let output = command(&home, &["--port", "0", "--edit", "no/such/folder"], &[]).output().unwrap();
    assert!(!output.status.success(), "a folder to edit has to be there");
}

// No module can be changed until the operator names a folder; then an answer can become a passing test.
#[test]
fn modules_are_changed_only_in_folders_that_were_named() {
    let home = home("");
    let case = json!({ "kind": "golden", "name": "first", "input": { "text": "a" }, "envelope": {
        "ok": true, "meta": { "confidence": 0.9, "risk": "low", "explain": "e" }, "data": { "rationale": "r" } } });
    let keep = |server: &Server| server.ask("POST /v1/modules/words/cases", "", &case.to_string());
    let closed = Server::start(&home, &["--port", "0"], &[]);
    assert_eq!(closed.ask("GET /v1/session", "", "").1["has"]["edit"], false);
    assert_eq!(closed.ask("GET /v1/modules/words/files", "", "").1["editable"], false);
    assert_eq!(keep(&closed).0, 403);
    drop(closed);
    let open = Server::start(&home, &["--port", "0", "--edit", "cognitive/modules"], &[]);
    assert_eq!(open.ask("GET /v1/session", "", "").1["has"]["edit"], true);
    let (status, kept) = keep(&open);
    assert_eq!(status, 200, "{kept}");
    assert_eq!(keep(&open).0, 409, "no case replaces another");
    let (_, files) = open.ask("GET /v1/modules/words/files", "", "");
    assert_eq!((&files["hash"], &files["tests"]), (&kept["hash"], &json!([{ "name": "first" }])));
    assert_eq!(open.ask("GET /v1/modules/words/cases", "", "").1["cases"][0]["id"], "first");
    let mut recorded = case.clone();
    recorded["name"] = json!("second");
    recorded["input"] = json!({ "text": "b" });
    recorded["reply"] = json!(
        r#"{"ok":true,"data":{"rationale":"r"},"error":null,"meta":{"confidence":0.9,"risk":"low","explain":"e"}}"#
    );
    let send = |body: &Value| open.ask("POST /v1/modules/words/cases", "", &body.to_string());
    recorded["reply_dialect"] = json!("gpt");
    let (status, refused) = send(&recorded);
    assert_eq!(status, 400);
    assert!(refused["error"]["message"].as_str().unwrap().contains("use one of `openai`"), "{refused}");
    recorded["reply_dialect"] = json!("openai");
    let (status, kept) = send(&recorded);
    assert_eq!((status, &kept["recorded"]), (200, &json!(true)), "{kept}");
    assert!(kept["paths"].to_string().contains("tests/second.reply.json"), "D-18: {kept}");
    drop(open);
    let mut test = cognitive_testkit::command(env!("CARGO_BIN_EXE_cogn"));
    let test = test
        .args(["test", "words"])
        .current_dir(home.path())
        .env_clear()
        .env("HOME", home.path())
        .output()
        .unwrap();
    assert!(test.status.success(), "{}", String::from_utf8_lossy(&test.stdout));
}

// `cogn studio` is the same server, with its page opened; the address contains no secret.
#[cfg(unix)]
#[test]
fn studio_opens_the_page_of_its_server() {
    use std::os::unix::fs::PermissionsExt;
    let home = home("");
    let (browser, seen) = (home.path().join("browser"), home.path().join("seen"));
    assert!(Command::new("mkfifo").arg(&seen).status().unwrap().success());
    fs::write(&browser, format!("#!/bin/sh\nprintf %s \"$1\" > '{}'\n", seen.display())).unwrap();
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = cognitive_testkit::command(env!("CARGO_BIN_EXE_cogn"));
    command.args(["studio", "--provider", "openai", "--base-url", "http://127.0.0.1:9"]);
    command.current_dir(home.path()).env_clear().env("HOME", home.path()).env("OPENAI_API_KEY", "sk-test");
    let mut child =
        command.env("PATH", "/usr/bin:/bin").env("BROWSER", &browser).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
    let server = Server {
        child,
        address: said.split("http://").nth(1).unwrap().split([' ', ',', '\n']).next().unwrap().to_owned(),
    };
    // A pipe: reading waits for the browser.
    assert_eq!(fs::read_to_string(&seen).unwrap(), format!("http://{}/", server.address));
    assert_eq!(server.ask("GET /v1/session", "", "").1["studio"], 1);
}
