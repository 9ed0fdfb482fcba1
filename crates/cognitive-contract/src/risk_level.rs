//! The four levels of risk, as a type. How the risk of an answer follows from its payload is in `risk`.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much harm acting on the answer could do. The order is the order of severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Risk {
    /// Nothing can go wrong.
    None,
    /// Local and easily undone.
    Low,
    /// Worth a look by a person.
    Medium,
    /// Needs a person.
    High,
}

impl Risk {
    /// The four words, in order of severity.
    pub const WORDS: [&'static str; 4] = ["none", "low", "medium", "high"];

    /// Reads one of the four words, exactly as written.
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

    /// The word that stands in envelopes.
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
