//! Options that only some surfaces have, and old names. A surface without such an option refuses it: `refusals`.

use cognitive_testkit::{FakeModel, OptionCase, TestServer};
use serde_json::{Value, json};

use super::run_options::{Seen, Setup, ask, asked, configure};
use super::surfaces::{CLIENTS, Surface};
use super::table::Table;

/// A service whose answers lack a member that the schema of the module requires.
fn incomplete() -> FakeModel {
    FakeModel::with_answer(&json!({
        "ok": true,
        "meta": { "confidence": 0.9, "risk": "low", "explain": "e" },
        "data": { "rationale": "r" },
    }))
}

// Only a program on this machine can leave the schemas of a module aside.
#[test]
fn schemas_are_not_enforced_where_a_program_of_this_machine_says_so() {
    let mut table = Table::new("schemas");
    let off = json!({ "schemas": false });
    for (surface, flags, options) in [
        (Surface::Run, vec!["--no-validate"], Value::Null),
        (Surface::RunStream, vec!["--no-validate"], Value::Null),
        (Surface::Library, Vec::new(), off.clone()),
        (Surface::Python, Vec::new(), off),
    ] {
        for is_asked in [true, false] {
            let (flags, options) =
                if is_asked { (flags.clone(), options.clone()) } else { (Vec::new(), Value::Null) };
            table.cell(format!("asked: {is_asked} on {surface:?}"), move || {
                let (service, home) = (incomplete(), crate::home());
                OptionCase::from_name("seed").write_modules(&home);
                let setup = Setup { flags, options, ..Setup::default() };
                let seen = asked(&home, &service, surface, ("words", json!({})), &setup, 1);
                if surface.is_missing(&seen.envelope) {
                    return Ok(false);
                }
                if seen.envelope["ok"] == is_asked { Ok(true) } else { Err(seen.to_string()) }
            });
        }
    }
    table.run();
}

/// Runs a module whose service is elsewhere: the address `0.0.0.0` is that of this machine, and not a loopback address.
fn elsewhere(surface: Surface, module: &str, setup: &Setup<'_>) -> Seen {
    let (service, home) = (OptionCase::from_name("seed").service(), crate::home());
    OptionCase::from_name("seed").write_modules(&home);
    configure(&home, setup);
    let (_, port) = service.address.rsplit_once(':').unwrap();
    let url = format!("http://0.0.0.0:{port}/v1");
    let environment = vec![("OPENAI_BASE_URL", url.as_str()), ("COGN_ALLOW_PLAIN_HTTP", "1")];
    let setup = Setup { environment, ..setup.clone() };
    asked(&home, &service, surface, (module, json!({})), &setup, 1)
}

#[test]
fn a_module_for_models_of_this_machine_asks_no_other_on_every_surface() {
    let mut table = Table::new("local_only");
    let only = |module: &str| json!({ "modules": { module: { "local_only": true } } });
    for surface in Surface::ALL.into_iter().chain(CLIENTS) {
        for (name, module, user, project) in [
            ("user file", "words", only("words"), Value::Null),
            ("user file, of a part", "chain", only("words"), Value::Null),
            ("user file, of the run above", "chain", only("chain"), Value::Null),
            ("project file", "words", Value::Null, only("words")),
            (
                "project that says otherwise",
                "words",
                only("words"),
                json!({ "modules": { "words": { "local_only": false } } }),
            ),
            ("nothing", "words", Value::Null, Value::Null),
        ] {
            // A program gives the library one configuration, and no file of a project.
            if surface == Surface::Library && user.is_null() && !project.is_null() {
                continue;
            }
            table.cell(format!("{name} on {surface:?}"), move || {
                let setup = Setup { user, project, ..Setup::default() };
                let seen = elsewhere(surface, module, &setup);
                if surface.is_missing(&seen.envelope) {
                    return Ok(false);
                }
                let is_kept =
                    seen.requests.is_empty() && seen.envelope.to_string().contains("on this machine");
                let is_right = if name == "nothing" { seen.requests.len() == 1 } else { is_kept };
                if is_right { Ok(true) } else { Err(seen.to_string()) }
            });
        }
    }
    table.run();
}

#[test]
fn old_names_of_options_are_read() {
    let (tokens, time) = (OptionCase::from_name("max_output_tokens"), OptionCase::from_name("timeout"));
    let mut table = Table::new("old names");
    let old = json!({ "timeout_seconds": 1 });
    let own = json!({ "modules": { "words": old } });
    for surface in Surface::ALL {
        let (tokens, time) = (&tokens, &time);
        table.cell(format!("--max-tokens on {surface:?}"), move || {
            let setup = Setup { flags: vec!["--max-tokens", "500"], ..Setup::default() };
            ask(tokens, surface, "words", &setup).honours(tokens, surface)
        });
        for (user, project) in [(&old, &Value::Null), (&own, &Value::Null), (&Value::Null, &old)] {
            let setup = Setup { user: user.clone(), project: project.clone(), ..Setup::default() };
            table.cell(format!("{user} {project} on {surface:?}"), move || {
                ask(time, surface, "words", &setup).honours(time, surface)
            });
        }
        if surface.has_requests() {
            let setup = Setup { options: old.clone(), ..Setup::default() };
            table.cell(format!("timeout_seconds by request on {surface:?}"), move || {
                ask(time, surface, "words", &setup).honours(time, surface)
            });
        }
    }
    table.run();
}

const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

// Media of an input reach the model wherever the input comes from.
#[test]
fn media_reach_the_model_on_every_surface() {
    let mut table = Table::new("media");
    let recorded = (Surface::TestLive, vec!["--record"]);
    let plain = Surface::ALL.into_iter().chain([Surface::Python, Surface::TypeScript]);
    for (surface, flags) in plain.map(|surface| (surface, Vec::new())).chain([recorded]) {
        table.cell(format!("{surface:?} {flags:?}"), move || {
            let (service, home) = (OptionCase::from_name("seed").service(), crate::home());
            let manifest = json!({
                "name": "pictures", "version": "1.0.0", "responsibility": "Look at pictures",
                "modalities": { "input": ["text", "image"] },
            });
            let images = json!({ "type": "array", "items": { "type": "object" } });
            let schema = json!({
                "input": { "type": "object", "properties": { "images": images } },
                "data": { "type": "object", "required": ["rationale"], "properties": { "rationale": { "type": "string" } } },
            });
            home.module("pictures", &manifest.to_string(), "Look.", &schema);
            let setup = Setup { user: json!({ "media": { "shortest_side": 1 } }), flags, ..Setup::default() };
            configure(&home, &setup);
            let picture = json!({ "type": "base64", "media_type": "image/png", "data": PICTURE });
            let input = json!({ "images": [picture] });
            let seen = asked(&home, &service, surface, ("pictures", input), &setup, 1);
            if surface.is_missing(&seen.envelope) {
                return Ok(false);
            }
            let has_picture = seen.requests.iter().any(|request| request.text.contains("data:image/png;base64,"));
            if has_picture { Ok(true) } else { Err(seen.to_string()) }
        });
    }
    table.run();
}

// A run that may not cost so much is the fault of its caller: 402, and not 500. (D-21)
#[test]
fn a_limit_of_cost_is_reported_as_the_fault_of_the_caller() {
    let mut table = Table::new("status of a limit");
    let limit = json!({ "max_cost": 0.000_000_01 });
    for (way, setup) in [
        ("request", Setup { options: limit.clone(), ..Setup::default() }),
        ("user file", Setup { user: limit, ..Setup::default() }),
        ("flag", Setup { flags: vec!["--max-cost", "0.00000001"], ..Setup::default() }),
    ] {
        table.cell(way.to_owned(), move || {
            let (service, home) = (OptionCase::from_name("seed").service(), crate::home());
            OptionCase::from_name("seed").write_modules(&home);
            configure(&home, &setup);
            let url = service.url();
            let environment = [("OPENAI_API_KEY", "sk-test-test-test"), ("OPENAI_BASE_URL", url.as_str())];
            let server = TestServer::start(&home, &setup.flags, &environment);
            let mut body = json!({});
            if !setup.options.is_null() {
                body["_options"] = setup.options;
            }
            let (status, answer) = server.ask("POST /api/run/words", &[], body.to_string());
            let is_right = status == 402 && answer.contains("E4101") && service.requests().is_empty();
            if is_right { Ok(true) } else { Err(format!("{status} {answer}")) }
        });
    }
    table.run();
}
