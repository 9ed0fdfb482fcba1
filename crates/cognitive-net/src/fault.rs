//! One failed attempt: the error for the caller, and whether a retry makes sense. Every text is redacted here, so
//! that no error contains a key or a prompt.

use std::error::Error;
use std::time::{Duration, SystemTime};

use cognitive_contract::address::bare_url;
use cognitive_contract::ports::{FailedTry, FailureKind, ModelCall, ProviderError};

use crate::complaint::Complaint;
use crate::llm::remote::location;
use crate::llm::{media, turns};
use crate::redact::{Redactor, quotes};
use crate::retry::{RetryDecision, retry_after};
use crate::service::{Answer, Trouble};
use crate::tls::{explain_tls_error, tls_error};

/// A failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The error for the caller if there is no further attempt.
    pub(crate) error: ProviderError,
    /// The retry decision: whether and when the same request may succeed.
    pub(crate) again: RetryDecision,
    /// The service's message; a request with fewer features may succeed.
    pub(crate) complaint: Option<Box<Complaint>>,
    /// The failure that callers can route on; `None` for a fault of this program.
    pub(crate) failed: Option<Box<FailedTry>>,
}

impl Fault {
    pub(crate) fn new(error: ProviderError, kind: FailureKind, again: RetryDecision) -> Self {
        let mut failed = FailedTry::new(kind);
        // Failures that repeat deterministically do not pass with time.
        failed.passes = again != RetryDecision::Never || kind == FailureKind::Timeout;
        Self { error, again, complaint: None, failed: Some(Box::new(failed)) }
    }

    /// Marks a failure that is not retried now, although the same call may succeed later.
    fn not_retried(mut self) -> Self {
        if let Some(failed) = &mut self.failed {
            failed.passes = true;
        }
        self
    }

    /// Adds the service's status, message and complaint.
    fn with_response(mut self, status: Option<u16>, said: Option<String>, complaint: Complaint) -> Self {
        if let Some(failed) = &mut self.failed {
            failed.status = status;
            failed.said = said;
        }
        self.complaint = Some(Box::new(complaint));
        self
    }

    /// Adds a remedy.
    pub(crate) fn with_remedy(mut self, remedy: Option<&str>) -> Self {
        if let Some(failed) = &mut self.failed {
            failed.remedy = remedy.map(str::to_owned);
        }
        self
    }

    /// Converts the fault into an interruption: the answer had already begun, whatever the cause.
    pub(crate) fn after_text(self) -> ProviderError {
        match self.error {
            ProviderError::Unavailable(why)
            | ProviderError::Misconfigured(why)
            | ProviderError::Rejected(why)
            | ProviderError::ContextOverflow(why)
            | ProviderError::Unexpected(why) => ProviderError::Interrupted(why),
            error @ ProviderError::RateLimited { .. } => ProviderError::Interrupted(error.to_string()),
            error => error,
        }
    }
}

/// Builds faults for one provider and one call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reporter<'a> {
    /// The provider's name.
    pub(crate) name: &'a str,
    pub(crate) redactor: &'a Redactor,
    /// The call whose prompt must not be repeated; `None` for a probe.
    pub(crate) call: Option<&'a ModelCall>,
}

impl Reporter<'_> {
    /// Returns the fault for an answer with an error status.
    pub(crate) fn status(&self, status: u16, retry_after: Option<Duration>, body: &[u8]) -> Fault {
        let complaint = Complaint::from_body(body);
        let wait = retry_after.or(complaint.wait);
        let said = self.quote(&complaint);
        let text = match &said {
            Some(said) => format!("{} answered {status}: {said}", self.name),
            None => format!("{} answered {status}", self.name),
        };
        self.status_fault(status, &complaint, wait, text).with_response(None, said, complaint)
    }

    /// Returns an answer with a good status, or the error that its status means.
    pub(crate) async fn success<'s>(&self, answer: Answer<'s>) -> Result<Answer<'s>, ProviderError> {
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let fault = if status.is_redirection() {
            self.redirect_fault(status.as_u16(), location(answer.headers()))
        } else {
            let asked = retry_after(answer.headers(), SystemTime::now());
            self.status(status.as_u16(), asked, &answer.beginning().await)
        };
        Err(fault.error)
    }

    /// Returns the fault for a redirect to another origin, to which the key is not sent.
    pub(crate) fn redirect_fault(&self, status: u16, location: Option<&str>) -> Fault {
        let place = location.map(|place| self.redactor.clean(&bare_url(place)));
        let text = match &place {
            Some(place) => format!(
                "{} answered {status}: it redirects the request, and the key is not sent to: `{place}`",
                self.name
            ),
            None => {
                format!("{} answered {status}: it redirects the request without a target", self.name)
            }
        };
        Fault::new(ProviderError::Misconfigured(text), FailureKind::BadRequest, RetryDecision::Never)
            .with_remedy(Some(
                "Check the address of the service; if the target of the redirect is right, set it with \
             `--base-url` or in the environment",
            ))
    }

    /// Returns the fault for an error inside an answer with a good status.
    pub(crate) fn frame(&self, complaint: Complaint) -> Fault {
        let said = self.quote(&complaint);
        let text = match &said {
            Some(said) => format!("{} reported: {said}", self.name),
            None => format!("{} reported an error", self.name),
        };
        if complaint.is_stop {
            let fault =
                Fault::new(ProviderError::Interrupted(text), FailureKind::Malformed, RetryDecision::Never);
            return fault.not_retried().with_response(None, said, complaint);
        }
        let status = complaint.status.unwrap_or_else(|| status_of(&complaint));
        let named = complaint.status;
        self.status_fault(status, &complaint, complaint.wait, text).with_response(named, said, complaint)
    }

    fn status_fault(
        &self,
        status: u16,
        complaint: &Complaint,
        wait: Option<Duration>,
        text: String,
    ) -> Fault {
        let sees = self.call.is_some_and(|call| !call.media.is_empty());
        if sees && (400..=499).contains(&status) && complaint.mentions(MEDIA) {
            return Fault::new(ProviderError::Rejected(text), FailureKind::Unsuitable, RetryDecision::Never);
        }
        by_status(status, complaint, wait, text)
    }

    /// Returns the fault for a request without an answer, or for a connection lost while reading.
    pub(crate) fn transport(&self, trouble: &Trouble) -> Fault {
        let name = self.name;
        let (text, error): (_, &(dyn Error + 'static)) = match trouble {
            Trouble::TooLong(most) => {
                let text = format!("it is longer than {} MiB", most / 1024 / 1024);
                return self.interruption_fault(&text, FailureKind::Malformed, RetryDecision::Never);
            }
            Trouble::Broken(error) => {
                let why = self.redactor.clean(&deepest(error));
                let text = format!("the connection was lost: {why}");
                return self.interruption_fault(&text, FailureKind::Network, RetryDecision::Later);
            }
            Trouble::Late => {
                let text = format!("{name} cannot be reached: no connection in time");
                return Fault::new(
                    ProviderError::Unavailable(text),
                    FailureKind::Network,
                    RetryDecision::Later,
                );
            }
            Trouble::Unreached(error) => ("cannot be reached", error.as_ref()),
            Trouble::Unanswered(error) => ("gave no answer", error),
        };
        let why = self.redactor.clean(&deepest(error));
        if let Some(failed) = tls_error(error) {
            let (why, remedy) =
                explain_tls_error(failed).map_or((why.as_str(), None), |(why, remedy)| (why, Some(remedy)));
            let text = format!("{name} cannot be reached safely: {why}");
            return Fault::new(ProviderError::Unavailable(text), FailureKind::Network, RetryDecision::Never)
                .with_remedy(remedy);
        }
        let text = format!("{name} {text}: {why}");
        Fault::new(ProviderError::Unavailable(text), FailureKind::Network, RetryDecision::Later)
    }

    /// Returns the fault for an answer that ended too early.
    pub(crate) fn interruption_fault(&self, why: &str, kind: FailureKind, again: RetryDecision) -> Fault {
        Fault::new(ProviderError::Interrupted(format!("{}: {why}", self.name)), kind, again)
    }

    /// Returns the fault for an unusable answer, such as a gateway's HTML page.
    pub(crate) fn unreadable(&self, why: &str) -> Fault {
        let text = format!("{} answered with {why}", self.name);
        Fault::new(ProviderError::Unavailable(text), FailureKind::Malformed, RetryDecision::Never)
    }

    /// Returns the service's message if it may be shown: redacted, and without a quote of the prompt.
    pub(crate) fn quote(&self, complaint: &Complaint) -> Option<String> {
        let text = self.redactor.clean(&complaint.text);
        let repeats = self.call.is_some_and(|call| {
            let told = call.rounds.iter().flat_map(|round| &round.calls);
            let told = told.flat_map(|(call, reply)| [call.arguments.as_str(), &reply.content]);
            let said = turns(call).map(|(_, said)| said).chain(told).any(|said| quotes(&text, said));
            said || quotes(&text, &call.instructions)
                || call.media.iter().any(|medium| quotes(&text, media::beginning(medium)))
        });
        (!text.is_empty() && !repeats).then_some(text)
    }
}

/// Maps an HTTP status to a fault. (PIPE-010)
fn by_status(status: u16, complaint: &Complaint, wait: Option<Duration>, text: String) -> Fault {
    use FailureKind as Kind;
    let again = wait.map_or(RetryDecision::Later, RetryDecision::After);
    let wrong = |kind, text| Fault::new(ProviderError::Misconfigured(text), kind, RetryDecision::Never);
    match status {
        // An exhausted account also answers 429, but waiting does not refill it.
        429 if complaint.is_exhausted() => wrong(Kind::Quota, text),
        429 => Fault::new(ProviderError::RateLimited { retry_after: wait }, Kind::RateLimit, again),
        401 | 403 => wrong(Kind::Auth, text),
        _ if complaint.is_overflow() => {
            Fault::new(ProviderError::ContextOverflow(text), Kind::TooLong, RetryDecision::Never)
        }
        413 => Fault::new(ProviderError::ContextOverflow(text), Kind::TooLong, RetryDecision::Never),
        408 => Fault::new(ProviderError::Unavailable(text), Kind::Timeout, again),
        409 | 425 | 500..=599 => Fault::new(ProviderError::Unavailable(text), Kind::Outage, again),
        402 => wrong(Kind::Quota, text),
        404 | 410 if complaint.is_about_model() => wrong(Kind::ModelNotFound, text),
        // A redirect that was not followed, or a wrong path.
        300..=399 | 404 | 405 | 410 => wrong(Kind::BadRequest, text),
        _ => match complaint.configuration() {
            Some(kind) => wrong(kind, text),
            None => Fault::new(ProviderError::Rejected(text), Kind::BadRequest, RetryDecision::Never),
        },
    }
}

/// Phrases for a model that does not support media.
pub(crate) const MEDIA: &[&str] =
    &["image input", "image_url", "input_audio", "vision", "multimodal", "mmproj", "unsupported_image"];

/// Returns the HTTP status that an error inside an answer corresponds to.
fn status_of(complaint: &Complaint) -> u16 {
    let tables: [(u16, &[&str]); 5] = [
        (429, &["rate_limit", "rate limit", "resource_exhausted", "too many requests", "insufficient_quota"]),
        (401, &["authentication_error", "permission_error", "invalid api key"]),
        (503, &["overloaded", "unavailable", "server_error", "api_error", "internal", "timeout"]),
        (400, &["invalid_request", "invalid_argument", "invalid params", "unsupported", "not supported"]),
        // Codes of failed responses.
        (400, &["invalid_prompt", "image_", "_image", "data_residency_mismatch"]),
    ];
    let found = tables.into_iter().find(|(_, words)| complaint.mentions(words));
    // An unclassified error counts as a fault of the service.
    found.map_or(500, |(status, _)| status)
}

/// Returns the innermost cause. The outer errors only repeat that a request was made, and they contain its URL.
pub(crate) fn deepest(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use cognitive_contract::tools::{ToolCall, ToolReply, ToolRound};

    use super::*;
    use crate::secret::Secret;

    fn fault(status: u16, body: &str) -> Fault {
        let redactor = Redactor::new(Secret::new("k3y-of-ours").as_ref(), None);
        let mut call = ModelCall::new(
            "Do it.".to_owned(),
            "Patient Zero lives at 12 Long Road, Smalltown".to_owned(),
            0.0,
        );
        let arguments = r#"{"who":"Patient One, who lives at 7 Short Lane in Bigtown"}"#;
        let asked = ToolCall::new("a", "find", arguments);
        let told = ToolReply::new(r#"{"disease":"one that nobody but the patient should know of"}"#, true);
        call.rounds = vec![ToolRound::new(serde_json::Value::Null, vec![(asked, told)])];
        Reporter { name: "svc", redactor: &redactor, call: Some(&call) }.status(status, None, body.as_bytes())
    }

    fn said(text: &str) -> String {
        serde_json::json!({ "error": { "message": text } }).to_string()
    }

    // PIPE-010: the mapping from status to error.
    #[test]
    fn pipe_010_statuses() {
        use ProviderError as E;
        let m = |status: u16| format!("svc answered {status}: m");
        for (status, error, again) in [
            (301, E::Misconfigured(m(301)), RetryDecision::Never),
            (400, E::Rejected(m(400)), RetryDecision::Never),
            (401, E::Misconfigured(m(401)), RetryDecision::Never),
            (402, E::Misconfigured(m(402)), RetryDecision::Never),
            (403, E::Misconfigured(m(403)), RetryDecision::Never),
            (404, E::Misconfigured(m(404)), RetryDecision::Never),
            (408, E::Unavailable(m(408)), RetryDecision::Later),
            (409, E::Unavailable(m(409)), RetryDecision::Later),
            (413, E::ContextOverflow(m(413)), RetryDecision::Never),
            (422, E::Rejected(m(422)), RetryDecision::Never),
            (425, E::Unavailable(m(425)), RetryDecision::Later),
            (429, E::RateLimited { retry_after: None }, RetryDecision::Later),
            (500, E::Unavailable(m(500)), RetryDecision::Later),
            (503, E::Unavailable(m(503)), RetryDecision::Later),
            (529, E::Unavailable(m(529)), RetryDecision::Later),
        ] {
            let found = fault(status, &said("m"));
            assert_eq!((found.error, found.again), (error, again), "{status}");
        }
    }

    // D-16: the kind that callers route on, and whether the failure passes with time.
    #[test]
    fn d_16_statuses_and_words_give_a_kind() {
        for (status, text, kind, passes) in [
            (401, "m", "auth", false),
            (403, "m", "auth", false),
            (400, "API key not valid. Please pass a valid API key.", "auth", false),
            (402, "m", "quota", false),
            (400, "Your credit balance is too low to access the API", "quota", false),
            (429, "insufficient_quota: check your plan and billing details", "quota", false),
            (429, "Rate limit reached for requests", "rate_limit", true),
            (404, "The model `gpt-9` does not exist", "model_not_found", false),
            (404, "No endpoints found for a/b.", "model_not_found", false),
            (400, "The supported API model names are a or b, but you passed c.", "model_not_found", false),
            (404, "Not found", "bad_request", false),
            (301, "m", "bad_request", false),
            (400, "max_tokens: 9000 > 8192, which is the maximum", "bad_request", false),
            (422, "m", "bad_request", false),
            (400, "prompt is too long: 5 tokens > 4 maximum", "too_long", false),
            (413, "m", "too_long", false),
            (408, "m", "timeout", true),
            (500, "m", "outage", true),
            (529, "Overloaded", "outage", true),
        ] {
            let failed = fault(status, &said(text)).failed.unwrap();
            assert_eq!((failed.kind.word(), failed.passes), (kind, passes), "{status} {text}");
            assert_eq!(failed.said.as_deref(), Some(text), "{status}");
        }
    }

    #[test]
    fn words_say_more_than_the_status() {
        for (status, text, expected) in [
            (400, "prompt is too long: 5 tokens > 4 maximum", "the prompt exceeds"),
            (500, "Context size has been exceeded", "the prompt exceeds"),
            (400, "API key not valid. Please pass a valid API key.", "provider refused the request"),
            (400, "Your credit balance is too low to access the API", "provider refused the request"),
            (429, "insufficient_quota: check your plan and billing details", "provider refused the request"),
            (429, "exceeds the rate limit of 5 input tokens per minute", "rate limit"),
            (
                429,
                "You exceeded your current quota, please check your plan and billing details.",
                "rate limit",
            ),
        ] {
            let found = fault(status, &said(text));
            assert!(found.error.to_string().starts_with(expected), "{status} {text}: {}", found.error);
        }
    }

    // ERR-015: neither the key nor the prompt is repeated.
    #[test]
    fn err_015_what_the_service_quotes_stays_here() {
        let key = fault(401, &said("bad key k3y-of-ours")).error.to_string();
        assert_eq!(key, "provider refused the request: svc answered 401: bad key [redacted]");
        for quoted in [
            "cannot parse 'Patient Zero lives at 12 Long Road, Smalltown'",
            r#"bad arguments: {"who":"Patient One, who lives at 7 Short Lane in Bigtown"}"#,
            r#"bad result: {"disease":"one that nobody but the patient should know of"}"#,
        ] {
            let error = fault(400, &said(quoted)).error;
            assert_eq!(error, ProviderError::Rejected("svc answered 400".to_owned()), "{quoted}");
        }
    }

    #[test]
    fn errors_within_an_answer_are_placed_by_their_words() {
        let redactor = Redactor::new(None, None);
        let reporter = Reporter { name: "svc", redactor: &redactor, call: None };
        let place = |text: &str| {
            let frame = serde_json::from_str(text).unwrap();
            reporter.frame(Complaint::from_frame(&frame).unwrap())
        };
        let overloaded =
            place(r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#);
        assert_eq!(overloaded.again, RetryDecision::Later);
        assert_eq!(overloaded.error, ProviderError::Unavailable("svc reported: Overloaded".to_owned()));
        assert_eq!(
            overloaded.after_text(),
            ProviderError::Interrupted("svc reported: Overloaded".to_owned())
        );
        let limited = place(r#"{"error":{"code":429,"message":"slow down"}}"#);
        assert_eq!(limited.error, ProviderError::RateLimited { retry_after: None });
        let key = place(r#"{"base_resp":{"status_code":1004,"status_msg":"login fail"}}"#);
        assert_eq!(key.error, ProviderError::Misconfigured("svc reported: login fail".to_owned()));
        let full = place(r#"{"error":"Context size has been exceeded."}"#);
        assert!(matches!(full.error, ProviderError::ContextOverflow(_)));
    }
}
