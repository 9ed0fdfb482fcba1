//! Why a model did not answer: what the runtime makes of it, and what a caller can route on. (D-16)
//! Knows no published code; the runtime gives one to each. The texts carry no keys and no prompt.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// Why a model did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProviderError {
    /// The service cannot be reached, or answers that it is broken.
    Unavailable(String),
    /// The service does not accept who we are, or does not know the model: the configuration is wrong.
    Misconfigured(String),
    /// The service does not take this request, and will not take it later.
    Rejected(String),
    /// Too many requests.
    RateLimited {
        /// How long the service asks to wait.
        retry_after: Option<Duration>,
    },
    /// No answer in time.
    Timeout,
    /// The answer broke off.
    Interrupted(String),
    /// The prompt does not fit the model.
    ContextOverflow(String),
    /// The model cannot be bound to what the module demands. Says which keyword it is and where it stands.
    Unsupported(String),
    /// The runtime let no further request leave, and knows why.
    Stopped,
    /// A fault of ours: no service had a hand in it.
    Unexpected(String),
}

impl ProviderError {
    /// The kind of failure, where the try itself does not say it more exactly; `None` for a fault of ours.
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
            Self::Interrupted(why) => write!(f, "the answer broke off: {why}"),
            Self::ContextOverflow(why) => write!(f, "the prompt does not fit the model: {why}"),
            Self::Unsupported(why) => write!(f, "the provider cannot keep this contract: {why}"),
            Self::Stopped => f.write_str("no further request is allowed"),
            Self::Unexpected(why) => write!(f, "unexpected failure: {why}"),
        }
    }
}

impl std::error::Error for ProviderError {}

/// What went wrong with a provider, in the words of `error.details.kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// It does not accept who we are.
    Auth,
    /// It does not know the model.
    ModelNotFound,
    /// The account is exhausted.
    Quota,
    /// Too many requests.
    RateLimit,
    /// It does not take the request.
    BadRequest,
    /// The model, or a guard before it, refuses.
    Refused,
    /// The prompt does not fit the model, or the answer does not fit the limit of tokens.
    TooLong,
    /// No answer in time.
    Timeout,
    /// There is no connection, or it was lost.
    Network,
    /// The service says that it is broken.
    Outage,
    /// What it sent is not what it should be.
    Malformed,
    /// The model cannot do what the module demands.
    Unsuitable,
}

impl FailureKind {
    /// All of them.
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

    /// The word for it.
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

    /// Whether the same call may work later, unless the try says otherwise.
    #[must_use]
    pub fn passes(self) -> bool {
        matches!(self, Self::RateLimit | Self::Timeout | Self::Network | Self::Outage)
    }
}

/// What is known of a try that failed, besides its outcome in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FailedTry {
    /// What went wrong.
    pub kind: FailureKind,
    /// Whether the same call may work later.
    #[serde(skip)]
    pub passes: bool,
    /// The status that an error within an answer names; it says more than the one of the answer.
    #[serde(skip)]
    pub status: Option<u16>,
    /// What the service says itself, short and without secrets.
    #[serde(skip)]
    pub said: Option<String>,
    /// What helps against this very failure, where its kind does not tell.
    #[serde(skip)]
    pub remedy: Option<String>,
}

impl FailedTry {
    /// A failure of a kind, of which nothing more is known.
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
