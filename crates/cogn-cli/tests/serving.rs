//! `cogn serve` as its operator sets it up: by flags, by the environment and by `serve:` of a configuration file; which modules
//! it offers, who may come in, and how often. Everything is asked of the real program.

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

/// A home directory that is the project as well, with one module of the user's own.
fn home(config: &str) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    let module = home.path().join("cognitive/modules/words");
    fs::create_dir_all(&module).unwrap();
    fs::write(module.join("module.yaml"), "name: words\nversion: 1.0.0\nresponsibility: Find words\n")
        .unwrap();
    fs::write(module.join("prompt.md"), "Find the words.").unwrap();
    fs::write(module.join("schema.json"), r#"{"input": {"type": "object"}, "data": {"type": "object"}}"#)
        .unwrap();
    // The file of the user, which needs no trust.
    fs::create_dir_all(home.path().join(".cognitive")).unwrap();
    fs::write(home.path().join(".cognitive/config.yaml"), config).unwrap();
    home
}

fn command(home: &TempDir, args: &[&str], environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cogn"));
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

/// What is said by a server that does not start.
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
    // The environment beats the file, and a flag beats both.
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

// A script on one's own machine is not held up by a limit that nobody set.
#[test]
fn callers_on_this_machine_are_not_limited_unless_somebody_says_so() {
    let home = home("");
    let server = Server::start(&home, &["--port", "0", "--quiet"], &[]);
    let run = |headers: &str| server.ask("POST /api/run/summarizer", headers, "{}").0;
    for _ in 0..70 {
        assert_eq!(run(""), 400);
    }
    let forwarded = "x-forwarded-for: 203.0.113.7\r\n";
    assert!((0..70).map(|_| run(forwarded)).any(|status| status == 429), "behind a proxy there is a limit");
    let limited = Server::start(&home, &["--port", "0", "--quiet", "--rate", "2"], &[]);
    let run = || limited.ask("POST /api/run/summarizer", "", "{}").0;
    assert_eq!((run(), run(), run()), (400, 400, 429));
}
