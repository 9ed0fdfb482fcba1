//! What was decided: flag over environment over configuration file over what is there. Precedence is decided here, once.
//! Reads no environment itself: it is handed a look-up, so that every decision can be tested.

mod choice;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use cognitive_contract::context::Sanitiser;
use cognitive_contract::money::Money;
use cognitive_contract::review::ReviewRules;
use cognitive_contract::spending::DayBudget;
use cognitive_contract::thinking::{MAX_THINKING_TOKENS, ThinkingRule, checked_bound};
use cognitive_contract::tier::Gate;
use cognitive_contract::{Confidence, Failure, RunSettings};
use cognitive_runtime::{ClimbRules, RunOptions};

use crate::config::{Config, KeepConfig, MediaConfig, ModuleConfig, PricesConfig};
use crate::env_vars;
use crate::services::Kind;
use crate::weights::WeightsChoice;

use choice::ModelSources;
pub(crate) use choice::named_rung;
pub(crate) use choice::{destinations, of_embedded};

/// The name of the model in this process, as a provider.
pub const EMBEDDED: &str = "embedded";

/// What the caller of one process or one program sets over environment and configuration: the flags of the command line.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct SettingOverrides {
    /// Who answers: `embedded`, a service such as `openai`, or `replay`.
    pub provider: Option<String>,
    /// The model; for the embedded one a name such as `qwen-0.5b` or a GGUF file, also as `embedded/qwen-0.5b` and
    /// `embedded//path/to/file.gguf`.
    pub model: Option<String>,
    /// The address of the service.
    pub base_url: Option<String>,
    /// The time for each call, in seconds.
    pub timeout: Option<u64>,
    /// How often the model is asked again after an answer that breaks the contract.
    pub reask: Option<u32>,
    /// The most model calls of one run.
    pub max_calls: Option<u64>,
    /// The most that one run may cost.
    pub max_cost: Option<Money>,
    /// Seed of the model, where the provider supports one.
    pub seed: Option<u64>,
    /// Maximum length of the answer, in tokens.
    pub max_tokens: Option<u64>,
    /// How long models may think before they answer, in tokens; 0 is not at all.
    pub thinking: Option<u32>,
    /// Whether the receipt goes into `meta.provenance`.
    pub receipt: bool,
    /// Whether the parser takes no liberties in any tier.
    pub strict_parse: bool,
    /// Whether a call whose answer cannot become valid any more is stopped.
    pub early_stop: bool,
    /// Whether the weights of the embedded model must not be fetched.
    pub no_pull: bool,
}

/// Who answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderChoice {
    /// A saved reply.
    Replay,
    /// A service.
    Service {
        /// Which.
        kind: Kind,
        /// The model; the service's usual one if absent.
        model: Option<String>,
        /// The address; the usual one if absent.
        base_url: Option<String>,
    },
    /// The model in this process. Also when nobody is configured.
    Embedded {
        /// Its weights.
        weights: WeightsChoice,
    },
}

impl ProviderChoice {
    /// The name of the provider.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Replay => "replay",
            Self::Service { kind, .. } => kind.name(),
            Self::Embedded { .. } => EMBEDDED,
        }
    }
}

/// A model by its name, and the provider that was decided on for it.
#[derive(Debug, Clone)]
pub struct RungChoice {
    /// The name as it was written.
    pub name: String,
    /// The provider.
    pub provider: ProviderChoice,
    /// Why it may not be asked at the address in the project's file, if that is so.
    pub refused_address: Option<Failure>,
}

/// The decisions about one module, which hold wherever it runs.
#[derive(Debug, Clone, Default)]
pub struct ModuleDecision {
    /// The model that answers for it, if the configuration names one; or why that one cannot be asked.
    pub model: Option<Result<RungChoice, Failure>>,
    /// The options of its runs.
    pub settings: RunSettings,
    /// Whether it, and its parts, may only ask models on this machine.
    pub local_only: bool,
}

/// Which runs the overrides were set for. The configuration of a module stands below the options of a run and above those
/// of a whole process. (D-33)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverrideScope<'a> {
    /// One run, or several runs of one module: `cogn run MODULE`.
    Runs(&'a str),
    /// All runs of the process: `cogn serve`.
    Process,
}

/// The decisions about the runs of a process.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each answers one question about the runs")]
pub struct Settings {
    /// Who answers; with rungs above, who is asked first.
    pub provider: ProviderChoice,
    /// Who is asked after that, one after the other, until an answer is good enough.
    pub rungs: Vec<RungChoice>,
    /// When an answer is not good enough.
    pub climb: ClimbRules,
    /// What the configuration decides for single modules, by name.
    pub of_module: BTreeMap<String, ModuleDecision>,
    /// Why nobody may be asked at the address that the project's file names, if that is so.
    pub refused_address: Option<Failure>,
    /// Whether a key may go over `http://` to another machine.
    pub plain_http: bool,
    /// The options that were set for the very runs of this process, by their flags.
    pub asked: RunSettings,
    /// The options of all runs: those of the configuration, below the flags of a whole process.
    pub general: RunSettings,
    /// The longest that weights may take to be fetched, if somebody typed `--timeout`. What is configured is for models.
    pub patience: Option<Duration>,
    /// What may be spent in a day.
    pub budget: DayBudget,
    /// What models cost, besides what comes along.
    pub prices: PricesConfig,
    /// The operator's thresholds.
    pub gate: Gate,
    /// The store, unless the audit log is switched off.
    pub store: Option<PathBuf>,
    /// The database, where context is kept whether the books are kept or not.
    pub database: Option<PathBuf>,
    /// Whether runs are to be recorded; where they are to be and there is no store, something is wrong.
    pub audit_enabled: bool,
    /// Whether records carry payloads.
    pub audit_payloads: bool,
    /// Whether a model call that cannot be recorded is not made.
    pub audit_required: bool,
    /// How much of the audit is kept.
    pub audit_keep: KeepConfig,
    /// Which runs people look at.
    pub review: ReviewRules,
    /// The most runs that may wait for that, and the most decided ones that are kept whole.
    pub review_limits: (Option<u64>, Option<u64>),
    /// Whether weights must not be fetched.
    pub offline: bool,
    /// Which members of context are kept from the model.
    pub sanitiser: Sanitiser,
    /// What media may be, and where they may come from.
    pub media: MediaConfig,
}

/// Looks an environment variable up; an empty one is none.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Settings {
    /// Decides everything.
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
                    let message = format!("`exec_min_confidence` has to be from 0 to 1, found: `{value}`");
                    Failure::misconfigured(message).suggest("Correct `cognitive.yaml`")
                })?;
                Gate { exec_min_confidence: least, ..Gate::default() }
            }
        };
        let sources = ModelSources { args, config, environment, scope };
        let own = match scope {
            OverrideScope::Runs(module) => config.modules.get(module),
            OverrideScope::Process => None,
        };
        let mut rungs = sources.rungs(own)?.into_iter();
        let (provider, refused_address) = match rungs.next() {
            Some(first) => (first.provider, first.refused_address),
            None => sources.choose(own)?,
        };
        let (asked, general) = match scope {
            OverrideScope::Runs(_) => (args.run_settings()?, configured(config)?),
            OverrideScope::Process => {
                (RunSettings::default(), args.run_settings()?.over(configured(config)?))
            }
        };
        Ok(Self {
            provider,
            rungs: rungs.collect(),
            climb: climb_rules(config)?,
            of_module: sources.of_modules()?,
            refused_address,
            plain_http: is_on(environment, env_vars::PLAIN_HTTP),
            asked,
            general,
            patience: args.timeout.map(|seconds| Duration::from_secs(seconds.max(1))),
            budget: DayBudget { per_day: config.budget.per_day, per_key: config.budget.per_key },
            prices: config.prices.clone(),
            gate,
            store: store_path(config, environment),
            database: database(config, environment),
            audit_enabled: config.audit.enabled != Some(false),
            audit_payloads: config.audit.payloads.unwrap_or(false),
            audit_required: config.audit.required.unwrap_or(false),
            audit_keep: config.audit.keep,
            review: config.review.compiled()?,
            review_limits: (config.review.max_open, config.review.max_decided),
            offline: args.no_pull || offline(environment),
            sanitiser: sanitiser(config),
            media: config.media.clone(),
        })
    }

    /// The same decisions with another model, alone.
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

    /// The options of a run that the flags set. What belongs to one request, such as its user, is not in here.
    #[must_use]
    pub fn run_options(&self) -> RunOptions {
        RunOptions::default().with_settings(self.asked)
    }
}

impl SettingOverrides {
    /// Returns whether they name a model, a provider or its address.
    #[must_use]
    pub fn names_model(&self) -> bool {
        self.provider.is_some() || self.model.is_some() || self.base_url.is_some()
    }

    /// The options of runs among the overrides.
    fn run_settings(&self) -> Result<RunSettings, Failure> {
        let on = |flag: bool| flag.then_some(true);
        Ok(RunSettings {
            timeout: self.timeout.map(seconds),
            reask: self.reask,
            max_calls: self.max_calls,
            max_cost: self.max_cost,
            seed: self.seed,
            max_output_tokens: self.max_tokens,
            thinking: self.thinking.map(|tokens| checked_bound(tokens.into())).transpose()?,
            receipt: on(self.receipt),
            strict_parse: on(self.strict_parse),
            early_stop: on(self.early_stop),
            ..RunSettings::default()
        })
    }
}

/// The options of all runs in the configuration.
fn configured(config: &Config) -> Result<RunSettings, Failure> {
    Ok(RunSettings {
        timeout: config.timeout_seconds.map(seconds),
        reask: config.reask,
        max_calls: config.max_calls,
        max_cost: config.max_cost,
        thinking: configured_thinking("", config.thinking)?,
        receipt: config.receipt,
        strict_parse: config.strict_parse,
        early_stop: config.early_stop,
        ..RunSettings::default()
    })
}

/// The options of the runs of one module in the configuration.
fn of_module(name: &str, own: &ModuleConfig) -> Result<RunSettings, Failure> {
    Ok(RunSettings {
        reask: own.reask,
        thinking: configured_thinking(&format!("modules.{name}."), own.thinking)?,
        receipt: own.receipt,
        early_stop: own.early_stop,
        ..RunSettings::default()
    })
}

/// A time limit of zero would end every call before it starts.
fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds.max(1))
}

fn configured_thinking(place: &str, rule: Option<ThinkingRule>) -> Result<Option<u32>, Failure> {
    let Some(ThinkingRule { max_tokens }) = rule else { return Ok(None) };
    checked_bound(max_tokens.into()).map(Some).map_err(|_| {
        let message = format!(
            "`{place}thinking.max_tokens` has to be from 0 to {MAX_THINKING_TOKENS}, found: {max_tokens}"
        );
        Failure::misconfigured(message).suggest("Correct `cognitive.yaml`")
    })
}

/// Which members of context are kept from the model. (CTX-041)
#[must_use]
pub fn sanitiser(config: &Config) -> Sanitiser {
    Sanitiser::sparing(config.context.not_secret.iter().flatten())
}

/// Whether the environment forbids to fetch weights.
#[must_use]
pub fn offline(environment: Environment<'_>) -> bool {
    is_on(environment, env_vars::OFFLINE)
}

fn is_on(environment: Environment<'_>, variable: &str) -> bool {
    environment(variable).is_some_and(|value| !matches!(value.trim(), "0" | "false"))
}

/// Where the audit is kept; `None` if it is switched off or nobody knows where home is.
#[must_use]
pub fn store_path(config: &Config, environment: Environment<'_>) -> Option<PathBuf> {
    if config.audit.enabled == Some(false) { None } else { database(config, environment) }
}

/// Where the database is, whether the books are kept or not: context is in it as well. `None` if nobody knows where home
/// is.
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
            let message = format!("`climb.{name}` has to be from 0 to 1, found: `{value}`");
            Failure::misconfigured(message).suggest("Correct `cognitive.yaml`")
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
