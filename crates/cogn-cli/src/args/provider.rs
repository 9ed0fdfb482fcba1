//! The options of the provider and the run, for every command that calls a model.

use cognitive_contract::{ErrorCode, Failure, RunSettings};
use cognitive_setup::settings::SettingOverrides;

use super::candidates;

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
            run: typed.run,
            no_pull: typed.no_pull,
        }
    }

    /// Refuses these options where the command asks no model; `with` names the flags with which it would. (D-27)
    pub fn refuse_without(&self, with: &str) -> Result<(), Failure> {
        let typed = self.overrides();
        if !typed.names_model() && !typed.no_pull && typed.run == RunSettings::default() {
            return Ok(());
        }
        let message = format!("options of models and runs have no effect without {with}");
        Err(Failure::new(ErrorCode::InvalidInput, message)
            .suggest(format!("Add {with}, or remove the options")))
    }
}
