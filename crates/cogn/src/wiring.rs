//! Joins the parts: reads the environment and builds what commands need from it.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cognitive_contract::ports::{AuditLog, Provider};
use cognitive_contract::{ErrorCode, Failure};
use cognitive_library::Library;
use cognitive_net::{ProviderConfig, Secret};
use cognitive_store::Store;

use crate::config::Config;
use crate::env_vars;
use crate::settings::{Choice, Settings};

/// A variable of the environment; an empty one is none.
pub(crate) fn environment(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.trim().is_empty())
}

fn home() -> Option<PathBuf> {
    env::var_os(env_vars::HOME).map(PathBuf::from).filter(|home| !home.as_os_str().is_empty())
}

/// The places where modules are looked for, given this process's directory and environment.
pub(crate) fn library() -> Library {
    let extra: Vec<PathBuf> = env::var_os(env_vars::MODULES_PATH)
        .map(|paths| env::split_paths(&paths).filter(|path| !path.as_os_str().is_empty()).collect())
        .unwrap_or_default();
    Library::new(Path::new("."), home().as_deref(), &extra)
}

/// The configuration files of the project and the user.
pub(crate) fn config() -> Result<Config, Failure> {
    Config::read(Path::new("."), home().as_deref()).map_err(|reason| {
        Failure::new(ErrorCode::InvalidInput, format!("the configuration cannot be used: {reason}"))
            .suggest("Correct the file; `cogn doctor` shows what is read")
    })
}

/// The provider that was decided on. A saved reply is not for here: the command has it.
pub(crate) fn provider(settings: &Settings) -> Result<Arc<dyn Provider>, Failure> {
    let Choice::Service { kind, model, base_url } = &settings.provider else {
        return Err(nobody());
    };
    let key = kind.key_variable().and_then(environment).and_then(Secret::new);
    if key.is_none() && kind.needs_key() && base_url.is_none() {
        let variable = kind.key_variable().unwrap_or_default();
        let message = format!("provider `{}` has no key", kind.name());
        return Err(Failure::new(ErrorCode::ProviderUnavailable, message)
            .suggest(format!("Set `{variable}`, or choose another provider with `--provider`")));
    }
    let mut config = ProviderConfig::new(*kind).with_key(key);
    config.model.clone_from(model);
    config.base_url.clone_from(base_url);
    cognitive_net::provider(config).map_err(|error| {
        Failure::new(ErrorCode::ProviderUnavailable, error.to_string()).suggest("See `cogn doctor`")
    })
}

fn nobody() -> Failure {
    Failure::new(ErrorCode::ProviderUnavailable, "no provider is configured").suggest(
        "Set `OPENAI_API_KEY`, `ANTHROPIC_API_KEY` or `GEMINI_API_KEY`, run Ollama and use `--provider ollama`, or \
         replay a saved reply with `--provider replay --reply FILE`",
    )
}

/// The books; the error says why there are none.
pub(crate) fn audit(settings: &Settings) -> Result<Option<Arc<dyn AuditLog>>, String> {
    let Some(path) = &settings.store else { return Ok(None) };
    let store = Store::open(path).map_err(|error| error.to_string())?;
    Ok(Some(Arc::new(store)))
}
