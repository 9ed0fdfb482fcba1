//! `cogn run` against a local stub in the OpenAI wire format: the envelope, the audit, no leaked key, and network
//! faults.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "in a test, a panic is the report")]

use serde_json::{Value, json};
use tempfile::TempDir;

#[path = "providers/budget.rs"]
mod budget;
#[path = "providers/contract.rs"]
mod contract;
#[path = "providers/costs.rs"]
mod costs;
#[path = "providers/faults.rs"]
mod faults;
#[path = "providers/meaning.rs"]
mod meaning;
#[path = "providers/media.rs"]
mod media;
#[path = "providers/official.rs"]
mod official;
#[path = "providers/prices.rs"]
mod prices;
#[path = "providers/recorded.rs"]
mod recorded;
#[path = "providers/schema.rs"]
mod schema;
#[path = "providers/secrets.rs"]
mod secrets;
#[path = "providers/services.rs"]
mod services;
#[path = "providers/stub.rs"]
mod stub;
#[path = "providers/tools.rs"]
mod tools;

use official::Official;
use stub::{Act, Stub, good, streamed};

const KEY: &str = "sk-test-very-secret";

/// The output of a process.
struct Output {
    code: i32,
    out: String,
    all: String,
    envelope: Value,
}

/// Processes with a common home.
struct Run {
    home: TempDir,
    /// A file of certificates to trust instead of the system's.
    trusted: Option<&'static str>,
}

impl Run {
    fn new(trusted: Option<&'static str>) -> Self {
        Self { home: tempfile::tempdir().unwrap(), trusted }
    }

    /// Writes the user's own configuration.
    fn configure(&self, text: &str) {
        let folder = self.home.path().join(".cognitive");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.yaml"), text).unwrap();
    }

    fn cogn(&self, args: &[&str]) -> Output {
        self.cogn_with(&[], args)
    }

    /// Runs `cogn` with additional variables.
    fn cogn_with(&self, variables: &[(&str, &str)], args: &[&str]) -> Output {
        let mut command = cognitive_testkit::command(env!("CARGO_BIN_EXE_cogn"));
        command.args(args).current_dir(self.home.path()).env_clear().env("HOME", self.home.path());
        command.env("OPENAI_API_KEY", KEY).env("ANTHROPIC_API_KEY", KEY).env("GEMINI_API_KEY", KEY);
        command.env("COGN_OFFLINE", "1").envs(variables.iter().copied());
        if let Some(file) = self.trusted {
            command.env("SSL_CERT_FILE", file);
        }
        let output = command.output().unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        let all = format!("{out}{}", String::from_utf8(output.stderr).unwrap());
        let envelope = serde_json::from_str(&out).unwrap_or_default();
        Output { code: output.status.code().unwrap(), out, all, envelope }
    }

    /// Runs a bundled module with the service at this address.
    fn summarizer(&self, url: &str, more: &[&str]) -> Output {
        let usual = ["run", "summarizer", "--set", "text=A long text.", "--base-url", url, "--model", "stub"];
        self.cogn(&[&usual, more].concat())
    }
}

#[test]
fn a_run_asks_the_service_keeps_the_books_and_shows_no_key() {
    let (run, service) = (Run::new(None), Stub::start(vec![Act::stream(streamed(&good()))]));
    let output = run.summarizer(&service.url(), &["--receipt"]);
    assert_eq!(output.code, 0, "{}", output.all);
    assert_eq!(output.envelope["data"]["summary"], "Short.");
    assert_eq!(output.envelope["meta"]["model"], "openai/stub-1");
    assert_eq!(
        output.envelope["meta"]["usage"],
        json!({ "input_tokens": 11, "output_tokens": 7, "total_tokens": 18, "cost": 0, "currency": "USD" })
    );
    let receipt = &output.envelope["meta"]["provenance"];
    assert_eq!(receipt["decode"], "native_schema");
    assert_eq!(receipt["attempts"].as_array().unwrap().len(), 1);
    assert_eq!(receipt["sha256"]["reply"].as_str().unwrap().len(), 64);
    let asked = service.asked();
    assert!(asked[0].contains(KEY), "the service gets the key");
    assert!(asked[0].contains("A long text.") && asked[0].contains("json_schema"));
    assert!(!output.all.contains(KEY));
    let trace = output.envelope["meta"]["trace_id"].as_str().unwrap().to_owned();
    let books = run.cogn(&["audit", "show", &trace]);
    assert!(books.all.contains("openai/stub-1") && !books.all.contains(KEY), "{}", books.all);
    assert!(!books.all.contains("A long text."), "payloads are kept only when asked for");
    assert!(!run.cogn(&["doctor"]).all.contains(KEY));
}

// S-03, D-06: only when asked for, and every call is counted.
#[test]
fn a_broken_answer_can_be_sent_back_once() {
    let broken = json!({ "ok": true, "meta": { "confidence": 0.9, "risk": "low", "explain": "e" }, "data": { "rationale": "r" } });
    let service = Stub::start(vec![Act::stream(streamed(&broken)), Act::stream(streamed(&good()))]);
    let output = Run::new(None).summarizer(&service.url(), &["--reask", "1", "--receipt"]);
    assert_eq!(output.code, 0, "{}", output.all);
    assert_eq!(output.envelope["meta"]["provenance"]["reasked"], 1);
    assert_eq!(output.envelope["meta"]["usage"]["total_tokens"], 36, "the tokens of both calls");
    assert!(service.asked()[1].contains("/data/summary"), "the model is told what was wrong");
}

// D-07, ENV-009, GEN-002: the envelope of a live run has exactly the members of the official schema, in success and
// failure; the final chunk of a stream has its tokens next to `meta`.
#[test]
fn w06_the_tokens_of_a_live_run_are_in_meta() {
    let mut boastful = good();
    boastful["usage"] = json!({ "input_tokens": 1 });
    boastful["meta"]["usage"] = json!("little");
    let broken = json!({ "ok": true, "meta": good()["meta"], "data": {} });
    let tokens =
        json!({ "input_tokens": 11, "output_tokens": 7, "total_tokens": 18, "cost": 0, "currency": "USD" });
    let official = Official::find();
    for (answer, members) in
        [(good(), "ok meta data"), (boastful, "ok meta data"), (broken, "ok meta error partial_data")]
    {
        let (run, script) = (Run::new(None), || vec![Act::stream(streamed(&answer))]);
        let output = run.summarizer(&Stub::start(script()).url(), &[]);
        let found: Vec<&str> = output.envelope.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(found.join(" "), members, "{}", output.all);
        assert_eq!(output.envelope["meta"]["usage"], tokens, "{}", output.all);
        let faults = official.as_ref().map(|official| official.faults(&output.envelope));
        assert_eq!(faults.unwrap_or_default(), Vec::<String>::new(), "{}", output.all);

        let streamed = run.summarizer(&Stub::start(script()).url(), &["--stream"]);
        let last: Value = serde_json::from_str(streamed.out.lines().last().unwrap()).unwrap();
        let (beside, inside) = (last.get("usage"), last["meta"].get("usage"));
        let wanted = if output.code == 0 { (Some(&tokens), None) } else { (None, Some(&tokens)) };
        assert_eq!((beside, inside), wanted, "{last}");
    }
}

// ERR-015, PIPE-010: a refused key is E4001, and the message does not contain the key.
#[test]
fn err_015_a_refused_key_is_not_repeated() {
    let complaint = Act::error(401, "invalid_api_key", &format!("Incorrect API key provided: {KEY}"));
    let output = Run::new(None).summarizer(&Stub::start(vec![complaint]).url(), &[]);
    assert_eq!((output.code, output.envelope["error"]["code"].as_str()), (1, Some("E4001")));
    assert!(!output.all.contains(KEY), "{}", output.all);
}
