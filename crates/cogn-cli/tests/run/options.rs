//! The documented command line: the list of commands, the options of `run`, the default provider, the report of
//! `doctor` and the arguments of `migrate`.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use cognitive_testkit::{Act, FakeModel, Home, ProcessOutput, TestServer, good_answer, stream_reply};
use serde_json::{Value, json};

use crate::home;

/// Runs `summarizer` with a saved reply.
fn replayed(place: &Home, args: &[&str], stdin: &str) -> ProcessOutput {
    place.write("reply.txt", good().to_string());
    place.run(&[&["run", "summarizer", "--reply", "reply.txt"], args].concat(), &[], stdin)
}

fn good() -> Value {
    good_answer(&json!({ "rationale": "One topic.", "summary": "Short." }))
}

#[test]
fn cli_002_009_help_and_version_name_every_command_and_the_program() {
    let place = home();
    let help = place.cogn(&["--help"]);
    assert_eq!((help.exit(), help.err.as_str()), (0, ""));
    let listed: Vec<&str> = help.out.lines().filter_map(|line| line.split_whitespace().next()).collect();
    for command in ["run", "migrate", "validate", "list", "info", "init", "doctor", "test", "serve", "verify"]
    {
        assert!(listed.contains(&command), "{command}: {}", help.out);
        let own = place.cogn(&[command, "--help"]);
        assert!(own.exit() == 0 && own.out.contains(&format!("cogn {command}")), "{}", own.out);
    }
    let version = place.cogn(&["--version"]);
    assert!(version.exit() == 0 && version.out.contains(env!("CARGO_PKG_VERSION")), "{}", version.out);
}

#[test]
fn cli_003_input_comes_from_a_file_from_stdin_or_as_text() {
    let place = home();
    let input = r#"{"text": "A long text."}"#;
    place.write("input.json", input);
    for (args, stdin) in [(&["input.json"][..], ""), (&[], input), (&["-"], input)] {
        let output = replayed(&place, args, stdin);
        assert_eq!(output.envelope()["data"]["summary"], "Short.", "{args:?}");
    }
    let nothing = replayed(&place, &[], "{}").envelope();
    assert_eq!(nothing["error"]["code"], "E1001", "it was stdin that was read: {nothing}");
    for args in [&["--args", "a text"][..], &["-a", "a text"]] {
        assert_eq!(replayed(&place, args, "").envelope()["ok"], true, "{args:?}");
    }
}

// CLI-003, CLI-011: an output file, indentation, and no schemas. Text that is not an envelope is still refused.
#[test]
fn cli_003_011_the_options_of_run_do_what_they_say() {
    let place = home();
    let set = ["--set", "text=A long text."];
    for (name, option) in [("short.json", "-o"), ("long.json", "--output")] {
        let output = replayed(&place, &[&set[..], &[option, name]].concat(), "");
        let written: Value = serde_json::from_str(&place.read(name)).unwrap();
        assert_eq!(written, output.envelope());
    }
    assert_eq!(replayed(&place, &set, "").out.lines().count(), 1);
    assert!(replayed(&place, &[&set[..], &["--pretty"]].concat(), "").out.lines().count() > 5);
    let unchecked = replayed(&place, &["--input", r#"{"no": "text"}"#, "--no-validate"], "");
    assert_eq!(unchecked.envelope()["ok"], true, "{}", unchecked.out);
    place.write(
        "bare.txt",
        r#"{"ok": true, "meta": {"confidence": 7, "risk": "low", "explain": "e"}, "data": {}}"#,
    );
    let args = ["run", "summarizer", "--reply", "bare.txt", "--no-validate", "--input", "{}"];
    assert_eq!(place.cogn(&args).envelope()["error"]["code"], "E3001");
}

#[test]
fn cli_003_005_flags_win_over_the_environment_that_names_provider_model_and_key() {
    let service = FakeModel::script(vec![Act::stream(stream_reply(&good()))]);
    let place = home();
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
    let asked = service.raw_requests();
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
    let place = home();
    let run = ["run", "summarizer", "--set", "text=A long text."];
    for (args, environment) in [(&["--provider", "stub"][..], &[][..]), (&[], &[("LLM_PROVIDER", "stub")])] {
        let envelope = place.run(&[&run[..], args].concat(), environment, "").envelope();
        assert_eq!(envelope["error"]["code"], "E4001", "{envelope}");
    }
    place.write("reply.txt", good().to_string());
    let replay = [&run[..], &["--provider", "replay", "--reply", "reply.txt"]].concat();
    assert_eq!(place.run(&replay, &[("LLM_PROVIDER", "stub")], "").envelope()["data"]["summary"], "Short.");
}

#[cfg(feature = "local")]
#[test]
fn cli_005_d_02_without_any_configuration_the_embedded_model_answers() {
    let Some(weights) = cognitive_testkit::weights() else { return };
    let place = home();
    let kept = place.path(".cache/cogn/models");
    fs::create_dir_all(&kept).unwrap();
    // The folder that `cogn model pull` uses, so that no variable is needed.
    fs::hard_link(&weights, kept.join(weights.file_name().unwrap()))
        .or_else(|_| fs::copy(&weights, kept.join(weights.file_name().unwrap())).map(drop))
        .unwrap();
    let output = place.cogn(&["run", "text-classifier", "--set", "text=What a wonderful day!"]);
    let envelope = output.envelope();
    assert!(envelope["meta"]["model"].as_str().unwrap().starts_with("embedded/"), "{envelope}");
}

// API-009: the default addresses that a server listens on.
#[test]
fn api_009_a_server_listens_on_this_machine_alone_unless_told_otherwise() {
    let help = home().cogn(&["serve", "--help"]).out;
    let default = |option: &str| {
        let described = help.split_once(&format!("--{option} <")).unwrap().1;
        described.split_once("[default: ").unwrap().1.split(']').next().unwrap().to_owned()
    };
    assert_eq!((default("host").as_str(), default("port").as_str()), ("127.0.0.1", "8000"), "{help}");
    let server = TestServer::start(&home(), &[], &[("OPENAI_API_KEY", "sk-test")]);
    let (host, port) = server.address.rsplit_once(':').unwrap();
    assert_eq!(host, "127.0.0.1", "{}", server.said);
    // A server of all addresses would answer here, too.
    let elsewhere = format!("127.0.0.2:{port}").parse().unwrap();
    assert!(TcpStream::connect_timeout(&elsewhere, Duration::from_secs(2)).is_err());
}

// CAP-003, CAP-001: the command and the server report the same.
#[test]
fn cap_001_003_the_server_declares_what_the_command_prints() {
    let place = home();
    // A provider that needs no weights; it gets no requests.
    let key = ("OPENAI_API_KEY", "sk-test");
    let declared = TestServer::start(&place, &[], &[key]).get("/capabilities");
    let printed = place.run(&["capabilities"], &[key], "").json;
    assert_eq!(declared, printed);
    assert_eq!(printed["capabilities"]["supported_transports"], json!(["sse", "websocket", "ndjson"]));
}

#[test]
fn cli_006_migrate_knows_its_short_names_and_can_do_without_a_backup() {
    let place = home();
    let manifest =
        "---\nname: old\nversion: 1.0.0\nresponsibility: Answer\nexcludes: [guessing]\n---\nAnswer.\n";
    place.write("cognitive/modules/old/MODULE.md", manifest);
    place.write(
        "cognitive/modules/old/schema.json",
        r#"{"input": {"type": "object"}, "output": {"type": "object"}}"#,
    );
    let folders = || fs::read_dir(place.path("cognitive/modules")).unwrap().count();
    for args in [&["migrate", "old", "-n"][..], &["migrate", "-a", "--dry-run"]] {
        assert_eq!(place.cogn(args).exit(), 0, "{args:?}");
        assert!(folders() == 1 && !place.path("cognitive/modules/old/module.yaml").exists(), "{args:?}");
    }
    assert_eq!(place.cogn(&["migrate", "-a", "--no-backup"]).exit(), 0);
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
    let place = home();
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
    place.cogn(&["validate", "./ticket-triage"]).expect_exit(0);
    let set = "ticket=I was charged twice this month.";
    let ran = place.cogn(&["run", "./ticket-triage", "--set", set, "--reply", "reply.txt"]);
    let envelope = ran.envelope();
    assert_eq!((ran.exit(), &envelope["data"]), (0, &expected["data"]));
    for (member, value) in expected["meta"].as_object().unwrap() {
        assert_eq!(&envelope["meta"][member], value);
    }
}

#[test]
fn cli_010_golden_tests_run_for_a_module_or_for_all_of_them() {
    let place = home();
    let one = place.cogn(&["test", "summarizer"]);
    let all = place.cogn(&["test", "--all"]);
    let told = |output: &ProcessOutput| {
        let last = output.out.lines().last().unwrap_or_default();
        last.split(' ').next().and_then(|count| count.parse::<u32>().ok()).unwrap_or_default()
    };
    assert_eq!((one.exit(), all.exit()), (0, 0), "{}{}", one.out, all.out);
    assert!(0 < told(&one) && told(&one) < told(&all), "{}{}", one.out, all.out);
    let sum = all.out.lines().last().unwrap();
    assert!(page("docs/tour.md").contains(&format!("…\n{sum}\n")), "docs/tour.md should say: {sum}");
    let wordy = place.cogn(&["test", "summarizer", "-v"]);
    assert!(wordy.out.contains(" ms") && !one.out.contains(" ms"), "{}", wordy.out);
}

#[test]
fn cli_007_doctor_lists_providers_and_modules_and_never_a_key() {
    let place = home();
    let environment = [("ANTHROPIC_API_KEY", "sk-very-secret")];
    let told = place.run(&["doctor", "--json"], &environment, "");
    let health = &told.json;
    let providers = health["providers"].as_array().unwrap();
    for (name, configured) in [("openai", false), ("anthropic", true), ("gemini", false), ("ollama", false)] {
        let state = providers.iter().find(|provider| provider["name"] == name).unwrap();
        assert_eq!(state["configured"], json!(configured), "{state}");
    }
    let listed = place.json(&["list", "--json"]);
    assert_eq!(health["modules"], json!(listed.as_array().unwrap().len()));
    let words = place.run(&["doctor"], &environment, "");
    words.assert_stdout(&["anthropic", &health["modules"].to_string()]);
    assert!(![told, words].iter().any(|each| each.all().contains("sk-very-secret")));
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
    let stub = FakeModel::script(vec![Act::json(201, &deployment())]);
    let (place, admin) = (home(), format!("http://{}", stub.address));
    let words = ["deploy", "restate", "--admin", &admin, "--service", "http://127.0.0.1:9080", "--force"];
    let told = place.cogn(&words).expect_exit(0);
    assert!(told.out.contains("multi-reviewer") && told.out.contains("envelope run"), "{}", told.out);
    assert!(told.err.contains("registered 1 service as dp_17"), "{}", told.err);
    let asked = stub.raw_requests().remove(0);
    assert!(asked.starts_with("POST /deployments ") && asked.contains(r#""force":true"#), "{asked}");
    let said = place.json(&[&words[..], &["--json"]].concat());
    assert_eq!((&said["id"], &said["services"][0]["kind"]), (&json!("dp_17"), &json!("workflow")));
}

#[test]
fn deploy_restate_says_who_is_not_there() {
    let place = home();
    let refused =
        FakeModel::script(vec![Act::reply(400, "", r#"{"message": "error when calling the worker"}"#)]);
    let (admin, nobody) = (format!("http://{}", refused.address), "http://127.0.0.1:9".to_owned());
    for (admin, service, said) in [
        (
            admin.as_str(),
            "http://127.0.0.1:9080",
            "rejected the worker (400 Bad Request): error when calling the worker",
        ),
        (
            nobody.as_str(),
            "http://127.0.0.1:9080",
            "the Restate server at http://127.0.0.1:9 does not respond",
        ),
        ("nonsense", "http://127.0.0.1:9080", "`--admin` is not `http://HOST:PORT`"),
        (nobody.as_str(), "nonsense", "`--service` is not `http://HOST:PORT`"),
    ] {
        let told = place.cogn(&["deploy", "restate", "--admin", admin, "--service", service]);
        assert!(
            told.exit() == 1 && told.out.is_empty() && told.err.contains(said),
            "{}{}",
            told.out,
            told.err
        );
    }
}
