//! What can be typed about the provider and the run, for every command that asks a model.

use cogn::settings::SettingOverrides;
use cognitive_contract::money::Money;
use cognitive_contract::thinking::MAX_THINKING_TOKENS;

use super::candidates;

/// What can be typed about the provider and the run.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Model")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct ProviderArgs {
    /// The provider: embedded, openai, anthropic, gemini, ollama, a compatible service, or replay
    #[arg(long, short, value_name = "NAME", add = candidates::providers())]
    pub provider: Option<String>,
    /// The model; for the embedded provider a name such as `qwen-0.5b` or a GGUF file, also as `embedded/qwen-0.5b`
    #[arg(long, short, value_name = "MODEL")]
    pub model: Option<String>,
    /// The address of the service, for example of a server of your own
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// Timeout of each model call, in seconds
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<u64>,
    /// Ask again up to N times after an answer that breaks the contract; each costs another call
    #[arg(long, value_name = "N")]
    pub reask: Option<u32>,
    /// Maximum number of model calls of a run, its parts, retries and tools included (64)
    #[arg(long, value_name = "N")]
    pub max_calls: Option<u64>,
    /// Begin only if the run, with its parts and repetitions, cannot cost more than this, in US dollars
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub max_cost: Option<Money>,
    /// Seed of the model, where the provider supports one
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// Maximum length of the answer, in tokens
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<u64>,
    /// Let the model think up to N tokens before it answers, where it can; 0 is not at all
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_THINKING_TOKENS)))]
    pub thinking: Option<u32>,
    /// Put the receipt of the run into meta.provenance
    #[arg(long)]
    pub receipt: bool,
    /// Accept only valid JSON from the model, as tier exec always does
    #[arg(long)]
    pub strict_parse: bool,
    /// Stop a call whose answer cannot become valid any more; a failure then holds only what was complete
    #[arg(long)]
    pub early_stop: bool,
    /// Do not fetch the weights of the embedded model, as `COGN_OFFLINE=1` does
    #[arg(long)]
    pub no_pull: bool,
}

impl ProviderArgs {
    /// What was typed, as settings that stand above environment and configuration.
    #[must_use]
    pub fn overrides(&self) -> SettingOverrides {
        let typed = self.clone();
        SettingOverrides {
            provider: typed.provider,
            model: typed.model,
            base_url: typed.base_url,
            timeout: typed.timeout,
            reask: typed.reask,
            max_calls: typed.max_calls,
            max_cost: typed.max_cost,
            seed: typed.seed,
            max_tokens: typed.max_tokens,
            thinking: typed.thinking,
            receipt: typed.receipt,
            strict_parse: typed.strict_parse,
            early_stop: typed.early_stop,
            no_pull: typed.no_pull,
        }
    }
}

/// An amount of money, such as `0.05`.
fn dollars(text: &str) -> Result<Money, String> {
    Money::parse(text.trim_start_matches('$'))
        .ok_or_else(|| "expected an amount in dollars, such as 0.05".to_owned())
}
