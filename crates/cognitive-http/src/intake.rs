//! Reads request bodies within limits of size, time, type and memory. Large bodies are parsed outside the serving
//! threads. Memory for a body is reserved before it is allocated.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, Response, StatusCode, header};
use cognitive_contract::code::Blame;
use cognitive_contract::{ErrorCode, Failure};
use cognitive_runtime::memory_estimate;
use futures_util::StreamExt;
use http_body::Body as _;
use serde_json::Value;

use crate::app::{AppState, shutdown_failure};
use crate::memory_budget::MemoryClaim;
use crate::response;

/// Bodies above this size are parsed outside the serving threads, where they would delay other requests.
const LONG: usize = 256 << 10;
/// The limit for the parsed values of a body, as a multiple of the configured body limit. Lists of three-digit
/// numbers stay below it in a body of that size; no honest body is denser.
const DENSEST: usize = 48;
/// The initial buffer for a body, in bytes.
const BEGINNING: usize = 64 << 10;
/// The growth factor of a buffer that is full. While the buffer is moved, the old and the new one exist.
pub(crate) const STEP: usize = 4;

/// Reads a JSON body to its end.
pub(crate) async fn body_of(
    shared: &AppState,
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    claim: &mut MemoryClaim,
) -> Result<Vec<u8>, Box<Response<Body>>> {
    if *shared.draining.borrow() {
        let failure = shutdown_failure(ErrorCode::ProviderUnavailable);
        return Err(Box::new(response::failure_as(StatusCode::SERVICE_UNAVAILABLE, failure)));
    }
    if !is_json(headers) {
        let failure = Failure::new(ErrorCode::UnsupportedMediaType, "the body must be JSON")
            .suggest("Send `Content-Type: application/json`");
        return Err(Box::new(response::failure(failure)));
    }
    // A declared length above the limit is refused before the body is sent.
    if body.size_hint().lower() > limit as u64 {
        return Err(Box::new(response::failure(too_large("body", limit))));
    }
    match tokio::time::timeout(shared.config.read_timeout, collect_body(body, limit, claim)).await {
        Ok(outcome) => outcome.map_err(|failure| Box::new(response::failure(failure))),
        Err(_) => {
            let failure = Failure::new(ErrorCode::Timeout, "the body did not arrive in time")
                .with_blame(Blame::Runtime);
            Err(Box::new(response::failure_as(StatusCode::REQUEST_TIMEOUT, failure)))
        }
    }
}

/// Collects the bytes of a body. Memory is reserved as bytes arrive, never by the announced length.
async fn collect_body(body: Body, limit: usize, claim: &mut MemoryClaim) -> Result<Vec<u8>, Failure> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(limit).min(limit);
    let mut bytes = Vec::new();
    let mut pieces = body.into_data_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| {
            Failure::new(ErrorCode::ParseError, "the body ended early or is not valid HTTP")
                .suggest("Send it again")
        })?;
        let length = bytes.len() + piece.len();
        if length > limit {
            return Err(too_large("body", limit));
        }
        if length > bytes.capacity() {
            let larger = (STEP * bytes.capacity()).max(BEGINNING).min(announced.max(length)).max(length);
            claim.grow(larger - bytes.capacity())?;
            // Running out of memory must not end the process.
            bytes.try_reserve_exact(larger - bytes.len()).map_err(|_| no_memory())?;
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

fn no_memory() -> Failure {
    crate::run::too_much("not enough memory for the body at the moment", std::time::Duration::from_secs(1))
}

/// Parses a body with `make` after checking that its values fit into memory. Long bodies are parsed on a blocking
/// thread, a few at a time.
pub(crate) async fn read<T: Send + 'static>(
    shared: &Arc<AppState>,
    bytes: Vec<u8>,
    mut claim: MemoryClaim,
    make: impl FnOnce(String) -> Result<T, Failure> + Send + 'static,
) -> Result<(T, MemoryClaim), Failure> {
    // The limit for the values of one request.
    let most = shared.config.body_limit.saturating_mul(DENSEST);
    let is_long = bytes.len() > LONG;
    let work = move || {
        claim.grow(memory_estimate::estimate_within(&bytes, most)?)?;
        Ok((text_of(bytes).and_then(make)?, claim))
    };
    if !is_long {
        return work();
    }
    let fault =
        || Failure::new(ErrorCode::InternalError, "internal error of the server: the body could not be read");
    let place = Arc::clone(&shared.parsers).acquire_owned().await.map_err(|_| fault())?;
    let beside = tokio::task::spawn_blocking(move || {
        let _place = place;
        work()
    });
    beside.await.map_err(|_| fault())?
}

/// Runs heavy work to its end on a blocking thread, so that its checks and the release of its memory delay no other
/// request.
pub(crate) async fn on_blocking_thread<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    let work = Box::pin(work);
    // A caller that stops waiting drops this sender, which cancels the work.
    let (waiting, gone) = tokio::sync::oneshot::channel::<()>();
    let runtime = tokio::runtime::Handle::current();
    let beside = tokio::task::spawn_blocking(move || {
        runtime.block_on(async move {
            tokio::select! {
                outcome = work => Some(outcome),
                _ = gone => None,
            }
        })
    });
    let outcome = beside.await;
    drop(waiting);
    match outcome {
        Ok(Some(outcome)) => outcome,
        Err(fault) if fault.is_panic() => std::panic::resume_unwind(fault.into_panic()),
        // The runtime shuts down, and the waiting caller with it.
        Ok(None) | Err(_) => std::future::pending().await,
    }
}

/// Returns the text of a body. Reuses the buffer of the body: with media in it, there is no memory for both.
pub(crate) fn text_of(body: Vec<u8>) -> Result<String, Failure> {
    String::from_utf8(body).map_err(|_| {
        Failure::new(ErrorCode::ParseError, "the body is not UTF-8")
            .with_blame(Blame::Caller)
            .with_detail("source", Value::from("caller"))
            .suggest("Send JSON in UTF-8")
    })
}

/// The failure for an input that exceeds the limit of its module.
pub(crate) fn too_large(what: &str, limit: usize) -> Failure {
    Failure::new(ErrorCode::InputTooLarge, format!("the {what} is larger than {limit} bytes"))
        .suggest("Send less input")
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    // Nearly all requests use this exact type, which needs no copy.
    let other = || {
        let kind = kind.to_ascii_lowercase();
        kind.starts_with("application/") && kind.ends_with("+json")
    };
    kind.eq_ignore_ascii_case("application/json") || other()
}
