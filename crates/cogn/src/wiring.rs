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
use crate::embedded::{self, Use};
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
pub(crate) fn provider(settings: &Settings, wanted: Use) -> Result<Arc<dyn Provider>, Failure> {
    let (kind, model, base_url) = match &settings.provider {
        Choice::Service { kind, model, base_url } => (kind, model, base_url),
        Choice::Embedded { file } => {
            return embedded::provider(file.as_deref(), settings.offline, &environment, wanted);
        }
        Choice::Replay => return Err(no_reply()),
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

/// Nothing was saved to be replayed.
pub(crate) fn no_reply() -> Failure {
    Failure::new(ErrorCode::ProviderUnavailable, "there is no reply to replay")
        .suggest("Name the file with `cogn run MODULE --reply FILE`")
}

/// Whether the provider would have to fetch weights first.
pub(crate) fn must_fetch(settings: &Settings) -> bool {
    let Choice::Embedded { file } = &settings.provider else { return false };
    embedded::IN_THIS_BUILD && embedded::at_hand(file.as_deref(), &environment).is_none()
}

/// The books; the error says why there are none.
pub(crate) fn audit(settings: &Settings) -> Result<Option<Arc<dyn AuditLog>>, String> {
    let Some(path) = &settings.store else { return Ok(None) };
    let store = Store::open(path).map_err(|error| error.to_string())?;
    Ok(Some(Arc::new(store)))
}
