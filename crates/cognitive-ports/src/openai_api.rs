//! The two APIs of OpenAI's models, of which compatible services have one or both. Chooses neither: `cognitive-net` knows
//! which models need which.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An API of OpenAI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OpenAiApi {
    /// Chat completions, at `/chat/completions`.
    Chat,
    /// The Responses API, at `/responses`.
    Responses,
}

impl OpenAiApi {
    /// All APIs.
    pub const ALL: [Self; 2] = [Self::Chat, Self::Responses];

    /// Returns the API with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|api| api.name() == name)
    }

    /// Returns the name in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
        }
    }

    /// Returns the end of the path of a call.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            Self::Chat => "/chat/completions",
            Self::Responses => "/responses",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_settings() {
        for api in OpenAiApi::ALL {
            assert_eq!(OpenAiApi::parse(api.name()), Some(api));
            assert_eq!(serde_json::to_value(api).unwrap(), api.name());
        }
        assert_eq!(OpenAiApi::parse("Responses "), None);
    }
}
