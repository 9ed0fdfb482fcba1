//! Operations that use the pipeline: a whole run with a scripted model, and the rendering of prompts.
//! Calls no real model and fetches nothing.

use std::future::Future;
use std::sync::Arc;

use cognitive_contract::media::MediaLimits;
use cognitive_contract::ports::{ModuleSource, NullSink, ProviderError, Usage};
use cognitive_contract::stream::{assemble, check_log};
use cognitive_contract::{Failure, Module, RunSettings};
use cognitive_library::{Folder, Library, ModuleLoadError, load};
use cognitive_runtime::compose::Results;
use cognitive_runtime::stages::prompt::{PromptValues, render};
use cognitive_runtime::{Delivery, Host, Replay, RunRequest, run as run_module, stream as stream_module};
use cognitive_setup::async_runtime;
use serde_json::{Value, json};

use super::media::{self, Web};
use super::{Arguments, Outcome, VectorStop, broken_vector, files, json_of};

/// Runs a module with a scripted model reply.
pub(super) fn run(given: Arguments<'_>) -> Outcome {
    let module = given.child("module")?;
    let provider = Arc::new(model(given.child("model")?)?);
    let (modules, name): (Arc<dyn ModuleSource>, &str) = match files::module_folder(module)? {
        Some(folder) => (Arc::new(SingleModule(folder)), "sample"),
        None => (Arc::new(Library::default()), module.text("name")?),
    };
    let (host, web) = host(given, modules, provider.clone())?;
    let request = request(name, given)?;
    let envelope = wait(run_module(&host, request, &mut NullSink))?;
    Ok(json!({
        "envelope": json_of(&envelope)?,
        "provider_calls": provider.calls(),
        "fetches": web.fetches(),
    }))
}

/// Runs a module as a stream. Returns its chunks and their assembled envelope, or the envelope if the answer
/// was not streamed.
pub(super) fn run_stream(given: Arguments<'_>) -> Outcome {
    let folder = files::module_folder(given.child("module")?)?
        .ok_or_else(|| broken_vector("the case has no module"))?;
    let provider = Arc::new(model(given.child("model")?)?);
    let (host, _) = host(given, Arc::new(SingleModule(folder)), provider.clone())?;
    let request = request("sample", given)?;
    let mut sent = Vec::new();
    let delivery = wait(stream_module(&host, request, |chunk| sent.push(chunk)))?;
    if let Delivery::Whole(envelope) = delivery {
        return Ok(json!({ "envelope": json_of(&envelope)?, "provider_calls": provider.calls() }));
    }
    let chunks = sent.iter().map(json_of).collect::<Result<Vec<Value>, VectorStop>>()?;
    Ok(json!({
        "valid": check_log(&chunks).is_empty(),
        "last": chunks.last(),
        "assembled": json_of(&assemble(chunks.clone()))?,
        "chunks": chunks,
        "provider_calls": provider.calls(),
    }))
}

/// The request of a case, with its options. An option that this adapter cannot honour is not built. (D-27)
fn request(name: &str, given: Arguments<'_>) -> Result<RunRequest, VectorStop> {
    let mut request = RunRequest::new(name, given.value("input")?.clone());
    let Some(options) = given.get("options") else { return Ok(request) };
    let mut settings =
        options.as_object().cloned().ok_or_else(|| broken_vector("`options` is not an object"))?;
    let text = |value: Value| {
        value.as_str().map(str::to_owned).ok_or_else(|| broken_vector("an option is not a string"))
    };
    for (name, slot) in [
        ("user", &mut request.options.user),
        ("tenant", &mut request.options.tenant),
        ("session", &mut request.options.session),
    ] {
        *slot = settings.shift_remove(name).map(text).transpose()?;
    }
    if let Some(value) = settings.shift_remove("require_streaming") {
        request.options.require_streaming =
            value.as_bool().ok_or_else(|| broken_vector("`require_streaming` is not a boolean"))?;
    }
    if let Some(name) = settings.keys().find(|name| !RunSettings::NAMES.contains(&name.as_str())) {
        return Err(VectorStop::NotBuilt(format!("the option `{name}`")));
    }
    request.options.settings = serde_json::from_value(Value::Object(settings))
        .map_err(|error| broken_vector(format!("the options cannot be read: {error}")))?;
    Ok(request)
}

/// The host of a run: everything is real except the network, which serves only the pages of the case.
fn host(
    given: Arguments<'_>,
    modules: Arc<dyn ModuleSource>,
    provider: Arc<Replay>,
) -> Result<(Host, Arc<Web>), VectorStop> {
    let web = Arc::new(Web::from_arguments(given)?);
    let mut host = Host::new(modules, provider);
    host.take_media(media::source(&web), MediaLimits::default());
    if let Some(capabilities) = given.get("capabilities") {
        host.capabilities = serde_json::from_value(capabilities.clone())
            .map_err(|error| broken_vector(format!("no capabilities: {error}")))?;
    }
    Ok((host, web))
}

/// Returns the one module of a case for every name.
pub(super) struct SingleModule(pub(super) Folder);

impl ModuleSource for SingleModule {
    fn module(&self, _: &str) -> Result<Arc<Module>, Failure> {
        load(&self.0).map(Arc::new).map_err(ModuleLoadError::into_failure)
    }
}

/// Runs a future to its end. The model never waits, but media are examined on another thread.
pub(super) fn wait<T>(future: impl Future<Output = T>) -> Result<T, VectorStop> {
    let runtime =
        async_runtime::on_this_thread().map_err(|failure| broken_vector(failure.message().to_owned()))?;
    Ok(runtime.block_on(future))
}

/// Builds the model of `{text}`, `{json}`, `{pieces, then_error?}` or `{error}`, each with an optional
/// `usage`.
fn model(model: Arguments<'_>) -> Result<Replay, VectorStop> {
    let counted = model.get("usage").map(Usage::from_value);
    Ok(reply(model)?.with_usage(counted))
}

fn reply(model: Arguments<'_>) -> Result<Replay, VectorStop> {
    if model.get("error").is_some() {
        return Ok(Replay::pieces(Vec::new(), Some(provider_error(model.child("error")?)?)));
    }
    if let Some(value) = model.get("json") {
        return Ok(Replay::text(value.to_string()));
    }
    if model.get("pieces").is_some() {
        let text = |piece: &Value| {
            piece.as_str().map(str::to_owned).ok_or_else(|| broken_vector("a piece is not a string"))
        };
        let pieces = model.list("pieces")?.iter().map(text).collect::<Result<_, _>>()?;
        let error = match model.get("then_error") {
            Some(_) => Some(provider_error(model.child("then_error")?)?),
            None => None,
        };
        return Ok(Replay::pieces(pieces, error));
    }
    model.text("text").map(Replay::text)
}

fn provider_error(error: Arguments<'_>) -> Result<ProviderError, VectorStop> {
    let message = error.get("message").and_then(Value::as_str).unwrap_or("scripted failure").to_owned();
    match error.text("kind")? {
        "unavailable" => Ok(ProviderError::Unavailable(message)),
        "rate_limited" => Ok(ProviderError::RateLimited { retry_after: None }),
        "timeout" => Ok(ProviderError::Timeout),
        "disconnected" => Ok(ProviderError::Interrupted(message)),
        "rejected" => Ok(ProviderError::Rejected(message)),
        "unauthorized" => Ok(ProviderError::Misconfigured(message)),
        "too_long" => Ok(ProviderError::ContextOverflow(message)),
        "exception" => Ok(ProviderError::Unexpected(message)),
        other => Err(broken_vector(format!("unknown kind of provider error: `{other}`"))),
    }
}

/// Renders a prompt template.
pub(super) fn render_prompt(given: Arguments<'_>) -> Outcome {
    let arguments = given.get("args").map(|_| given.text("args")).transpose()?;
    let input = given.get("input").unwrap_or(&Value::Null);
    let mut results = Results::default();
    for (module, envelope) in given.get("results").and_then(Value::as_object).into_iter().flatten() {
        results.add(module, Some(envelope.clone()).filter(|envelope| !envelope.is_null()));
    }
    let values = PromptValues { arguments, input, schema: &Value::Null, results: &results, media: "" };
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
        run(Arguments::new(given).unwrap())
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

    // D-27
    #[test]
    fn d_27_options_of_a_case_are_honoured_or_not_built() {
        let with = |options: Value| {
            let mut given = given(json!({ "name": "m", "tier": "decision" }), json!({ "text": "no JSON" }));
            given["options"] = options;
            outcome(&given)
        };
        let calls = |options: Value| with(options).unwrap()["provider_calls"].clone();
        assert_eq!((calls(json!({})), calls(json!({ "reask": 1 }))), (json!(1), json!(2)));
        let refused = with(json!({ "require_streaming": true })).unwrap();
        assert_eq!(refused["envelope"]["error"]["code"], "E4010", "{refused}");
        let unknown = with(json!({ "colour": "red" }));
        assert_eq!(unknown, Err(VectorStop::NotBuilt("the option `colour`".to_owned())));
    }
}
