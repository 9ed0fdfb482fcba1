//! Errors of providers: a variant for the runtime, and a kind that callers can route on. (D-16)
//! Each error has a published code; the runtime adds hints and details. The texts contain no keys and no prompt.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::code::ErrorCode;

/// The reason why a model did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProviderError {
    /// The service cannot be reached, or reports an outage.
    Unavailable(String),
    /// The service rejects the credentials or does not know the model: the configuration is wrong.
    Misconfigured(String),
    /// The service rejects this request permanently.
    Rejected(String),
    /// Too many requests.
    RateLimited {
        /// The wait time that the service asks for.
        retry_after: Option<Duration>,
    },
    /// The request timed out.
    Timeout,
    /// The answer was interrupted.
    Interrupted(String),
    /// The prompt does not fit the model.
    ContextOverflow(String),
    /// The model cannot be bound to the module's contract. The text names the keyword and its place.
    Unsupported(String),
    /// The runtime permitted no further request; it knows the reason.
    Stopped,
    /// An internal error, not caused by a service.
    Unexpected(String),
}

impl ProviderError {
    /// Returns the code of the failure that a run ends with.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Unavailable(_) | Self::Misconfigured(_) | Self::Rejected(_) | Self::Unsupported(_) => {
                ErrorCode::ProviderUnavailable
            }
            Self::RateLimited { .. } => ErrorCode::RateLimited,
            Self::Timeout => ErrorCode::Timeout,
            Self::Interrupted(_) => ErrorCode::StreamInterrupted,
            Self::ContextOverflow(_) => ErrorCode::ContextOverflow,
            Self::Stopped | Self::Unexpected(_) => ErrorCode::InternalError,
        }
    }

    /// Returns the kind of failure, unless the attempt itself is more specific; `None` for internal errors.
    #[must_use]
    pub fn kind(&self) -> Option<FailureKind> {
        Some(match self {
            Self::Unavailable(_) => FailureKind::Outage,
            Self::Misconfigured(_) => FailureKind::Auth,
            Self::Rejected(_) => FailureKind::BadRequest,
            Self::RateLimited { .. } => FailureKind::RateLimit,
            Self::Timeout => FailureKind::Timeout,
            Self::Interrupted(_) => FailureKind::Network,
            Self::ContextOverflow(_) => FailureKind::TooLong,
            Self::Unsupported(_) => FailureKind::Unsuitable,
            Self::Stopped | Self::Unexpected(_) => return None,
        })
    }
}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(why) => write!(f, "provider unavailable: {why}"),
            Self::Misconfigured(why) | Self::Rejected(why) => {
                write!(f, "provider refused the request: {why}")
            }
            Self::RateLimited { retry_after: Some(wait) } => {
                write!(f, "rate limit exceeded, retry after {} s", wait.as_secs())
            }
            Self::RateLimited { retry_after: None } => f.write_str("rate limit exceeded"),
            Self::Timeout => f.write_str("no answer within the time limit"),
            Self::Interrupted(why) => write!(f, "the answer was interrupted: {why}"),
            Self::ContextOverflow(why) => write!(f, "the prompt exceeds the model's context window: {why}"),
            Self::Unsupported(why) => write!(f, "the provider cannot enforce this contract: {why}"),
            Self::Stopped => f.write_str("the limit of requests is reached"),
            Self::Unexpected(why) => write!(f, "unexpected error: {why}"),
        }
    }
}

impl std::error::Error for ProviderError {}

/// The kind of a provider failure, as in `error.details.kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The service rejects the credentials.
    Auth,
    /// The service does not know the model.
    ModelNotFound,
    /// The account has no quota left.
    Quota,
    /// Too many requests.
    RateLimit,
    /// The service rejects the request.
    BadRequest,
    /// The model, or a safety filter before it, refuses.
    Refused,
    /// The prompt does not fit the model, or the answer does not fit the token limit.
    TooLong,
    /// The request timed out.
    Timeout,
    /// The connection failed or was lost.
    Network,
    /// The service reports an outage.
    Outage,
    /// The response is malformed.
    Malformed,
    /// The model cannot satisfy the module's contract.
    Unsuitable,
}

impl FailureKind {
    /// All kinds.
    pub const ALL: [Self; 12] = [
        Self::Auth,
        Self::ModelNotFound,
        Self::Quota,
        Self::RateLimit,
        Self::BadRequest,
        Self::Refused,
        Self::TooLong,
        Self::Timeout,
        Self::Network,
        Self::Outage,
        Self::Malformed,
        Self::Unsuitable,
    ];

    /// Returns the word of the kind.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::ModelNotFound => "model_not_found",
            Self::Quota => "quota",
            Self::RateLimit => "rate_limit",
            Self::BadRequest => "bad_request",
            Self::Refused => "refused",
            Self::TooLong => "too_long",
            Self::Timeout => "timeout",
            Self::Network => "network",
            Self::Outage => "outage",
            Self::Malformed => "malformed",
            Self::Unsuitable => "unsuitable",
        }
    }

    /// Returns whether the same call may succeed later, unless the attempt says otherwise.
    #[must_use]
    pub fn passes(self) -> bool {
        matches!(self, Self::RateLimit | Self::Timeout | Self::Network | Self::Outage)
    }
}

/// Details of a failed attempt, besides its outcome text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FailedTry {
    /// The kind of failure.
    pub kind: FailureKind,
    /// True if the same call may succeed later.
    #[serde(skip)]
    pub passes: bool,
    /// The status inside an error response, which is more specific than the HTTP status.
    #[serde(skip)]
    pub status: Option<u16>,
    /// The service's own message, short and without secrets.
    #[serde(skip)]
    pub said: Option<String>,
    /// A remedy for this particular failure, if the kind alone does not imply one.
    #[serde(skip)]
    pub remedy: Option<String>,
}

impl FailedTry {
    /// A failure of this kind without further details.
    #[must_use]
    pub fn new(kind: FailureKind) -> Self {
        Self { kind, passes: kind.passes(), status: None, said: None, remedy: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // D-16: the words that callers route on.
    #[test]
    fn d_16_a_kind_is_written_as_its_word() {
        for kind in FailureKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.word());
        }
        let passing: Vec<&str> =
            FailureKind::ALL.iter().filter(|kind| kind.passes()).map(|kind| kind.word()).collect();
        assert_eq!(passing, ["rate_limit", "timeout", "network", "outage"]);
    }
}
