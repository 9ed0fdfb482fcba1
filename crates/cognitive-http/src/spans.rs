//! Trace spans of the server: one span per response, named by the OpenTelemetry conventions for HTTP. The runtime
//! records the spans of a run below it; it receives the parent span. Spans carry names, counts and codes, never the
//! text of a request or an answer. A path is reported by its route only.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime};

use axum::body::{Body, Bytes};
use axum::http::{Method, Response};
use cognitive_contract::span::{Span, SpanKind, SpanSink};
use cognitive_runtime::SpanParent;
use http_body::{Body as HttpBody, Frame, SizeHint};

use crate::app::AppState;
use crate::operations::route;
use crate::trace::Trace;

/// Returns the start and end of a period that ends now.
fn since(took: Duration) -> (SystemTime, SystemTime) {
    let now = SystemTime::now();
    (now.checked_sub(took).unwrap_or(now), now)
}

/// The request data that a span needs, collected before the response body is sent.
pub(crate) struct SpanRequest {
    pub(crate) trace: Arc<Trace>,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) started: Instant,
}

impl SpanRequest {
    fn span(&self, status: Option<u16>) -> Span {
        let Self { trace, method, path, started } = self;
        let route = route(path);
        // An unknown method is the client's text and must not become a span name.
        let methods = [Method::GET, Method::POST, Method::PUT, Method::DELETE, Method::HEAD, Method::OPTIONS];
        let known = methods.contains(method);
        let method = if known { method.as_str() } else { "_OTHER" };
        let verb = if known { method } else { "HTTP" };
        let name = route.map_or_else(|| verb.to_owned(), |route| format!("{verb} {route}"));
        let mut span = Span::new(&trace.hex(), &trace.span, name, SpanKind::Server, since(started.elapsed()))
            .text("http.request.method", method)
            .text("url.scheme", "http");
        if let Some(route) = route {
            span = span.text("http.route", route);
        }
        match status {
            None => span = span.with_error("cancelled".to_owned()),
            Some(status) => span = span.count("http.response.status_code", u64::from(status)),
        }
        if let Some(status) = status.filter(|status| *status >= 500) {
            span = span.with_error(status.to_string());
        }
        span.parent.clone_from(&trace.caller);
        span
    }
}

/// A response body that records its span when it is dropped: after the last byte, or because the client disconnected.
struct SpannedBody {
    body: Body,
    asked: SpanRequest,
    status: u16,
    sink: Arc<dyn SpanSink>,
}

impl Drop for SpannedBody {
    fn drop(&mut self) {
        self.sink.record_span(self.asked.span(Some(self.status)));
    }
}

impl HttpBody for SpannedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A request without a response yet. If the client disconnects first, the span is recorded as cancelled, because the
/// spans of its runs are recorded too.
pub(crate) struct PendingRequest(Option<(SpanRequest, Arc<dyn SpanSink>)>);

impl PendingRequest {
    /// Records the span once the whole response has been sent. Without a span sink, returns the response unchanged.
    pub(crate) fn trace_response(mut self, response: Response<Body>) -> Response<Body> {
        let Some((asked, sink)) = self.0.take() else { return response };
        let status = response.status().as_u16();
        response.map(|body| Body::new(SpannedBody { body, asked, status, sink }))
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        if let Some((asked, sink)) = self.0.take() {
            sink.record_span(asked.span(None));
        }
    }
}

impl AppState {
    /// Registers a request for tracing if spans are recorded and the request is sampled.
    pub(crate) fn trace_request(&self, sampled: bool, asked: impl FnOnce() -> SpanRequest) -> PendingRequest {
        PendingRequest(self.config.spans.clone().filter(|_| sampled).map(|sink| (asked(), sink)))
    }

    /// Returns the parent for the spans of a run below this request; `None` if no spans are recorded.
    pub(crate) fn place(&self, trace: &Trace, above: Option<&str>) -> Option<Arc<SpanParent>> {
        let sink = self.config.spans.as_ref().filter(|_| trace.sampled)?;
        let place =
            SpanParent::new(Arc::clone(sink)).with_parent(above).asking_for(self.config.model.as_deref());
        Some(Arc::new(place))
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderMap;

    use super::*;

    #[test]
    fn every_method_of_the_table_goes_by_its_name() {
        for operation in &crate::operations::OPERATIONS {
            let method = operation.method.to_uppercase();
            let asked = SpanRequest {
                trace: Arc::new(Trace::from_headers(&HeaderMap::new())),
                method: method.parse().unwrap(),
                path: operation.path.to_owned(),
                started: Instant::now(),
            };
            assert_eq!(asked.span(Some(200)).name, format!("{method} {}", operation.path));
        }
    }
}
