//! The bundled modules: the distance of their ceilings from actual costs. `COGN_COST_DUMP=FILE` writes every request
//! with its reply and its ceiling, so that other programs can count the tokens with a real vocabulary.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use cognitive_contract::money::Money;
use cognitive_contract::ports::{DecodeMode, Destination, ModelEnd, NullSink, Provider, Usage};
use cognitive_library::Library;
use cognitive_runtime::{Host, RunRequest, run};
use cognitive_schema::SchemaTarget;
use cognitive_testkit::{FakeProvider, poll_now};
use serde_json::{Value, json};

type Requests = Arc<Mutex<Vec<Value>>>;

/// A service that answers with a recorded reply, and counts four bytes as a token, as in English.
fn recorded(
    name: &'static str,
    model: &'static str,
    target: SchemaTarget,
    reply: &str,
) -> (FakeProvider, Requests) {
    let (requests, reply) = (Requests::default(), reply.to_owned());
    let seen = Arc::clone(&requests);
    let provider = FakeProvider::new(move |call, sink| {
        let turns: Vec<String> =
            call.examples.iter().flat_map(|each| [each.input.clone(), each.answer.clone()]).collect();
        let schema = call.schema.as_ref().map_or("", |schema| schema.text());
        let bytes = call.instructions.len() + turns.concat().len() + call.input.len() + schema.len();
        seen.lock().unwrap().push(json!({
            "instructions": &*call.instructions, "turns": turns, "input": call.input, "schema": schema,
            "limit": call.max_output_tokens,
        }));
        sink.piece(&reply);
        let mut end = ModelEnd::complete(model, DecodeMode::NativeSchema);
        end.usage = Some(Usage::new(bytes as u64 / 4, reply.len() as u64 / 4));
        Ok(end)
    });
    let destination = Some(Destination { model: Some(model.to_owned()), address: None });
    let provider = provider.with(|service| {
        (service.name, service.target, service.destination) = (name, Some(target), destination);
    });
    (provider, requests)
}

/// Every recorded case of every module that is one prompt.
fn cases() -> Vec<(String, String, Value, String)> {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../modules");
    let mut cases = Vec::new();
    let mut names: Vec<_> = fs::read_dir(&modules).unwrap().map(|entry| entry.unwrap().path()).collect();
    // Tools leave other folders there.
    names.retain(|folder| folder.join("module.yaml").exists());
    names.sort();
    for module in names {
        let name = module.file_name().unwrap().to_string_lossy().into_owned();
        let mut files: Vec<_> =
            fs::read_dir(module.join("tests")).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for file in files {
            let text = file.to_string_lossy().into_owned();
            let Some(case) = text.strip_suffix(".reply.txt") else { continue };
            let Ok(input) = fs::read_to_string(format!("{case}.input.json")) else { continue };
            let (input, reply) = (serde_json::from_str(&input).unwrap(), fs::read_to_string(&file).unwrap());
            let case = Path::new(case).file_name().unwrap().to_string_lossy().into_owned();
            cases.push((name.clone(), case, input, reply));
        }
    }
    cases
}

#[test]
fn ceilings_are_near_what_recorded_runs_cost() {
    let services = [
        ("openai", "gpt-4.1", SchemaTarget::OpenAi),
        ("anthropic", "claude-haiku-4-5", SchemaTarget::Anthropic),
        ("gemini", "gemini-2.5-flash-lite", SchemaTarget::Gemini),
    ];
    let mut dump = Vec::new();
    let mut judged = 0;
    for (module, case, input, reply) in cases() {
        for (service, model, target) in services {
            let (provider, requests) = recorded(service, model, target, &reply);
            let host = Host::new(Arc::new(Library::default()), Arc::new(provider) as Arc<dyn Provider>);
            // A limit of zero makes the failure report the ceiling; with the ceiling as its limit the run succeeds.
            let mut request = RunRequest::new(module.as_str(), input.clone());
            request.options.settings.max_cost = Some(Money::ZERO);
            let refused = poll_now(run(&host, request.clone(), &mut NullSink));
            let refused = serde_json::to_value(&refused).unwrap();
            let Some(ceiling) = refused.pointer("/error/details/ceiling").and_then(Money::from_value) else {
                continue;
            };
            request.options.settings.max_cost = Some(ceiling);
            let envelope = poll_now(run(&host, request, &mut NullSink));
            let cost = envelope.meta().usage().and_then(|usage| usage.cost);
            let seen = requests.lock().unwrap();
            let Some(cost) = cost.filter(|_| !seen.is_empty()) else { continue };
            assert!(cost <= ceiling, "{module}/{case}: {cost} of {ceiling}");
            judged += 1;
            dump.push(json!({
                "service": service, "model": model, "module": module, "case": case, "reply": reply,
                "ceiling": ceiling, "cost_by_four_bytes": cost, "requests": *seen, "ok": envelope.error().is_none(),
            }));
        }
    }
    assert!(judged > 60, "{judged}");
    if let Some(path) = std::env::var_os("COGN_COST_DUMP") {
        fs::write(path, serde_json::to_string(&dump).unwrap()).unwrap();
    }
}
