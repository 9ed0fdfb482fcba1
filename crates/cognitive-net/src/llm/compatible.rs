//! Where the services that speak OpenAI's chat completions differ from each other. Only what their documentation or
//! their error messages say; everything else is found out by asking (see `terms`).

use cognitive_contract::media::Category;
use cognitive_schema::SchemaTarget;

use crate::kind::Kind;
use crate::llm::media;
use crate::llm::openai::{Dialect, EVERYTHING, OPENAI};
use crate::llm::terms::{Bind, Extra};
use crate::llm::thinking::ThinkingWords;

/// The dialect of a kind; `None` for those that speak something else.
pub(crate) fn dialect(kind: Kind) -> Option<Dialect> {
    match kind {
        Kind::Anthropic | Kind::Gemini | Kind::Ollama => None,
        Kind::OpenAi => Some(OPENAI),
        // JSON mode only: a schema is answered with 400, or is taken and ignored.
        Kind::DeepSeek => Some(Dialect {
            ladder: NO_SCHEMA,
            sees: &[],
            thinking: ThinkingWords::SwitchAndEffort,
            ..DEFAULT_DIALECT
        }),
        Kind::Qwen => Some(Dialect {
            ladder: NO_SCHEMA,
            largest_image: TEN,
            thinking: ThinkingWords::Budget,
            ..DEFAULT_DIALECT
        }),
        Kind::Moonshot => {
            Some(Dialect { ladder: NO_SCHEMA, thinking: ThinkingWords::Switch, ..DEFAULT_DIALECT })
        }
        // Documents no `response_format` at all, and mixes thoughts into the text unless told to keep them apart.
        Kind::MiniMax => Some(Dialect {
            ladder: ONLY_PROMPT,
            switches: &["reasoning_split"],
            thinking: ThinkingWords::Nothing,
            ..DEFAULT_DIALECT
        }),
        // Refuses members that it does not know, counts tokens without being asked, and has its own word for the seed.
        Kind::Mistral => Some(Dialect {
            without: &[Extra::StreamUsage, Extra::ThinkingBudget],
            seed: "random_seed",
            thinking: ThinkingWords::FullEffort,
            largest_image: TEN,
            ..DEFAULT_DIALECT
        }),
        // Knows schemas, but no JSON mode.
        Kind::LmStudio => Some(Dialect { ladder: NO_JSON_MODE, alone: GRAMMARS, ..DEFAULT_DIALECT }),
        // Its grammars, which Ollama uses too, tell a success from a failure and know lengths. OpenAI's words do neither,
        // and a small model then writes an `error` into a success.
        Kind::LlamaCpp => {
            // Blind unless it was started with a projector, which only its owner knows.
            Some(Dialect {
                target: SchemaTarget::Ollama,
                alone: GRAMMARS,
                sees: &[],
                thinking: ThinkingWords::Template("thinking_budget_tokens"),
                ..DEFAULT_DIALECT
            })
        }
        // The last of them may be any server, also one with grammars.
        Kind::Vllm => Some(Dialect {
            alone: GRAMMARS,
            sees: EYES_AND_EARS,
            thinking: ThinkingWords::Template("thinking_token_budget"),
            ..DEFAULT_DIALECT
        }),
        Kind::Compatible => Some(Dialect { alone: GRAMMARS, ..DEFAULT_DIALECT }),
        Kind::Groq => Some(Dialect { largest_image: FOUR, ..DEFAULT_DIALECT }),
        Kind::OpenRouter => {
            Some(Dialect { sees: ALL_BUT_VIDEO, thinking: ThinkingWords::Reasoning, ..DEFAULT_DIALECT })
        }
    }
}

/// What most of them take. The limit of tokens has its old name: all of them know it, few know the new one.
const DEFAULT_DIALECT: Dialect = Dialect {
    target: SchemaTarget::OpenAi,
    ladder: EVERYTHING,
    without: &[Extra::ThinkingBudget],
    seed: "seed",
    thinking: ThinkingWords::Effort,
    switches: &[],
    alone: &[],
    sees: EYES,
    images: media::IMAGES,
    largest_image: 20 << 20,
};

const EYES: &[Category] = &[Category::Image];
const EYES_AND_EARS: &[Category] = &[Category::Image, Category::Audio];
const ALL_BUT_VIDEO: &[Category] = &[Category::Image, Category::Audio, Category::Document];
/// Ten megabytes per image, counted as base64.
const TEN: u64 = media::bytes_in(10_000_000);
/// A whole request with images may have four megabytes.
const FOUR: u64 = media::bytes_in(3_900_000);

/// A grammar that lets only answers through lets no call of a tool through, and the server does not say so.
const GRAMMARS: &[Bind] = &[Bind::Schema, Bind::Json];

const NO_SCHEMA: &[Bind] = &[Bind::Json, Bind::Prompt];
const NO_JSON_MODE: &[Bind] = &[Bind::Schema, Bind::Prompt];
const ONLY_PROMPT: &[Bind] = &[Bind::Prompt];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ladder_ends_at_the_prompt_and_only_goes_down() {
        for dialect in Kind::all().filter_map(dialect) {
            assert_eq!(dialect.ladder.last(), Some(&Bind::Prompt));
            assert!(dialect.ladder.is_sorted());
        }
    }
}
