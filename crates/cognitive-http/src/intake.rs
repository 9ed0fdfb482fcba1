//! How the body of a request comes in: within its limits of size, time, type and memory, and read beside the threads that
//! serve where it is large. Whatever a body may become, its share of the memory is taken before it is there.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, Response, StatusCode, header};
use cognitive_contract::code::Blame;
use cognitive_contract::{ErrorCode, Failure, built};
use futures_util::StreamExt;
use http_body::Body as _;
use serde_json::Value;

use crate::app::{Shared, shutting_down};
use crate::memory_budget::MemoryClaim;
use crate::response;

/// A text above this is read beside the threads that serve.
const LONG: usize = 256 << 10;
/// What the values of a text may take, as a multiple of the largest usual body. Lists of numbers of three digits stay
/// below it in a body of that size; no honest body is denser.
const DENSEST: usize = 48;
/// How much room is made for a body before anything of it is there.
const BEGINNING: usize = 64 << 10;
/// How much more there is room for each time that a body has outgrown it. While it is moved, both are there.
pub(crate) const STEP: usize = 4;

/// Reads a body of JSON to its end.
pub(crate) async fn body_of(
    shared: &Shared,
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    claim: &mut MemoryClaim,
) -> Result<Vec<u8>, Box<Response<Body>>> {
    if *shared.draining.borrow() {
        let failure = shutting_down(ErrorCode::ProviderUnavailable);
        return Err(Box::new(response::failure_as(StatusCode::SERVICE_UNAVAILABLE, failure)));
    }
    if !is_json(headers) {
        let failure = Failure::new(ErrorCode::UnsupportedMediaType, "the body has to be JSON")
            .suggest("Send `Content-Type: application/json`");
        return Err(Box::new(response::failure(failure)));
    }
    // What says of itself that it is too large need not be sent at all.
    if body.size_hint().lower() > limit as u64 {
        return Err(Box::new(response::failure(too_large("body", limit))));
    }
    match tokio::time::timeout(shared.config.read_timeout, collected(body, limit, claim)).await {
        Ok(outcome) => outcome.map_err(|failure| Box::new(response::failure(failure))),
        Err(_) => {
            let failure =
                Failure::new(ErrorCode::Timeout, "the body did not arrive in time").blaming(Blame::Runtime);
            Err(Box::new(response::failure_as(StatusCode::REQUEST_TIMEOUT, failure)))
        }
    }
}

/// The bytes of a body. Memory is taken as they arrive, never by what a client merely announces.
async fn collected(body: Body, limit: usize, claim: &mut MemoryClaim) -> Result<Vec<u8>, Failure> {
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
            // What the machine has no memory for must not end the process.
            bytes.try_reserve_exact(larger - bytes.len()).map_err(|_| no_memory())?;
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

fn no_memory() -> Failure {
    crate::run::too_much(
        "there is not enough memory for the body at the moment",
        std::time::Duration::from_secs(1),
    )
}

/// Makes something of a text, after its values were found to fit. What is long is read beside the threads that serve, a
/// few at a time.
pub(crate) async fn read<T: Send + 'static>(
    shared: &Arc<Shared>,
    bytes: Vec<u8>,
    mut claim: MemoryClaim,
    make: impl FnOnce(String) -> Result<T, Failure> + Send + 'static,
) -> Result<(T, MemoryClaim), Failure> {
    // What the values of one request may take.
    let most = shared.config.body_limit.saturating_mul(DENSEST);
    let is_long = bytes.len() > LONG;
    let work = move || {
        claim.grow(built::within(&bytes, most)?)?;
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

/// Does something heavy to its end on a thread of its own, so that nobody else waits while it is checked, and while its
/// memory is given back.
pub(crate) async fn beside<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    let work = Box::pin(work);
    // Whoever does not wait any more takes the work along.
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
        // The runtime ends, and whoever waits with it.
        Ok(None) | Err(_) => std::future::pending().await,
    }
}

/// The text of a body. Its memory becomes that of the input: with media in it, there is no room for both.
pub(crate) fn text_of(body: Vec<u8>) -> Result<String, Failure> {
    String::from_utf8(body).map_err(|_| {
        Failure::new(ErrorCode::ParseError, "the body is not UTF-8")
            .blaming(Blame::Caller)
            .with_detail("source", Value::from("caller"))
            .suggest("Send JSON in UTF-8")
    })
}

/// More than a module may be sent.
pub(crate) fn too_large(what: &str, limit: usize) -> Failure {
    Failure::new(ErrorCode::InputTooLarge, format!("the {what} is larger than {limit} bytes"))
        .suggest("Send less input")
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    // Nearly all requests say it this way, and need no copy.
    let other = || {
        let kind = kind.to_ascii_lowercase();
        kind.starts_with("application/") && kind.ends_with("+json")
    };
    kind.eq_ignore_ascii_case("application/json") || other()
}
