//! Which weights of the embedded model are meant: by the flag, the environment, the files, in this order. Reads no environment
//! itself; whether a name was added is looked up in the user's cache.

use std::path::PathBuf;

use cognitive_contract::{ErrorCode, Failure};

use super::{EMBEDDED, Environment, ProviderChoice, SettingOverrides};
use crate::config::{Config, ModuleConfig};
use crate::env_vars;
use crate::weights::{KNOWN_WEIGHTS, WeightsChoice};

/// `embedded/qwen-0.5b` → `qwen-0.5b`, `embedded//path/x.gguf` → `/path/x.gguf`.
pub(crate) fn of_embedded(model: &str) -> Option<&str> {
    model.strip_prefix(EMBEDDED)?.strip_prefix('/')
}

/// The embedded model with the weights that were named: by the flag, the environment, the files. A name that it does not have
/// is an error if it was meant for it, as it is where it is `alone`: an answer of another model than the one asked for would be
/// worse than none.
pub(super) fn embedded(
    args: &SettingOverrides,
    config: &Config,
    of_module: &ModuleConfig,
    environment: Environment<'_>,
    alone: bool,
) -> Result<ProviderChoice, Failure> {
    let choice = |model: &str| WeightsChoice::named(of_embedded(model).unwrap_or(model), environment);
    let chosen = |weights| Ok(ProviderChoice::Embedded { weights });
    // The name beside another provider is that of another model.
    let beside = |provider: Option<&str>, model: Option<&String>| {
        let meant =
            |model: &&String| of_embedded(model).is_some() || provider.is_none_or(|name| name == EMBEDDED);
        model.filter(meant).cloned()
    };
    let by_environment =
        beside(environment(env_vars::PROVIDER).as_deref(), environment(env_vars::MODEL).as_ref());
    let by_config = beside(of_module.provider.as_deref(), of_module.model.as_ref())
        .or_else(|| beside(config.provider.as_deref(), config.model.as_ref()));
    let first = args.model.clone().or_else(|| by_environment.clone()).or_else(|| by_config.clone());
    if let Some(model) = first.filter(|model| choice(model).is_none())
        && (alone || args.model.is_some() || of_embedded(&model).is_some())
    {
        return Err(no_such_model(of_embedded(&model).unwrap_or(&model)));
    }
    let typed = args.model.as_deref().and_then(choice);
    let named = typed.or_else(|| by_environment.as_deref().and_then(choice));
    let file = || environment(env_vars::WEIGHTS).map(|file| WeightsChoice::File(PathBuf::from(file)));
    if let Some(weights) = named.or_else(file).or_else(|| by_config.as_deref().and_then(choice)) {
        return chosen(weights);
    }
    let Some(usual) = &config.default_model else { return chosen(WeightsChoice::Usual) };
    choice(usual).map_or_else(
        || {
            let message = format!("`default_model` names no embedded model: `{usual}`");
            Err(Failure::misconfigured(message).suggest(format!("Use one of: {}", embedded_names())))
        },
        chosen,
    )
}

fn no_such_model(name: &str) -> Failure {
    let message = format!("no configured provider has the model: `{name}`");
    Failure::new(ErrorCode::ProviderUnavailable, message).suggest(format!(
        "Set `OPENAI_API_KEY`, `ANTHROPIC_API_KEY` or `GEMINI_API_KEY`, or name the provider with `--provider`; the \
         embedded models are: {}",
        embedded_names()
    ))
}

/// The names of embedded models, for a hint.
fn embedded_names() -> String {
    let names: Vec<String> = KNOWN_WEIGHTS.iter().map(|known| format!("`{}`", known.short())).collect();
    format!("{}, those of `cogn model list`, or a file that ends in `.gguf`", names.join(", "))
}
