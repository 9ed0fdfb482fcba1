//! Names of non-standard headers, parsed once: every request is checked for some of them, and every response carries
//! others.

use axum::http::HeaderName;

pub(crate) static OK: HeaderName = HeaderName::from_static("cogn-ok");
pub(crate) static RISK: HeaderName = HeaderName::from_static("cogn-risk");
pub(crate) static TIER: HeaderName = HeaderName::from_static("cogn-tier");
pub(crate) static CONFIDENCE: HeaderName = HeaderName::from_static("cogn-confidence");
pub(crate) static ERROR_CODE: HeaderName = HeaderName::from_static("cogn-error-code");
pub(crate) static TRACE_ID: HeaderName = HeaderName::from_static("cogn-trace-id");
pub(crate) static TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
pub(crate) static RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
pub(crate) static RESPONSE_MODE: HeaderName = HeaderName::from_static("x-cognitive-response-mode");
pub(crate) static SESSION: HeaderName = HeaderName::from_static("x-cognitive-session");
pub(crate) static RECOVERY_SESSION: HeaderName = HeaderName::from_static("x-cognitive-recovery-session");
pub(crate) static RECOVERY_SEQ: HeaderName = HeaderName::from_static("x-cognitive-recovery-seq");
pub(crate) static LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Sent by Studio with every request that changes something.
pub(crate) static STUDIO: HeaderName = HeaderName::from_static("x-cogn-studio");
/// Set by browsers: the relation between the page's origin and this server.
pub(crate) static FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
