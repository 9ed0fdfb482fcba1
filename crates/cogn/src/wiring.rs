//! Joins the parts: reads the environment and builds what commands need from it.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once, OnceLock};
use std::time::Duration;

use cognitive_contract::ports::{AuditLog, ContextStore, FailureKind, Provider};
use cognitive_contract::{Capabilities, ErrorCode, Failure};
use cognitive_library::Library;
use cognitive_net::{Kind, ProviderConfig, Secret};
use cognitive_store::{Options, Retention, Store};
use serde_json::json;

use crate::config::{Config, KeepConfig};
use crate::embedded::{self, Fetching, Use};
use crate::env_vars;
use crate::layers::{Layers, ProjectFile, Vouching};
use crate::printer::Printer;
use crate::settings::{self, Choice, Settings};

/// A variable of the environment; an empty one is none.
pub(crate) fn environment(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.trim().is_empty())
}

pub(crate) fn home() -> Option<PathBuf> {
    env::var_os(env_vars::HOME).map(PathBuf::from).filter(|home| !home.as_os_str().is_empty())
}

/// The places where modules are looked for, given this process's directory and environment.
pub(crate) fn library() -> Library {
    let extra: Vec<PathBuf> = env::var_os(env_vars::MODULES_PATH)
        .map(|paths| env::split_paths(&paths).filter(|path| !path.as_os_str().is_empty()).collect())
        .unwrap_or_default();
    Library::new(Path::new("."), home().as_deref(), &extra)
}

/// What was typed for `--trust-project`. It is said once, before any command begins, and holds for all of them.
static VOUCHED: OnceLock<String> = OnceLock::new();

/// Takes note of what was typed for `--trust-project`.
pub(crate) fn vouch(typed: Option<String>) {
    if let Some(typed) = typed {
        // Nobody says it twice: there is one command line.
        let _ = VOUCHED.set(typed);
    }
}

/// The configuration files of the project and the user, and whether the first is trusted.
pub(crate) fn layers() -> Result<Layers, Failure> {
    let vouching = Vouching { flag: VOUCHED.get().cloned(), variable: environment(env_vars::TRUST_PROJECT) };
    Layers::read(Path::new("."), home().as_deref(), &vouching).map_err(|reason| {
        Failure::misconfigured(format!("the configuration cannot be used: {reason}"))
            .suggest("Correct the file; `cogn doctor` shows what is read")
    })
}

/// What the configuration files say. What of it does not count is said on stderr, once.
pub(crate) fn config() -> Result<Config, Failure> {
    static SAID: Once = Once::new();
    let layers = layers()?;
    if let Some(notice) = layers.project.as_ref().and_then(notice) {
        SAID.call_once(|| Printer.warning(&notice));
    }
    Ok(layers.config())
}

/// Which settings of a project's file do not count. An address is not among them: a run that would use it fails.
fn notice(project: &ProjectFile) -> Option<String> {
    let held: Vec<String> = project
        .held_back()
        .iter()
        .filter(|held| held.setting != "base_url")
        .map(|held| format!("`{}`", held.setting))
        .collect();
    let (file, standing) = (project.path.display(), project.standing.words());
    (!held.is_empty()).then(|| {
        format!(
            "`{file}` is {standing}; these settings of it do not count: {} (`cogn trust` shows and trusts them)",
            held.join(", ")
        )
    })
}

/// The provider that was decided on. A saved reply is not for here: the command has it.
pub(crate) fn provider(settings: &Settings, wanted: Use) -> Result<Arc<dyn Provider>, Failure> {
    let (kind, model, base_url) = match &settings.provider {
        Choice::Service { kind, model, base_url } => (kind, model, base_url),
        Choice::Embedded { file } => {
            let fetching = Fetching { forbidden: settings.offline, patience: settings.patience };
            return embedded::provider(file.as_deref(), fetching, &environment, wanted);
        }
        Choice::Replay => return Err(no_reply()),
    };
    if let Some(refused) = &settings.refused_address {
        return Err(refused.clone());
    }
    let key = kind.key_variable().and_then(environment).and_then(Secret::new);
    if key.is_none() && kind.needs_key() && base_url.is_none() {
        let variable = kind.key_variable().unwrap_or_default();
        let message = format!("provider `{}` has no key", kind.name());
        return Err(unusable(*kind, FailureKind::Auth, message)
            .suggest(format!("Set `{variable}`, or choose another provider with `--provider`")));
    }
    let mut config = ProviderConfig::new(*kind).with_key(key);
    config.model.clone_from(model);
    config.base_url.clone_from(base_url);
    config.plain_http = settings.plain_http;
    let is_unprotected = cognitive_net::is_unprotected(&config);
    let hint = if is_unprotected { unprotected_hint() } else { "See `cogn doctor`".to_owned() };
    cognitive_net::provider(config)
        .map_err(|error| unusable(*kind, FailureKind::BadRequest, error.to_string()).suggest(hint))
}

/// What to do about a key that would go over `http://` to another machine.
fn unprotected_hint() -> String {
    format!(
        "Use an `https://` address, or leave the key unset if the service needs none; on a network that only you use, set \
         `{}=1`",
        env_vars::PLAIN_HTTP
    )
}

/// A provider that is not set up as it has to be. (D-16)
fn unusable(kind: Kind, failure: FailureKind, message: String) -> Failure {
    Failure::new(ErrorCode::ProviderUnavailable, message)
        .with_detail("provider", json!(kind.name()))
        .with_detail("kind", json!(failure.word()))
        .with_recoverable(false)
}

/// What is left of what this runtime can do with the provider that was decided on. It is not asked: a key, a model or an
/// address that is missing changes nothing of what its service documents.
pub(crate) fn limited_by_provider(settings: &Settings, capabilities: Capabilities) -> Capabilities {
    let (kind, model, base_url) = match &settings.provider {
        Choice::Service { kind, model, base_url } => (kind, model, base_url),
        Choice::Embedded { .. } => return capabilities.with_provider(|_| false, |_| false),
        Choice::Replay => return capabilities,
    };
    let model = model.as_deref().or_else(|| kind.default_model()).unwrap_or("unknown");
    let mut config =
        ProviderConfig::new(*kind).with_model(model).with_key(Secret::new("none")).with_plain_http();
    config.base_url = base_url.clone().or_else(|| {
        // Nobody is called there.
        kind.default_base_url().is_none().then(|| "http://localhost".to_owned())
    });
    match cognitive_net::provider(config) {
        Ok(provider) => capabilities.with_provider(
            |category| provider.takes(category).is_some(),
            |category| provider.gives(category),
        ),
        Err(_) => capabilities.with_provider(|_| false, |_| false),
    }
}

/// The model that a service is asked for, if that is known.
pub(crate) fn model(settings: &Settings) -> Option<&str> {
    let Choice::Service { kind, model, .. } = &settings.provider else { return None };
    model.as_deref().or_else(|| kind.default_model())
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

/// Audit and context, which are one file; the error says why there is neither. Where the audit is switched off, the
/// file is created only for somebody who has said who he is.
pub(crate) fn memory(settings: &Settings, named: bool) -> Result<Kept, String> {
    let Some(path) = &settings.database else {
        return if settings.audit_enabled { Err(no_place()) } else { Ok(Kept::default()) };
    };
    let options = Options { retention: retention(settings.audit_keep), ..Options::default() };
    let opened = if named || settings.store.is_some() {
        Store::open_with(path, options).map(Some)
    } else {
        Store::open_existing(path)
    };
    let store = opened.map_err(|error| error.to_string())?.map(Arc::new);
    let audit = store.clone().filter(|_| settings.store.is_some());
    Ok(Kept {
        audit: audit.map(|store| store as Arc<dyn AuditLog>),
        context: store.map(|store| store as Arc<dyn ContextStore>),
    })
}

/// Why there is no store where nobody says where it is.
pub(crate) fn no_place() -> String {
    format!("there is no place for it: neither `{}` nor `{}` is set", env_vars::HOME, env_vars::DATABASE)
}

/// What the configuration says about how much is kept, with what it does not say.
fn retention(keep: KeepConfig) -> Retention {
    let usual = Retention::default();
    let bytes = |mb: Option<u64>, usual: u64| mb.map_or(usual, |mb| mb.saturating_mul(1 << 20));
    Retention {
        records: keep.records.unwrap_or(usual.records),
        bytes: bytes(keep.mb, usual.bytes),
        payload_bytes: bytes(keep.payload_mb, usual.payload_bytes),
        age: keep.days.map(|days| Duration::from_secs(days.saturating_mul(86_400))),
    }
}

/// The context that is kept, for somebody who only looks. A store that cannot be read is like none.
pub(crate) fn kept_context() -> Result<Option<Arc<dyn ContextStore>>, Failure> {
    let path = settings::database(&config()?, &environment);
    let store = path.and_then(|path| Store::open_existing(&path).ok().flatten());
    Ok(store.map(|store| Arc::new(store) as Arc<dyn ContextStore>))
}

/// What outlasts a run.
#[derive(Default)]
pub(crate) struct Kept {
    /// The audit.
    pub(crate) audit: Option<Arc<dyn AuditLog>>,
    /// Context.
    pub(crate) context: Option<Arc<dyn ContextStore>>,
}
