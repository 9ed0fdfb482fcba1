//! Options of a run, by every way to set them: a flag, the file of the user, the configuration of the module, the request. Each
//! cell is judged by the request that the model service received or by the envelope. (D-27, D-33)

use cognitive_testkit::{FakeModel, FakeReply, FakeRequest};
use serde_json::{Value, json};

use super::surfaces::{Ask, Surface};

/// An option, the ways to set it, and how to see that it was honoured.
struct OptionCase {
    name: &'static str,
    flag: &'static [&'static str],
    /// For the file of the user.
    config: Option<&'static str>,
    /// For the entry of the module in that file.
    module: Option<&'static str>,
    /// A member of `_options`.
    request: Value,
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

fn body_has(name: &'static str, value: i64) -> impl Fn(&[FakeRequest]) -> bool {
    move |requests| requests.first().is_some_and(|request| request.body[name] == json!(value))
}

fn cases() -> Vec<OptionCase> {
    vec![
        OptionCase {
            name: "reask",
            flag: &["--reask", "1"],
            config: Some("reask: 1"),
            module: Some("reask: 1"),
            request: json!({ "reask": 1 }),
            says: broken_first,
            is_honoured: |requests, envelope| requests.len() == 2 && envelope["ok"] == true,
        },
        OptionCase {
            name: "receipt",
            flag: &["--receipt"],
            config: Some("receipt: true"),
            module: Some("receipt: true"),
            request: json!({ "receipt": true }),
            says: good,
            is_honoured: |_, envelope| envelope["meta"]["provenance"].is_object(),
        },
        OptionCase {
            name: "seed",
            flag: &["--seed", "7"],
            config: None,
            module: None,
            request: json!({ "seed": 7 }),
            says: good,
            is_honoured: |requests, _| body_has("seed", 7)(requests),
        },
        OptionCase {
            name: "max_output_tokens",
            flag: &["--max-tokens", "500"],
            config: None,
            module: None,
            request: json!({ "max_output_tokens": 500 }),
            says: good,
            is_honoured: |requests, _| {
                body_has("max_completion_tokens", 500)(requests) || body_has("max_tokens", 500)(requests)
            },
        },
        OptionCase {
            name: "strict_parse",
            flag: &["--strict-parse"],
            config: Some("strict_parse: true"),
            module: None,
            request: json!({ "strict_parse": true }),
            says: sloppy,
            is_honoured: |_, envelope| envelope["error"]["code"] == "E1000",
        },
        OptionCase {
            name: "max_calls",
            flag: &["--max-calls", "0"],
            config: Some("max_calls: 0"),
            module: None,
            request: json!({ "max_calls": 0 }),
            says: good,
            is_honoured: |requests, envelope| requests.is_empty() && envelope["error"]["code"] == "E4100",
        },
        OptionCase {
            name: "max_cost",
            flag: &["--max-cost", "0.00000001"],
            config: Some("max_cost: 0.00000001"),
            module: None,
            request: json!({ "max_cost": 0.000_000_01 }),
            says: good,
            is_honoured: |requests, envelope| requests.is_empty() && envelope["error"]["code"] == "E4101",
        },
        OptionCase {
            name: "timeout",
            flag: &["--timeout", "1"],
            config: Some("timeout_seconds: 1"),
            module: None,
            request: json!({ "timeout": 1 }),
            says: silent,
            is_honoured: |_, envelope| {
                let code = envelope["error"]["code"].as_str().unwrap_or_default();
                matches!(code, "E2002" | "E2011")
            },
        },
    ]
}

/// Runs a case on a surface and says whether the option was honoured.
fn cell(
    case: &OptionCase,
    surface: Surface,
    config: &str,
    flags: &[&str],
    options: Value,
) -> Result<(), String> {
    let says = case.says;
    let service = FakeModel::start(move |number, _| says(number));
    let home = crate::home();
    let schema = json!({
        "input": { "type": "object" },
        "data": {
            "type": "object",
            "required": ["rationale", "word"],
            "properties": { "rationale": { "type": "string" }, "word": { "type": "string" } },
        },
    });
    home.module("words", "name: words\nversion: 1.0.0\nresponsibility: Find words\n", "Find.", &schema);
    // Below a limit of a day, an ignored time limit never ends the run: the default of a minute would look the same.
    let day = if case.name == "timeout" && config.is_empty() { "timeout_seconds: 86400\n" } else { config };
    home.user_config(day);
    let url = service.url();
    let environment = [("OPENAI_API_KEY", "sk-test-test-test"), ("OPENAI_BASE_URL", url.as_str())];
    let ask = Ask { module: "words", input: json!({}), environment: &environment, flags, options };
    let envelope = surface.envelope(&home, &ask);
    let requests = service.requests();
    if (case.is_honoured)(&requests, &envelope) {
        return Ok(());
    }
    Err(format!("{} on {surface:?}: {} requests, {envelope}", case.name, requests.len()))
}

/// Surfaces whose cell is another test's: a batch counts `--max-cost` for all rows together, and stops before its first row.
fn is_for_another_test(case: &OptionCase, surface: Surface) -> bool {
    surface == Surface::Batch && matches!(case.name, "max_calls" | "max_cost" | "timeout")
        || surface == Surface::Eval && case.name == "max_cost"
}

#[test]
fn a_flag_and_a_file_set_an_option_on_every_surface() {
    let mut ignored = Vec::new();
    let mut cells = 0;
    for case in cases() {
        for surface in Surface::ALL {
            if is_for_another_test(&case, surface) {
                continue;
            }
            let mut ways = vec![("", case.flag)];
            let config = case.config.map(|line| format!("{line}\n"));
            ways.extend(config.as_deref().map(|config| (config, &[][..])));
            let module = case.module.map(|line| format!("modules: {{words: {{{line}}}}}\n"));
            ways.extend(module.as_deref().map(|config| (config, &[][..])));
            for (config, flags) in ways {
                cells += 1;
                ignored.extend(cell(&case, surface, config, flags, Value::Null).err());
            }
        }
    }
    assert!(ignored.is_empty(), "{} of {cells} cells: {ignored:#?}", ignored.len());
}

// D-27: an option of a request is honoured, and one that does not exist is refused.
#[test]
fn a_request_sets_an_option_on_every_surface_that_has_requests() {
    let mut ignored = Vec::new();
    for case in cases() {
        for surface in [Surface::ServeSync, Surface::ServeEvents, Surface::ServeLines, Surface::ServeSocket] {
            ignored.extend(cell(&case, surface, "", &[], case.request.clone()).err());
        }
    }
    assert!(ignored.is_empty(), "{ignored:#?}");
    let unknown = json!({ "reaks": 1 });
    for surface in [Surface::ServeSync, Surface::ServeSocket] {
        let case = &cases()[0];
        let refused = cell(case, surface, "", &[], unknown.clone()).unwrap_err();
        assert!(refused.contains("unknown option: `reaks`") && refused.contains("0 requests"), "{refused}");
    }
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
            cell(case, surface, "", case.flag, looser.clone()).unwrap();
        }
    }
}
