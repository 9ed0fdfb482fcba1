//! Error messages for registries and file servers: the problem, its subject and a remedy. Every text from the server
//! is redacted here, so that no message contains a key.

use cognitive_contract::code::{Blame, ErrorCode};
use cognitive_contract::failure::Failure;
use serde::Deserialize;
use serde_json::json;

use super::transfer::{MAX_REDIRECTS, Setback, WebAnswer};
use crate::fetch::{Reason, Refusal};
use crate::redact::Redactor;

/// The kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RegistryService {
    Registry,
    FileServer,
}

impl RegistryService {
    fn name(self) -> &'static str {
        match self {
            Self::Registry => "the registry",
            Self::FileServer => "the server",
        }
    }
}

/// Builds failures about one requested item.
pub(crate) struct RegistryReport {
    pub(crate) service: RegistryService,
    /// The host as written by the user.
    pub(crate) host: String,
    /// The requested item, such as `ghcr.io/team/modules:1.0.0`.
    pub(crate) subject: String,
    /// True if credentials are configured.
    pub(crate) has_login: bool,
    pub(crate) redactor: Redactor,
}

/// The error format of registries.
#[derive(Deserialize)]
struct RegistryErrors {
    errors: Vec<RegistryError>,
}

#[derive(Deserialize)]
struct RegistryError {
    code: Option<String>,
    message: Option<String>,
}

impl RegistryReport {
    /// Returns the failure for an error status.
    pub(crate) fn status(&self, answer: &WebAnswer) -> Failure {
        let (who, status) = (self.service.name(), answer.status);
        let failure = match status {
            401 if self.has_login => {
                self.failure(ErrorCode::PermissionDenied, &format!("{who} rejects the login"))
            }
            401 => self.failure(ErrorCode::PermissionDenied, &format!("{who} requires a login")),
            403 => self.failure(ErrorCode::PermissionDenied, &format!("{who} does not permit this request")),
            404 => self.failure(ErrorCode::InvalidReference, &format!("{who} has no such repository or tag")),
            429 => self.failure(ErrorCode::RateLimited, &format!("{who} accepts no more requests for now")),
            _ => {
                let said =
                    self.registry_message(&answer.body).map(|said| format!(", {said}")).unwrap_or_default();
                let again = status >= 500;
                self.failure(ErrorCode::ProviderUnavailable, &format!("{who} answered {status}{said}"))
                    .with_recoverable(again)
            }
        };
        let failure = match self.remedy(status) {
            Some(remedy) => failure.suggest(remedy),
            None => failure,
        };
        failure.with_detail("reason", json!("http_status")).with_detail("status", json!(status))
    }

    fn remedy(&self, status: u16) -> Option<String> {
        let is_registry = self.service == RegistryService::Registry;
        Some(match status {
            401 | 403 if is_registry => {
                let login = self.login_hint("Log in with");
                format!("{login}; some registries give the same answer for an unknown name")
            }
            401 | 403 => "Download the file yourself, and name it by its path".to_owned(),
            404 if is_registry => {
                let login = self.login_hint("log in with");
                format!(
                    "Check the name and the tag; a private repository looks the same without a login: {login}"
                )
            }
            404 => "Check the address".to_owned(),
            429 if is_registry && !self.has_login => self.login_hint("Try again later, or log in with"),
            429 | 500.. => "Try again later".to_owned(),
            _ => return None,
        })
    }

    /// Returns the failure for a request without a usable answer.
    pub(crate) fn setback(&self, setback: &Setback) -> Failure {
        self.setback_failure("leads to", setback)
    }

    /// Returns the failure for a URL named by the server. `leads` is the verb of the message: `leads to`,
    /// `sends the login to` or `sends the upload to`.
    pub(crate) fn setback_failure(&self, leads: &str, setback: &Setback) -> Failure {
        let who = self.service.name();
        match setback {
            Setback::Refused(refusal) if refusal.reason().is_block() => self.blocked_failure(leads, refusal),
            Setback::Refused(refusal) => self.unreachable_failure(refusal),
            Setback::Tls(why, remedy) => {
                let text = format!("no safe connection is possible, because {why}");
                let failure = self.unreachable("tls", &text, &self.host);
                let plain = "For a registry without TLS, use `--plain-http`";
                let plain = Some(plain).filter(|_| self.service == RegistryService::Registry);
                let hints: Vec<&str> = remedy.iter().copied().chain(plain).collect();
                if hints.is_empty() { failure } else { failure.suggest(hints.join(". ")) }
            }
            Setback::Proxy(why) => Failure::config_fault(why.clone()),
            Setback::TooLarge(most) => {
                let text = format!("{who} sent more than the allowed {most} bytes");
                let failure = self.failure(ErrorCode::ProviderUnavailable, &text);
                failure.with_recoverable(false).with_detail("reason", json!("too_large"))
            }
            Setback::Length { expected, found } => {
                let how = if found > expected { "more" } else { "less" };
                let text = format!("{who} sent {how} than the expected {expected} bytes");
                self.mismatch(&text).with_detail("reason", json!("length"))
            }
        }
    }

    /// Returns the failure for a URL that the guard refused. It was named by the server, because the user's origin is
    /// trusted.
    fn blocked_failure(&self, leads: &str, refusal: &Refusal) -> Failure {
        let (who, why) = (self.service.name(), refusal.clause());
        // `file:` URLs have no host.
        let place = if refusal.host().is_empty() { &self.subject } else { refusal.host() };
        let text = format!("{who} {leads} a forbidden address, because {why}: `{place}`");
        Failure::new(ErrorCode::PermissionDenied, text)
            .with_blame(Blame::Runtime)
            .with_detail("kind", json!("registry"))
            .with_detail("reason", json!(refusal.reason().word()))
            .suggest("Only public `https://` addresses and addresses that the user named are followed")
    }

    fn unreachable_failure(&self, refusal: &Refusal) -> Failure {
        let (reason, host) = (refusal.reason(), refusal.host());
        let redirects = format!("it was redirected more than {MAX_REDIRECTS} times");
        let (text, hint) = match reason {
            Reason::Dns => ("the host name cannot be resolved", Some("Check the name and the network")),
            Reason::Refused => {
                ("the host does not respond", Some("Check host and port, and that the registry runs"))
            }
            Reason::Timeout => ("no answer came in time", Some("Try again later")),
            Reason::Interrupted => {
                ("the connection was lost, or what arrived was not HTTP", Some("Try again later"))
            }
            Reason::TooManyRedirects => (redirects.as_str(), None),
            _ => (refusal.clause(), None),
        };
        let failure = self.unreachable(reason.word(), text, host);
        match hint {
            Some(hint) => failure.suggest(hint),
            None => failure,
        }
    }

    fn unreachable(&self, reason: &str, text: &str, host: &str) -> Failure {
        let host = if host.is_empty() { &self.host } else { host };
        Failure::new(ErrorCode::ProviderUnavailable, format!("{text}: `{host}`"))
            .with_blame(Blame::Runtime)
            .with_detail("kind", json!("registry"))
            .with_detail("reason", json!(reason))
    }

    /// Returns the failure for an invalid answer.
    pub(crate) fn nonsense(&self, what: &str) -> Failure {
        self.failure(ErrorCode::ProviderUnavailable, &format!("{} {what}", self.service.name()))
            .with_recoverable(false)
            .with_detail("reason", json!("invalid_answer"))
            .suggest("Check that the host is a registry, and that no proxy changes its answers")
    }

    /// Returns the failure for content with a digest other than the requested one.
    pub(crate) fn wrong_digest(&self, expected: &str, found: &str) -> Failure {
        let text =
            format!("{} sent data with the digest `{found}` instead of `{expected}`", self.service.name());
        self.mismatch(&text).with_detail("reason", json!("digest"))
    }

    /// Returns the failure for an item that is too large to request.
    pub(crate) fn too_large(&self, most: u64) -> Failure {
        let text = format!("its size exceeds the allowed {most} bytes");
        let failure = self.failure(ErrorCode::ProviderUnavailable, &text);
        failure.with_recoverable(false).with_detail("reason", json!("too_large"))
    }

    /// Returns the failure for a manifest that does not have the digest in its reference.
    pub(crate) fn not_its_digest(&self, found: &str) -> Failure {
        let text = format!("the manifest has another digest: `{found}`");
        Failure::new(ErrorCode::InvalidInput, format!("{text}: `{}`", self.subject))
    }

    /// Returns the failure for a media type that no header can contain.
    pub(crate) fn no_media_type(&self) -> Failure {
        let text = "the media type of the manifest has characters that an HTTP header cannot contain";
        Failure::new(ErrorCode::InvalidInput, format!("{text}: `{}`", self.subject))
    }

    fn mismatch(&self, text: &str) -> Failure {
        self.failure(ErrorCode::ChecksumMismatch, text)
            .with_recoverable(false)
            .suggest("Do not use it: it was changed in the registry or on the way. Contact its publisher")
    }

    /// Builds a failure about the requested item.
    pub(crate) fn failure(&self, code: ErrorCode, text: &str) -> Failure {
        Failure::new(code, format!("{text}: `{}`", self.subject))
            .with_blame(Blame::Runtime)
            .with_detail("kind", json!("registry"))
    }

    /// Returns the failure for credentials that no header can contain.
    pub(crate) fn invalid_credentials(&self) -> Failure {
        self.failure(
            ErrorCode::PermissionDenied,
            "the login has characters that an HTTP header cannot contain",
        )
        .with_blame(Blame::Operator)
        .suggest(self.login_hint("Log in with"))
    }

    fn login_hint(&self, verb: &str) -> String {
        format!(
            "{verb} `docker login {}`, or set `COGN_REGISTRY_HOST`, `COGN_REGISTRY_USER` and `COGN_REGISTRY_PASSWORD`",
            self.host
        )
    }

    /// Returns the registry's message, if the body has the format of registries.
    fn registry_message(&self, body: &[u8]) -> Option<String> {
        let said: RegistryErrors = serde_json::from_slice(body).ok()?;
        let first = said.errors.into_iter().next()?;
        let parts: Vec<String> = [first.code, first.message].into_iter().flatten().collect();
        let text = self.redactor.clean(&parts.join(" "));
        (!text.is_empty()).then_some(text)
    }
}
