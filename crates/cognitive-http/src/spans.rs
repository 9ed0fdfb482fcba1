//! What the server did, for whoever draws traces: one span per answer and one per run of a model, by the names of the
//! OpenTelemetry conventions for HTTP and for generative AI. Carries names, counts and codes, never a text that anybody
//! sent, asked or answered; a path is told by its route alone.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime};

use axum::body::{Body, Bytes};
use axum::http::{Method, Response};
use cognitive_contract::span::{Span, SpanKind, SpanSink};
use cognitive_contract::{Envelope, ErrorCode};
use http_body::{Body as HttpBody, Frame, SizeHint};
use serde_json::Value;

use crate::app::Shared;
use crate::routes::route;
use crate::trace::{Trace, span_id};

/// The time from a beginning that lies so far back until now.
fn since(took: Duration) -> (SystemTime, SystemTime) {
    let now = SystemTime::now();
    (now.checked_sub(took).unwrap_or(now), now)
}

/// What is known of an answer before its body has gone out.
pub(crate) struct Asked {
    pub(crate) trace: Arc<Trace>,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) started: Instant,
}

impl Asked {
    fn span(&self, status: u16) -> Span {
        let Self { trace, method, path, started } = self;
        let route = route(path);
        // What a client makes up as a method must not become a name.
        let known = [Method::GET, Method::POST, Method::PUT, Method::HEAD, Method::OPTIONS].contains(method);
        let method = if known { method.as_str() } else { "_OTHER" };
        let verb = if known { method } else { "HTTP" };
        let name = route.map_or_else(|| verb.to_owned(), |route| format!("{verb} {route}"));
        let mut span = Span::new(trace.hex(), &trace.span, name, SpanKind::Server, since(started.elapsed()))
            .text("http.request.method", method)
            .text("url.scheme", "http")
            .count("http.response.status_code", u64::from(status));
        if let Some(route) = route {
            span = span.text("http.route", route);
        }
        if status >= 500 {
            span = span.failed(status.to_string());
        }
        span.parent.clone_from(&trace.caller);
        span
    }
}

/// A body that tells when it is gone: sent to its end, or dropped because the client went.
struct Drawn {
    body: Body,
    asked: Asked,
    status: u16,
    sink: Arc<dyn SpanSink>,
}

impl Drop for Drawn {
    fn drop(&mut self) {
        self.sink.finished(self.asked.span(self.status));
    }
}

impl HttpBody for Drawn {
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

impl Shared {
    /// Tells of an answer once all of it has gone out. Without anybody to tell, the answer stays as it is.
    pub(crate) fn drawn(
        &self,
        asked: impl FnOnce() -> Asked,
        sampled: bool,
        response: Response<Body>,
    ) -> Response<Body> {
        let Some(sink) = self.config.spans.clone().filter(|_| sampled) else { return response };
        let status = response.status().as_u16();
        response.map(|body| Body::new(Drawn { body, asked: asked(), status, sink }))
    }

    /// Takes note of a run: in the counters, and as a span if a model was asked.
    pub(crate) fn ran(&self, module: &str, trace: &Trace, envelope: &Envelope, took: Duration) {
        self.metrics.ran(module, envelope, took);
        let Some(sink) = self.config.spans.as_ref().filter(|_| trace.sampled) else { return };
        let provider = (self.host.provider.name(), self.config.model.as_deref());
        if let Some(span) = model_span(provider, module, trace, envelope, took) {
            sink.finished(span);
        }
    }
}

/// Whether no model was asked, because the answer to the same input was kept.
fn was_kept(envelope: &Envelope) -> bool {
    let warnings = envelope.meta().extra.get("warnings").and_then(Value::as_array);
    warnings.into_iter().flatten().any(|warning| warning.get("code").is_some_and(|code| code == "CACHED"))
}

/// The span of a run in which a model was asked, or would have been if it could be reached. The provider comes with the
/// model that it asks for, as far as that is known.
fn model_span(
    (provider, wanted): (&str, Option<&str>),
    module: &str,
    trace: &Trace,
    envelope: &Envelope,
    took: Duration,
) -> Option<Span> {
    let extra = &envelope.meta().extra;
    let word = |name: &str| extra.get(name).and_then(Value::as_str);
    let code =
        envelope.error().map(|error| ErrorCode::find(error.code()).map_or("module_code", ErrorCode::number));
    let model = word("model").and_then(|model| model.split_once('/')).map(|(_, model)| model);
    // Without an answer of a model, only these codes say that one was asked.
    let asked = |code: &str| {
        code.starts_with("E2") || code.starts_with("E3") || matches!(code, "E4001" | "E4002" | "E4003")
    };
    if was_kept(envelope) || (model.is_none() && !code.is_some_and(asked)) {
        return None;
    }
    let wanted = wanted.or(model);
    // A run on a socket may have a trace of its own; then nothing here is above it.
    let own = word("trace_id").map(|id| id.replace('-', "")).filter(|id| id != trace.hex());
    let kind = if provider == "embedded" { SpanKind::Internal } else { SpanKind::Client };
    let name = wanted.map_or_else(|| "chat".to_owned(), |model| format!("chat {model}"));
    let id = own.as_deref().unwrap_or(trace.hex());
    let mut span = Span::new(id, &span_id(), name, kind, since(took))
        .text("gen_ai.operation.name", "chat")
        .text("gen_ai.provider.name", if provider == "gemini" { "gcp.gemini" } else { provider })
        .text("cogn.module", module);
    span.parent = own.is_none().then(|| trace.span.clone());
    for (name, model) in [("gen_ai.request.model", wanted), ("gen_ai.response.model", model)] {
        if let Some(model) = model {
            span = span.text(name, model);
        }
    }
    let usage = envelope.beside("usage");
    let tokens =
        [("input_tokens", "gen_ai.usage.input_tokens"), ("output_tokens", "gen_ai.usage.output_tokens")];
    for (member, name) in tokens {
        if let Some(count) = usage.and_then(|usage| usage.get(member)).and_then(Value::as_u64) {
            span = span.count(name, count);
        }
    }
    Some(match code {
        Some(code) => span.failed(code),
        None => span,
    })
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderMap;
    use serde_json::json;

    use super::*;

    fn span(wanted: Option<&str>, envelope: Value) -> Option<Span> {
        let envelope = Envelope::from_value(envelope).unwrap();
        let trace = Trace::of(&HeaderMap::new());
        model_span(("openai", wanted), "words", &trace, &envelope, Duration::ZERO)
    }

    fn success(extra: &Value) -> Value {
        let mut meta = json!({ "confidence": 0.9, "risk": "low", "explain": "e", "model": "openai/m-2026" });
        meta.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        json!({ "ok": true, "meta": meta, "data": { "rationale": "r" } })
    }

    fn failure(code: &str) -> Value {
        let meta = json!({ "confidence": 0, "risk": "high", "explain": "e" });
        json!({ "ok": false, "meta": meta, "error": { "code": code, "message": "m" } })
    }

    #[test]
    fn every_method_of_the_table_goes_by_its_name() {
        for operation in crate::routes::OPERATIONS {
            let method = operation.method.to_uppercase();
            let asked = Asked {
                trace: Arc::new(Trace::of(&HeaderMap::new())),
                method: method.parse().unwrap(),
                path: operation.path.to_owned(),
                started: Instant::now(),
            };
            assert_eq!(asked.span(200).name, format!("{method} {}", operation.path));
        }
    }

    #[test]
    fn a_span_is_drawn_only_where_a_model_was_asked() {
        for code in ["E2002", "E2010", "E3001", "E4001", "E4002"] {
            assert!(span(None, failure(code)).is_some_and(|span| span.failed), "{code}");
        }
        for code in ["E1001", "E4006", "E4007", "E4000"] {
            assert_eq!(span(None, failure(code)), None, "{code}");
        }
        let kept = json!({ "warnings": [{ "code": "CACHED", "message": "m" }] });
        assert_eq!(span(None, success(&kept)), None, "nobody was asked");
    }

    #[test]
    fn the_model_that_was_asked_for_is_told_from_the_one_that_answered() {
        let of = |span: &Span, name: &str| {
            span.attributes.iter().find(|(each, _)| *each == name).map(|(_, value)| value.clone())
        };
        let text = |text: &str| Some(cognitive_contract::span::SpanValue::Text(text.to_owned()));
        let drawn = span(Some("m"), success(&json!({}))).unwrap();
        assert_eq!(drawn.name, "chat m");
        assert_eq!(of(&drawn, "gen_ai.request.model"), text("m"));
        assert_eq!(of(&drawn, "gen_ai.response.model"), text("m-2026"));
        assert_eq!(drawn.kind, SpanKind::Client);
        let own =
            span(None, success(&json!({ "trace_id": "4bf92f35-77b3-4da6-a3ce-929d0e0e4736" }))).unwrap();
        assert_eq!((own.trace_id.as_str(), own.parent), ("4bf92f3577b34da6a3ce929d0e0e4736", None));
    }
}
