//! Resolves provider, model and address, for all modules and for single ones. The sources have the order of D-33.
//! Reads no environment itself and builds no provider.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cognitive_contract::address::bare_url;
use cognitive_contract::{ErrorCode, Failure};
use cognitive_ports::openai_api::OpenAiApi;

use super::{
    EMBEDDED, Environment, ModuleDecision, OverrideScope, ProviderChoice, RungChoice, ServiceChoice,
    SettingOverrides,
};
use crate::config::{Config, ModuleConfig, UntrustedAddress};
use crate::env_vars;
use crate::services::{Kind, is_on_this_machine};
use crate::weights::{KNOWN_WEIGHTS, WeightsChoice};

/// A provider, and the reason why the address in the project's file cannot be used for it, if so.
type ChosenProvider = (ProviderChoice, Option<Failure>);

/// All sources that can name a model.
#[derive(Clone, Copy)]
pub(super) struct ModelSources<'a> {
    pub(super) args: &'a SettingOverrides,
    pub(super) config: &'a Config,
    pub(super) environment: Environment<'a>,
    pub(super) scope: OverrideScope<'a>,
}

/// A source that can name a provider, a model or both.
struct ModelSource {
    kind: SourceKind,
    provider: Option<String>,
    model: Option<String>,
    api: Option<OpenAiApi>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SourceKind {
    Flag,
    Module,
    Environment,
    File,
}

impl ModelSource {
    /// Returns the provider that this source names, if any.
    fn name(&self) -> Option<String> {
        provider_name(self.provider.as_deref(), self.model.as_deref())
    }

    /// Returns whether this source applies to this provider: it names the provider, or none.
    fn is_about(&self, kind: Kind) -> bool {
        self.name().is_none_or(|name| Kind::parse(&name) == Some(kind))
    }

    /// Returns the model of this source if it applies to this provider. A model next to another provider belongs to
    /// that provider.
    fn model_for(&self, kind: Kind) -> Option<&String> {
        self.model.as_ref().filter(|_| self.is_about(kind))
    }

    /// Returns the model of this source if it applies to the embedded provider. A typed model always belongs to the
    /// typed provider.
    fn embedded_model(&self) -> Option<&String> {
        let is_meant = |model: &&String| {
            self.kind == SourceKind::Flag
                || embedded_name(model).is_some()
                || self.provider.as_deref().is_none_or(|name| name == EMBEDDED)
        };
        self.model.as_ref().filter(is_meant)
    }
}

impl ModelSources<'_> {
    /// Returns the sources, the most specific one first.
    fn sources(&self, own: Option<&ModuleConfig>, with_flags: bool) -> Vec<ModelSource> {
        let environment = |name: &str| (self.environment)(name);
        let flag = with_flags.then(|| ModelSource {
            kind: SourceKind::Flag,
            provider: self.args.provider.clone(),
            model: self.args.model.clone(),
            api: self.args.api,
        });
        let module = own.map(|own| ModelSource {
            kind: SourceKind::Module,
            provider: own.provider.clone(),
            model: own.model.clone(),
            api: own.api,
        });
        let (first, second) = match self.scope {
            OverrideScope::Runs(_) => (flag, module),
            OverrideScope::Process => (module, flag),
        };
        let general = [
            ModelSource {
                kind: SourceKind::Environment,
                provider: environment(env_vars::PROVIDER),
                model: environment(env_vars::MODEL),
                api: None,
            },
            ModelSource {
                kind: SourceKind::File,
                provider: self.config.provider.clone(),
                model: self.config.model.clone(),
                api: self.config.api,
            },
        ];
        first.into_iter().chain(second).chain(general).collect()
    }

    /// Resolves the model of a run, or of all modules without a separate one, and its fallbacks. A flag, the environment or
    /// the module that names a model replaces the whole list of `providers`.
    pub(super) fn models(
        &self,
        own: Option<&ModuleConfig>,
    ) -> Result<(ChosenProvider, Vec<RungChoice>), Failure> {
        let Self { args, config, environment, .. } = *self;
        let is_set = [env_vars::PROVIDER, env_vars::MODEL].iter().any(|name| environment(name).is_some());
        let is_named = args.names_model() || is_set || own.is_some_and(names_model);
        let names = config.providers.iter().flatten().filter(|_| !is_named);
        let config = &Config { api: own.and_then(|own| own.api).or(config.api), ..config.clone() };
        let rungs: Result<Vec<_>, _> =
            names.map(|name| named_rung(name, args, config, environment)).collect();
        let rungs = rungs?;
        let has_choice = rungs.iter().any(|rung| rung.provider.speaks_openai());
        if !rungs.is_empty()
            && !has_choice
            && (args.api.is_some() || own.is_some_and(|own| own.api.is_some()))
        {
            return Err(no_choice("none of `providers` has"));
        }
        let mut rungs = rungs.into_iter();
        let first = match rungs.next() {
            Some(first) => (first.provider, first.refused_address),
            None => self.choose_from(&self.sources(own, true))?,
        };
        Ok((first, rungs.collect()))
    }

    /// Resolves the settings of single modules. A model that was typed for one run does not apply to its parts.
    pub(super) fn module_decisions(&self) -> Result<BTreeMap<String, ModuleDecision>, Failure> {
        let decide = |(name, own): (&String, &ModuleConfig)| {
            let (is_root, with_flags) = match self.scope {
                OverrideScope::Runs(module) => (module == name, false),
                OverrideScope::Process => (false, true),
            };
            let choose = || {
                if !names_model(own) && self.config.providers.is_some() {
                    let message = format!("`modules.{name}.api` needs `provider` or `model` beside it");
                    return Err(Failure::config_fault(message)
                        .suggest("Name the model of the module, or set `api` for all of `providers`"));
                }
                let chosen = self.choose_from(&self.sources(Some(own), with_flags));
                chosen.map(|(provider, refused_address)| RungChoice {
                    name: name.clone(),
                    provider,
                    refused_address,
                })
            };
            let decision = ModuleDecision {
                model: ((names_model(own) || own.api.is_some()) && !is_root).then(choose),
                settings: own.run,
                local_only: own.local_only == Some(true),
            };
            Ok((name.clone(), decision))
        };
        self.config.modules.iter().map(decide).collect()
    }

    fn choose_from(&self, sources: &[ModelSource]) -> Result<ChosenProvider, Failure> {
        let named = sources.iter().find_map(ModelSource::name);
        let service = |kind: Kind| -> Result<ChosenProvider, Failure> {
            let (base_url, refused) = match self.address(kind, sources) {
                Ok(address) => (address, None),
                Err(refused) => (None, Some(refused)),
            };
            let model = sources.iter().find_map(|source| source.model_for(kind)).cloned();
            let api = api(sources, |source| source.is_about(kind), kind.speaks_openai(), kind.name())?;
            Ok((ProviderChoice::Service(ServiceChoice { kind, model, base_url, api }), refused))
        };
        let alone = |choice: ProviderChoice| {
            let is_about = |source: &ModelSource| source.name().is_none_or(|name| name == choice.name());
            api(sources, is_about, false, choice.name())?;
            Ok((choice, None))
        };
        match named.as_deref() {
            Some("replay") => alone(ProviderChoice::Replay),
            // A model of the environment or the configuration may belong to the default service.
            Some(EMBEDDED) => self.embedded_choice(sources, false).and_then(alone),
            Some(name) => Kind::parse(name).map_or_else(|| Err(unknown_provider(name)), service),
            None => match first_with_credentials(self.environment) {
                Some(kind) => service(kind),
                None => self.embedded_choice(sources, true).and_then(alone),
            },
        }
    }

    /// Returns the address of a service; `None` for the default one. An address in an untrusted file is used only if no
    /// key would be sent there and the input stays on this machine. Otherwise the failure has a hint.
    fn address(&self, kind: Kind, sources: &[ModelSource]) -> Result<Option<String>, Failure> {
        let Self { config, environment, .. } = *self;
        let typed = || self.args.base_url.clone().filter(|_| typed_address_applies(kind, sources));
        if let Some(address) = typed().or_else(|| environment(kind.base_url_variable())) {
            return Ok(Some(address));
        }
        let in_files = |source: &&ModelSource| matches!(source.kind, SourceKind::Module | SourceKind::File);
        let configured = sources.iter().filter(in_files).find_map(ModelSource::name);
        // An address in a file belongs to the provider next to it.
        let own = |beside: Option<&str>| {
            beside.or(configured.as_deref()).is_none_or(|name| Kind::parse(name) == Some(kind))
        };
        if let Some(untrusted) =
            config.untrusted_address.as_ref().filter(|address| own(address.of.as_deref()))
        {
            let key = kind.key_variable().filter(|variable| environment(variable).is_some());
            return match key {
                None if is_on_this_machine(kind, &untrusted.url) => Ok(Some(untrusted.url.clone())),
                key => Err(untrusted_address(kind, untrusted, key)),
            };
        }
        Ok(config.base_url.clone().filter(|_| own(config.base_url_of.as_deref())))
    }

    /// Returns the embedded model with the weights that the first source names. An unknown name is an error if it can
    /// only refer to the embedded model, which `alone` implies. An answer of a model that was not requested would be
    /// worse than none.
    fn embedded_choice(&self, sources: &[ModelSource], alone: bool) -> Result<ProviderChoice, Failure> {
        let choice =
            |model: &str| WeightsChoice::from_name(embedded_name(model).unwrap_or(model), self.environment);
        let named = || sources.iter().filter_map(|source| Some((source.kind, source.embedded_model()?)));
        if let Some((origin, model)) = named().next()
            && choice(model).is_none()
            && (alone || origin == SourceKind::Flag || embedded_name(model).is_some())
        {
            return Err(no_such_model(embedded_name(model).unwrap_or(model)));
        }
        let by_name = |in_file: bool| {
            named()
                .filter(|(origin, _)| (*origin == SourceKind::File) == in_file)
                .find_map(|(_, model)| choice(model))
        };
        let by_variable =
            || (self.environment)(env_vars::WEIGHTS).map(|file| WeightsChoice::File(PathBuf::from(file)));
        if let Some(weights) = by_name(false).or_else(by_variable).or_else(|| by_name(true)) {
            return Ok(ProviderChoice::Embedded { weights });
        }
        let Some(usual) = &self.config.default_model else {
            return Ok(ProviderChoice::Embedded { weights: WeightsChoice::Usual });
        };
        choice(usual).map(|weights| ProviderChoice::Embedded { weights }).ok_or_else(|| {
            Failure::config_fault(format!("unknown embedded model in `default_model`: `{usual}`"))
                .suggest(format!("Use one of: {}", embedded_names()))
        })
    }
}

/// Returns the providers that a module would call without any flag, in call order. `None` means modules without
/// separate settings.
pub(crate) fn destinations(
    config: &Config,
    environment: Environment<'_>,
    module: Option<&str>,
) -> Result<Vec<ProviderChoice>, Failure> {
    let args = &SettingOverrides::default();
    let sources = ModelSources { args, config, environment, scope: OverrideScope::Process };
    let own = module.and_then(|name| config.modules.get(name));
    let ((first, _), rungs) = sources.models(own)?;
    Ok(std::iter::once(first).chain(rungs.into_iter().map(|rung| rung.provider)).collect())
}

/// Returns the API that the first source about a provider sets. A source that is about this provider alone, or about one
/// process, is refused if the provider has no choice; `api` for all providers concerns those that have one.
fn api(
    sources: &[ModelSource],
    is_about: impl Fn(&ModelSource) -> bool,
    has_choice: bool,
    name: &str,
) -> Result<Option<OpenAiApi>, Failure> {
    let mut about = sources.iter().filter(|source| is_about(source));
    let Some(source) = about.find(|source| source.api.is_some()) else { return Ok(None) };
    let is_for_all = source.kind == SourceKind::File && source.provider.is_none();
    match has_choice {
        true => Ok(source.api),
        false if is_for_all => Ok(None),
        false => Err(no_choice(&format!("`{name}` has not"))),
    }
}

fn no_choice(who: &str) -> Failure {
    Failure::config_fault(format!("`api` chooses between OpenAI's APIs, and {who} both"))
        .suggest("Remove `api`, or choose a service with OpenAI's API")
}

fn names_model(own: &ModuleConfig) -> bool {
    own.provider.is_some() || own.model.is_some()
}

/// Returns whether a typed address belongs to this service. It belongs to the provider that all sources except the
/// module's configuration resolve to.
fn typed_address_applies(kind: Kind, sources: &[ModelSource]) -> bool {
    let Some(first) = sources.first().filter(|source| source.kind == SourceKind::Module) else {
        return sources.iter().any(|source| source.kind == SourceKind::Flag);
    };
    let general = sources.get(1..).unwrap_or_default();
    let has_flags = general.iter().any(|source| source.kind == SourceKind::Flag);
    let named = general.iter().find_map(ModelSource::name);
    has_flags && (first.name().is_none() || named.is_some_and(|name| Kind::parse(&name) == Some(kind)))
}

/// Resolves a model by its name, `provider/model` or a provider alone, as if it had been typed. All rules for names and
/// addresses apply.
pub(crate) fn named_rung(
    name: &str,
    args: &SettingOverrides,
    config: &Config,
    environment: Environment<'_>,
) -> Result<RungChoice, Failure> {
    let (provider, model) = name.split_once('/').map_or((name, None), |(who, model)| (who, Some(model)));
    let speaks_openai = Kind::parse(provider).is_some_and(Kind::speaks_openai);
    let typed = SettingOverrides {
        provider: Some(provider.to_owned()),
        model: model.map(str::to_owned),
        api: args.api.filter(|_| speaks_openai),
        ..args.clone()
    };
    let bare = Config { provider: None, model: None, ..config.clone() };
    let scope = OverrideScope::Process;
    let sources = ModelSources { args: &typed, config: &bare, environment, scope };
    let (provider, refused_address) = sources.choose_from(&sources.sources(None, true))?;
    Ok(RungChoice { name: name.to_owned(), provider, refused_address })
}

/// Strips the provider: `embedded/qwen-0.5b` → `qwen-0.5b`, `embedded//path/x.gguf` → `/path/x.gguf`.
pub(crate) fn embedded_name(model: &str) -> Option<&str> {
    model.strip_prefix(EMBEDDED)?.strip_prefix('/')
}

/// Returns the named provider: by its name, or implied by a model name such as `embedded/…`.
pub(crate) fn provider_name(provider: Option<&str>, model: Option<&str>) -> Option<String> {
    let by_model = || model.filter(|model| embedded_name(model).is_some()).map(|_| EMBEDDED.to_owned());
    provider.map(str::to_owned).or_else(by_model)
}

/// Returns the first service with credentials, in a fixed order. An address is enough for a service that needs no key.
fn first_with_credentials(environment: Environment<'_>) -> Option<Kind> {
    Kind::CHOSEN_BY_KEY.into_iter().find(|kind| {
        let key = kind.key_variable().and_then(environment).is_some();
        let address = environment(kind.base_url_variable()).is_some();
        if kind.needs_key() { key } else { key || address }
    })
}

fn unknown_provider(name: &str) -> Failure {
    let names: Vec<&str> = Kind::all().map(Kind::name).collect();
    Failure::new(ErrorCode::ProviderUnavailable, format!("unknown provider: `{name}`"))
        .suggest(format!("Use one of: {EMBEDDED}, {}, replay", names.join(", ")))
}

fn untrusted_address(kind: Kind, address: &UntrustedAddress, key: Option<&str>) -> Failure {
    let what = key.map_or_else(|| "the input".to_owned(), |variable| format!("your key (`{variable}`)"));
    let (file, place) = (address.file.display(), bare_url(&address.url));
    let message = format!("`base_url` of `{file}` would send {what} to an untrusted address: `{place}`");
    Failure::config_fault(message)
        .with_detail("provider", serde_json::json!(kind.name()))
        .with_detail("setting", serde_json::json!("base_url"))
        .with_recoverable(false)
        .suggest(format!(
            "Read the file, then trust it with `cogn trust`; or set the address yourself with `--base-url` or \
             `{}`. In scripts, set `{}` to the sha256 of the file",
            kind.base_url_variable(),
            env_vars::TRUST_PROJECT
        ))
}

fn no_such_model(name: &str) -> Failure {
    let message = format!("no configured provider has the model: `{name}`");
    Failure::new(ErrorCode::ProviderUnavailable, message).suggest(format!(
        "Set `OPENAI_API_KEY`, `ANTHROPIC_API_KEY` or `GEMINI_API_KEY`, or name the provider with `--provider`; the \
         embedded models are: {}",
        embedded_names()
    ))
}

/// Lists the names of embedded models, for a hint.
fn embedded_names() -> String {
    let names: Vec<String> = KNOWN_WEIGHTS.iter().map(|known| format!("`{}`", known.short())).collect();
    format!("{}, those of `cogn model list`, or a file that ends in `.gguf`", names.join(", "))
}
