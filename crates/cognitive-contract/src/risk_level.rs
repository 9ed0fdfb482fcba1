//! The four risk levels, as a type. The module `risk` derives the level of an answer from its payload.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The harm that acting on the answer could do. The order is the order of severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Risk {
    /// No harm is possible.
    None,
    /// Local and easily undone.
    Low,
    /// Worth a human review.
    Medium,
    /// Requires a human review.
    High,
}

impl Risk {
    /// The four words, in order of severity.
    pub const WORDS: [&'static str; 4] = ["none", "low", "medium", "high"];

    /// Parses one of the four words, exactly as written.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "none" => Some(Self::None),
            "low" => Some(Self::Low),
            "medium" => Some(Self::Medium),
            "high" => Some(Self::High),
            _ => None,
        }
    }

    /// Returns the word that is used in envelopes.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
