//! Checks that a model in this process never breaks a contract. Makes many runs behind `cogn serve`, over the bundled
//! text modules with the inputs of `eval/`, and over modules with generated schemas; a third of them think before the
//! answer. Every answer is judged by the plain `jsonschema` crate and by the promises of the module. `COGN_MODEL` names
//! the weights, `COGN_BENCH_RUNS` the number of runs (default 1,000). Exits with 1 on an invalid answer or an
//! unterminated thought. Measures no speed.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "in a benchmark, a panic is the report, and its figures are printed"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use cognitive_testkit::SeededRandom;
use serde_json::{Map, Value, json};

mod served;

use served::EmbeddedServer;

/// The number of concurrent requests.
const CLIENTS: usize = 16;
/// The number of generated schemas.
const SCHEMAS: usize = 200;
/// The maximum length of a thought, in tokens.
const THOUGHT: u64 = 24;
/// The bundled modules with text answers. A run that a model refuses is counted separately.
const BUNDLED: [&str; 4] = ["text-classifier", "entity-extractor", "task-prioritizer", "summarizer"];

fn main() -> ExitCode {
    let Some(weights) = std::env::var_os("COGN_MODEL").map(PathBuf::from) else {
        println!("skipped: COGN_MODEL names no weights");
        return ExitCode::SUCCESS;
    };
    let quick = std::env::args().any(|argument| argument == "--test");
    let runs = std::env::var("COGN_BENCH_RUNS").ok().and_then(|runs| runs.parse().ok());
    let runs = if quick { 8 } else { runs.unwrap_or(1_000) };
    let folder = tempfile::tempdir().unwrap();
    let (bundled, generated) = (bundled_questions(), generated_questions(folder.path()));
    // Half of each, alternating.
    let questions: Vec<&Question> = (0..runs)
        .map(|at| {
            if at % 2 == 0 {
                &bundled[at / 2 * 7 % bundled.len()]
            } else {
                &generated[at / 2 % generated.len()]
            }
        })
        .collect();
    let server = EmbeddedServer::start(&weights, folder.path());
    let totals = Mutex::new(Totals::default());
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                while let Some((at, question)) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, questions.get(at)?)))
                {
                    let thinks = at % 3 == 0;
                    let envelope = question.asked_of(&server, at, thinks);
                    totals.lock().unwrap().count(question, thinks, &envelope);
                }
            });
        }
    });
    let totals = totals.into_inner().unwrap();
    println!("{}, {runs} runs, {CLIENTS} at once", weights.display());
    for (name, count) in &totals.counts {
        println!("{name:<28} {count}");
    }
    for fault in totals.faults.iter().take(20) {
        println!("! {fault}");
    }
    let passed = totals.faults.is_empty();
    println!("invalid answers and unclosed thoughts: {}", totals.faults.len());
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A question and the contract of its answer.
struct Question {
    module: String,
    input: Value,
    data: jsonschema::Validator,
}

impl Question {
    fn asked_of(&self, server: &EmbeddedServer, number: usize, thinks: bool) -> Value {
        let mut body = self.input.clone();
        let thought = if thinks { THOUGHT } else { 0 };
        body["_options"] = json!({ "receipt": true, "seed": number, "thinking": thought });
        server.run(&self.module, &body)
    }
}

#[derive(Default)]
struct Totals {
    counts: BTreeMap<String, usize>,
    faults: Vec<String>,
}

impl Totals {
    fn count(&mut self, question: &Question, thinks: bool, envelope: &Value) {
        let kind = if question.module.starts_with("made-") { "generated schemas" } else { &question.module };
        let add = |counts: &mut BTreeMap<String, usize>, name: String| *counts.entry(name).or_default() += 1;
        if envelope["error"]["code"] == "E4001" {
            add(&mut self.counts, format!("{kind}: not for this model"));
            return;
        }
        add(&mut self.counts, kind.to_owned());
        if let Some(fault) = fault(question, envelope) {
            self.faults.push(format!("{}: {fault}: {envelope}", question.module));
        }
        if thinks {
            let outcome = envelope["meta"]["provenance"]["thinking"]["outcome"].as_str().unwrap_or("none");
            add(&mut self.counts, format!("thought {outcome}"));
            if !["ended", "closed"].contains(&outcome) {
                self.faults.push(format!("{}: thought {outcome}", question.module));
            }
        }
    }
}

/// Returns the fault of an envelope. A failure that the model itself declares is a valid answer.
fn fault(question: &Question, envelope: &Value) -> Option<String> {
    let meta = &envelope["meta"];
    let confidence = meta["confidence"].as_f64().filter(|confidence| (0.0..=1.0).contains(confidence));
    let risk = meta["risk"].as_str().filter(|risk| ["none", "low", "medium", "high"].contains(risk));
    let explain = meta["explain"].as_str().filter(|explain| explain.chars().count() <= 280);
    if confidence.is_none() || risk.is_none() || explain.is_none() {
        return Some("meta".to_owned());
    }
    match envelope["ok"].as_bool() {
        Some(true) => question.data.iter_errors(&envelope["data"]).next().map(|error| error.to_string()),
        Some(false) => {
            let (error, code) = (&envelope["error"], envelope["error"]["code"].as_str().unwrap_or_default());
            // Failures of the runtime have details.
            let is_declared = code.len() == 5 && code.starts_with('E') && error.get("details").is_none();
            (!is_declared).then(|| format!("failed with {code}"))
        }
        None => Some("no envelope".to_owned()),
    }
}

fn bundled_questions() -> Vec<Question> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all: Vec<Vec<Question>> = Vec::new();
    for module in BUNDLED {
        let schema: Value =
            serde_json::from_slice(&fs::read(root.join(format!("modules/{module}/schema.json"))).unwrap())
                .unwrap();
        let cases = fs::read_to_string(root.join(format!("eval/{module}.jsonl"))).unwrap();
        let question = |line: &str| Question {
            module: module.to_owned(),
            input: serde_json::from_str::<Value>(line).unwrap()["input"].take(),
            data: jsonschema::draft7::new(&schema["data"]).unwrap(),
        };
        all.push(cases.lines().map(question).collect());
    }
    let most = all.iter().map(Vec::len).max().unwrap_or_default();
    let mut mixed = Vec::new();
    for _ in 0..most {
        mixed.extend(all.iter_mut().filter_map(Vec::pop));
    }
    mixed
}

/// Writes modules with generated contracts below `cognitive/modules` of the folder.
fn generated_questions(folder: &Path) -> Vec<Question> {
    let mut random = SeededRandom::new(20_261_118);
    (0..SCHEMAS)
        .map(|number| {
            let name = format!("made-{number}");
            let module = folder.join("cognitive/modules").join(&name);
            let mut data = object(&mut random, 2);
            let rationale = json!({ "type": "string", "maxLength": 80 });
            data["properties"].as_object_mut().unwrap().insert("rationale".to_owned(), rationale);
            data["required"].as_array_mut().unwrap().push("rationale".into());
            let schema = json!({
                "input": { "type": "object", "required": ["note"], "properties": { "note": { "type": "string" } } },
                "data": data,
            });
            fs::create_dir_all(&module).unwrap();
            let manifest = format!("name: {name}\nversion: 1.0.0\ntier: exploration\n");
            fs::write(module.join("module.yaml"), manifest).unwrap();
            fs::write(module.join("prompt.md"), "Read the note and fill in every member as well as you can.\n").unwrap();
            fs::write(module.join("schema.json"), schema.to_string()).unwrap();
            let note = ["The lift is stuck again.", "Order 40 chairs by 12 May.", "\"}],{\\ ünïcödé 漢字 🙂", ""][number % 4];
            Question {
                module: name,
                input: json!({ "note": note }),
                data: jsonschema::draft7::new(&schema["data"]).unwrap(),
            }
        })
        .collect()
}

/// The names of members.
const NAMES: [&str; 5] = ["amount", "kind", "is open", "né", "list"];

fn object(random: &mut SeededRandom, depth: u64) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for number in 0..=random.next_below(4) {
        let name = format!("{}{number}", NAMES[random.index(NAMES.len())]);
        if random.next_below(3) > 0 {
            required.push(Value::from(name.clone()));
        }
        properties.insert(name, schema(random, depth));
    }
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn schema(random: &mut SeededRandom, depth: u64) -> Value {
    let size = random.next_below(20);
    match random.next_below(if depth == 0 { 8 } else { 11 }) {
        0 => json!({ "type": "string", "maxLength": size + 5 }),
        1 => json!({ "type": "string", "minLength": size.min(6), "maxLength": size + 10 }),
        2 => json!({ "type": "integer", "minimum": -5, "maximum": size }),
        3 => json!({ "type": "number", "exclusiveMinimum": 0, "maximum": size + 1 }),
        4 => json!({ "type": "boolean" }),
        5 => json!({ "enum": ["red", "green", 7, null] }),
        6 => json!({ "type": "string", "pattern": "^[A-Z]{2}-[0-9]{1,4}$" }),
        7 => json!({ "type": ["integer", "null"], "multipleOf": 5, "minimum": 0, "maximum": 100 }),
        8 => {
            json!({ "type": "array", "maxItems": 3, "minItems": size % 3, "items": schema(random, depth - 1) })
        }
        9 => json!({ "anyOf": [schema(random, depth - 1), { "type": "boolean" }] }),
        _ => object(random, depth - 1),
    }
}
