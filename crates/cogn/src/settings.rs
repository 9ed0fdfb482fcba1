//! What was decided: flag over environment over configuration file over what is there. Precedence is decided here, once.
//! Reads no environment itself: it is handed a look-up, so that every decision can be tested.

mod embedded;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use cognitive_contract::address::bare_url;
use cognitive_contract::context::Sanitiser;
use cognitive_contract::money::Money;
use cognitive_contract::review::ReviewRules;
use cognitive_contract::spending::DayBudget;
use cognitive_contract::thinking::{MAX_THINKING_TOKENS, ThinkingLimits, ThinkingRule, checked_bound};
use cognitive_contract::tier::Gate;
use cognitive_contract::{Confidence, ErrorCode, Failure};
use cognitive_runtime::{ClimbRules, DEFAULT_MAX_CALLS, RunOptions};

use crate::config::{Config, KeepConfig, MediaConfig, ModuleConfig, PricesConfig, UntrustedAddress};
use crate::env_vars;
use crate::services::{Kind, is_on_this_machine};
use crate::weights::WeightsChoice;

use embedded::embedded;
pub(crate) use embedded::of_embedded;

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

/// One of several models that are asked one after the other.
#[derive(Debug, Clone)]
pub struct RungChoice {
    /// As it was written.
    pub name: String,
    /// Who it is.
    pub provider: ProviderChoice,
    /// Why it may not be asked at the address that the project's file names, if that is so.
    pub refused_address: Option<Failure>,
}

/// The decisions about one run.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each answers one question about the run")]
pub struct Settings {
    /// Who answers; with rungs above, who is asked first.
    pub provider: ProviderChoice,
    /// Who is asked after that, one after the other, until an answer is good enough.
    pub rungs: Vec<RungChoice>,
    /// When an answer is not good enough.
    pub climb: ClimbRules,
    /// Modules that ask only models on this machine.
    pub local_only: Vec<String>,
    /// Why nobody may be asked at the address that the project's file names, if that is so.
    pub refused_address: Option<Failure>,
    /// Whether a key may go over `http://` to another machine.
    pub plain_http: bool,
    /// The time for each call.
    pub timeout: Duration,
    /// The longest that weights may take to be fetched, if somebody typed `--timeout`. What is configured is for models.
    pub patience: Option<Duration>,
    /// How often the model is asked again.
    pub reask: u32,
    /// The most model calls of one run.
    pub max_calls: u64,
    /// The most that one run may cost.
    pub max_cost: Option<Money>,
    /// What may be spent in a day.
    pub budget: DayBudget,
    /// What models cost, besides what comes along.
    pub prices: PricesConfig,
    /// The seed.
    pub seed: Option<u64>,
    /// Maximum length of the answer, in tokens.
    pub max_tokens: Option<u64>,
    /// How long models may think before they answer, if somebody typed it.
    pub thinking: Option<u32>,
    /// The same for single modules and for all, as it is configured.
    pub thinking_limits: ThinkingLimits,
    /// Whether the receipt is shown.
    pub receipt: bool,
    /// Whether the parser takes no liberties.
    pub strict_parse: bool,
    /// Whether a call that cannot end well is stopped.
    pub early_stop: bool,
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
    /// Decides everything for a run of `module`.
    pub fn resolve(
        args: &SettingOverrides,
        config: &Config,
        environment: Environment<'_>,
        module: &str,
    ) -> Result<Self, Failure> {
        let of_module = config.modules.get(module).cloned().unwrap_or_default();
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
        let mut rungs = rungs(args, config, &of_module, environment)?.into_iter();
        let (provider, refused_address) = match rungs.next() {
            Some(first) => (first.provider, first.refused_address),
            None => choose(args, config, &of_module, environment)?,
        };
        Ok(Self {
            provider,
            rungs: rungs.collect(),
            climb: climb_rules(config)?,
            local_only: config
                .modules
                .iter()
                .filter(|(_, module)| module.local_only == Some(true))
                .map(|(name, _)| name.clone())
                .collect(),
            refused_address,
            plain_http: is_on(environment, env_vars::PLAIN_HTTP),
            timeout: Duration::from_secs(args.timeout.or(config.timeout_seconds).unwrap_or(60).max(1)),
            patience: args.timeout.map(|seconds| Duration::from_secs(seconds.max(1))),
            reask: args.reask.or(of_module.reask).or(config.reask).unwrap_or(0),
            max_calls: args.max_calls.or(config.max_calls).unwrap_or(DEFAULT_MAX_CALLS),
            max_cost: args.max_cost.or(config.max_cost),
            budget: DayBudget { per_day: config.budget.per_day, per_key: config.budget.per_key },
            prices: config.prices.clone(),
            seed: args.seed,
            max_tokens: args.max_tokens,
            thinking: args.thinking.map(|tokens| checked_bound(tokens.into())).transpose()?,
            thinking_limits: thinking_limits(config)?,
            receipt: args.receipt || of_module.receipt.or(config.receipt).unwrap_or(false),
            strict_parse: args.strict_parse || config.strict_parse.unwrap_or(false),
            early_stop: args.early_stop || of_module.early_stop.or(config.early_stop).unwrap_or(false),
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

    /// How a run is to be done with these settings. What belongs to one request, such as its user, is not in here.
    #[must_use]
    pub fn run_options(&self) -> RunOptions {
        RunOptions::default()
            .with_timeout(self.timeout)
            .with_reask(self.reask)
            .with_max_calls(self.max_calls)
            .with_max_cost(self.max_cost)
            .with_seed(self.seed)
            .with_max_output_tokens(self.max_tokens)
            .with_thinking(self.thinking)
            .with_receipt(self.receipt)
            .with_strict_parse(self.strict_parse)
            .with_early_stop(self.early_stop)
    }
}

/// How long models may think, as it is configured.
fn thinking_limits(config: &Config) -> Result<ThinkingLimits, Failure> {
    let bound = |place: &str, rule: ThinkingRule| {
        checked_bound(rule.max_tokens.into()).map_err(|_| {
            let found = rule.max_tokens;
            let message = format!(
                "`{place}thinking.max_tokens` has to be from 0 to {MAX_THINKING_TOKENS}, found: {found}"
            );
            Failure::misconfigured(message).suggest("Correct `cognitive.yaml`")
        })
    };
    let usual = config.thinking.map(|rule| bound("", rule)).transpose()?;
    let named = config.modules.iter().filter_map(|(name, says)| Some((name, says.thinking?)));
    let of_module = named.map(|(name, rule)| Ok((name.clone(), bound(&format!("modules.{name}."), rule)?)));
    Ok(ThinkingLimits { usual, of_module: of_module.collect::<Result<_, Failure>>()? })
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

/// The models of `providers`, unless somebody named one by flag, by environment or for this module: that one is asked alone.
fn rungs(
    args: &SettingOverrides,
    config: &Config,
    of_module: &ModuleConfig,
    environment: Environment<'_>,
) -> Result<Vec<RungChoice>, Failure> {
    let typed = args.provider.is_some() || args.model.is_some() || args.base_url.is_some();
    let set = [env_vars::PROVIDER, env_vars::MODEL].iter().any(|name| environment(name).is_some());
    if typed || set || of_module.provider.is_some() || of_module.model.is_some() {
        return Ok(Vec::new());
    }
    config.providers.iter().flatten().map(|name| named_rung(name, args, config, environment)).collect()
}

/// A model by its name, `provider/model` or a provider alone, as if it had been typed: every rule about names and addresses
/// holds.
pub(crate) fn named_rung(
    name: &str,
    args: &SettingOverrides,
    config: &Config,
    environment: Environment<'_>,
) -> Result<RungChoice, Failure> {
    let (provider, model) = name.split_once('/').map_or((name, None), |(who, model)| (who, Some(model)));
    let typed = SettingOverrides {
        provider: Some(provider.to_owned()),
        model: model.map(str::to_owned),
        ..args.clone()
    };
    let bare = Config { provider: None, model: None, ..config.clone() };
    let (provider, refused_address) = choose(&typed, &bare, &ModuleConfig::default(), environment)?;
    Ok(RungChoice { name: name.to_owned(), provider, refused_address })
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

/// Who answers, and why the address in the project's file cannot be used, if it would be.
fn choose(
    args: &SettingOverrides,
    config: &Config,
    of_module: &ModuleConfig,
    environment: Environment<'_>,
) -> Result<(ProviderChoice, Option<Failure>), Failure> {
    let by_environment = environment(env_vars::MODEL);
    let configured = named(of_module.provider.as_deref(), of_module.model.as_deref())
        .or_else(|| named(config.provider.as_deref(), config.model.as_deref()));
    let named = named(args.provider.as_deref(), args.model.as_deref())
        .or_else(|| named(environment(env_vars::PROVIDER).as_deref(), by_environment.as_deref()))
        .or_else(|| configured.clone());
    let model = || {
        let by_config = of_module.model.clone().or_else(|| config.model.clone());
        args.model.clone().or_else(|| by_environment.clone()).or(by_config)
    };
    let service = |kind: Kind| {
        let (base_url, refused) = match address(kind, args, config, configured.as_deref(), environment) {
            Ok(address) => (address, None),
            Err(refused) => (None, Some(refused)),
        };
        (ProviderChoice::Service { kind, model: model(), base_url }, refused)
    };
    let alone = |choice: ProviderChoice| (choice, None);
    match named.as_deref() {
        Some("replay") => Ok(alone(ProviderChoice::Replay)),
        // A model of the environment or the configuration may be meant for the service that is usually asked.
        Some(EMBEDDED) => embedded(args, config, of_module, environment, false).map(alone),
        Some(name) => Kind::parse(name).map(service).ok_or_else(|| unknown(name)),
        None => match first_with_credentials(environment) {
            Some(kind) => Ok(service(kind)),
            None => embedded(args, config, of_module, environment, true).map(alone),
        },
    }
}

/// The address of a service; `None` for the usual one. An address that nobody has trusted is used only where no key can
/// go there and the input stays on this machine; otherwise the failure says how to go on.
fn address(
    kind: Kind,
    args: &SettingOverrides,
    config: &Config,
    configured: Option<&str>,
    environment: Environment<'_>,
) -> Result<Option<String>, Failure> {
    let said = args.base_url.clone().or_else(|| environment(kind.base_url_variable()));
    if said.is_some() {
        return Ok(said);
    }
    // An address in a file belongs to the provider that stands beside it.
    let own = |beside: Option<&str>| beside.or(configured).is_none_or(|name| Kind::parse(name) == Some(kind));
    if let Some(untrusted) = config.untrusted_address.as_ref().filter(|address| own(address.of.as_deref())) {
        let key = kind.key_variable().filter(|variable| environment(variable).is_some());
        return match key {
            None if is_on_this_machine(kind, &untrusted.url) => Ok(Some(untrusted.url.clone())),
            key => Err(distrusted(kind, untrusted, key)),
        };
    }
    Ok(config.base_url.clone().filter(|_| own(config.base_url_of.as_deref())))
}

fn distrusted(kind: Kind, address: &UntrustedAddress, key: Option<&str>) -> Failure {
    let what = key.map_or_else(|| "the input".to_owned(), |variable| format!("your key (`{variable}`)"));
    let (file, place) = (address.file.display(), bare_url(&address.url));
    let message =
        format!("`base_url` of `{file}` would send {what} to an address that is not trusted: `{place}`");
    Failure::misconfigured(message)
        .with_detail("provider", serde_json::json!(kind.name()))
        .with_detail("setting", serde_json::json!("base_url"))
        .with_recoverable(false)
        .suggest(format!(
            "Look at the file, then trust it with `cogn trust`; or name the address yourself with `--base-url` or `{}`. \
             In scripts, set `{}` to the sha256 of the file",
            kind.base_url_variable(),
            env_vars::TRUST_PROJECT
        ))
}

/// Who is named: a provider, or the embedded model by the name that stands in `meta.model`.
pub(crate) fn named(provider: Option<&str>, model: Option<&str>) -> Option<String> {
    let by_model = || model.filter(|model| of_embedded(model).is_some()).map(|_| EMBEDDED.to_owned());
    provider.map(str::to_owned).or_else(by_model)
}

/// The first service that somebody set up, in a fixed order. An address alone sets up a service that needs no key.
fn first_with_credentials(environment: Environment<'_>) -> Option<Kind> {
    let order = ["openai", "anthropic", "gemini", "ollama"];
    order.iter().filter_map(|name| Kind::parse(name)).find(|kind| {
        let key = kind.key_variable().and_then(environment).is_some();
        let address = environment(kind.base_url_variable()).is_some();
        if kind.needs_key() { key } else { key || address }
    })
}

fn unknown(name: &str) -> Failure {
    let names: Vec<&str> = Kind::all().map(Kind::name).collect();
    Failure::new(ErrorCode::ProviderUnavailable, format!("unknown provider: `{name}`"))
        .suggest(format!("Use one of: {EMBEDDED}, {}, replay", names.join(", ")))
}
