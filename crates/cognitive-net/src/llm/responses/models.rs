//! The models of OpenAI that need the Responses API: those that it serves alone, and those that refuse tools beside
//! reasoning in chat completions.

/// The first version whose reasoning models accept no tools in chat completions.
const FIRST_VERSION: (u32, u32) = (5, 5);

/// Words in the names of models that only the Responses API serves.
const WORDS: [&str; 7] = ["pro", "codex", "research", "cyber", "daybreak", "rosalind", "computer"];

/// Returns whether a model needs the Responses API, by its name.
pub(super) fn needs_responses(model: &str) -> bool {
    // `ft:` precedes the name of the model that was fine-tuned, and a slash follows the name of a provider.
    let name = model.strip_prefix("ft:").unwrap_or(model).rsplit('/').next().unwrap_or_default();
    let name = name.split(':').next().unwrap_or_default();
    let mut words = name.split('-');
    words.clone().any(|word| WORDS.contains(&word))
        || (words.next() == Some("gpt")
            && words.next().and_then(version).is_some_and(|it| it >= FIRST_VERSION))
}

/// Parses the version in a name: `5`, `5.6`.
fn version(word: &str) -> Option<(u32, u32)> {
    // Azure's name for 3.5.
    if word == "35" {
        return None;
    }
    let (major, minor) = word.split_once('.').unwrap_or((word, "0"));
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_told_apart_by_version_and_words() {
        for model in [
            "gpt-5.5",
            "gpt-5.5-2026-04-23",
            "gpt-5.10-mini",
            "gpt-6-luna",
            "gpt-6.1-sol",
            "gpt-10",
            "o1-pro",
            "o3-pro-2025-06-10",
            "gpt-5-pro",
            "gpt-5.1-codex-max",
            "codex-mini-latest",
            "o4-mini-deep-research",
            "computer-use-preview",
            "gpt-daybreak-blue-latest",
            "gpt-rosalind-research",
            "ft:gpt-5.6-luna:acme::b1",
            "openai/gpt-5.6",
        ] {
            assert!(needs_responses(model), "{model}");
        }
        for model in [
            "gpt-5.4-mini",
            "gpt-5.4",
            "gpt-5",
            "gpt-5-mini",
            "gpt-4o",
            "gpt-4.1-nano",
            "gpt-3.5-turbo",
            "o3",
            "o4-mini",
            "gpt-audio-1.5",
            "gpt-oss-120b",
            "gpt-image-2.5",
            "chatgpt-4o-latest",
            "ft:gpt-4o-mini:pro::x",
            "my-deployment",
            "gpt-35-turbo",
            "",
        ] {
            assert!(!needs_responses(model), "{model}");
        }
    }
}
