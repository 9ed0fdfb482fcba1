//! The options of the provider and the run, for every command that calls a model.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use cognitive_contract::{ErrorCode, Failure, RunSettings};
use cognitive_ports::openai_api::OpenAiApi;
use cognitive_setup::settings::SettingOverrides;

use super::candidates;

/// Parses the name of an API.
fn api() -> impl TypedValueParser<Value = OpenAiApi> {
    let names = OpenAiApi::ALL.map(OpenAiApi::name);
    PossibleValuesParser::new(names)
        .try_map(|name| OpenAiApi::parse(&name).ok_or_else(|| format!("no such API: {name}")))
}

/// The options of the provider and the run.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Model")]
pub struct ProviderArgs {
    /// The provider: embedded, openai, anthropic, gemini, ollama, a compatible service, or replay
    #[arg(long, short, value_name = "NAME", add = candidates::providers())]
    pub provider: Option<String>,
    /// The model; for the embedded provider a name such as `qwen-0.5b` or a GGUF file, also as `embedded/qwen-0.5b`
    #[arg(long, short, value_name = "MODEL")]
    pub model: Option<String>,
    /// Base URL of the service, such as that of your own server
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// The API of the service: chat or responses; OpenAI's models from GPT-5.5 on get responses
    #[arg(long, value_name = "API", value_parser = api())]
    pub api: Option<OpenAiApi>,
    #[command(flatten)]
    pub run: RunSettings,
    /// Do not download weights of the embedded model, as with `COGN_OFFLINE=1`
    #[arg(long)]
    pub no_pull: bool,
}

impl ProviderArgs {
    /// The options as settings, which override environment and configuration.
    #[must_use]
    pub fn overrides(&self) -> SettingOverrides {
        let typed = self.clone();
        SettingOverrides {
            provider: typed.provider,
            model: typed.model,
            base_url: typed.base_url,
            api: typed.api,
            run: typed.run,
            no_pull: typed.no_pull,
        }
    }

    /// Refuses these options where the command asks no model; `with` names the flags with which it would. (D-27)
    pub fn refuse_without(&self, with: &str) -> Result<(), Failure> {
        let typed = self.overrides();
        if !typed.names_model()
            && typed.api.is_none()
            && !typed.no_pull
            && typed.run == RunSettings::default()
        {
            return Ok(());
        }
        let message = format!("options of models and runs have no effect without {with}");
        Err(Failure::new(ErrorCode::InvalidInput, message)
            .suggest(format!("Add {with}, or remove the options")))
    }
}
