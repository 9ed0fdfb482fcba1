//! Parses request bodies of Studio operations: JSON within the usual body limit. Unknown members are refused, since a
//! misspelt member would otherwise be ignored silently.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::Response;
use cognitive_contract::{ErrorCode, Failure, json};
use serde::de::DeserializeOwned;

use crate::app::AppState;
use crate::intake;
use crate::memory_budget::MemoryClaim;
use crate::response;

/// Reads a body. The claim reserves its memory and must be held while the value is used.
pub(crate) async fn read<T: DeserializeOwned + Send + 'static>(
    shared: &Arc<AppState>,
    request: Request,
) -> Result<(T, MemoryClaim), Box<Response<Body>>> {
    read_up_to(shared, request, shared.config.body_limit).await
}

/// Reads a body of at most `limit` bytes.
pub(crate) async fn read_up_to<T: DeserializeOwned + Send + 'static>(
    shared: &Arc<AppState>,
    request: Request,
    limit: usize,
) -> Result<(T, MemoryClaim), Box<Response<Body>>> {
    let (parts, body) = request.into_parts();
    let mut claim = shared.room.claim();
    let bytes = intake::body_of(shared, &parts.headers, body, limit, &mut claim).await?;
    let read = intake::read(shared, bytes, claim, |text| parse_text(&text)).await;
    read.map_err(|failure| Box::new(response::failure(failure)))
}

fn parse_text<T: DeserializeOwned>(text: &str) -> Result<T, Failure> {
    let value = json::parse(text).map_err(|error| {
        Failure::new(ErrorCode::ParseError, format!("the body is not JSON: {}", error.message))
            .suggest("Send one JSON object")
    })?;
    serde_json::from_value(value).map_err(|error| {
        let message = format!("invalid body: {error}");
        Failure::new(ErrorCode::InvalidInput, cognitive_contract::text::cut(&message, 300))
            .suggest("See the schema of the request in `/openapi.json`")
    })
}
