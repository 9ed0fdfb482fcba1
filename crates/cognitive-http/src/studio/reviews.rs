//! Human review: the queue, decisions, calibration of confidence, and the export of decisions. An acknowledged
//! decision is durable; another one on the same run is a conflict. Corrections are validated against the module's
//! contract.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::body::{Body, Bytes};
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderValue, Response, StatusCode, Uri, header};
use cognitive_contract::{ErrorCode, Failure};
use cognitive_ports::review::{
    CalibrationReport, ModelCalibration, NewDecision, Review, ReviewError, ReviewExport, ReviewFilter,
    ReviewQueue, Verdict,
};
use futures_util::stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::body;
use super::module_files::answer;
use super::runs::{self, query};
use crate::app::AppState;
use crate::auth::Client;
use crate::catalog::run_blocking;
use crate::routes::Name;
use crate::{response, run};

/// Entries per page: the default and the limit. An entry has the input and the answer, so a page can be large.
const DEFAULT_LIMIT: usize = 50;
const MAX_LIMIT: usize = 500;
/// Lines of an export queued for sending. A slow client would otherwise fill the memory.
const WAITING: usize = 16;
/// The pause that a client is asked to make before it tries an export again.
const EXPORT_PAUSE: Duration = Duration::from_secs(5);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListQuery {
    state: Option<StateWord>,
    module: Option<String>,
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum StateWord {
    Open,
    Decided,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfModule {
    module: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExportQuery {
    module: Option<String>,
    #[serde(rename = "as")]
    form: Option<FormWord>,
}

#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum FormWord {
    Decisions,
    Cases,
}

/// A decision of a person.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "DecisionRequest")]
pub(crate) struct DecisionBody {
    verdict: Verdict,
    #[serde(default)]
    reason: String,
    /// The right data; required with `correct`, and refused with any other verdict.
    #[schemars(with = "Option<Map<String, Value>>")]
    data: Option<Value>,
}

fn review_queue(shared: &AppState) -> Result<Arc<dyn ReviewQueue>, Failure> {
    shared.config.reviews.clone().ok_or_else(|| {
        Failure::new(ErrorCode::PermissionDenied, "this server has no review queue")
            .suggest("Add `review: {rules: …}` to the configuration")
    })
}

/// Calls the review store outside the serving threads.
async fn ask<T: Send + 'static>(
    shared: &Arc<AppState>,
    act: impl FnOnce(&dyn ReviewQueue) -> T + Send + 'static,
) -> Result<T, Failure> {
    let review_queue = review_queue(shared)?;
    run_blocking(shared, &shared.archivists, move |_| act(review_queue.as_ref())).await
}

/// The reason is dropped because it may contain local paths.
fn unreadable(_: String) -> Failure {
    Failure::new(ErrorCode::InternalError, "the queue of reviews cannot be read at the moment")
}

fn no_such_review() -> Response<Body> {
    let failure = Failure::new(ErrorCode::InvalidReference, "unknown review")
        .suggest("`GET /v1/reviews` lists the reviews");
    response::failure_as(StatusCode::NOT_FOUND, failure)
}

/// `GET /v1/reviews`.
pub(crate) async fn list(State(shared): State<Arc<AppState>>, uri: Uri) -> Response<Body> {
    let ListQuery { state, module, limit, cursor } = match query(&uri) {
        Ok(query) => query,
        Err(failure) => return response::failure(failure),
    };
    let text = |text: Option<String>| text.filter(|text| !text.is_empty());
    let cursor = match runs::cursor(text(cursor)) {
        Ok(cursor) => cursor,
        Err(failure) => return response::failure(failure),
    };
    let filter = ReviewFilter {
        open: state.map(|state| state == StateWord::Open),
        module: text(module),
        limit: Some(limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT)),
        cursor,
    };
    let listed = ask(&shared, move |review_queue| review_queue.list(&filter)).await;
    answer(listed.and_then(|listed| listed.map_err(unreadable)))
}

/// `GET /v1/reviews/{id}`.
pub(crate) async fn show(State(shared): State<Arc<AppState>>, Name(id): Name) -> Response<Body> {
    match find(&shared, id).await {
        Ok(Some(review)) => answer(Ok(review)),
        Ok(None) => no_such_review(),
        Err(failure) => response::failure(failure),
    }
}

async fn find(shared: &Arc<AppState>, id: String) -> Result<Option<Review>, Failure> {
    ask(shared, move |review_queue| review_queue.get(&id)).await?.map_err(unreadable)
}

/// `POST /v1/reviews/{id}/decision`.
pub(crate) async fn decide(
    State(shared): State<Arc<AppState>>,
    Extension(client): Extension<Arc<Client>>,
    Name(id): Name,
    request: Request,
) -> Response<Body> {
    let (DecisionBody { verdict, reason, data }, _claim) = match body::read(&shared, request).await {
        Ok(read) => read,
        Err(refusal) => return *refusal,
    };
    if let Some(data) = data.as_ref().filter(|_| verdict == Verdict::Correct) {
        match find(&shared, id.clone()).await {
            Ok(Some(review)) => {
                if let Err(failure) = fits(&shared, &review, data).await {
                    return response::failure(failure);
                }
            }
            Ok(None) => return no_such_review(),
            Err(failure) => return response::failure(failure),
        }
    }
    let key = client.user().map(str::to_owned);
    let decision = NewDecision { verdict, reason, data, by: key.clone(), key, at: SystemTime::now() };
    let decided = ask(&shared, move |review_queue| review_queue.decide(&id, &decision)).await;
    match decided {
        Ok(Ok(decided)) => answer(Ok(decided.review)),
        Ok(Err(ReviewError::Unknown)) => no_such_review(),
        Ok(Err(error)) => response::failure(refusal(&error)),
        Err(failure) => response::failure(failure),
    }
}

fn refusal(error: &ReviewError) -> Failure {
    let told = error.to_string();
    match error {
        ReviewError::Conflict(review) => Failure::new(ErrorCode::InvalidReference, told)
            .with_detail("kind", json!(response::CONFLICT))
            .with_detail("decision", json!(review.decision))
            .suggest("See the existing decision; the first one applies"),
        ReviewError::Invalid(_) => Failure::new(ErrorCode::InvalidInput, told)
            .suggest("See the schema of the request in `/openapi.json`"),
        // The handler answers 404 to an unknown review before it comes here.
        ReviewError::Unknown | ReviewError::Unavailable(_) => {
            Failure::new(ErrorCode::InternalError, "the decision was not recorded")
                .suggest("Try again in a moment")
        }
    }
}

/// Fails if a correction violates the module's contract. Passes if the module no longer exists. (E1001)
async fn fits(shared: &Arc<AppState>, review: &Review, data: &Value) -> Result<(), Failure> {
    let Ok(module) = shared.module(&review.module).await else { return Ok(()) };
    let found = review.correction_faults(&module, data);
    if found.is_empty() { Ok(()) } else { Err(Failure::from_violations(ErrorCode::InvalidInput, &found)) }
}

/// The calibration of all decisions together, and of each module and model.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CalibrationReport")]
pub(crate) struct CalibrationAnswer {
    #[serde(flatten)]
    report: CalibrationReport,
    models: Vec<ModelCalibration>,
}

/// `GET /v1/reviews/calibration`.
pub(crate) async fn calibration(State(shared): State<Arc<AppState>>, uri: Uri) -> Response<Body> {
    let OfModule { module } = match query(&uri) {
        Ok(query) => query,
        Err(failure) => return response::failure(failure),
    };
    let module = module.filter(|module| !module.is_empty());
    let report = ask(&shared, move |review_queue| {
        let (report, models) =
            (review_queue.calibration(module.as_deref())?, review_queue.calibrations(module.as_deref())?);
        Ok(CalibrationAnswer { report, models })
    });
    answer(report.await.and_then(|report: Result<_, String>| report.map_err(unreadable)))
}

/// `GET /v1/reviews/export`: JSON lines, streamed as they are read. An export counts as a stream of its client.
pub(crate) async fn export(
    State(shared): State<Arc<AppState>>,
    Extension(client): Extension<Arc<Client>>,
    uri: Uri,
) -> Response<Body> {
    let asked = query::<ExportQuery>(&uri).and_then(|query| Ok((query, review_queue(&shared)?)));
    let (ExportQuery { module, form }, review_queue) = match asked {
        Ok(asked) => asked,
        Err(failure) => return response::failure(failure),
    };
    let form = match form {
        Some(FormWord::Cases) => ReviewExport::Cases,
        Some(FormWord::Decisions) | None => ReviewExport::Decisions,
    };
    let module = module.filter(|module| !module.is_empty());
    let permit = match run::permit(&shared, &client) {
        Ok(permit) => permit,
        Err(failure) => return response::failure(failure),
    };
    let Ok(place) = Arc::clone(&shared.exporters).try_acquire_owned() else {
        return response::failure(run::too_much("too many exports at once", EXPORT_PAUSE));
    };
    let (lines, mut waiting) = mpsc::channel::<Result<Bytes, String>>(WAITING);
    tokio::task::spawn_blocking(move || {
        let _until_the_last_line = (permit, place);
        let mut take = |line: Value| lines.blocking_send(Ok(format!("{line}\n").into())).is_ok();
        if let Err(reason) = review_queue.export(form, module.as_deref(), &mut take) {
            // The client may already be gone.
            let _ = lines.blocking_send(Err(reason));
        }
    });
    let first = match waiting.recv().await {
        Some(Err(reason)) => return response::failure(unreadable(reason)),
        Some(Ok(line)) => Some(line),
        None => None,
    };
    let rest = stream::unfold(waiting, async |mut waiting| {
        // After an error the stream ends with a complete line.
        let line = waiting.recv().await?.ok()?;
        Some((Ok::<_, Infallible>(line), waiting))
    });
    let all = futures_util::StreamExt::chain(stream::iter(first.map(Ok)), rest);
    let mut response = Response::new(Body::from_stream(all));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let name = HeaderValue::from_static("attachment; filename=\"reviews.jsonl\"");
    headers.insert(header::CONTENT_DISPOSITION, name);
    response
}
