//! `POST /v1/modules/{module}/preview`: the prompts of a run, the most it could cost, and the exact requests, with
//! variable names in place of keys. Calls no model. Refuses what a run would refuse.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, Response};
use cognitive_contract::Failure;
use cognitive_contract::money::CURRENCY;
use cognitive_contract::ports::{Example, RenderedRequest};
use cognitive_runtime::host::RunInput;
use cognitive_runtime::{PreviewedCall, PreviewedPrompt, cost, preview_requests};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{curl, module_files};
use crate::app::AppState;
use crate::auth::Client;
use crate::catalog::author_work;
use crate::request::{self, Content, Query};
use crate::routes::Name;
use crate::{intake, response, run};

/// A run without model calls.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RunPreview {
    calls: Vec<ShownCall>,
    /// The most that the run could cost, if that is known.
    ceiling: Option<ShownCeiling>,
}

#[expect(
    clippy::option_option,
    reason = "a call without a request has null, an unknown prompt has no member"
)]
/// A prompt, the modules whose answers it depends on, or why none is sent.
#[derive(Default, Serialize, JsonSchema)]
#[schemars(rename = "PreviewedCall")]
struct ShownCall {
    module: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    examples: Option<Vec<ShownExample>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<String>,
    /// An estimate of the tokens of the whole prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_tokens: Option<u64>,
    /// The request as a command for a shell; null if the model runs in the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    curl: Option<Option<String>>,
    /// The request to the service of the model; null if the model runs in the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<Option<ShownRequest>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_for: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_sent: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct ShownExample {
    input: String,
    answer: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct ShownCeiling {
    cost: String,
    currency: &'static str,
}

/// A request, with names of variables in place of keys.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct ShownRequest {
    method: String,
    url: String,
    #[schemars(with = "BTreeMap<String, String>")]
    headers: Map<String, Value>,
    body: Value,
}

impl From<Example> for ShownExample {
    fn from(Example { input, answer }: Example) -> Self {
        Self { input, answer }
    }
}

impl From<RenderedRequest> for ShownRequest {
    fn from(request: RenderedRequest) -> Self {
        let RenderedRequest { method, url, headers, body, .. } = request;
        let headers = headers.into_iter().map(|(name, value)| (name, Value::String(value)));
        Self { method, url, headers: headers.collect(), body }
    }
}

/// Returns the prompt of a run without running it.
pub(crate) async fn show(
    State(shared): State<Arc<AppState>>,
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
    match intake::read(&shared, bytes, claim, |text| Ok(Content::parse(text))).await {
        Ok((content, _claim)) => module_files::answer(preview_run(&shared, &client, &module, content).await),
        Err(failure) => response::failure(failure),
    }
}

async fn preview_run(
    shared: &Arc<AppState>,
    client: &Client,
    name: &str,
    content: Content,
) -> Result<RunPreview, Failure> {
    let module = shared.module(name).await;
    let takes_input = module.as_deref().is_ok_and(run::takes_input);
    let mut ask = request::read(&HeaderMap::new(), &Query::default(), content, takes_input)?;
    let chosen = shared.choose(client, name, module, &mut ask.options).await?;
    let options = run::options(client, &ask.options)?;
    let input = ask.input;
    author_work(shared, client, move |_| {
        let (host, module) = (&chosen.host, &chosen.module);
        let calls = preview_requests(host, module, &input, &options)?;
        // Without a price or a bound there is no ceiling; the run itself reports that where it matters.
        let ceiling = cost::ceiling(host, module, &options, length(&input)).ok();
        Ok(RunPreview {
            calls: calls.into_iter().map(call_json).collect(),
            ceiling: ceiling
                .map(|ceiling| ShownCeiling { cost: ceiling.cost.to_string(), currency: CURRENCY }),
        })
    })
    .await?
}

/// Returns a call of the run: its prompt, or the reason why there is none yet.
fn call_json(PreviewedCall { module, prompt, .. }: PreviewedCall) -> ShownCall {
    let call = ShownCall { module, ..ShownCall::default() };
    match prompt {
        PreviewedPrompt::Known(preview) => ShownCall {
            instructions: Some(preview.instructions),
            examples: Some(preview.examples.into_iter().map(ShownExample::from).collect()),
            input: Some(preview.input),
            estimated_tokens: Some(preview.estimated_tokens),
            curl: Some(preview.request.as_ref().map(curl::command)),
            request: Some(preview.request.map(ShownRequest::from)),
            ..call
        },
        PreviewedPrompt::WaitsFor(names) => ShownCall { waits_for: Some(names), ..call },
        PreviewedPrompt::NotSent(why) => ShownCall { not_sent: Some(why), ..call },
        _ => call,
    }
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
