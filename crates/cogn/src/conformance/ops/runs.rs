//! Operations that go through the pipeline: a whole run with a scripted model, and the rendering of prompts.
//! Asks no real model, waits for nothing and fetches nothing.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use cognitive_contract::manifest::{InputModality, OutputModality};
use cognitive_contract::ports::{NullSink, ProviderError};
use cognitive_contract::stream::{assemble, check_log};
use cognitive_contract::{Failure, Manifest, Module};
use cognitive_library::{Folder, Library, LoadError, load};
use cognitive_runtime::compose::Results;
use cognitive_runtime::host::ModuleSource;
use cognitive_runtime::stages::prompt::{Values, render};
use cognitive_runtime::{Delivery, Host, Replay, RunRequest, run as run_module, stream as stream_module};
use serde_json::{Value, json};

use super::{CAPABILITIES, Given, MEDIA, Outcome, Stop, broken, files, json_of};

/// Runs a module with a model that says what the case wants it to say.
pub(super) fn run(given: Given<'_>) -> Outcome {
    let module = given.below("module")?;
    let folder = files::module_folder(module)?;
    needs(given, folder.as_ref())?;
    let provider = Arc::new(model(given.below("model")?)?);
    let (modules, name): (Arc<dyn ModuleSource>, &str) = match folder {
        Some(folder) => (Arc::new(One(folder)), "sample"),
        None => (Arc::new(Library::default()), module.text("name")?),
    };
    let host = Host::new(modules, provider.clone());
    let request = RunRequest::new(name, given.value("input")?.clone());
    let envelope = now(run_module(&host, request, &mut NullSink))
        .ok_or_else(|| broken("the run waited for something although the model never does"))?;
    Ok(json!({ "envelope": json_of(&envelope)?, "provider_calls": provider.calls(), "fetches": 0 }))
}

/// The same as a stream: its chunks and what a reader makes of them, or the envelope where the answer came whole.
pub(super) fn run_stream(given: Given<'_>) -> Outcome {
    let folder =
        files::module_folder(given.below("module")?)?.ok_or_else(|| broken("the case has no module"))?;
    needs_of_module(&folder)?;
    let provider = Arc::new(model(given.below("model")?)?);
    let mut host = Host::new(Arc::new(One(folder)), provider.clone());
    if let Some(capabilities) = given.get("capabilities") {
        host.capabilities = serde_json::from_value(capabilities.clone())
            .map_err(|error| broken(format!("no capabilities: {error}")))?;
    }
    let request = RunRequest::new("sample", given.value("input")?.clone());
    let mut sent = Vec::new();
    let delivery = now(stream_module(&host, request, |chunk| sent.push(chunk)))
        .ok_or_else(|| broken("the run waited for something although the model never does"))?;
    if let Delivery::Whole(envelope) = delivery {
        return Ok(json!({ "envelope": json_of(&envelope)?, "provider_calls": provider.calls() }));
    }
    let chunks = sent.iter().map(json_of).collect::<Result<Vec<Value>, Stop>>()?;
    Ok(json!({
        "valid": check_log(&chunks).is_empty(),
        "last": chunks.last(),
        "assembled": json_of(&assemble(chunks.clone()))?,
        "chunks": chunks,
        "provider_calls": provider.calls(),
    }))
}

/// Refuses runs that would need what is not built: their result would say nothing.
fn needs(given: Given<'_>, folder: Option<&Folder>) -> Result<(), Stop> {
    if given.get("capabilities").is_some() {
        return Err(Stop::NotBuilt(CAPABILITIES));
    }
    if given.get("http").is_some() {
        return Err(Stop::NotBuilt(MEDIA));
    }
    folder.map_or(Ok(()), needs_of_module)
}

fn needs_of_module(folder: &Folder) -> Result<(), Stop> {
    // A module that does not load is told so by the run itself.
    let Ok(module) = load(folder) else { return Ok(()) };
    let Manifest { modalities, .. } = &module.manifest;
    let takes_media = modalities.input.iter().any(|kind| *kind != InputModality::Text);
    let gives_media = modalities.output.iter().any(|kind| *kind != OutputModality::Text);
    if takes_media || gives_media { Err(Stop::NotBuilt(MEDIA)) } else { Ok(()) }
}

/// The one module of a case, whatever it is called.
struct One(Folder);

impl ModuleSource for One {
    fn module(&self, _: &str) -> Result<Arc<Module>, Failure> {
        load(&self.0).map(Arc::new).map_err(LoadError::into_failure)
    }
}

/// A scripted model never waits, so one poll is a whole run. `None` if it was not.
fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// `{text}`, `{json}`, `{pieces, then_error?}` or `{error}`.
fn model(model: Given<'_>) -> Result<Replay, Stop> {
    if model.get("error").is_some() {
        return Ok(Replay::pieces(Vec::new(), Some(provider_error(model.below("error")?)?)));
    }
    if let Some(value) = model.get("json") {
        return Ok(Replay::text(value.to_string()));
    }
    if model.get("pieces").is_some() {
        let text =
            |piece: &Value| piece.as_str().map(str::to_owned).ok_or_else(|| broken("a piece is no text"));
        let pieces = model.list("pieces")?.iter().map(text).collect::<Result<_, _>>()?;
        let error = match model.get("then_error") {
            Some(_) => Some(provider_error(model.below("then_error")?)?),
            None => None,
        };
        return Ok(Replay::pieces(pieces, error));
    }
    model.text("text").map(Replay::text)
}

fn provider_error(error: Given<'_>) -> Result<ProviderError, Stop> {
    let message = error.get("message").and_then(Value::as_str).unwrap_or("scripted failure").to_owned();
    match error.text("kind")? {
        "unavailable" => Ok(ProviderError::Unavailable(message)),
        "rate_limited" => Ok(ProviderError::RateLimited { retry_after: None }),
        "timeout" => Ok(ProviderError::Timeout),
        "disconnected" => Ok(ProviderError::Interrupted(message)),
        "exception" => Ok(ProviderError::Unexpected(message)),
        other => Err(broken(format!("unknown kind of provider error: `{other}`"))),
    }
}

/// A prompt template with its placeholders replaced.
pub(super) fn render_prompt(given: Given<'_>) -> Outcome {
    let arguments = given.get("args").map(|_| given.text("args")).transpose()?;
    let input = given.get("input").unwrap_or(&Value::Null);
    let mut results = Results::default();
    for (module, envelope) in given.get("results").and_then(Value::as_object).into_iter().flatten() {
        results.add(module, Some(envelope.clone()).filter(|envelope| !envelope.is_null()));
    }
    let values = Values { arguments, input, schema: &Value::Null, results: &results };
    let rendered = render(given.text("template")?, &values);
    Ok(json!({ "text": rendered.map(|rendered| rendered.text) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(manifest: Value, model: Value) -> Value {
        let schema = json!({ "input": {}, "data": {} });
        json!({
            "module": { "manifest": manifest, "schema": schema, "prompt": "p" }, "input": {}, "model": model,
        })
    }

    fn outcome(given: &Value) -> Outcome {
        run(Given::new(given).unwrap())
    }

    #[test]
    fn every_kind_of_model_ends_in_an_envelope() {
        let answer = json!({
            "ok": true, "meta": { "confidence": 1, "risk": "low", "explain": "e" }, "data": { "rationale": "r" },
        });
        let text = answer.to_string();
        for (model, code) in [
            (json!({ "json": answer }), Value::Null),
            (json!({ "text": text }), Value::Null),
            (json!({ "pieces": [&text[..20], &text[20..]] }), Value::Null),
            (json!({ "pieces": ["{"], "then_error": { "kind": "disconnected" } }), json!("E2010")),
            (json!({ "error": { "kind": "unavailable" } }), json!("E4001")),
            (json!({ "error": { "kind": "exception", "message": "kaboom" } }), json!("E4000")),
        ] {
            let result = outcome(&given(json!({ "tier": "decision" }), model.clone())).unwrap();
            assert_eq!(result["envelope"]["error"]["code"], code, "{model}");
            assert_eq!(result["provider_calls"], 1);
        }
    }

    #[test]
    fn what_a_run_cannot_do_yet_is_not_pretended() {
        let model = json!({ "text": "" });
        for manifest in [
            json!({ "modalities": { "input": ["text", "image"] } }),
            json!({ "modalities": { "output": ["audio"] } }),
        ] {
            let outcome = outcome(&given(manifest.clone(), model.clone()));
            assert!(matches!(outcome, Err(Stop::NotBuilt(_))), "{manifest}");
        }
        for extra in ["http", "capabilities"] {
            let mut given = given(json!({ "tier": "decision" }), model.clone());
            given[extra] = json!({});
            assert!(matches!(outcome(&given), Err(Stop::NotBuilt(_))), "{extra}");
        }
        let text = given(json!({ "tier": "decision", "modalities": { "input": ["text"] } }), model);
        assert!(outcome(&text).is_ok());
    }
}
