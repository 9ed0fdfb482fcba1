//! The differences between services with OpenAI's chat completions API. Covers only documented differences and those
//! visible in error messages; all others are found at run time (see `terms`).

use cognitive_contract::media::Category;
use cognitive_schema::SchemaTarget;

use crate::kind::Kind;
use crate::llm::media;
use crate::llm::openai::{ChatDialect, EVERYTHING, OPENAI};
use crate::llm::terms::{Bind, OptionalFeature};
use crate::llm::thinking::ThinkingWords;

/// Returns the dialect of a kind; `None` for kinds with another API.
pub(crate) fn dialect(kind: Kind) -> Option<ChatDialect> {
    match kind {
        Kind::Anthropic | Kind::Gemini | Kind::Ollama => None,
        Kind::OpenAi => Some(OPENAI),
        // JSON mode only: a schema is answered with 400, or accepted and ignored.
        Kind::DeepSeek => Some(ChatDialect {
            ladder: NO_SCHEMA,
            sees: &[],
            thinking: ThinkingWords::SwitchAndEffort,
            ..DEFAULT_DIALECT
        }),
        Kind::Qwen => Some(ChatDialect {
            ladder: NO_SCHEMA,
            largest_image: TEN,
            thinking: ThinkingWords::Budget,
            ..DEFAULT_DIALECT
        }),
        Kind::Moonshot => {
            Some(ChatDialect { ladder: NO_SCHEMA, thinking: ThinkingWords::Switch, ..DEFAULT_DIALECT })
        }
        // Documents no `response_format`, and mixes thoughts into the text unless `reasoning_split` is set.
        Kind::MiniMax => Some(ChatDialect {
            ladder: ONLY_PROMPT,
            switches: &["reasoning_split"],
            thinking: ThinkingWords::Nothing,
            ..DEFAULT_DIALECT
        }),
        // Refuses unknown members, reports token counts without a request for them, and uses another name for the
        // seed.
        Kind::Mistral => Some(ChatDialect {
            without: &[OptionalFeature::StreamUsage, OptionalFeature::ThinkingBudget],
            seed: "random_seed",
            thinking: ThinkingWords::FullEffort,
            largest_image: TEN,
            ..DEFAULT_DIALECT
        }),
        // Supports schemas, but no JSON mode.
        Kind::LmStudio => Some(ChatDialect { ladder: NO_JSON_MODE, alone: GRAMMARS, ..DEFAULT_DIALECT }),
        // Its grammars, which Ollama uses too, express lengths and the difference between a success and an error. The
        // OpenAI schema dialect expresses neither, and small models then write an `error` into a success.
        Kind::LlamaCpp => {
            // No vision unless the server was started with a projector, which only its operator knows.
            Some(ChatDialect {
                target: SchemaTarget::Ollama,
                alone: GRAMMARS,
                sees: &[],
                thinking: ThinkingWords::Template("thinking_budget_tokens"),
                ..DEFAULT_DIALECT
            })
        }
        // Both vLLM and an unknown compatible server may use grammars.
        Kind::Vllm => Some(ChatDialect {
            alone: GRAMMARS,
            sees: EYES_AND_EARS,
            thinking: ThinkingWords::Template("thinking_token_budget"),
            ..DEFAULT_DIALECT
        }),
        Kind::Compatible => Some(ChatDialect { alone: GRAMMARS, ..DEFAULT_DIALECT }),
        Kind::Groq => Some(ChatDialect { largest_image: FOUR, ..DEFAULT_DIALECT }),
        Kind::OpenRouter => {
            Some(ChatDialect { sees: ALL_BUT_VIDEO, thinking: ThinkingWords::Reasoning, ..DEFAULT_DIALECT })
        }
    }
}

/// The features of most services. The token limit uses its old name: all services know it, few know the new one.
const DEFAULT_DIALECT: ChatDialect = ChatDialect {
    target: SchemaTarget::OpenAi,
    ladder: EVERYTHING,
    without: &[OptionalFeature::ThinkingBudget],
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
/// Four megabytes are the limit for a whole request with images.
const FOUR: u64 = media::bytes_in(3_900_000);

/// A grammar that permits only answers also blocks tool calls, and the server does not report this.
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
