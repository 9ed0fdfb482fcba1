//! A home with modules that find a word, and model services on loopback.

use std::ops::Deref;
use std::process::{Command, Stdio};

use cognitive_testkit::{Act, FakeModel, FakeReply, Home, ProcessOutput, Then, piece};
use serde_json::{Value, json};

/// The working place of a test: a project in its own home.
pub(crate) struct Place(Home);

impl Deref for Place {
    type Target = Home;

    fn deref(&self) -> &Home {
        &self.0
    }
}

impl Place {
    pub(crate) fn new() -> Self {
        Self(Home::new(env!("CARGO_BIN_EXE_cogn")).with("OPENAI_API_KEY", "sk-test"))
    }

    /// Writes files of a module of the project: `cognitive/modules/NAME`.
    pub(crate) fn module(&self, name: &str, files: &[(&str, &str)]) -> &Self {
        for (file, text) in files {
            self.write(&format!("cognitive/modules/{name}/{file}"), text);
        }
        self
    }

    /// Writes a module that finds a word. Its manifest has these further lines.
    pub(crate) fn finder(&self, name: &str, more: &str) -> &Self {
        let manifest = manifest(name, more);
        self.module(name, &[("module.yaml", &manifest), ("prompt.md", PROMPT), ("schema.json", SCHEMA)])
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.0.command(args, &[]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> ProcessOutput {
        self.cogn(args)
    }

    /// Runs a module with a saved reply.
    pub(crate) fn replay(&self, module: &str, reply: &str, more: &[&str]) -> ProcessOutput {
        self.write("reply.txt", reply);
        self.cogn(&[&["run", module, "--provider", "replay", "--reply", "reply.txt"], more].concat())
    }
}

/// The prompt of a two-file module, which explains the envelope.
pub(crate) const PROMPT: &str = "Answer with an envelope: `ok`, `meta`, `data`.\n";

/// A contract with a text as input and a word as output.
pub(crate) const SCHEMA: &str = r#"{
  "meta": {"type": "object", "required": ["confidence", "risk", "explain"],
           "properties": {"confidence": {"type": "number"}, "risk": {"type": "string"}, "explain": {"type": "string", "maxLength": 280}}},
  "input": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}},
  "data": {"type": "object", "required": ["rationale", "word"],
           "properties": {"rationale": {"type": "string"}, "word": {"enum": ["a", "b"]}}},
  "error": {"type": "object", "required": ["code", "message"]}
}"#;

/// Returns a manifest with this name and more lines.
pub(crate) fn manifest(name: &str, more: &str) -> String {
    format!(
        "name: {name}\nversion: 1.0.0\nresponsibility: Find a word\nexcludes: [prose]\ntier: decision\noverflow: {{enabled: false}}\nenums: {{strategy: strict}}\n{more}"
    )
}

/// Returns a good answer of such a module.
pub(crate) fn answer() -> Value {
    json!({
        "ok": true,
        "meta": { "confidence": 0.9, "risk": "low", "explain": "Found it" },
        "data": { "rationale": "It stands there.", "word": "a" },
    })
}

/// Starts a service that always gives the same answer. Returns its address.
pub(crate) fn answering_service(answer: &str) -> String {
    let answer = answer.to_owned();
    FakeModel::start(move |_, _| FakeReply::Text(answer.clone())).url()
}

/// Starts a service that begins an answer and then waits for its client to disconnect. Returns its address.
pub(crate) fn endless_service() -> String {
    let begun = piece(r#"{"ok": true, "data": {"rationale": "It is"#, None);
    FakeModel::script(vec![Act::stream(begun).then(Then::Silence)]).url()
}
