//! `POST /v1/modules/{module}/preview`: the prompts of a run, the most it could cost, and the exact requests, with
//! variable names in place of keys. Calls no model. Refuses what a run would refuse.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, Response};
use cognitive_contract::Failure;
use cognitive_contract::money::CURRENCY;
use cognitive_contract::ports::Example;
use cognitive_runtime::host::RunInput;
use cognitive_runtime::{PreviewedCall, PreviewedPrompt, cost, preview_requests};
use serde_json::{Map, Value, json};

use super::{curl, workbench};
use crate::app::Shared;
use crate::auth::Client;
use crate::catalog::beside;
use crate::request::{self, Content, Query};
use crate::routes::Name;
use crate::{intake, response, run};

/// Returns the prompt of a run without running it.
pub(crate) async fn show(
    State(shared): State<Arc<Shared>>,
    Extension(client): Extension<Arc<Client>>,
    Name(module): Name,
    request: Request,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let mut claim = shared.room.claim();
    let bytes =
        match intake::body_of(&shared, &parts.headers, body, shared.config.body_limit, &mut claim).await {
            Ok(bytes) => bytes,
            Err(refusal) => return *refusal,
        };
    match intake::read(&shared, bytes, claim, |text| Ok(Content::of(text))).await {
        Ok((content, _claim)) => workbench::answer(previewed(&shared, &client, &module, content).await),
        Err(failure) => response::failure(failure),
    }
}

async fn previewed(
    shared: &Arc<Shared>,
    client: &Client,
    name: &str,
    content: Content,
) -> Result<Value, Failure> {
    let module = shared.module(name).await;
    let takes_input = module.as_deref().is_ok_and(run::takes_input);
    let mut ask = request::read(&HeaderMap::new(), &Query::default(), content, takes_input)?;
    let chosen = shared.choose(client, name, module, &mut ask.options).await?;
    let options = run::options(client, &ask.options)?;
    let input = ask.input;
    beside(shared, &shared.workbenches, move |_| {
        let (host, module) = (&chosen.host, &chosen.module);
        let calls = preview_requests(host, module, &input, &options)?;
        // Without a price or a bound there is no ceiling; the run itself reports that where it matters.
        let ceiling = cost::ceiling(host, module, &options, length(&input)).ok();
        Ok(json!({
            "calls": calls.into_iter().map(shown).collect::<Vec<_>>(),
            "ceiling": ceiling.map(|ceiling| json!({ "cost": ceiling.cost.to_string(), "currency": CURRENCY })),
        }))
    })
    .await?
}

/// A call of the run: its prompt, or the reason why there is none yet.
fn shown(PreviewedCall { module, prompt, .. }: PreviewedCall) -> Value {
    let preview = match prompt {
        PreviewedPrompt::Known(preview) => *preview,
        PreviewedPrompt::WaitsFor(names) => return json!({ "module": module, "waits_for": names }),
        PreviewedPrompt::NotSent(why) => return json!({ "module": module, "not_sent": why }),
        _ => return json!({ "module": module }),
    };
    let turn = |example: &Example| json!({ "input": example.input, "answer": example.answer });
    json!({
        "module": module,
        "instructions": preview.instructions,
        "examples": preview.examples.iter().map(turn).collect::<Vec<_>>(),
        "input": preview.input,
        "estimated_tokens": preview.estimated_tokens,
        "curl": preview.request.as_ref().map(curl::command),
        "request": preview.request.map(|request| {
            let headers = request.headers.into_iter().map(|(name, value)| (name, Value::String(value)));
            json!({
                "method": request.method,
                "url": request.url,
                "headers": headers.collect::<Map<_, _>>(),
                "body": request.body,
            })
        }),
    })
}

/// Returns the approximate length of an input, in bytes.
fn length(input: &RunInput) -> u64 {
    let length = match input {
        RunInput::Json(value) => value.to_string().len(),
        RunInput::Shared(value) => value.to_string().len(),
        RunInput::Raw(text) | RunInput::Text(text) => text.len(),
        _ => 0,
    };
    length as u64
}
