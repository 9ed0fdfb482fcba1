//! A stub model in the OpenAI wire format. It answers each bundled module with the recorded reply of its first
//! successful golden test, in small pieces. An input with the word `HOLD` gets the first pieces and then nothing, until
//! the server disconnects. It counts both, so that a test can wait for it.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use cognitive_testkit::{Act, FakeModel, FakeReply, FakeRequest, Then, piece};
use serde_json::{Value, json};

/// The number of letters per piece.
const PIECE: usize = 16;
/// The number of pieces for a held call.
const HELD: usize = 3;

/// A module, the input of a successful golden test, and the reply of the model.
pub(crate) struct Recorded {
    pub(crate) module: String,
    pub(crate) input: Value,
    /// The prompt, which identifies the module.
    pub(crate) prompt: String,
    pub(crate) reply: String,
}

/// The service.
pub(crate) struct Model(FakeModel);

fn is_held(request: &FakeRequest) -> bool {
    request.text.contains("HOLD")
}

impl Model {
    pub(crate) fn start(known: Vec<Recorded>) -> Self {
        Self(FakeModel::start(move |_, request| {
            let asked = |each: &&Recorded| {
                let prompt = Value::from(each.prompt.as_str()).to_string();
                request.text.contains(prompt.trim_matches('"'))
            };
            let reply = known.iter().find(asked).map_or("no such module", |each| each.reply.as_str());
            let letters: Vec<char> = reply.chars().collect();
            let pieces =
                letters.chunks(PIECE).map(|letters| piece(&letters.iter().collect::<String>(), None));
            if is_held(request) {
                return FakeReply::Raw(
                    Act::stream(pieces.take(HELD).collect::<String>()).then(Then::Silence),
                );
            }
            let usage = json!({ "prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18 });
            let end = json!({ "model": "stand-in", "choices": [], "usage": usage });
            let end = format!("{}data: {end}\n\ndata: [DONE]\n\n", piece("", Some("stop")));
            FakeReply::Raw(Act::stream(pieces.chain([end]).collect::<String>()))
        }))
    }

    /// The base address for a client of chat completions.
    pub(crate) fn url(&self) -> String {
        self.0.url()
    }

    /// Waits until this number of calls is held, or was.
    pub(crate) fn until_held(&self, expected: usize) {
        let count = |requests: &[FakeRequest]| requests.iter().filter(|request| is_held(request)).count();
        let requests = self.0.wait_until(|requests| count(requests) >= expected);
        assert_eq!(count(&requests), expected, "calls of the model that were to be held");
    }

    /// Waits until so many of the calls that it held were left. The servers of these tests wait for hours until a client comes back, so
    /// that a call ends only because it is not wanted any more.
    pub(crate) fn until_left(&self, expected: usize) {
        self.until_held(expected);
        assert_eq!(self.0.wait_for_left(expected).len(), expected, "calls that ended unfinished");
    }

    /// Returns the number of different requests, and the maximum number of equal ones.
    pub(crate) fn calls(&self) -> (usize, usize) {
        let mut calls: HashMap<String, usize> = HashMap::new();
        for request in self.0.requests() {
            *calls.entry(request.body.to_string()).or_default() += 1;
        }
        (calls.len(), calls.values().copied().max().unwrap_or(0))
    }
}

/// Returns the recordings of all bundled modules. The reply of a composition's part belongs to the part.
pub(crate) fn recorded() -> Vec<Recorded> {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../modules");
    let mut folders: Vec<PathBuf> =
        fs::read_dir(modules).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.retain(|folder| folder.join("module.yaml").is_file());
    folders.sort();
    folders.iter().map(|folder| of_module(folder)).collect()
}

/// Returns the recording of the module in a folder.
pub(crate) fn of_module(folder: &Path) -> Recorded {
    let prompt = fs::read_to_string(folder.join("prompt.md")).unwrap();
    let module = folder.file_name().unwrap().to_string_lossy().into_owned();
    let mut inputs: Vec<PathBuf> =
        fs::read_dir(folder.join("tests")).unwrap().map(|entry| entry.unwrap().path()).collect();
    inputs.retain(|path| path.to_string_lossy().ends_with(".input.json"));
    inputs.sort();
    let with_reply = inputs.iter().map(|input| {
        let reply = input.to_string_lossy().replace(".input.json", ".reply.txt");
        (input, fs::read_to_string(reply).unwrap_or_default())
    });
    let succeeds = |reply: &str| reply.replace(' ', "").contains("\"ok\":true");
    let first = with_reply.clone().find(|(_, reply)| succeeds(reply)).or_else(|| with_reply.clone().next());
    let (input, reply) = first.unwrap();
    let input = serde_json::from_str(&fs::read_to_string(input).unwrap()).unwrap();
    Recorded { module, input, prompt: prompt.lines().next().unwrap().to_owned(), reply }
}

/// Returns a test module that streams.
pub(crate) fn words() -> Recorded {
    // The data comes first: a held call stops within it, after the client has got a chunk.
    let reply = json!({
        "ok": true,
        "data": { "rationale": "It is ☕ short, and \"quoted\".", "words": ["winter", "snow"] },
        "meta": { "confidence": 1.0, "risk": "low", "explain": "Two words" },
    });
    Recorded {
        module: "words".to_owned(),
        input: json!({ "text": "winter snow" }),
        prompt: "Find the words.".to_owned(),
        reply: reply.to_string(),
    }
}
