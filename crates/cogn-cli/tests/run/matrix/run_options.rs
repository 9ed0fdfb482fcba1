//! Options of a run, by every way to set them: a flag, the file of the user, the configuration of the module, the request. Each
//! cell is judged by the request that the model service received or by the envelope. (D-27, D-33)

use cognitive_testkit::{Act, FakeModel, FakeReply, FakeRequest, Home, Then};
use serde_json::{Value, json};

use super::surfaces::{Ask, CLIENTS, Surface};

/// An option, the ways to set it, and how to see that it was honoured.
struct OptionCase {
    name: &'static str,
    flag: &'static [&'static str],
    /// The value in files and in requests.
    value: Value,
    /// What the model says to the request of this number.
    says: fn(usize) -> FakeReply,
    is_honoured: fn(&[FakeRequest], &Value) -> bool,
}

fn answer() -> Value {
    json!({
        "ok": true,
        "meta": { "confidence": 0.9, "risk": "low", "explain": "e" },
        "data": { "rationale": "r", "word": "w" },
    })
}

fn good(_: usize) -> FakeReply {
    FakeReply::Text(answer().to_string())
}

/// A broken answer to the first request, and a good one to the next.
fn broken_first(number: usize) -> FakeReply {
    if number == 0 { FakeReply::Text(json!({ "ok": true, "data": {} }).to_string()) } else { good(number) }
}

fn sloppy(_: usize) -> FakeReply {
    // Valid but for a comma before the last brace.
    FakeReply::Text(answer().to_string().trim_end_matches('}').to_owned() + "},}")
}

fn silent(_: usize) -> FakeReply {
    FakeReply::Silence
}

/// A service that falls silent behind a value that breaks the contract: only an early stop ends this call.
fn hopeless(_: usize) -> FakeReply {
    let begun = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "e"}, "data": {"rationale": 5, "w"#;
    let chunk =
        json!({ "id": "r-1", "model": "fake-1", "choices": [{ "index": 0, "delta": { "content": begun } }] });
    FakeReply::Raw(Act::stream(format!("data: {chunk}\n\n")).then(Then::Silence))
}

fn body_has(name: &'static str, value: i64) -> impl Fn(&[FakeRequest]) -> bool {
    move |requests| requests.first().is_some_and(|request| request.body[name] == json!(value))
}

fn cases() -> Vec<OptionCase> {
    vec![
        OptionCase {
            name: "reask",
            flag: &["--reask", "1"],
            value: json!(1),
            says: broken_first,
            is_honoured: |requests, envelope| requests.len() == 2 && envelope["ok"] == true,
        },
        OptionCase {
            name: "receipt",
            flag: &["--receipt"],
            value: json!(true),
            says: good,
            is_honoured: |_, envelope| envelope["meta"]["provenance"].is_object(),
        },
        OptionCase {
            name: "seed",
            flag: &["--seed", "7"],
            value: json!(7),
            says: good,
            is_honoured: |requests, _| body_has("seed", 7)(requests),
        },
        OptionCase {
            name: "max_output_tokens",
            flag: &["--max-output-tokens", "500"],
            value: json!(500),
            says: good,
            is_honoured: |requests, _| {
                body_has("max_completion_tokens", 500)(requests) || body_has("max_tokens", 500)(requests)
            },
        },
        OptionCase {
            name: "strict_parse",
            flag: &["--strict-parse"],
            value: json!(true),
            says: sloppy,
            is_honoured: |_, envelope| envelope["error"]["code"] == "E1000",
        },
        OptionCase {
            name: "max_calls",
            flag: &["--max-calls", "0"],
            value: json!(0),
            says: good,
            is_honoured: |requests, envelope| requests.is_empty() && envelope["error"]["code"] == "E4100",
        },
        OptionCase {
            name: "max_cost",
            flag: &["--max-cost", "0.00000001"],
            value: json!(0.000_000_01),
            says: good,
            is_honoured: |requests, envelope| requests.is_empty() && envelope["error"]["code"] == "E4101",
        },
        OptionCase {
            name: "thinking",
            flag: &["--thinking", "2048"],
            value: json!(2048),
            says: good,
            is_honoured: |requests, _| {
                requests.first().is_some_and(|request| {
                    let body = &request.body;
                    body["reasoning_effort"].is_string() || body["chat_template_kwargs"].is_object()
                })
            },
        },
        OptionCase {
            name: "early_stop",
            flag: &["--early-stop"],
            value: json!(true),
            says: hopeless,
            is_honoured: |_, envelope| envelope["error"]["details"]["stopped_at"].is_u64(),
        },
        OptionCase {
            name: "no_cache",
            flag: &["--no-cache"],
            value: json!(true),
            says: good,
            // The second run of the cell asks again.
            is_honoured: |requests, envelope| requests.len() == 2 && envelope["ok"] == true,
        },
        OptionCase {
            name: "timeout",
            flag: &["--timeout", "1"],
            value: json!(1),
            says: silent,
            is_honoured: |_, envelope| {
                let code = envelope["error"]["code"].as_str().unwrap_or_default();
                matches!(code, "E2002" | "E2011")
            },
        },
    ]
}

/// The contract of the module.
fn schema() -> Value {
    json!({
        "input": { "type": "object" },
        "data": {
            "type": "object",
            "required": ["rationale", "word"],
            "properties": { "rationale": { "type": "string" }, "word": { "type": "string" } },
        },
    })
}

/// Writes the module. It keeps its answers if the case is about the cache.
fn write_words(home: &Home, case: &OptionCase) {
    let keeps = json!([{ "type": "analysis_cache", "ttl": 3600, "key_pattern": "${module}:${input_hash}" }]);
    let context = if case.name == "no_cache" { json!({ "emits": keeps }) } else { json!({}) };
    let manifest =
        json!({ "name": "words", "version": "1.0.0", "responsibility": "Find words", "context": context });
    home.module("words", &manifest.to_string(), "Find.", &schema());
}

/// Runs a module so many times; returns the last envelope, and what the service received.
fn asked(
    home: &Home,
    service: &FakeModel,
    surface: Surface,
    (module, flags, options): (&str, &[&str], Value),
    times: usize,
) -> (Value, Vec<FakeRequest>) {
    let url = service.url();
    let environment = [("OPENAI_API_KEY", "sk-test-test-test"), ("OPENAI_BASE_URL", url.as_str())];
    let ask = Ask { module, input: json!({}), environment: &environment, flags, options };
    let mut envelope = Value::Null;
    for _ in 0..times {
        envelope = surface.envelope(home, &ask);
    }
    (envelope, service.requests())
}

/// Runs a case on a surface and says whether the option was honoured.
fn cell(
    case: &OptionCase,
    surface: Surface,
    (user, project): &(String, String),
    flags: &[&str],
    options: Value,
) -> Result<(), String> {
    let says = case.says;
    let service = FakeModel::start(move |number, _| says(number));
    let home = crate::home();
    write_words(&home, case);
    // Below a limit of a day, an ignored time limit never ends the run: the default of a minute would look the same.
    home.user_config(if case.name == "timeout" && user.is_empty() { "timeout: 86400\n" } else { user });
    if !project.is_empty() {
        home.project_config(project);
    }
    // An answer is in the cache only after a run.
    let times = if case.name == "no_cache" { 2 } else { 1 };
    let (envelope, requests) = asked(&home, &service, surface, ("words", flags, options), times);
    if surface.is_missing(&envelope) || (case.is_honoured)(&requests, &envelope) {
        return Ok(());
    }
    Err(format!("{} on {surface:?}: {} requests, {envelope}", case.name, requests.len()))
}

/// No file of the user and none of the project.
fn none() -> (String, String) {
    (String::new(), String::new())
}

/// Surfaces whose cell is another test's: a batch counts `--max-cost` for all rows together, and stops before its first row.
fn is_for_another_test(case: &OptionCase, surface: Surface) -> bool {
    surface == Surface::Batch && matches!(case.name, "max_calls" | "max_cost" | "timeout")
        || surface == Surface::Eval && case.name == "max_cost"
}

/// Runs every case in a thread of its own and returns the complaints: the cells of one case wait for time limits, and
/// the others need no processor meanwhile.
fn in_parallel(run: impl Fn(&OptionCase) -> Vec<String> + Sync) -> Vec<String> {
    let (cases, run) = (cases(), &run);
    std::thread::scope(|scope| {
        let threads: Vec<_> = cases.iter().map(|case| scope.spawn(move || run(case))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn a_flag_and_a_file_set_an_option_on_every_surface() {
    let ignored = in_parallel(|case| {
        let top = json!({ case.name: case.value }).to_string();
        let module = json!({ "modules": { "words": { case.name: case.value } } }).to_string();
        let files = [
            (top.clone(), String::new()),
            (module.clone(), String::new()),
            (String::new(), top),
            (String::new(), module),
        ];
        let surfaces = Surface::ALL
            .into_iter()
            .filter(|surface| !is_for_another_test(case, *surface))
            .flat_map(|surface| {
                let flag = cell(case, surface, &none(), case.flag, Value::Null).err();
                let by_file =
                    files.iter().filter_map(move |files| cell(case, surface, files, &[], Value::Null).err());
                flag.into_iter().chain(by_file.collect::<Vec<_>>())
            });
        let clients = CLIENTS.into_iter().flat_map(|client| {
            // A program gives the library one configuration, and no file of a project.
            let files = if client == Surface::Library { &files[..2] } else { &files[..] };
            files
                .iter()
                .filter_map(move |files| cell(case, client, files, &[], Value::Null).err())
                .collect::<Vec<_>>()
        });
        surfaces.chain(clients).collect()
    });
    assert!(ignored.is_empty(), "{} cells: {ignored:#?}", ignored.len());
}

// D-27: an option of a request is honoured, and one that does not exist is refused.
#[test]
fn a_request_sets_an_option_on_every_surface_that_has_requests() {
    let servers = [Surface::ServeSync, Surface::ServeEvents, Surface::ServeLines, Surface::ServeSocket];
    let ignored = in_parallel(|case| {
        let surfaces = servers.into_iter().chain(CLIENTS);
        let asked =
            surfaces.map(|surface| cell(case, surface, &none(), &[], json!({ case.name: case.value })));
        asked.filter_map(Result::err).collect()
    });
    assert!(ignored.is_empty(), "{ignored:#?}");
    let unknown = json!({ "reaks": 1 });
    for surface in [Surface::ServeSync, Surface::ServeSocket, Surface::Python] {
        let case = &cases()[0];
        let refused = cell(case, surface, &none(), &[], unknown.clone()).err();
        // Without Python there is nothing to refuse.
        let Some(refused) = refused else { continue };
        assert!(refused.contains("`reaks`") && refused.contains("0 requests"), "{refused}");
    }
}

// An option of a run holds for the parts of its composition too. (D-33)
#[test]
fn a_part_gets_the_options_of_the_run_above_it() {
    let ignored = in_parallel(|case| {
        let whole = ["receipt", "no_cache", "strict_parse", "early_stop"].contains(&case.name);
        let surfaces = [Surface::Run, Surface::ServeSync, Surface::McpStdio].into_iter().filter(|_| !whole);
        surfaces.filter_map(|surface| part(case, surface).err()).collect()
    });
    assert!(ignored.is_empty(), "{ignored:#?}");
}

/// Runs a composition with one part on a surface, with a flag.
fn part(case: &OptionCase, surface: Surface) -> Result<(), String> {
    let says = case.says;
    let service = FakeModel::start(move |number, _| says(number));
    let home = crate::home();
    write_words(&home, case);
    let steps = json!([
        { "from": "input", "to": "words" },
        { "from": "words.output", "to": "output", "mapping": { "rationale": "$.data.rationale", "word": "$.data.word" } },
    ]);
    let manifest = json!({
        "name": "chain", "version": "1.0.0", "responsibility": "Pass words on",
        "composition": { "pattern": "sequential", "requires": [{ "name": "words" }], "dataflow": steps },
    });
    home.module("chain", &manifest.to_string(), "Pass on.", &schema());
    if case.name == "timeout" {
        home.user_config("timeout: 86400\n");
    }
    let (envelope, requests) = asked(&home, &service, surface, ("chain", case.flag, Value::Null), 1);
    if (case.is_honoured)(&requests, &envelope) || limits_the_whole_run(case, &envelope) {
        return Ok(());
    }
    Err(format!("{} of a part on {surface:?}: {} requests, {envelope}", case.name, requests.len()))
}

/// A limit of calls or time ends a composition with the failure of its part.
fn limits_the_whole_run(case: &OptionCase, envelope: &Value) -> bool {
    ["max_calls", "max_cost", "timeout"].contains(&case.name) && envelope["ok"] == false
}

// The service of the other two falls silent, so a run without these options would not end.
#[test]
fn without_its_option_a_cell_is_seen_to_fail() {
    let seen = in_parallel(|case| {
        let ends = !["timeout", "early_stop"].contains(&case.name);
        let ignored = |surface: &Surface| cell(case, *surface, &none(), &[], Value::Null).is_ok();
        let surfaces = [Surface::Run, Surface::ServeSync, Surface::Library].into_iter().filter(|_| ends);
        surfaces.filter(ignored).map(|surface| format!("{} on {surface:?}", case.name)).collect()
    });
    assert!(seen.is_empty(), "{seen:?}");
}

// A caller of a server tightens what the operator allows and loosens nothing.
#[test]
fn a_request_loosens_no_limit_of_the_operator() {
    let cases = cases();
    let of = |name: &str| cases.iter().find(|case| case.name == name).unwrap();
    for (name, looser) in [
        ("max_calls", json!({ "max_calls": 50 })),
        ("max_cost", json!({ "max_cost": 50 })),
        ("strict_parse", json!({ "strict_parse": false })),
        ("timeout", json!({ "timeout": 3600 })),
    ] {
        let case = of(name);
        for surface in [Surface::ServeSync, Surface::ServeSocket] {
            cell(case, surface, &none(), case.flag, looser.clone()).unwrap();
        }
    }
}
