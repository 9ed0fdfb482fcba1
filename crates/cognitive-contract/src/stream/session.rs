//! The session id of a stream, and the data that a client needs to resume it.
//! Generates no random numbers and no hashes: callers pass both in.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const PREFIX: &str = "sess_";
/// Long enough for our ids, and short enough for a header.
const MAX_LENGTH: usize = 128;

/// The id of one stream. Invariant: `sess_` and then 1 to 123 of the characters `A–Z a–z 0–9 _ -`. It needs no
/// escaping in a header, an SSE `id:` line or a log.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline, description = "The id of the stream")]
pub struct SessionId(String);

impl SessionId {
    /// Validates a session id.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(PREFIX)?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        (!rest.is_empty() && text.len() <= MAX_LENGTH && rest.bytes().all(plain))
            .then(|| Self(text.to_owned()))
    }

    /// Creates an id from 128 random bits. They must come from a cryptographic source, because a client that guesses
    /// the id of a stream can resume it.
    #[must_use]
    pub fn from_random(bits: u128) -> Self {
        Self(format!("{PREFIX}{bits:032x}"))
    }

    /// Returns the text that is sent on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The state of one field after a delta.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checkpoint {
    /// Bytes of the field's text so far, this delta included.
    pub offset: u64,
    /// The first 6 hex digits of the SHA-256 of that text.
    #[schemars(regex(pattern = r"^[0-9a-f]{6}$"))]
    pub hash: String,
}

/// Instructions to resume an interrupted stream: the `error.recovery` member of an error chunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Recovery {
    /// The number of the last delta or snapshot that was sent; 0 if none was.
    pub last_seq: u64,
    /// The checkpoint of that delta.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_checkpoint: Option<Checkpoint>,
    /// The delay before the next attempt.
    pub retry_after_ms: u64,
    /// The maximum number of attempts.
    pub max_retries: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_002_ids_have_the_prefix_and_nothing_that_needs_escaping() {
        assert_eq!(SessionId::new("sess_abc-1_2").unwrap().as_str(), "sess_abc-1_2");
        let long = format!("sess_{}", "a".repeat(124));
        for text in ["", "abc", "sess_", "sess_a b", "sess_a\n", "sess_é", "sess_a:1", &long] {
            assert!(SessionId::new(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn stream_002_all_128_bits_reach_the_id() {
        let id = SessionId::from_random(1);
        assert_eq!(id.to_string(), "sess_00000000000000000000000000000001");
        assert_eq!(SessionId::new(id.as_str()), Some(id.clone()));
        assert_ne!(SessionId::from_random(1 << 127), SessionId::from_random(0));
    }
}
