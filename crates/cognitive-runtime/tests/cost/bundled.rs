//! The bundled modules: the distance of their ceilings from actual costs. `COGN_COST_DUMP=FILE` writes every request
//! with its reply and its ceiling, so that other programs can count the tokens with a real vocabulary.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use cognitive_contract::money::Money;
use cognitive_contract::ports::{DecodeMode, Destination, ModelEnd, ModuleSource, NullSink, Provider, Usage};
use cognitive_library::Library;
use cognitive_runtime::{Host, RunRequest, run};
use cognitive_schema::SchemaTarget;
use cognitive_testkit::{FakeProvider, NamedModules, poll_now};
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

/// The services whose ceilings are judged. The first publishes its vocabulary.
const SERVICES: [(&str, &str, SchemaTarget); 3] = [
    ("openai", "gpt-4.1", SchemaTarget::OpenAi),
    ("anthropic", "claude-haiku-4-5", SchemaTarget::Anthropic),
    ("gemini", "gemini-2.5-flash-lite", SchemaTarget::Gemini),
];

/// A run with its ceiling as the limit.
struct JudgedRun {
    ceiling: Money,
    cost: Money,
    envelope: Value,
    requests: Vec<Value>,
}

/// Runs a module with a recorded reply. `None` if no model is asked.
fn judge(
    modules: Arc<dyn ModuleSource>,
    module: &str,
    input: &Value,
    reply: &str,
    (service, model, target): (&'static str, &'static str, SchemaTarget),
) -> Option<JudgedRun> {
    let (provider, requests) = recorded(service, model, target, reply);
    let host = Host::new(modules, Arc::new(provider) as Arc<dyn Provider>);
    // A limit of zero makes the failure report the ceiling; with the ceiling as its limit the run succeeds.
    let mut request = RunRequest::new(module, input.clone());
    request.options.settings.max_cost = Some(Money::ZERO);
    let refused = poll_now(run(&host, request.clone(), &mut NullSink));
    let refused = serde_json::to_value(&refused).unwrap();
    let ceiling = refused.pointer("/error/details/ceiling").and_then(Money::from_value)?;
    request.options.settings.max_cost = Some(ceiling);
    let envelope = poll_now(run(&host, request, &mut NullSink));
    let cost = envelope.meta().usage().and_then(|usage| usage.cost);
    let requests = requests.lock().unwrap().clone();
    let cost = cost.filter(|_| !requests.is_empty())?;
    assert!(cost <= ceiling, "{module}: {cost} of {ceiling}");
    Some(JudgedRun { ceiling, cost, envelope: serde_json::to_value(&envelope).unwrap(), requests })
}

/// The ceiling as hundredths of the cost.
fn ratio(judged: &JudgedRun) -> u64 {
    judged.ceiling.pico().saturating_mul(100) / judged.cost.pico().max(1)
}

#[test]
fn ceilings_are_near_what_recorded_runs_cost() {
    let (mut dump, mut ratios) = (Vec::new(), Vec::new());
    for (module, case, input, reply) in cases() {
        for service in SERVICES {
            let modules = Arc::new(Library::default());
            let Some(judged) = judge(modules, &module, &input, &reply, service) else { continue };
            ratios.push((ratio(&judged), format!("{}: {module}/{case}", service.0)));
            dump.push(json!({
                "service": service.0, "model": service.1, "module": module, "case": case, "reply": reply,
                "ceiling": judged.ceiling, "cost_by_four_bytes": judged.cost, "requests": judged.requests,
                "ok": judged.envelope["ok"],
            }));
        }
    }
    ratios.sort_unstable();
    if let Some(path) = std::env::var_os("COGN_COST_DUMP") {
        fs::write(path, serde_json::to_string(&dump).unwrap()).unwrap();
    }
    assert!(ratios.len() > 60, "{}", ratios.len());
    let far: Vec<_> = ratios.iter().filter(|(ratio, _)| *ratio > 500).collect();
    assert!(far.is_empty(), "hundredths of the cost: {far:#?}");
}

/// A module that has a limit for each of its texts, but none for `meta.explain`. It may give insights.
fn support_triage() -> Arc<dyn ModuleSource> {
    let text = |most: u64| json!({ "type": "string", "maxLength": most });
    let data = json!({
        "type": "object", "required": ["rationale", "team", "urgency", "summary", "reply"],
        "additionalProperties": false,
        "properties": {
            "rationale": text(300), "team": { "enum": ["billing", "technical", "sales", "other"] },
            "urgency": { "type": "integer", "minimum": 1, "maximum": 5 }, "summary": text(200), "reply": text(400),
            "tags": { "type": "array", "maxItems": 5, "items": text(30) },
        },
    });
    let meta = json!({ "type": "object", "required": ["confidence", "risk", "explain"], "properties": {
        "confidence": { "type": "number" }, "risk": { "type": "string" }, "explain": { "type": "string" } } });
    let input = json!({ "type": "object", "required": ["subject", "body"], "additionalProperties": false,
        "properties": { "subject": text(200), "body": text(4000) } });
    let prompt = "You read a support ticket. Choose the team that answers it and say how urgent it is, from 1 (can wait) \
        to 5 (money or data are being lost). Write a summary of one sentence, and a short reply for the customer that \
        promises nothing. Add up to five tags. If the ticket names several problems, the one that costs the customer the \
        most decides. In `rationale`, give the reason for the team and for the urgency.";
    let manifest =
        json!({ "version": "1.0.0", "responsibility": "Sort support tickets", "tier": "decision" });
    let schema = json!({ "input": input, "data": data, "meta": meta });
    Arc::new(NamedModules::default().with("support-triage", manifest, &schema, prompt))
}

#[test]
fn texts_with_limits_and_open_insights_have_a_near_ceiling() {
    let input = json!({ "subject": "Charged twice", "body": "Hello, I was charged twice for my subscription in \
        November, once on the 2nd and once on the 5th. Please refund one of the two payments as soon as you can. My \
        bank says that both went through. The invoice numbers are 20261102-17 and 20261105-03." });
    let reply = json!({
        "ok": true, "meta": { "confidence": 0.93, "risk": "low", "explain": "A double charge belongs to billing." },
        "data": {
            "rationale": "The customer was charged twice for one month, which is a matter of payments. Money is lost until \
                one payment is refunded, so it should not wait.",
            "team": "billing", "urgency": 4, "summary": "The customer was charged twice for November and asks for a refund.",
            "reply": "Thank you for telling us about the two payments. We are looking at both invoices and will write to \
                you as soon as we know more.",
            "tags": ["double charge", "refund", "invoice"],
        },
    });
    for service in SERVICES {
        let judged = judge(support_triage(), "support-triage", &input, &reply.to_string(), service).unwrap();
        assert_eq!(judged.envelope["ok"], true, "{}", judged.envelope);
        assert!(ratio(&judged) <= 500, "{}: {} hundredths", service.0, ratio(&judged));
    }
}
