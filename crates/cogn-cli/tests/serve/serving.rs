//! `cogn serve` with the settings of its operator: flags, environment and `serve:` of a configuration file; the offered
//! modules, the access rules, and the rate limits. All requests go to the real program.

use std::fs;
use std::process::Command;

use cognitive_testkit::{Home, ProcessOutput, TestServer};
use serde_json::{Value, json};

use crate::home;

/// Creates a home directory that is also the project, with one user module.
fn with_config(config: &str) -> Home {
    let home = home();
    let schema = json!({ "input": { "type": "object" }, "data": { "type": "object" } });
    let manifest = "name: words\nversion: 1.0.0\nresponsibility: Find words\n";
    home.module("words", manifest, "Find the words.", &schema);
    // The user's file, which needs no trust.
    home.user_config(config);
    home
}

fn command(home: &Home, args: &[&str], environment: &[(&str, &str)]) -> Command {
    // A service that no run reaches.
    let service = ["--provider", "openai", "--base-url", "http://127.0.0.1:9"];
    home.command(&[&["serve"], args, &service].concat(), environment)
}

fn start(home: &Home, args: &[&str], environment: &[(&str, &str)]) -> TestServer {
    TestServer::spawn(&mut command(home, args, environment))
}

/// The names of the offered modules.
fn modules(server: &TestServer) -> Vec<String> {
    let list = server.get("/api/modules");
    list["modules"].as_array().unwrap().iter().map(|each| each["name"].as_str().unwrap().to_owned()).collect()
}

/// Returns the output of a server that fails to start.
fn refusal(home: &Home, args: &[&str], environment: &[(&str, &str)]) -> String {
    let output = ProcessOutput::run(&mut command(home, args, environment));
    assert_ne!(output.exit(), 0);
    output.err
}

#[test]
fn a_file_and_the_environment_can_set_what_flags_set() {
    let config =
        "serve: {host: 127.0.0.1, port: 0, modules: [words, summarizer], keys: {app: APP_KEY}, rate: 1}\n";
    let home = with_config(config);
    let key = [("APP_KEY", "a-key-of-some-length")];
    let server = start(&home, &["--quiet"], &key);
    assert_eq!(server.json("GET /api/modules", &[], "").0, 401, "the file asks for a key");
    let bearer = &[("authorization", "Bearer a-key-of-some-length")];
    let (_, list) = server.json("GET /api/modules", bearer, "");
    let names: Vec<&Value> = list["modules"].as_array().unwrap().iter().map(|each| &each["name"]).collect();
    assert_eq!(names, [&json!("summarizer"), &json!("words")]);
    let run = || server.json("POST /api/run/summarizer", bearer, "{}").0;
    assert_eq!((run(), run()), (400, 429), "one run per minute");
    assert_eq!(server.json("POST /api/run/text-classifier", bearer, "{}").0, 429, "what is not there counts");
    let said = refusal(&home, &[], &[]);
    assert!(said.contains("`serve.keys.app`") && said.contains("`APP_KEY`"), "{said}");
    // The environment overrides the file, and a flag overrides both.
    let both = [key[0], ("COGN_SERVE_MODULES", "words"), ("COGN_SERVE_RATE", "0")];
    let server = start(&home, &["--quiet"], &both);
    assert_eq!(server.json("GET /api/modules/summarizer", bearer, "").0, 404);
    for _ in 0..3 {
        assert_eq!(server.json("POST /api/run/absent", bearer, "{}").0, 404, "no limit");
    }
    let server = start(&home, &["--quiet", "--modules", "summarizer"], &both);
    assert_eq!(server.json("GET /api/modules/summarizer", bearer, "").0, 200);
}

#[test]
fn a_project_that_nobody_trusts_opens_no_server_to_others() {
    let home = with_config("");
    let outside = "serve: {host: 0.0.0.0, cors: ['https://thief.example'], port: 0, modules: [words]}\n";
    home.write("project/cognitive.yaml", outside);
    let mut held = command(&home, &["--modules", "summarizer"], &[]);
    let server = TestServer::spawn(held.current_dir(home.path("project")));
    let (warning, listening) = server.said.split_once('\n').unwrap();
    assert!(warning.contains("`serve.host`, `serve.cors`"), "{warning}");
    assert!(listening.contains("http://127.0.0.1:") && !listening.contains(":8000"), "{listening}");
}

#[test]
fn which_modules_are_offered_is_the_operators_choice() {
    let home = with_config("");
    let all = modules(&start(&home, &["--port", "0", "--quiet"], &[]));
    assert!(all.len() > 10 && all.contains(&"words".to_owned()), "{all:?}");
    assert_eq!(modules(&start(&home, &["--port", "0", "--quiet", "--no-bundled"], &[])), ["words"]);
    let named = ["--port", "0", "--quiet", "--modules", "words,multi-reviewer"];
    assert_eq!(modules(&start(&home, &named, &[])), ["multi-reviewer", "words"]);
    let said = refusal(&home, &["--modules", "wrods"], &[]);
    assert!(said.contains("module not found: `wrods`") && said.contains("`words`"), "{said}");
}

// Local callers have no default rate limit.
#[test]
fn callers_on_this_machine_are_not_limited_unless_somebody_says_so() {
    let home = with_config("");
    let server = start(&home, &["--port", "0", "--quiet"], &[]);
    let run = |headers: &[(&str, &str)]| server.json("POST /api/run/summarizer", headers, "{}").0;
    for _ in 0..70 {
        assert_eq!(run(&[]), 400);
    }
    let forwarded = &[("x-forwarded-for", "203.0.113.7")];
    // As many as it takes: while the first sixty are answered, a slow machine lets more of them in.
    assert!((0..10_000).any(|_| run(forwarded) == 429), "behind a proxy there is a limit");
    let limited = start(&home, &["--port", "0", "--quiet", "--rate", "2"], &[]);
    let run = || limited.json("POST /api/run/summarizer", &[], "{}").0;
    assert_eq!((run(), run(), run()), (400, 400, 429));
}

/// The keys of a test, in the format of the file.
const KEYS: &str = "app 0123456789abcdef-app\nann 0123456789abcdef-ann author\n\n# both\nben 0123456789abcdef-ben run,review\n";

/// Writes a key file that only its owner can read, so that there is no warning.
fn write_keys(home: &Home, keys: &str) {
    home.write("keys.txt", keys);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(home.path("keys.txt"), fs::Permissions::from_mode(0o600)).unwrap();
    }
}

/// Status and body of what the holder of a key gets.
fn get_as(server: &TestServer, name: &str, path: &str) -> (u16, Value) {
    let bearer = format!("Bearer 0123456789abcdef-{name}");
    server.json(&format!("GET {path}"), &[("authorization", &bearer)], "")
}

// A key runs modules unless its line, or the configuration, grants other roles.
#[test]
fn keys_have_the_roles_that_their_operator_gives_them() {
    let home = with_config("serve: {keys: {eva: {env: EVA_KEY, roles: [admin]}, old: OLD_KEY}}\n");
    write_keys(&home, KEYS);
    let variables = [("EVA_KEY", "0123456789abcdef-eva"), ("OLD_KEY", "0123456789abcdef-old")];
    let server = start(&home, &["--port", "0", "--keys", "keys.txt"], &variables);
    for (name, roles) in [
        ("app", json!(["run"])),
        ("ann", json!(["author"])),
        ("ben", json!(["run", "review"])),
        ("eva", json!(["run", "author", "review", "admin"])),
        ("old", json!(["run"])),
    ] {
        let (status, session) = get_as(&server, name, "/v1/session");
        assert_eq!((status, &session["name"], &session["roles"]), (200, &json!(name), &roles));
        assert_eq!(session["has"]["runs"], true, "the audit of this user answers");
    }
    let (status, refused) = get_as(&server, "app", "/v1/models");
    assert_eq!((status, &refused["error"]["details"]["role"]), (403, &json!("author")));
    let (_, models) = get_as(&server, "ann", "/v1/models");
    assert!(models["models"][0]["name"].as_str().unwrap().starts_with("openai/"), "{models}");
    let (status, runs) = get_as(&server, "eva", "/v1/runs");
    assert_eq!((status, &runs["runs"]), (200, &json!([])));
}

#[test]
fn a_role_that_nobody_knows_stops_the_start() {
    let home = with_config("");
    home.write("keys.txt", "app 0123456789abcdef-app rnu\n");
    let said = refusal(&home, &["--port", "0", "--keys", "keys.txt"], &[]);
    assert!(said.contains("unknown role: `rnu`"), "{said}");
    let _ = refusal(&home, &["--port", "0", "--edit", "no/such/folder"], &[]);
}

// No module can be changed until the operator names a folder; then an answer can become a passing test.
#[test]
fn modules_are_changed_only_in_folders_that_were_named() {
    let home = with_config("");
    let case = json!({ "kind": "golden", "name": "first", "input": { "text": "a" }, "envelope": {
        "ok": true, "meta": { "confidence": 0.9, "risk": "low", "explain": "e" }, "data": { "rationale": "r" } } });
    let keep = |server: &TestServer| server.json("POST /v1/modules/words/cases", &[], case.to_string());
    let closed = start(&home, &["--port", "0"], &[]);
    assert_eq!(closed.json("GET /v1/session", &[], "").1["has"]["edit"], false);
    assert_eq!(closed.json("GET /v1/modules/words/files", &[], "").1["editable"], false);
    assert_eq!(keep(&closed).0, 403);
    drop(closed);
    let open = start(&home, &["--port", "0", "--edit", "cognitive/modules"], &[]);
    assert_eq!(open.json("GET /v1/session", &[], "").1["has"]["edit"], true);
    let (status, kept) = keep(&open);
    assert_eq!(status, 200, "{kept}");
    assert_eq!(keep(&open).0, 409, "no case replaces another");
    let (_, files) = open.json("GET /v1/modules/words/files", &[], "");
    assert_eq!((&files["hash"], &files["tests"]), (&kept["hash"], &json!([{ "name": "first" }])));
    assert_eq!(open.json("GET /v1/modules/words/cases", &[], "").1["cases"][0]["id"], "first");
    let mut recorded = case.clone();
    recorded["name"] = json!("second");
    recorded["input"] = json!({ "text": "b" });
    recorded["reply"] = json!(
        r#"{"ok":true,"data":{"rationale":"r"},"error":null,"meta":{"confidence":0.9,"risk":"low","explain":"e"}}"#
    );
    let send = |body: &Value| open.json("POST /v1/modules/words/cases", &[], body.to_string());
    recorded["reply_dialect"] = json!("gpt");
    let (status, refused) = send(&recorded);
    assert_eq!(status, 400);
    assert!(refused["error"]["message"].as_str().unwrap().contains("use one of `openai`"), "{refused}");
    recorded["reply_dialect"] = json!("openai");
    let (status, kept) = send(&recorded);
    assert_eq!((status, &kept["recorded"]), (200, &json!(true)), "{kept}");
    assert!(kept["paths"].to_string().contains("tests/second.reply.json"), "D-18: {kept}");
    drop(open);
    home.cogn(&["test", "words"]).expect_exit(0);
}

// `cogn studio` is the same server, with its page opened; the address contains no secret.
#[cfg(unix)]
#[test]
fn studio_opens_the_page_of_its_server() {
    use std::os::unix::fs::PermissionsExt;
    let home = with_config("");
    let seen = home.path("seen");
    assert!(Command::new("mkfifo").arg(&seen).status().unwrap().success());
    home.write("browser", format!("#!/bin/sh\nprintf %s \"$1\" > '{}'\n", seen.display()));
    fs::set_permissions(home.path("browser"), fs::Permissions::from_mode(0o755)).unwrap();
    let args = ["studio", "--provider", "openai", "--base-url", "http://127.0.0.1:9"];
    let mut command = home.command(&args, &[("PATH", "/usr/bin:/bin")]);
    let server = TestServer::spawn(command.env("BROWSER", home.path("browser")));
    // A pipe: reading waits for the browser.
    assert_eq!(fs::read_to_string(&seen).unwrap(), format!("http://{}/", server.address));
    assert_eq!(server.json("GET /v1/session", &[], "").1["studio"], 1);
}
