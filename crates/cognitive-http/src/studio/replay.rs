//! `POST /v1/runs/{id}/replay`: repeats a past run with the same input, optionally with another model, version or
//! draft, and compares both answers by the contract. The repetition is an ordinary run: limits, budgets and records
//! apply.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::{Response, StatusCode};
use cognitive_contract::{Envelope, ErrorCode, Failure};
use cognitive_ports::archive::RunDetails;
use cognitive_ports::module_editor::ChangedFiles;
use cognitive_runtime::host::RunInput;
use cognitive_runtime::{ModuleRef, RunRequest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::choice::ChosenRun;
use super::difference::{EnvelopeDifference, contract_difference};
use super::module_files::answer;
use super::{body, runs};
use crate::app::AppState;
use crate::auth::Client;
use crate::request::Options;
use crate::routes::Name;
use crate::{response, run};

/// The changes for the repetition; none for the same run.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ReplayRequest")]
pub(crate) struct ReplayBody {
    model: Option<String>,
    /// Texts by path in the folder of the module; null removes a file.
    draft: Option<ChangedFiles>,
    version: Option<String>,
}

/// The same run, twice.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RunReplay {
    diff: Vec<EnvelopeDifference>,
    #[schemars(with = "Envelope")]
    before: Value,
    after: Envelope,
}

/// Repeats the run.
pub(crate) async fn repeat_run(
    State(shared): State<Arc<AppState>>,
    Extension(client): Extension<Arc<Client>>,
    Name(id): Name,
    request: Request,
) -> Response<Body> {
    let (ReplayBody { model, draft, version }, _claim) = match body::read(&shared, request).await {
        Ok(read) => read,
        Err(refusal) => return *refusal,
    };
    let details = match runs::details(&shared, &client, id).await {
        Ok(Some(details)) => details,
        Ok(None) => return runs::no_such_run(),
        Err(failure) => return response::failure(failure),
    };
    let RunDetails { run, input: Some(input), envelope: Some(before), .. } = details else {
        let failure =
            Failure::new(ErrorCode::InvalidReference, "input and answer of this run are not stored")
                .with_detail("kind", json!("no_payload"))
                .suggest("Set `audit: {payloads: true}` in the configuration to make later runs repeatable");
        return response::failure_as(StatusCode::CONFLICT, failure);
    };
    let mut options = Options::default();
    // A cached answer would be the old one that the new answer is compared with.
    (options.model, options.draft, options.version) = (model, draft, version);
    options.settings.no_cache = Some(true);
    let again = run_again(&shared, &client, &run.module, audited_input(input), options).await;
    answer(again.map(|after| {
        // Serialising an envelope to a value cannot fail.
        let told = serde_json::to_value(&after).unwrap_or_default();
        RunReplay { diff: contract_difference(&before, &told), before, after }
    }))
}

async fn run_again(
    shared: &Arc<AppState>,
    client: &Client,
    name: &str,
    input: RunInput,
    mut asked: Options,
) -> Result<Envelope, Failure> {
    run::within_shared_rate(shared, client).await?;
    let module = shared.module(name).await;
    let ChosenRun { host, module, .. } = shared.choose(client, name, module, &mut asked).await?;
    let host = Arc::new(host.for_experiments());
    let mut options = run::options(client, &asked)?;
    options.trace_id = Some(client.trace.id.clone());
    options.spans = shared.place(&client.trace, Some(&client.trace.span));
    let request = RunRequest { module: ModuleRef::from_module(name, module), input, options };
    Ok(run::whole_envelope(shared, &host, request).await)
}

/// Returns an input from the audit log, where inputs other than JSON values are stored as text.
fn audited_input(kept: Value) -> RunInput {
    match kept {
        Value::String(text) if text.trim_start().starts_with('{') => RunInput::Raw(text),
        Value::String(text) => RunInput::Text(text),
        value => RunInput::Json(value),
    }
}
