//! Every envelope of a live run is valid under the official schema: all recorded answers of all services, good and bad,
//! go through the provider and the runtime, sync and as a reassembled stream. (D-07, ENV-009, GEN-002)

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cognitive_contract::ports::{NullSink, PortFuture};
use cognitive_contract::stream::assemble;
use cognitive_library::Library;
use cognitive_net::{Kind, Pause, ProviderConfig, Proxies, Secret, provider};
use cognitive_ports::openai_api::OpenAiApi;
use cognitive_runtime::{Host, RunRequest};
use cognitive_testkit::{Act, FakeModel};
use serde_json::{Value, json};

use super::official::Official;
use super::services::{recorded, wire};
use super::{KEY, good};

/// Retries without a delay.
struct NoPause;

impl Pause for NoPause {
    fn sleep(&self, _: Duration) -> PortFuture<'_, ()> {
        Box::pin(async {})
    }

    fn jitter(&self) -> f64 {
        0.0
    }
}

/// Returns the service that a recording is from.
fn kind_of(path: &Path) -> Kind {
    let folder = path.strip_prefix(wire()).unwrap().iter().next().unwrap().to_string_lossy().into_owned();
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    match folder.as_str() {
        "compatible" | "services" => {
            let named = Kind::all().find(|kind| name.starts_with(kind.name()));
            named.unwrap_or(Kind::Compatible)
        }
        "recorded" => Kind::LlamaCpp,
        "responses" => Kind::OpenAi,
        folder => Kind::parse(folder).unwrap(),
    }
}

/// Collects all recorded answers of models, in order.
fn recordings(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            recordings(&entry, found);
        } else if entry.extension().is_some_and(|ending| ending == "http") && !entry.ends_with("models.http")
        {
            found.push(entry);
        }
    }
}

/// Returns a good answer in the format of each API.
fn good_answers() -> Vec<(Kind, OpenAiApi, Value)> {
    let text = good().to_string();
    let message = json!({ "role": "assistant", "content": text });
    let usage = json!({ "prompt_tokens": 3, "completion_tokens": 2 });
    let openai = json!({ "model": "m", "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }], "usage": usage });
    let anthropic = json!({ "type": "message", "model": "m", "content": [{ "type": "text", "text": text }],
        "stop_reason": "end_turn", "usage": { "input_tokens": 3, "output_tokens": 2 } });
    let candidate = json!({ "content": { "parts": [{ "text": text }] }, "finishReason": "STOP" });
    let gemini = json!({ "candidates": [candidate], "modelVersion": "m",
        "usageMetadata": { "promptTokenCount": 3, "candidatesTokenCount": 2 } });
    let ollama =
        json!({ "model": "m", "message": message, "done": true, "prompt_eval_count": 3, "eval_count": 2 });
    let part = json!({ "type": "output_text", "text": text });
    let output = json!({ "type": "message", "role": "assistant", "content": [part] });
    let response = json!({ "object": "response", "model": "m", "status": "completed", "output": [output],
        "usage": { "input_tokens": 3, "output_tokens": 2 } });
    let own = [(Kind::Anthropic, anthropic), (Kind::Gemini, gemini), (Kind::Ollama, ollama)];
    let own = own.map(|(kind, answer)| (kind, OpenAiApi::Chat, answer));
    let others = Kind::all().filter(|kind| kind.speaks_openai()).flat_map(|kind| {
        [(kind, OpenAiApi::Chat, openai.clone()), (kind, OpenAiApi::Responses, response.clone())]
    });
    own.into_iter().chain(others).collect()
}

fn host(kind: Kind, api: OpenAiApi, service: &FakeModel) -> Host {
    let mut config = ProviderConfig::new(kind)
        .with_model("m-1")
        .with_key(Secret::new(KEY))
        .with_base_url(service.url())
        .with_proxies(Proxies::None)
        .with_pause(Arc::new(NoPause));
    config.api = kind.speaks_openai().then_some(api);
    Host::new(Arc::new(Library::new(Path::new("/nowhere"), None, &[])), provider(config).unwrap())
}

fn request() -> RunRequest {
    let mut request = RunRequest::new("summarizer", json!({ "text": "A long text." }));
    request.options.settings.receipt = Some(true);
    request
}

/// Plays an answer to a run and to a stream, and validates every envelope. Returns the first one.
async fn judge(official: &Official, name: &str, (kind, api): (Kind, OpenAiApi), act: Act) -> Value {
    let service = FakeModel::script(vec![act]);
    let host = host(kind, api, &service);
    let whole = serde_json::to_value(cognitive_runtime::run(&host, request(), &mut NullSink).await).unwrap();
    assert_eq!(official.faults(&whole), Vec::<String>::new(), "{name}: {whole}");

    let mut chunks = Vec::new();
    let take = |chunk| chunks.push(serde_json::to_value(&chunk).unwrap());
    let delivery = cognitive_runtime::stream(&host, request(), take).await;
    let streamed = serde_json::to_value(delivery.envelope()).unwrap();
    assert_eq!(official.faults(&streamed), Vec::<String>::new(), "{name}: {streamed}");
    let mut assembled = serde_json::to_value(assemble(chunks)).unwrap();
    // A client needs the id of a failed stream to resume it; a run has none. (ENV-008)
    for mark in ["streaming", "session_id"] {
        let has = assembled.as_object_mut().unwrap().shift_remove(mark).is_some();
        assert_eq!(has, assembled["ok"] == false, "{name}: {mark}");
    }
    assert_eq!(official.faults(&assembled), Vec::<String>::new(), "{name}: {assembled}");
    assert_eq!(assembled["meta"].get("usage"), streamed["meta"].get("usage"), "{name}");
    for member in ["data", "partial_data", "ok"] {
        assert_eq!(assembled.get(member), streamed.get(member), "{name}: {member}");
    }
    whole
}

#[test]
fn every_envelope_of_a_live_run_is_one_by_the_official_schema() {
    let Some(official) = Official::find() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut found = Vec::new();
    recordings(&wire(), &mut found);
    let mut codes: BTreeMap<String, usize> = BTreeMap::new();
    for path in &found {
        let name = path.display().to_string();
        let is_response = path.starts_with(wire().join("responses"));
        let api = if is_response { OpenAiApi::Responses } else { OpenAiApi::Chat };
        let envelope = runtime.block_on(judge(&official, &name, (kind_of(path), api), recorded(path)));
        let code = envelope.pointer("/error/code").and_then(Value::as_str).unwrap_or("ok");
        *codes.entry(code.to_owned()).or_default() += 1;
    }
    assert!(found.len() > 80, "{}", found.len());
    for code in ["E2003", "E2004", "E2010", "E3001", "E4001", "E4002", "E4003", "E4007"] {
        assert!(codes.contains_key(code), "{code}: {codes:?}");
    }
    assert!(!codes.contains_key("E4000"), "no service is a fault of ours: {codes:?}");
    for (kind, api, answer) in good_answers() {
        let act = Act::json(200, &answer);
        let envelope = runtime.block_on(judge(&official, kind.name(), (kind, api), act));
        assert_eq!(
            (&envelope["ok"], &envelope["meta"]["usage"]["total_tokens"]),
            (&json!(true), &json!(5)),
            "{envelope}"
        );
    }
}
