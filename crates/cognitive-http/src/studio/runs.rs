//! Past runs: the list, the details of one run, and statistics over time. A client sees its own runs, identified by
//! its key; only an admin sees all runs. Changes nothing.

use std::sync::Arc;
use std::time::SystemTime;

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{Response, StatusCode, Uri};
use cognitive_contract::text::cut;
use cognitive_contract::{ErrorCode, Failure};
use cognitive_ports::archive::{RunArchive, RunDetails, RunFilter};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::module_files::answer;
use crate::app::AppState;
use crate::auth::Client;
use crate::catalog::run_blocking;
use crate::response;
use crate::roles::KeyRole;
use crate::routes::Name;

/// Runs per page: the default and the limit.
const DEFAULT_LIMIT: usize = 50;
const MAX_LIMIT: usize = 500;
/// Time buckets of statistics: the default and the limit. A chart has no room for more.
const DEFAULT_BUCKETS: usize = 48;
const MAX_BUCKETS: usize = 500;

/// The query parameters of a list or of statistics.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunQuery {
    module: Option<String>,
    model: Option<String>,
    risk: Option<String>,
    min_confidence: Option<f64>,
    max_confidence: Option<f64>,
    code: Option<String>,
    ok: Option<bool>,
    user: Option<String>,
    key: Option<String>,
    since: Option<String>,
    until: Option<String>,
    limit: Option<usize>,
    cursor: Option<String>,
    buckets: Option<usize>,
}

/// Parses the query of a request. (E1001)
pub(super) fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Failure> {
    let read = axum::extract::Query::<T>::try_from_uri(uri);
    read.map(|axum::extract::Query(query)| query).map_err(|refused| {
        let message = format!("invalid query: {}", cut(&refused.body_text(), 200));
        Failure::new(ErrorCode::InvalidInput, message)
            .suggest("See the parameters of the operation in `/openapi.json`")
    })
}

impl RunQuery {
    /// Returns the filter, restricted to what the client may see.
    fn filter(self, client: &Client) -> Result<RunFilter, Failure> {
        let text = |text: Option<String>| text.filter(|text| !text.is_empty());
        let own = client.user().filter(|_| !client.roles.has(KeyRole::Admin));
        let key = text(self.key);
        if key.as_deref().is_some_and(|key| own.is_some_and(|own| own != key)) {
            client.roles.need(KeyRole::Admin)?;
        }
        Ok(RunFilter {
            module: text(self.module),
            model: text(self.model),
            risk: text(self.risk),
            min_confidence: self.min_confidence,
            max_confidence: self.max_confidence,
            code: text(self.code),
            ok: self.ok,
            key: own.map(str::to_owned).or(key),
            user: text(self.user),
            tenant: None,
            since: moment("since", text(self.since))?,
            until: moment("until", text(self.until))?,
            limit: Some(self.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT)),
            cursor: cursor(text(self.cursor))?,
        })
    }
}

/// Checks the cursor of a page. An invalid one is refused before the lookup.
pub(super) fn cursor(given: Option<String>) -> Result<Option<String>, Failure> {
    if given.as_deref().is_none_or(|given| given.parse::<i64>().is_ok()) {
        return Ok(given);
    }
    let message = format!("unknown cursor: `{}`", cut(&given.unwrap_or_default(), 60));
    Err(Failure::new(ErrorCode::InvalidInput, message).suggest("Send the `next` of the previous page"))
}

fn moment(name: &str, text: Option<String>) -> Result<Option<SystemTime>, Failure> {
    let read = |text: String| {
        text.parse::<jiff::Timestamp>().map(SystemTime::from).map_err(|_| {
            let message = format!("invalid time in `{name}`: `{}`", cut(&text, 60));
            Failure::new(ErrorCode::InvalidInput, message).suggest("Write it as `2026-11-17T09:00:00Z`")
        })
    };
    text.map(read).transpose()
}

/// Calls the archive outside the serving threads.
async fn ask<T: Send + 'static>(
    shared: &Arc<AppState>,
    act: impl FnOnce(&dyn RunArchive) -> Result<T, String> + Send + 'static,
) -> Result<T, Failure> {
    let Some(archive) = shared.config.archive.clone() else {
        return Err(Failure::new(ErrorCode::PermissionDenied, "this server does not record runs")
            .suggest("Start it without `--no-audit`")
            .suggest_remotely("Contact the server operator"));
    };
    let asked = run_blocking(shared, &shared.archivists, move |_| act(archive.as_ref())).await?;
    // The reason is dropped because it may contain local paths.
    asked.map_err(|_| {
        Failure::new(ErrorCode::InternalError, "the records of runs cannot be read at the moment")
    })
}

/// `GET /v1/runs`.
pub(crate) async fn list(
    State(shared): State<Arc<AppState>>,
    Extension(client): Extension<Arc<Client>>,
    uri: Uri,
) -> Response<Body> {
    let filter = query::<RunQuery>(&uri).and_then(|query| query.filter(&client));
    match filter {
        Ok(filter) => answer(ask(&shared, move |archive| archive.runs(&filter)).await),
        Err(failure) => response::failure(failure),
    }
}

/// `GET /v1/runs/stats`.
pub(crate) async fn stats(
    State(shared): State<Arc<AppState>>,
    Extension(client): Extension<Arc<Client>>,
    uri: Uri,
) -> Response<Body> {
    let asked = query::<RunQuery>(&uri).and_then(|query| {
        let buckets = query.buckets.unwrap_or(DEFAULT_BUCKETS).clamp(1, MAX_BUCKETS);
        Ok((query.filter(&client)?, buckets))
    });
    match asked {
        Ok((filter, buckets)) => answer(ask(&shared, move |archive| archive.stats(&filter, buckets)).await),
        Err(failure) => response::failure(failure),
    }
}

/// `GET /v1/runs/{id}`.
pub(crate) async fn show(
    State(shared): State<Arc<AppState>>,
    Extension(client): Extension<Arc<Client>>,
    Name(id): Name,
) -> Response<Body> {
    match details(&shared, &client, id).await {
        Ok(Some(details)) => answer(Ok(details)),
        Ok(None) => no_such_run(),
        Err(failure) => response::failure(failure),
    }
}

pub(super) fn no_such_run() -> Response<Body> {
    let failure =
        Failure::new(ErrorCode::InvalidReference, "unknown run").suggest("`GET /v1/runs` lists the runs");
    response::failure_as(StatusCode::NOT_FOUND, failure)
}

/// Returns a run that the client may see. Runs of other clients are treated as missing. Of a trace shared by several
/// clients, only the client's own records are returned, and their tree.
pub(super) async fn details(
    shared: &Arc<AppState>,
    client: &Client,
    id: String,
) -> Result<Option<RunDetails>, Failure> {
    let own = client.user().filter(|_| !client.roles.has(KeyRole::Admin)).map(str::to_owned);
    ask(shared, move |archive| archive.run(&id, own.as_deref())).await
}
