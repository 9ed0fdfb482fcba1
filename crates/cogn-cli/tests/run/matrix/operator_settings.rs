//! Settings of the operator that decide about a run but are no options of it: the fallback chain, the thresholds, the budget and the
//! audit. They are in effect on every surface.

use cognitive_testkit::{FakeModel, FakeReply, Home, OptionCase, TestServer};
use serde_json::{Value, json};

use super::run_options::{Seen, Setup, asked, configure};
use super::surfaces::{CLIENTS, Surface};
use super::table::Table;

fn answer(confidence: f64) -> Value {
    json!({
        "ok": true,
        "meta": { "confidence": confidence, "risk": "low", "explain": "e" },
        "data": { "rationale": "r", "word": "w" },
    })
}

/// Sets these settings in the file of the user, or in the file of a trusted project.
fn in_files(settings: &Value) -> [(&'static str, Setup<'static>); 2] {
    let trusted = vec![("COGN_TRUST_PROJECT", "1")];
    let project = Setup { project: settings.clone(), environment: trusted, ..Setup::default() };
    [("user", Setup { user: settings.clone(), ..Setup::default() }), ("project", project)]
}

/// Runs `words` with these settings. A program gives the library one configuration, so it has no file of a project.
fn run(service: &FakeModel, surface: Surface, setup: &Setup<'_>, tier: &str) -> Option<(Home, Seen)> {
    let home = crate::home();
    OptionCase::from_name("seed").write_modules(&home);
    let manifest = home.path("cognitive/modules/words/module.yaml");
    let mut words: Value = serde_json::from_slice(&std::fs::read(&manifest).unwrap()).unwrap();
    words["tier"] = json!(tier);
    std::fs::write(manifest, words.to_string()).unwrap();
    configure(&home, setup);
    let seen = asked(&home, service, surface, ("words", json!({})), setup, 1);
    (!surface.is_missing(&seen.envelope)).then_some((home, seen))
}

// The next model is asked after a failure, and after an answer below the threshold.
#[test]
fn every_surface_asks_the_next_model_of_the_fallback_chain() {
    let mut table = Table::new("fallback chain");
    let chain = json!(["mistral/first", "openai/second"]);
    let after_failure = json!({ "providers": chain });
    let after_doubt = json!({ "providers": chain, "climb": { "below_confidence": 0.95 } });
    // The library reads no variables here, so its services have no keys.
    for surface in Surface::ALL.into_iter().chain([Surface::Python, Surface::TypeScript]) {
        for (reason, settings) in [("failure", &after_failure), ("doubt", &after_doubt)] {
            for (file, setup) in in_files(settings) {
                table.cell(format!("{reason}, file of the {file}, on {surface:?}"), move || {
                    let first = FakeModel::start(move |_, _| match reason {
                        "failure" => FakeReply::Text("no JSON".to_owned()),
                        _ => FakeReply::Text(answer(0.9).to_string()),
                    });
                    let (second, url) = (FakeModel::with_answer(&answer(0.99)), first.url());
                    let mut setup = setup;
                    setup.environment.push(("MISTRAL_API_KEY", "sk-first-first-first"));
                    let environment =
                        [&setup.environment[..], &[("MISTRAL_BASE_URL", url.as_str())]].concat();
                    let setup = Setup { environment, ..setup };
                    let Some((_, seen)) = run(&second, surface, &setup, "decision") else { return Ok(false) };
                    let counts = [first.requests().len(), seen.requests.len()];
                    let is_right = counts == [1, 1] && seen.envelope["ok"] == true;
                    if is_right { Ok(true) } else { Err(format!("{counts:?}, {seen}")) }
                });
            }
        }
    }
    table.run();
}

#[test]
fn the_threshold_of_the_operator_is_in_effect_on_every_surface() {
    let mut table = Table::new("threshold of tier exec");
    for surface in Surface::ALL.into_iter().chain(CLIENTS) {
        for (threshold, is_ok) in [(0.95, false), (0.9, true)] {
            for (file, setup) in in_files(&json!({ "exec_min_confidence": threshold })) {
                if surface == Surface::Library && file == "project" {
                    continue;
                }
                table.cell(format!("{threshold}, file of the {file}, on {surface:?}"), move || {
                    let service = FakeModel::with_answer(&answer(0.92));
                    let Some((_, seen)) = run(&service, surface, &setup, "exec") else { return Ok(false) };
                    if seen.envelope["ok"] == is_ok { Ok(true) } else { Err(seen.to_string()) }
                });
            }
        }
    }
    table.run();
}

#[test]
fn a_budget_that_is_spent_lets_no_request_leave_on_any_surface() {
    let mut table = Table::new("budget");
    for surface in Surface::ALL.into_iter().chain(CLIENTS) {
        for (file, setup) in in_files(&json!({ "budget": { "per_day": 0.000_000_01 } })) {
            if surface == Surface::Library && file == "project" {
                continue;
            }
            table.cell(format!("file of the {file}, on {surface:?}"), move || {
                let service = FakeModel::with_answer(&answer(0.9));
                let Some((_, seen)) = run(&service, surface, &setup, "decision") else { return Ok(false) };
                let said = seen.envelope.to_string();
                // A batch stops before its first row.
                let is_refused =
                    said.contains("E4101") || surface == Surface::Batch && said.contains("stopped");
                if is_refused && seen.requests.is_empty() { Ok(true) } else { Err(seen.to_string()) }
            });
        }
    }
    table.run();
}

/// Returns an error unless the only record in the home is that of a run without a model.
fn expect_record(home: &Home, envelope: &Value) -> Result<bool, String> {
    let listed = home.run(&["audit", "list", "--failed", "--json"], &[], "");
    let is_recorded = listed.out.contains("E4001") && listed.out.contains("\"words\"");
    let is_right = is_recorded && envelope.to_string().contains("E4001");
    if is_right { Ok(true) } else { Err(format!("{envelope} {listed:?}")) }
}

// A server does not start if its own model cannot be built, measurements leave no records, and a batch without a model begins no
// run. (`docs/audit.md`)
#[test]
fn a_run_whose_model_cannot_be_built_leaves_a_record() {
    let mut table = Table::new("records of runs without a model");
    let user = |user: Value| Setup { user, ..Setup::default() };
    let of_module = json!({ "modules": { "words": { "provider": "anthropic" } } });
    let mut cells = Vec::new();
    for surface in [Surface::Run, Surface::RunStream, Surface::McpStdio, Surface::Python] {
        cells.push((surface, user(json!({ "provider": "anthropic" }))));
        cells.push((surface, user(of_module.clone())));
    }
    // Other programs stop at an unknown provider.
    for surface in [Surface::Run, Surface::RunStream] {
        cells.push((surface, user(json!({ "provider": "no-such-provider" }))));
        cells.push((surface, user(json!({ "providers": ["no-such-provider/model"] }))));
        let environment = vec![("LLM_PROVIDER", "no-such-provider")];
        cells.push((surface, Setup { environment, ..Setup::default() }));
    }
    for (surface, setup) in cells {
        table.cell(format!("{} {:?} on {surface:?}", setup.user, setup.environment), move || {
            let service = FakeModel::with_answer(&answer(0.9));
            let Some((home, seen)) = run(&service, surface, &setup, "decision") else { return Ok(false) };
            assert!(seen.requests.is_empty(), "{seen}");
            expect_record(&home, &seen.envelope)
        });
    }
    for accept in ["application/json", "text/event-stream", "application/x-ndjson"] {
        let setup = user(of_module.clone());
        table.cell(format!("{of_module} on a server, as {accept}"), move || {
            let home = crate::home();
            OptionCase::from_name("seed").write_modules(&home);
            configure(&home, &setup);
            let server = TestServer::start(&home, &[], &[("OPENAI_API_KEY", "sk-test-test-test")]);
            let (_, body) = server.ask("POST /api/run/words", &[("accept", accept)], "{}");
            // It writes its records beside the requests, and all of them before it ends.
            let _said = server.stop();
            expect_record(&home, &Value::String(body))
        });
    }
    table.run();
}
