//! Reads the environment and builds the parts that commands need.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(feature = "net")]
use cognitive_contract::ports::FailureKind;
use cognitive_contract::ports::ModuleSource;
use cognitive_contract::ports::Provider;
use cognitive_contract::{Capabilities, ErrorCode, Failure};
use cognitive_library::Library;
#[cfg(feature = "net")]
use cognitive_net::{ProviderConfig, Secret};
#[cfg(feature = "net")]
use cognitive_ports::batch_service::BatchService;
use cognitive_runtime::{Host, Ladder, ModelChain, ModuleSettings, Reviewing, Unavailable};
#[cfg(feature = "net")]
use serde_json::json;

use crate::embedded_model::{self, EmbeddedUse, WeightsFetch};
use crate::env_vars;
use crate::layers::{Layers, Vouching};
use crate::media::{self, MediaAccess};
use crate::prices;
use crate::project_root;
#[cfg(feature = "net")]
use crate::services::Kind;
use crate::settings::{Environment, ProviderChoice, RungChoice, ServiceChoice, Settings};
use crate::stores::{self, Stores};
use crate::timer::TokioTimer;

/// Returns an environment variable. An empty variable counts as unset.
#[must_use]
pub fn environment(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// Returns the home directory of this user.
#[must_use]
pub fn home() -> Option<PathBuf> {
    env::var_os(env_vars::HOME).map(PathBuf::from).filter(|home| !home.as_os_str().is_empty())
}

/// Returns the places to search for modules, for the directory and environment of this process.
#[must_use]
pub fn library() -> Library {
    let extra: Vec<PathBuf> = env::var_os(env_vars::MODULES_PATH)
        .map(|paths| env::split_paths(&paths).filter(|path| !path.as_os_str().is_empty()).collect())
        .unwrap_or_default();
    Library::new(&project_root(), home().as_deref(), &extra)
}

/// Returns the folder of the project that this process runs in.
#[must_use]
pub fn project_root() -> PathBuf {
    project_root::find(Path::new("."), home().as_deref())
}

/// Reads the configuration files of the project and the user. Trust in the first one comes from the record, the
/// environment or the caller, who passes `1`, the sha256 of the file or the path of a replacement.
pub fn layers(trust_project: Option<&str>, named: Option<&Path>) -> Result<Layers, Failure> {
    let vouching = trust_options(trust_project, named);
    let (layers, problems) = Layers::read(&project_root(), home().as_deref(), &vouching, &environment);
    match problems.first() {
        None => Ok(layers),
        Some(reason) => Err(Failure::config_fault(format!("invalid configuration: {reason}"))
            .suggest("Correct the file; `cogn doctor` shows the settings in effect")),
    }
}

/// Reads the usable configuration files and returns the reason for each one that is unusable.
#[must_use]
pub fn usable_layers(trust_project: Option<&str>, named: Option<&Path>) -> (Layers, Vec<String>) {
    Layers::read(&project_root(), home().as_deref(), &trust_options(trust_project, named), &environment)
}

fn trust_options(trust_project: Option<&str>, named: Option<&Path>) -> Vouching {
    Vouching {
        flag: trust_project.map(str::to_owned),
        variable: environment(env_vars::TRUST_PROJECT),
        named: named.map(Path::to_owned),
    }
}

/// Builds the resolved provider. Saved replies are excluded, because the caller has them. Missing weights are
/// downloaded only if the caller requests it.
pub(crate) fn provider(
    settings: &Settings,
    environment: Environment<'_>,
    wanted: EmbeddedUse,
    fetch: Option<WeightsFetch<'_>>,
) -> Result<Arc<dyn Provider>, Failure> {
    match &settings.provider {
        ProviderChoice::Service(choice) => service(settings, environment, choice),
        ProviderChoice::Embedded { weights } => {
            Ok(Arc::new(embedded_model::open(weights, settings, environment, wanted, fetch)?))
        }
        ProviderChoice::Replay => Err(Failure::new(ErrorCode::ProviderUnavailable, "no reply file is given")
            .suggest("Name the file with `cogn run MODULE --reply FILE`")),
    }
}

/// The resolved models.
pub(crate) struct ChosenModels {
    /// The models of modules without separate models, or of the one module that runs.
    pub(crate) chain: ModelChain,
    /// The models of single modules, by name.
    pub(crate) of_module: BTreeMap<String, ModelChain>,
    /// The models that cannot be called here, with the reasons.
    pub(crate) left_out: Vec<String>,
}

impl From<Arc<dyn Provider>> for ChosenModels {
    fn from(provider: Arc<dyn Provider>) -> Self {
        Self { chain: provider.into(), of_module: BTreeMap::new(), left_out: Vec::new() }
    }
}

/// Builds the resolved models, those of single modules included. A rung that cannot be built is skipped if there is
/// another one. A surface can start without a model: one that cannot be built is reported by every run that would call it.
pub(crate) fn models(
    settings: &Settings,
    environment: Environment<'_>,
    wanted: EmbeddedUse,
    fetch: Option<WeightsFetch<'_>>,
) -> ChosenModels {
    let mut chosen = match chain(settings, environment, wanted, fetch) {
        Ok((chain, left_out)) => ChosenModels { chain, of_module: BTreeMap::new(), left_out },
        Err(reason) => {
            let provider: Arc<dyn Provider> = Arc::new(Unavailable::new(settings.provider.name(), reason));
            provider.into()
        }
    };
    // A saved reply answers every call of the run.
    if settings.provider == ProviderChoice::Replay {
        return chosen;
    }
    let mut built = vec![(settings.provider.clone(), Arc::clone(&chosen.chain.first))];
    for (name, decision) in &settings.of_module {
        let Some(model) = &decision.model else { continue };
        let provider = module_model(model, settings, environment, wanted, &mut built);
        let provider = provider.unwrap_or_else(|failure| {
            let notice = format!("the model of `modules.{name}` is unavailable: {}", failure_text(&failure));
            chosen.left_out.push(notice);
            Arc::new(Unavailable::new(name, failure))
        });
        chosen.of_module.insert(name.clone(), provider.into());
    }
    chosen
}

/// Returns the model of one module. Modules with the same model share it. Its weights are not downloaded, because that
/// module may never run.
fn module_model(
    model: &Result<RungChoice, Failure>,
    settings: &Settings,
    environment: Environment<'_>,
    wanted: EmbeddedUse,
    built: &mut Vec<(ProviderChoice, Arc<dyn Provider>)>,
) -> Result<Arc<dyn Provider>, Failure> {
    let choice = model.as_ref().map_err(Failure::clone)?;
    let own = settings.for_rung(choice);
    let same = |(known, _): &&(ProviderChoice, _)| *known == choice.provider;
    let shares = |(_, known): &&(ProviderChoice, Arc<dyn Provider>)| known.unavailable().is_none();
    if own.refused_address.is_none()
        && let Some((_, known)) = built.iter().find(same).filter(shares)
    {
        return Ok(Arc::clone(known));
    }
    let provider = provider(&own, environment, wanted, None)?;
    built.push((choice.provider.clone(), Arc::clone(&provider)));
    Ok(provider)
}

/// Returns the first model and its fallbacks.
fn chain(
    settings: &Settings,
    environment: Environment<'_>,
    wanted: EmbeddedUse,
    fetch: Option<WeightsFetch<'_>>,
) -> Result<(ModelChain, Vec<String>), Failure> {
    let first = provider(settings, environment, wanted, fetch);
    if settings.rungs.is_empty() {
        return Ok((first?.into(), Vec::new()));
    }
    let mut left_out = Vec::new();
    let mut failed = |name: &str, failure: &Failure| {
        left_out.push(format!("model `{name}` is skipped: {}", failure_text(failure)));
    };
    let mut built: Vec<Arc<dyn Provider>> = Vec::new();
    let unusable =
        first.map(|first| built.push(first)).inspect_err(|failure| failed("providers[0]", failure));
    for rung in &settings.rungs {
        // A fallback may never be called, so only the first model justifies a download.
        let fetch = fetch.filter(|_| built.is_empty());
        match provider(&settings.for_rung(rung), environment, wanted, fetch) {
            Ok(rung) => built.push(rung),
            Err(failure) => failed(&rung.name, &failure),
        }
    }
    let mut built = built.into_iter();
    match (built.next(), unusable) {
        (Some(first), _) => {
            let ladder = Ladder { rungs: built.collect(), rules: settings.climb };
            Ok((ModelChain::with_ladder(first, ladder), left_out))
        }
        (None, Err(failure)) => Err(failure),
        (None, Ok(())) => Err(Failure::config_fault("`providers` is empty")),
    }
}

/// Formats a failure and its hint in one line.
fn failure_text(failure: &Failure) -> String {
    let hint = failure.suggestion().map(|hint| format!(". {hint}")).unwrap_or_default();
    format!("{}{hint}", failure.message())
}

#[cfg(feature = "net")]
fn service(
    settings: &Settings,
    environment: Environment<'_>,
    choice: &ServiceChoice,
) -> Result<Arc<dyn Provider>, Failure> {
    let config = service_config(settings, environment, choice)?;
    let hint = service_hint(&config);
    cognitive_net::provider(config)
        .map_err(|error| unusable(choice.kind, FailureKind::BadRequest, error.to_string()).suggest(hint))
}

/// Returns the batch endpoint of the resolved service.
#[cfg(feature = "net")]
pub fn batch_service(
    settings: &Settings,
    environment: Environment<'_>,
) -> Result<Arc<dyn BatchService>, Failure> {
    let ProviderChoice::Service(choice) = &settings.provider else {
        let message = "only services have batch endpoints, and the model is local";
        return Err(Failure::new(ErrorCode::ProviderUnavailable, message).suggest(
            "Choose `--provider openai`, `anthropic` or `gemini`, or leave out `--provider-batch`",
        ));
    };
    if !settings.rungs.is_empty() {
        return Err(Failure::config_fault("a batch endpoint takes one model, and `providers` names several")
            .suggest("Name one with `--provider` and `--model`"));
    }
    let config = service_config(settings, environment, choice)?;
    let hint = service_hint(&config);
    cognitive_net::batch_service(&config)
        .map_err(|error| unusable(choice.kind, FailureKind::BadRequest, error.to_string()).suggest(hint))
}

#[cfg(feature = "net")]
fn service_config(
    settings: &Settings,
    environment: Environment<'_>,
    choice: &ServiceChoice,
) -> Result<ProviderConfig, Failure> {
    let kind = choice.kind;
    if let Some(refused) = &settings.refused_address {
        return Err(refused.clone());
    }
    let key = kind.key_variable().and_then(environment).and_then(Secret::new);
    if key.is_none() && kind.needs_key() && choice.base_url.is_none() {
        let variable = kind.key_variable().unwrap_or_default();
        let message = format!("provider `{}` has no key", kind.name());
        return Err(unusable(kind, FailureKind::Auth, message)
            .suggest(format!("Set `{variable}`, or choose another provider with `--provider`")));
    }
    let mut config = ProviderConfig::new(kind).with_key(key);
    config.model.clone_from(&choice.model);
    config.base_url.clone_from(&choice.base_url);
    config.api = choice.api;
    config.plain_http = settings.plain_http;
    Ok(config)
}

#[cfg(feature = "net")]
fn service_hint(config: &ProviderConfig) -> String {
    if cognitive_net::is_unprotected(config) { unprotected_hint() } else { "See `cogn doctor`".to_owned() }
}

/// This build has no services.
#[cfg(not(feature = "net"))]
fn service(_: &Settings, _: Environment<'_>, choice: &ServiceChoice) -> Result<Arc<dyn Provider>, Failure> {
    match choice.kind {}
}

/// Returns the hint for a key that would be sent over `http://` to another machine.
#[cfg(feature = "net")]
fn unprotected_hint() -> String {
    format!(
        "Use an `https://` address, or leave the key unset if the service needs none; on a private network, set \
         `{}=1`",
        env_vars::PLAIN_HTTP
    )
}

/// Returns the failure for a misconfigured provider. (D-16)
#[cfg(feature = "net")]
fn unusable(kind: Kind, failure: FailureKind, message: String) -> Failure {
    Failure::new(ErrorCode::ProviderUnavailable, message)
        .with_detail("provider", json!(kind.name()))
        .with_detail("kind", json!(failure.word()))
        .with_recoverable(false)
}

/// Restricts the capabilities of this runtime to those of the resolved provider. No request is sent: a missing key,
/// model or address does not change the documented capabilities of a service.
#[must_use]
pub fn limited_by_provider(settings: &Settings, capabilities: Capabilities) -> Capabilities {
    match &settings.provider {
        ProviderChoice::Service(choice) => limited_by(choice, capabilities),
        ProviderChoice::Embedded { .. } => capabilities.with_provider(|_| false, |_| false),
        ProviderChoice::Replay => capabilities,
    }
}

#[cfg(feature = "net")]
fn limited_by(choice: &ServiceChoice, capabilities: Capabilities) -> Capabilities {
    let kind = choice.kind;
    let model = choice.model.as_deref().or_else(|| kind.default_model()).unwrap_or("unknown");
    let mut config =
        ProviderConfig::new(kind).with_model(model).with_key(Secret::new("none")).with_plain_http();
    config.api = choice.api;
    config.base_url = choice.base_url.clone().or_else(|| {
        // Only a placeholder; no request is sent there.
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

#[cfg(not(feature = "net"))]
fn limited_by(choice: &ServiceChoice, _: Capabilities) -> Capabilities {
    match choice.kind {}
}

/// Returns the model that a service is called with, if it is known.
#[must_use]
pub fn model(settings: &Settings) -> Option<&str> {
    let ProviderChoice::Service(choice) = &settings.provider else { return None };
    choice.model.as_deref().or_else(|| choice.kind.default_model())
}

/// The parts that a surface passes to build a host.
pub(crate) struct HostParts {
    /// The source of modules.
    pub(crate) modules: Arc<dyn ModuleSource>,
    /// The models.
    pub(crate) models: ChosenModels,
    /// The audit and the context.
    pub(crate) stores: Stores,
    /// The media settings that are not in the configuration.
    pub(crate) media: MediaAccess,
}

/// Builds the host of all runs from the settings. This is the only place that assembles one.
pub(crate) fn host(settings: &Settings, parts: HostParts) -> Result<Host, Failure> {
    let HostParts { modules, models, stores, media } = parts;
    let ChosenModels { chain, of_module, .. } = models;
    let mut host = Host::new(modules, Arc::clone(&chain.first));
    host.models = chain;
    host.settings = settings.general;
    for (name, decision) in &settings.of_module {
        host.configure(
            name,
            ModuleSettings {
                models: of_module.get(name).cloned(),
                settings: decision.settings,
                local_only: decision.local_only,
            },
        );
    }
    host.gate = settings.gate;
    host.sanitiser = settings.sanitiser.clone();
    host.audit_payloads = settings.audit_payloads;
    host.audit_required = settings.audit_required;
    host.audit = stores.audit;
    host.context = stores.context;
    host.review =
        stores.review.map(|review_queue| Reviewing { rules: settings.review.clone(), review_queue });
    host.timer = Some(Arc::new(TokioTimer));
    host.prices = prices::table(&settings.prices)?;
    host.spending = stores::spending(settings)?;
    let limits = media::limits(&settings.media)?;
    #[cfg(feature = "media")]
    {
        host.keep_metadata = settings.media.keep_metadata.unwrap_or(false);
        host.take_media(Arc::new(media::source(&settings.media, media)?), limits);
    }
    // Without the feature every item is refused. The configuration is still checked.
    #[cfg(not(feature = "media"))]
    drop((limits, media));
    Ok(host)
}
