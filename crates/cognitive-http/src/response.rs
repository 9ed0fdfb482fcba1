//! Converts an envelope to an HTTP response: its status (API-004) and the headers that let a gateway route without
//! the payload.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use cognitive_contract::meta::RiskValue;
use cognitive_contract::{Envelope, ErrorCode, Failure};

use crate::header_names;
use crate::overview::CombinedOverview;

/// The length limit of a header value that a module can influence. Proxies refuse responses with large headers.
const MAX_LENGTH: usize = 128;
/// The capacity for all headers of a response, including those of the guard, which avoids reallocation.
const HEADERS: usize = 13;
/// The initial buffer for an envelope. Few are longer; the buffer grows for those.
const DEFAULT_LENGTH: usize = 1024;

/// `details.kind` of a failed change whose target was modified in the meantime.
pub(crate) const CONFLICT: &str = "conflict";

/// `details.kind` of a failure that occurs because a server cannot reach the shared state. It may be temporary.
pub(crate) const UNSHARED: &str = "unshared";

/// `details.kind` of a run under a limit of cost whose cost cannot be known or recorded. The operator has to act.
const UNKNOWN_COST: [&str; 3] = ["no_price", "no_bound", "no_books"];

/// `details.kind` of a run that only the reservations of runs in flight keep out of a budget.
const RESERVED: &str = "reserved";

/// `details.kind` of a run that its client or its server cancelled.
const CANCELLED: &str = "cancelled";

/// Returns the status of an envelope. An error code defined by a module counts as an unusable answer, like any E3xxx.
pub(crate) fn status(envelope: &Envelope) -> StatusCode {
    let Some(error) = envelope.error() else { return StatusCode::OK };
    let detail = |name: &str| {
        let detail = error.members().get("details").and_then(|details| details.get(name));
        detail.and_then(serde_json::Value::as_str).unwrap_or_default()
    };
    match (ErrorCode::find(error.code()), detail("kind")) {
        // The request was fine; the text that could not be parsed is the model's. (D-21)
        (Some(ErrorCode::ParseError), _) if detail("source") == "model" => StatusCode::UNPROCESSABLE_ENTITY,
        (_, CONFLICT) => StatusCode::CONFLICT,
        (_, UNSHARED) => StatusCode::SERVICE_UNAVAILABLE,
        (Some(ErrorCode::CostLimitExceeded), kind) if UNKNOWN_COST.contains(&kind) => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        (Some(ErrorCode::CostLimitExceeded), RESERVED) => StatusCode::TOO_MANY_REQUESTS,
        (Some(ErrorCode::StreamInterrupted), CANCELLED) | (None, _) => StatusCode::UNPROCESSABLE_ENTITY,
        (Some(code), _) => http_status(code),
    }
}

/// The status of each code. There is no wildcard: a new code does not compile until it has a status. (D-21)
fn http_status(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::ParseError
        | ErrorCode::InvalidInput
        | ErrorCode::MissingRequiredField
        | ErrorCode::TypeMismatch
        | ErrorCode::UnsupportedValue
        | ErrorCode::InvalidReference
        | ErrorCode::MediaFetchFailed
        | ErrorCode::MediaDecodeFailed
        | ErrorCode::MediaTypeMismatch
        | ErrorCode::MediaDimensionExceeded
        | ErrorCode::MediaDimensionTooSmall
        | ErrorCode::MediaPixelLimit
        | ErrorCode::ChecksumMismatch => StatusCode::BAD_REQUEST,
        ErrorCode::CostLimitExceeded => StatusCode::PAYMENT_REQUIRED,
        ErrorCode::PermissionDenied => StatusCode::FORBIDDEN,
        ErrorCode::ModuleNotFound | ErrorCode::UploadNotFound => StatusCode::NOT_FOUND,
        ErrorCode::CheckpointInvalid => StatusCode::CONFLICT,
        ErrorCode::SessionExpired | ErrorCode::UploadExpired => StatusCode::GONE,
        ErrorCode::InputTooLarge | ErrorCode::MediaTooLarge | ErrorCode::ContextOverflow => {
            StatusCode::PAYLOAD_TOO_LARGE
        }
        ErrorCode::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ErrorCode::LowConfidence
        | ErrorCode::TokenLimit
        | ErrorCode::NoActionPossible
        | ErrorCode::SemanticConflict
        | ErrorCode::AmbiguousInput
        | ErrorCode::InsufficientContext
        | ErrorCode::SchemaValidationFailed
        | ErrorCode::PartialResult
        | ErrorCode::MissingRationale
        | ErrorCode::OverflowLimit
        | ErrorCode::InvalidEnum
        | ErrorCode::ConstraintViolation => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorCode::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::InternalError
        | ErrorCode::CircularDependency
        | ErrorCode::MaxDepthExceeded
        | ErrorCode::CallLimitExceeded => StatusCode::INTERNAL_SERVER_ERROR,
        ErrorCode::StreamingNotSupported
        | ErrorCode::MultimodalNotSupported
        | ErrorCode::RecoveryNotSupported => StatusCode::NOT_IMPLEMENTED,
        ErrorCode::ProviderUnavailable | ErrorCode::StreamInterrupted => StatusCode::BAD_GATEWAY,
        ErrorCode::Timeout | ErrorCode::StreamTimeout => StatusCode::GATEWAY_TIMEOUT,
    }
}

/// Returns the headers that middleware routes on.
pub(crate) fn routing(envelope: &Envelope, tier: Option<&'static str>) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(HEADERS);
    route(&mut headers, envelope, tier);
    // Trailers do not pass the guard, which adds the trace id to all other responses.
    if let Some(trace) = envelope.meta().extra.get("trace_id").and_then(serde_json::Value::as_str) {
        put(&mut headers, &header_names::TRACE_ID, trace);
    }
    headers
}

/// Codes and ids may come from modules. A header that a gateway rejects would cost the whole response.
fn put(headers: &mut HeaderMap, name: &HeaderName, value: &str) {
    if value.len() <= MAX_LENGTH
        && value.is_ascii()
        && let Ok(value) = HeaderValue::from_str(value)
    {
        headers.insert(name.clone(), value);
    }
}

fn route(headers: &mut HeaderMap, envelope: &Envelope, tier: Option<&'static str>) {
    let meta = envelope.meta();
    let ok = if envelope.ok() { "true" } else { "false" };
    headers.insert(header_names::OK.clone(), HeaderValue::from_static(ok));
    let risk = match &meta.risk {
        RiskValue::Level(level) => level.word(),
        // A word of the module, which no gateway can compare with others. (C-19)
        RiskValue::Custom(_) => "unknown",
    };
    headers.insert(header_names::RISK.clone(), HeaderValue::from_static(risk));
    if let Some(tier) = tier {
        headers.insert(header_names::TIER.clone(), HeaderValue::from_static(tier));
    }
    put(headers, &header_names::CONFIDENCE, &meta.confidence.get().to_string());
    if let Some(error) = envelope.error() {
        put(headers, &header_names::ERROR_CODE, error.code());
    }
}

/// The names of [`routing`], for `Trailer` and for what browsers may read.
pub(crate) const ROUTING: &str =
    "cogn-ok, cogn-confidence, cogn-risk, cogn-tier, cogn-error-code, cogn-trace-id";

/// Returns an envelope as the whole response.
pub(crate) fn envelope(envelope: &Envelope, tier: Option<&'static str>) -> Response<Body> {
    let mut response = json(status(envelope), envelope);
    route(response.headers_mut(), envelope, tier);
    if let Some(wait) = envelope.error().and_then(retry_after) {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait));
    }
    let warnings = envelope.meta().extra.get("warnings").and_then(serde_json::Value::as_array);
    let degraded =
        warnings.into_iter().flatten().find(|each| each.get("code").is_some_and(|code| code == "E4010"));
    if degraded.is_some() {
        let text = HeaderValue::from_static("STREAMING_UNAVAILABLE; fallback=sync; reason=not_supported");
        response.headers_mut().insert(HeaderName::from_static("x-cognitive-warning"), text);
    }
    response
}

fn retry_after(error: &cognitive_contract::envelope::ErrorBody) -> Option<u64> {
    let wait = error.members().get("details")?.get("retry_after_seconds")?.as_u64();
    let codes = [ErrorCode::RateLimited, ErrorCode::CostLimitExceeded];
    wait.filter(|_| codes.iter().any(|code| error.code() == code.number()))
}

/// Returns a failure as the whole response.
pub(crate) fn failure(failure: Failure) -> Response<Body> {
    envelope(&failure.for_remote_caller().into_envelope(), None)
}

/// Returns a failure with a status other than the default of its code.
pub(crate) fn failure_as(status: StatusCode, reason: Failure) -> Response<Body> {
    let mut response = failure(reason);
    *response.status_mut() = status;
    response
}

/// Returns a value as JSON that must not be cached.
pub(crate) fn json(status: StatusCode, value: &impl serde::Serialize) -> Response<Body> {
    let mut text = Vec::with_capacity(DEFAULT_LENGTH);
    // Serialising these values to a vector cannot fail.
    let _ = serde_json::to_writer(&mut text, value);
    json_text(status, text.into())
}

/// Returns an overview of all modules, or 304 if the client has the current version. Caches must revalidate it on
/// each use.
pub(crate) fn overview_response(asked: &HeaderMap, told: CombinedOverview) -> Response<Body> {
    let mark = format!("\"{:016x}\"", told.version);
    let has = asked.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let has_it =
        has.flat_map(|value| value.split(',')).any(|each| each.trim().trim_start_matches("W/") == mark);
    let mut response = if has_it {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        json_text(StatusCode::OK, told.text)
    };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    if let Ok(mark) = HeaderValue::try_from(mark) {
        headers.insert(header::ETAG, mark);
    }
    response
}

/// Returns text that already is JSON; it must not be cached.
pub(crate) fn json_text(status: StatusCode, text: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.reserve(HEADERS);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_status_of_every_code() {
        let page = include_str!("../../../docs/serving.md");
        let table = page.split_once("| Status | Codes |\n").unwrap().1.split("\n\n").next().unwrap();
        let rows: Vec<(&str, &str)> =
            table.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | ")).collect();
        for code in ErrorCode::all() {
            let status = http_status(code);
            let family = format!("{}xxx", &code.number()[..2]);
            let row = rows.iter().find(|(statuses, _)| statuses.contains(status.as_str()));
            let has_code =
                row.is_some_and(|(_, codes)| codes.contains(code.number()) || codes.contains(&family));
            assert!(has_code, "docs/serving.md: {} lacks {}", status.as_str(), code.number());
        }
    }

    // API-004, as D-21 amends it: the whole table.
    #[test]
    fn api_004_every_code_has_its_status() {
        let expected = [
            (
                400,
                &["E1000", "E1001", "E1002", "E1003", "E1004", "E1006", "E1012", "E1013", "E1014", "E1020"][..],
            ),
            (403, &["E4007"]),
            (404, &["E4006"]),
            (413, &["E1005", "E1011", "E4003"]),
            (415, &["E1010"]),
            (402, &["E4101"]),
            (422, &["E2001", "E2003", "E2004", "E2007", "E3001", "E3006", "E7001"]),
            (429, &["E4002"]),
            (500, &["E4000", "E4004", "E4005", "E4100"]),
            (501, &["E4010", "E4011"]),
            (502, &["E4001", "E2010"]),
            (504, &["E2002", "E2011"]),
        ];
        for (expected, codes) in expected {
            for code in codes {
                let value = serde_json::json!({
                    "ok": false,
                    "meta": { "confidence": 0, "risk": "high", "explain": "e" },
                    "error": { "code": code, "message": "m" }
                });
                let envelope = Envelope::from_value(value).unwrap();
                assert_eq!(status(&envelope).as_u16(), expected, "{code}");
            }
        }
    }

    // A client that leaves broke nothing upstream, and a missing price is for the operator to add.
    #[test]
    fn the_kind_of_a_failure_can_decide_its_status_d_21() {
        let status_of = |failure: Failure| status(&failure.into_envelope()).as_u16();
        assert_eq!(status_of(Failure::cancellation("the client disconnected")), 422);
        let cost = |kind: &str| {
            Failure::new(ErrorCode::CostLimitExceeded, "m").with_detail("kind", kind.to_owned().into())
        };
        assert_eq!((status_of(cost("no_price")), status_of(cost("no_books"))), (503, 503));
        assert_eq!(status_of(cost("reserved")), 429);
        let response = failure(cost("reserved").with_detail("retry_after_seconds", 5.into()));
        assert_eq!(response.headers()["retry-after"], "5");
        assert_eq!(status_of(Failure::new(ErrorCode::CostLimitExceeded, "m")), 402);
        let parse = |source: &str| {
            Failure::new(ErrorCode::ParseError, "m").with_detail("source", source.to_owned().into())
        };
        assert_eq!((status_of(parse("caller")), status_of(parse("model"))), (400, 422));
    }

    #[test]
    fn a_gateway_can_route_without_the_payload() {
        let reason = Failure::new(ErrorCode::RateLimited, "m").with_detail("retry_after_seconds", 7.into());
        let response = failure(reason);
        assert_eq!(response.headers()["retry-after"], "7");
        assert_eq!(response.headers()["cogn-ok"], "false");
        assert_eq!(response.headers()["cogn-error-code"], "E4002");
        assert_eq!(response.headers()["cogn-risk"], "high");
        assert_eq!(response.headers()["cogn-confidence"], "0");
        let traced = |id: &str| {
            let meta =
                serde_json::json!({ "confidence": 0.9, "risk": "low", "explain": "e", "trace_id": id });
            let value = serde_json::json!({ "ok": true, "meta": meta, "data": { "rationale": "r" } });
            routing(&Envelope::from_value(value).unwrap(), Some("exec"))
        };
        assert_eq!(
            (&traced("t")["cogn-tier"], &traced("t")["cogn-risk"]),
            (&"exec".parse().unwrap(), &"low".parse().unwrap())
        );
        assert_eq!(traced("t")["cogn-trace-id"], "t");
        let mut custom = Failure::new(ErrorCode::LowConfidence, "m").into_envelope();
        custom.meta_mut().risk = RiskValue::Custom(serde_json::Map::new());
        assert_eq!(routing(&custom, None)["cogn-risk"], "unknown");
        for id in ["t\r\nx: y", "É", &"t".repeat(1_000)] {
            assert!(!traced(id).contains_key("cogn-trace-id"), "{id:.40}");
        }
        for code in ["E7001\r\nset-cookie: a=b", "É7001", &"E".repeat(100_000)] {
            let value = serde_json::json!({
                "ok": false,
                "meta": { "confidence": 0, "risk": "high", "explain": "e" },
                "error": { "code": code, "message": "m" }
            });
            let response = envelope(&Envelope::from_value(value).unwrap(), None);
            assert!(!response.headers().contains_key("cogn-error-code"), "{code:.40}");
            assert!(!response.headers().contains_key("set-cookie"));
        }
    }
}
