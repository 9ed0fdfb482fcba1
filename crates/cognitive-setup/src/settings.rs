//! Resolves the settings: a flag overrides the environment, which overrides the configuration file, which overrides
//! defaults.
//! This is the only place that decides precedence. It gets a lookup function instead of reading the environment, which
//! makes it testable.

mod choice;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use cognitive_contract::context::Sanitiser;
use cognitive_contract::tier::Gate;
use cognitive_contract::{Confidence, Failure, RunSettings};
use cognitive_ports::openai_api::OpenAiApi;
use cognitive_ports::review::ReviewRules;
use cognitive_ports::spending::DayBudget;
use cognitive_runtime::ClimbRules;

use crate::config::{Config, KeepConfig, MediaConfig, PricesConfig};
use crate::env_vars;
use crate::services::Kind;
use crate::weights::WeightsChoice;

use choice::ModelSources;
pub(crate) use choice::named_rung;
pub(crate) use choice::{destinations, embedded_name};

/// The provider name of the embedded model.
pub const EMBEDDED: &str = "embedded";

/// The overrides of one process or program over environment and configuration: the flags of the command line.
#[derive(Debug, Clone, Default)]
pub struct SettingOverrides {
    /// The provider: `embedded`, a service such as `openai`, or `replay`.
    pub provider: Option<String>,
    /// The model. For the embedded model, a name such as `qwen-0.5b` or a GGUF file, also written as
    /// `embedded/qwen-0.5b` and `embedded//path/to/file.gguf`.
    pub model: Option<String>,
    /// The address of the service.
    pub base_url: Option<String>,
    /// The API of a service that has both of OpenAI's.
    pub api: Option<OpenAiApi>,
    /// The options of runs.
    pub run: RunSettings,
    /// True if the weights of the embedded model must not be downloaded.
    pub no_pull: bool,
}

/// The resolved provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderChoice {
    /// A saved reply.
    Replay,
    /// A service.
    Service(ServiceChoice),
    /// The model in this process. Also the default if no provider is configured.
    Embedded {
        /// Its weights.
        weights: WeightsChoice,
    },
}

/// The resolved service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceChoice {
    /// The kind of the service.
    pub kind: Kind,
    /// The model; the default of the service if absent.
    pub model: Option<String>,
    /// The address; the default of the service if absent.
    pub base_url: Option<String>,
    /// The API of a service that has both of OpenAI's; the one that the model needs if absent.
    pub api: Option<OpenAiApi>,
}

impl ProviderChoice {
    /// Returns whether it is a service with an API of OpenAI.
    #[must_use]
    pub fn speaks_openai(&self) -> bool {
        matches!(self, Self::Service(service) if service.kind.speaks_openai())
    }

    /// Returns the name of the provider.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Replay => "replay",
            Self::Service(service) => service.kind.name(),
            Self::Embedded { .. } => EMBEDDED,
        }
    }
}

/// A model by its name, and the provider that was resolved for it.
#[derive(Debug, Clone)]
pub struct RungChoice {
    /// The name as it was written.
    pub name: String,
    /// The provider.
    pub provider: ProviderChoice,
    /// The reason why the address in the project's file may not be used, if so.
    pub refused_address: Option<Failure>,
}

/// The settings of one module. They apply wherever it runs.
#[derive(Debug, Clone, Default)]
pub struct ModuleDecision {
    /// The model that is configured for it, or the reason why that model is unusable.
    pub model: Option<Result<RungChoice, Failure>>,
    /// The options of its runs.
    pub settings: RunSettings,
    /// True if the module, and its parts, may only use models on this machine.
    pub local_only: bool,
}

/// The runs that the overrides apply to. The configuration of a module has lower precedence than the options of a run,
/// and higher precedence than the options of a process. (D-33)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverrideScope<'a> {
    /// One run, or several runs of one module: `cogn run MODULE`.
    Runs(&'a str),
    /// All runs of the process: `cogn serve`.
    Process,
}

/// The resolved settings of the runs of a process.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each answers one question about the runs")]
pub struct Settings {
    /// The provider. With fallback rungs, it is called first.
    pub provider: ProviderChoice,
    /// The fallback providers, called in this order until an answer is good enough.
    pub rungs: Vec<RungChoice>,
    /// The rules that reject an answer and call the next rung.
    pub climb: ClimbRules,
    /// The configured settings of single modules, by name.
    pub of_module: BTreeMap<String, ModuleDecision>,
    /// The reason why the address in the project's file may not be used, if so.
    pub refused_address: Option<Failure>,
    /// True if a key may be sent over `http://` to another machine.
    pub plain_http: bool,
    /// The options that flags set for the runs of this process only.
    pub asked: RunSettings,
    /// The options of all runs: the configuration, overridden by the flags of a whole process.
    pub general: RunSettings,
    /// The timeout of downloads of weights, if `--timeout` was typed. The configured timeout is for model calls only.
    pub patience: Option<Duration>,
    /// The daily budget.
    pub budget: DayBudget,
    /// The price configuration, in addition to the built-in table.
    pub prices: PricesConfig,
    /// The operator's thresholds.
    pub gate: Gate,
    /// The store; `None` if the audit log is disabled.
    pub store: Option<PathBuf>,
    /// The database. It stores context even if the audit log is disabled.
    pub database: Option<PathBuf>,
    /// True if runs must be recorded. A missing store is then an error.
    pub audit_enabled: bool,
    /// True if records include payloads.
    pub audit_payloads: bool,
    /// True if a model call is refused when it cannot be recorded.
    pub audit_required: bool,
    /// The retention of the audit.
    pub audit_keep: KeepConfig,
    /// The rules that select runs for review.
    pub review: ReviewRules,
    /// The maximum number of runs that wait for review, and of decided runs that are stored in full.
    pub review_limits: (Option<u64>, Option<u64>),
    /// True if weights must not be downloaded.
    pub offline: bool,
    /// The rules that hide members of context from the model.
    pub sanitiser: Sanitiser,
    /// The allowed media and their sources.
    pub media: MediaConfig,
}

/// Looks up an environment variable. An empty variable counts as unset.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Settings {
    /// Resolves all settings.
    pub fn resolve(
        args: &SettingOverrides,
        config: &Config,
        environment: Environment<'_>,
        scope: OverrideScope<'_>,
    ) -> Result<Self, Failure> {
        let gate = match config.exec_min_confidence {
            None => Gate::default(),
            Some(value) => {
                let least = Confidence::new(value).ok_or_else(|| {
                    let message = format!("`exec_min_confidence` must be from 0 to 1, found: `{value}`");
                    Failure::config_fault(message).suggest("Correct `cognitive.yaml`")
                })?;
                Gate { exec_min_confidence: least, ..Gate::default() }
            }
        };
        let sources = ModelSources { args, config, environment, scope };
        let own = match scope {
            OverrideScope::Runs(module) => config.modules.get(module),
            OverrideScope::Process => None,
        };
        let ((provider, refused_address), rungs) = sources.models(own)?;
        let (asked, general) = match scope {
            OverrideScope::Runs(_) => (args.run, config.run),
            OverrideScope::Process => (RunSettings::default(), args.run.or(config.run)),
        };
        Ok(Self {
            provider,
            rungs,
            climb: climb_rules(config)?,
            of_module: sources.module_decisions()?,
            refused_address,
            plain_http: is_on(environment, env_vars::PLAIN_HTTP),
            asked,
            general,
            patience: args.run.timeout,
            budget: DayBudget { per_day: config.budget.per_day, per_key: config.budget.per_key },
            prices: config.prices.clone(),
            gate,
            store: store_path(config, environment),
            database: database(config, environment),
            audit_enabled: config.audit.enabled != Some(false),
            audit_payloads: config.audit.payloads.unwrap_or(false),
            audit_required: config.audit.required.unwrap_or(false),
            audit_keep: config.audit.keep,
            review: config.review.compile()?,
            review_limits: (config.review.max_open, config.review.max_decided),
            offline: args.no_pull || offline(environment),
            sanitiser: sanitiser(config),
            media: config.media.clone(),
        })
    }

    /// Returns the same settings with another model and without fallback rungs.
    #[must_use]
    pub fn for_rung(&self, rung: &RungChoice) -> Self {
        Self {
            provider: rung.provider.clone(),
            refused_address: rung.refused_address.clone(),
            rungs: Vec::new(),
            of_module: BTreeMap::new(),
            ..self.clone()
        }
    }
}

impl SettingOverrides {
    /// Returns whether they name a model, a provider or its address.
    #[must_use]
    pub fn names_model(&self) -> bool {
        self.provider.is_some() || self.model.is_some() || self.base_url.is_some()
    }
}

/// Returns the rules that hide members of context from the model. (CTX-041)
#[must_use]
pub fn sanitiser(config: &Config) -> Sanitiser {
    Sanitiser::ignoring_names(config.context.not_secret.iter().flatten())
}

/// Returns whether the environment forbids downloading weights.
#[must_use]
pub fn offline(environment: Environment<'_>) -> bool {
    is_on(environment, env_vars::OFFLINE)
}

fn is_on(environment: Environment<'_>, variable: &str) -> bool {
    environment(variable).is_some_and(|value| !matches!(value.trim(), "0" | "false"))
}

/// Returns the path of the audit; `None` if it is disabled or the home folder is unknown.
#[must_use]
pub fn store_path(config: &Config, environment: Environment<'_>) -> Option<PathBuf> {
    if config.audit.enabled == Some(false) { None } else { database(config, environment) }
}

/// Returns the path of the database, which also holds context, even if the audit is disabled. `None` if the home folder
/// is unknown.
#[must_use]
pub fn database(config: &Config, environment: Environment<'_>) -> Option<PathBuf> {
    let by_environment = || environment(env_vars::DATABASE).map(PathBuf::from);
    let at_home =
        || environment(env_vars::HOME).map(|home| PathBuf::from(home).join(".cognitive/cognitive.db"));
    by_environment().or_else(|| config.audit.path.clone()).or_else(at_home)
}

fn climb_rules(config: &Config) -> Result<ClimbRules, Failure> {
    let confidence = |name: &str, value: f64| {
        Confidence::new(value).ok_or_else(|| {
            let message = format!("`climb.{name}` must be from 0 to 1, found: `{value}`");
            Failure::config_fault(message).suggest("Correct `cognitive.yaml`")
        })
    };
    let mut rules = ClimbRules::default();
    if let Some(value) = config.climb.below_confidence {
        rules = rules.with_confidence(confidence("below_confidence", value)?);
    }
    if let Some(value) = config.climb.unless_agreed {
        rules = rules.with_agreement(confidence("unless_agreed", value)?);
    }
    Ok(config.climb.above_risk.map_or(rules, |risk| rules.with_risk(risk)))
}
