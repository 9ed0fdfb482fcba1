//! The folder of every scene: a project with modules, replies and records with fixed times and ids.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use cognitive_contract::Envelope;
use cognitive_contract::ports::{AuditLog as _, AuditRecord, Usage};
use cognitive_ports::review::{NewDecision, ReviewEntry, ReviewQueue as _, Verdict};
use cognitive_store::{ReviewLimits, Store, StoredReviewQueue};
use cognitive_testkit::{FakeModel, bundled_replies};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::scenes::{Scene, SceneCompany};
use super::times::{untimed, untimed_waterfall};

/// The output of a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// The folder. Its path has a fixed length, because line wrapping depends on it.
pub(crate) struct Stage(TempDir);

const MANIFEST: &str = "name: greeter\nversion: 1.2.0\nresponsibility: Greet somebody by name, and say how warm the greeting is.\n\
tier: decision\nexcludes: [insulting anybody, speaking to several people at once]\n";
const SCHEMA: &str = r#"{
  "input": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "minLength": 1, "description": "Who is greeted"}}},
  "data": {"type": "object", "required": ["rationale", "greeting", "warmth"], "properties": {
    "rationale": {"type": "string"},
    "greeting": {"type": "string", "minLength": 3, "description": "The greeting itself"},
    "warmth": {"enum": ["cold", "warm"], "description": "How it sounds"}
  }}
}"#;
const REPLY: &str = r#"{"ok": true, "meta": {"confidence": 0.93, "risk": "low", "explain": "A warm greeting"},
 "data": {"rationale": "The name was given, so it is used.", "greeting": "Good morning, Ann!", "warmth": "warm"}}"#;
const PARTIAL: &str = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "A greeting"},
 "data": {"rationale": "Short.", "greeting": "Hi", "warmth": "tepid"}}"#;

/// Composed of two modules; the second one is skipped if the first was warm.
const VISIT: &str = r#"name: visit
version: 1.0.0
responsibility: Greet somebody, and look closer at a cold greeting.
tier: decision
excludes: [insulting anybody]
composition:
  requires: [{name: greeter}, {name: text-classifier, optional: true}]
  dataflow:
    - {from: input, to: greeter}
    - {from: greeter.output, to: text-classifier, condition: "$.data.warmth == 'cold'", mapping: {text: $.data.greeting}}
    - {from: greeter.output, to: output, mapping: {greeting: $.data.greeting}}
"#;
const VISIT_SCHEMA: &str = r#"{
  "input": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
  "data": {"type": "object", "required": ["rationale", "greeting"],
    "properties": {"rationale": {"type": "string"}, "greeting": {"type": "string"}}}
}"#;
/// The stub always gives the same answer, so one of the cases is wrong.
const CASES: &str = r#"{"id": "late", "input": {"text": "It came two weeks late."}, "expect": {"sentiment": "positive"}}
{"id": "broken", "input": {"text": "The box was broken."}, "expect": {"sentiment": "negative"}}
"#;

impl Stage {
    /// Returns the folder that all scenes share; none of them changes it.
    pub(crate) fn set() -> &'static Self {
        static SHARED: OnceLock<Stage> = OnceLock::new();
        SHARED.get_or_init(Self::new)
    }

    /// Creates a separate folder.
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("cogn-look-").rand_bytes(6).tempdir_in("/tmp").unwrap();
        let stage = Self(dir);
        fs::create_dir_all(stage.path("home/.cognitive")).unwrap();
        stage.modules();
        stage.files();
        stage.records();
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.path("project")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path("home")
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.project().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn modules(&self) {
        let greeter = "cognitive/modules/greeter";
        self.write(&format!("{greeter}/module.yaml"), MANIFEST);
        self.write(&format!("{greeter}/schema.json"), SCHEMA);
        self.write(
            &format!("{greeter}/prompt.md"),
            "Greet the person whose name is given. Say in `rationale` why so.\n",
        );
        for (case, warmth) in [("ann", "warm"), ("bob", "cold")] {
            self.write(&format!("{greeter}/tests/{case}.input.json"), r#"{"name": "Ann"}"#);
            self.write(
                &format!("{greeter}/tests/{case}.expected.json"),
                format!(r#"{{"warmth": "{warmth}"}}"#),
            );
            self.write(&format!("{greeter}/tests/{case}.reply.txt"), REPLY);
        }
        self.write("visit/module.yaml", VISIT);
        self.write("visit/prompt.md", "The parts answer.\n");
        self.write("visit/schema.json", VISIT_SCHEMA);
        self.write(
            "odd/module.yaml",
            "name: odd\nversion: 1.0.0\nresponsibility: Be odd\ntier: fast\nexcludes: [x]\n",
        );
        self.write("odd/schema.json", r#"{"input": {}, "data": {"type": "strng"}}"#);
        self.write("odd/prompt.md", "Answer.\n");
        let old = "---\nname: old\nversion: 1.0.0\nresponsibility: Answer a question\nexcludes: [guessing]\n---\nAnswer.\n";
        self.write("old/MODULE.md", old);
        let prompty = "name: hello\nmodel: gpt-4o\ninputs: {person: Ann}";
        self.write(
            "hello.prompty",
            format!("---\n{prompty}\n---\nGreet {{{{person}}}}{{% if late %}} late{{% endif %}}.\n"),
        );
        self.write("agent.prompty", format!("---\n{prompty}\ntools: [search]\n---\nSearch.\n"));
        self.write("old/schema.json", r#"{"input": {"type": "object"}, "output": {"type": "object"}}"#);
    }

    fn files(&self) {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let copied = |path: &str| fs::read(repository.join(path)).unwrap();
        self.write("reply.txt", REPLY);
        self.write("partial.txt", PARTIAL);
        self.write("prose.txt", "Of course! Here is a warm greeting for Ann,\nas you wished.\n");
        self.write("review.txt", copied("modules/code-reviewer/tests/sql-injection.reply.txt"));
        self.write("vectors/prompt.json", copied("conformance/prompt.json"));
        self.write("cases.jsonl", CASES);
        self.write("broken.json", "{\n  \"name\": Ann\n}\n");
        self.write("broken.yaml", "reask: 1\nmodle: large\n");
        self.write("good.json", REPLY);
        self.write("wrong.json", REPLY.replace("0.93", "1.5").replace("\"low\"", "\"tiny\""));
        self.write(
            "shop/cognitive.yaml",
            "provider: openai\nbase_url: https://shop.example/v1\naudit: {payloads: true}\n",
        );
        image::RgbImage::from_pixel(64, 48, image::Rgb([20, 120, 220]))
            .save(self.project().join("picture.png"))
            .unwrap();
    }

    /// Writes a database with the same records in every run.
    fn records(&self) {
        let path = self.home().join(".cognitive/cognitive.db");
        let store = Store::open(&path).unwrap();
        let good = json!({ "ok": true, "meta": { "confidence": 0.93, "risk": "low", "explain": "e" }, "data": { "rationale": "r" } });
        let bad = json!({ "ok": false, "meta": { "confidence": 0.0, "risk": "high", "explain": "e" },
                          "error": { "code": "E3001", "message": "m" } });
        let receipt = json!({ "decode": "native_schema", "attempts": [{ "outcome": "overloaded" }, { "outcome": "ok" }],
            "repairs": [{ "path": "/meta/risk", "rule": "lowercase" }], "liberties": [{ "at": 0, "rule": "fence", "what": "code fence" }] });
        for (number, trace, module, envelope, latency) in [
            (0, "11111111-1111-4111-8111-111111111111", "greeter", &good, 1_234.0),
            (600, "22222222-2222-4222-8222-222222222222", "code-review-pipeline", &bad, 34_323.1),
            (700, "33333333-3333-4333-8333-333333333333", "greeter", &good, 812.0),
            (3_600, "44444444-4444-4444-8444-444444444444", "greeter", &good, 9.4),
        ] {
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_323_045 + number);
            let envelope = Envelope::from_value(envelope.clone()).unwrap();
            let mut record = AuditRecord::new(at, trace, module, &envelope);
            record.latency_ms = latency;
            "openai/gpt-5.4-mini".clone_into(&mut record.model);
            record.usage = Some(Usage::new(1_234, 56));
            record.receipt = receipt.clone();
            record.user = Some("ann".to_owned());
            store.record(&record).unwrap();
        }
        reviews(store);
        let entry = ["context", "set", "user_profile", r#"{"expertise_level": "expert"}"#, "--user", "ann"];
        assert!(self.command(100).args(entry).output().unwrap().status.success());
    }

    /// Prepares the program in the project, isolated from this machine.
    pub(crate) fn command(&self, width: usize) -> Command {
        let mut command = cognitive_testkit::command(env!("CARGO_BIN_EXE_cogn"));
        command.current_dir(self.project()).env_clear();
        command.env("HOME", self.home()).env("COGN_OFFLINE", "1").env("TZ", "UTC");
        command.env("COLUMNS", width.to_string());
        command
    }

    /// Plays a scene. Scenes that write use other folders.
    pub(crate) fn see(&self, scene: &Scene, width: usize, colour: bool) -> Seen {
        static WRITTEN_TO: OnceLock<Stage> = OnceLock::new();
        let fresh = ["init", "import"].iter().any(|word| scene.line.starts_with(word)).then(Self::new);
        let stage = match &fresh {
            Some(fresh) => fresh,
            // A run is recorded, which other scenes would show.
            None if scene.line.starts_with("run") => WRITTEN_TO.get_or_init(Self::new),
            None => self,
        };
        let mut command = stage.command(width);
        command
            .args(scene.line.split(' '))
            .args(["--color", if colour { "always" } else { "never" }])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if scene.with != SceneCompany::Nobody {
            command.env("OPENAI_API_KEY", "sk-test").env("OPENAI_BASE_URL", model());
        }
        let mut child = command.spawn().unwrap();
        let started =
            if scene.with == SceneCompany::Operator { stop_once_it_listens(&mut child) } else { Vec::new() };
        let output = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| stage.masked(&String::from_utf8(bytes).unwrap());
        let err = text([started, output.stderr].concat());
        let out = text(output.stdout);
        let (out, err) = match scene.with {
            _ if scene.line.contains("--trace") => (out, untimed_waterfall(&err)),
            SceneCompany::Model => (untimed(&out), err),
            SceneCompany::Operator => (out, same_port(&err)),
            SceneCompany::Nobody => (out, err),
        };
        Seen { code: output.status.code().unwrap(), out, err }
    }

    /// Masks the values that differ between runs, with the same length.
    fn masked(&self, text: &str) -> String {
        let own = self.0.path().display().to_string();
        let name = self.0.path().file_name().unwrap().to_string_lossy().into_owned();
        // The name is also masked where the path is wrapped.
        let text = text.replace(&own, "/tmp/cogn-look-000000").replace(&name, "cogn-look-000000");
        let text = steady(&text, "\"trace_id\":", |letter| letter.is_ascii_hexdigit() || letter == '-');
        let text = steady(&text, "\"latency_ms\":", |letter| letter.is_ascii_digit() || letter == '.');
        let text = steady(&text, "\"verification_hash\": \"sha256:", |letter| letter.is_ascii_hexdigit());
        let text = steady(&text, "\"processing_time_ms\":", |letter| letter.is_ascii_digit());
        let text = steady(&text, "\"time\":", |letter| letter.is_ascii_digit());
        steady(&text, "\"timestamp\":", |letter| letter.is_ascii_digit())
    }
}

/// Writes two runs that wait for review, and one that was rejected.
fn reviews(store: Store) {
    let at = |second: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_323_045 + second);
    // Without the audit, whose records other scenes count.
    let review_queue = StoredReviewQueue::new(Arc::new(store), ReviewLimits::default(), false);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for (number, confidence, risk) in [(10, 0.41, "medium"), (20, 0.58, "high"), (30, 0.87, "high")] {
        let meta = json!({ "confidence": confidence, "risk": risk, "explain": "A warm greeting" });
        let data = json!({ "rationale": "The name was given, so it is used.", "greeting": "Good morning, Ann!", "warmth": "warm" });
        let entry = ReviewEntry {
            at: at(number),
            run_id: String::new(),
            trace_id: "11111111-1111-4111-8111-111111111111".to_owned(),
            key: None,
            user: Some("ann".to_owned()),
            tenant: None,
            module: "greeter".to_owned(),
            version: "1.2.0".to_owned(),
            model: "openai/gpt-5.4-mini".to_owned(),
            rule: "risk in [high] || confidence < 0.6".to_owned(),
            input: json!({ "name": "Ann" }),
            envelope: json!({ "ok": true, "meta": meta, "data": data }),
        };
        runtime.block_on(review_queue.enter(&entry)).unwrap();
    }
    let (reason, by) = ("It is evening there".to_owned(), Some("bob".to_owned()));
    let decision = NewDecision { verdict: Verdict::Reject, reason, data: None, by, key: None, at: at(99) };
    review_queue.decide("3", &decision).unwrap();
}

/// Returns the address of the hosted model, which all scenes share.
fn model() -> String {
    static MODEL: OnceLock<FakeModel> = OnceLock::new();
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../modules");
    MODEL.get_or_init(|| FakeModel::with_known_replies(bundled_replies(&modules))).url()
}

/// Reads the output of a server until it listens, then stops it and reads the rest.
fn stop_once_it_listens(child: &mut Child) -> Vec<u8> {
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("http://") && stderr.read_line(&mut said).unwrap() > 0 {}
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    stderr.read_to_string(&mut said).unwrap();
    said.into_bytes()
}

/// Replaces the port of a server by the default one.
fn same_port(text: &str) -> String {
    let (before, after) = text.split_once("127.0.0.1:").unwrap();
    format!("{before}127.0.0.1:8000{}", after.trim_start_matches(|letter: char| letter.is_ascii_digit()))
}

/// Masks the value after a name with zeros: each letter of a text, a single digit of a number.
fn steady(text: &str, name: &str, changes: fn(char) -> bool) -> String {
    let mut parts = text.split(name);
    let mut steady = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let value = part.trim_start_matches([' ', '"']);
        let (lead, value) = part.split_at(part.len() - value.len());
        // It is the description of the member, not a value.
        if value.starts_with('{') {
            steady.extend([name, part]);
            continue;
        }
        let end = value.find(['"', ',', '}', '\n']).unwrap_or(value.len());
        let (value, rest) = value.split_at(end);
        let zeros = |letter: char| if changes(letter) && letter != '-' { '0' } else { letter };
        let is_text = lead.contains('"') || name.ends_with("sha256:");
        let value: String = if is_text { value.chars().map(zeros).collect() } else { "0".to_owned() };
        for piece in [name, lead, &value, rest] {
            steady.push_str(piece);
        }
    }
    steady
}

#[test]
fn only_what_differs_is_masked() {
    let text = r#"{"trace_id":"ab-9","latency_ms":12.5,"x":12.5, "timestamp": "2026-01-02"}"#;
    let masked = steady(text, "\"trace_id\":", |letter| letter.is_ascii_hexdigit());
    let masked = steady(&masked, "\"latency_ms\":", |letter| letter.is_ascii_digit());
    assert_eq!(masked, r#"{"trace_id":"00-0","latency_ms":0,"x":12.5, "timestamp": "2026-01-02"}"#);
    assert!(serde_json::from_str::<Value>(&masked).is_ok());
}
