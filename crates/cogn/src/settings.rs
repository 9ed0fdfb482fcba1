//! What was decided: flag over environment over configuration file over what is there. Precedence is decided here, once.
//! Reads no environment itself: it is handed a look-up, so that every decision can be tested.

use std::path::PathBuf;
use std::time::Duration;

use cognitive_contract::tier::Gate;
use cognitive_contract::{Confidence, ErrorCode, Failure};
use cognitive_net::Kind;

use crate::config::{Config, ModuleConfig};
use crate::env_vars;

/// What can be typed about the provider and the run.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ProviderArgs {
    /// Who answers: openai, anthropic, gemini, ollama, a compatible service, or replay
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// The model
    #[arg(long, short, value_name = "MODEL")]
    pub model: Option<String>,
    /// The address of the service, for example of a server of your own
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// Seconds for each call
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<u64>,
    /// Ask again up to N times after an answer that breaks the contract; each costs another call
    #[arg(long, value_name = "N")]
    pub reask: Option<u32>,
    /// The same seed gives the same text where the provider can do that
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// The longest answer, in tokens
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<u64>,
    /// Put the receipt of the run into meta.provenance
    #[arg(long)]
    pub receipt: bool,
    /// Take no liberties with the model's syntax, as tier exec never does
    #[arg(long)]
    pub strict_parse: bool,
}

/// Who answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
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
    /// Nobody is configured.
    Nobody,
}

/// The decisions about one run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Who answers.
    pub provider: Choice,
    /// The time for each call.
    pub timeout: Duration,
    /// How often the model is asked again.
    pub reask: u32,
    /// The seed.
    pub seed: Option<u64>,
    /// The longest answer, in tokens.
    pub max_tokens: Option<u64>,
    /// Whether the receipt is shown.
    pub receipt: bool,
    /// Whether the parser takes no liberties.
    pub strict_parse: bool,
    /// The operator's thresholds.
    pub gate: Gate,
    /// The store, unless the books are switched off.
    pub store: Option<PathBuf>,
    /// Whether records carry payloads.
    pub audit_payloads: bool,
}

/// Looks an environment variable up; an empty one is none.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Settings {
    /// Decides everything for a run of `module`.
    pub fn resolve(
        args: &ProviderArgs,
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
                    Failure::new(ErrorCode::InvalidInput, message)
                })?;
                Gate { exec_min_confidence: least, ..Gate::default() }
            }
        };
        Ok(Self {
            provider: choose(args, config, &of_module, environment)?,
            timeout: Duration::from_secs(args.timeout.or(config.timeout_seconds).unwrap_or(60).max(1)),
            reask: args.reask.or(of_module.reask).or(config.reask).unwrap_or(0),
            seed: args.seed,
            max_tokens: args.max_tokens,
            receipt: args.receipt || of_module.receipt.or(config.receipt).unwrap_or(false),
            strict_parse: args.strict_parse || config.strict_parse.unwrap_or(false),
            gate,
            store: store_path(config, environment),
            audit_payloads: config.audit.payloads.unwrap_or(false),
        })
    }
}

/// Where the store is; `None` if the books are switched off or nobody knows where home is.
#[must_use]
pub fn store_path(config: &Config, environment: Environment<'_>) -> Option<PathBuf> {
    if config.audit.enabled == Some(false) {
        return None;
    }
    let by_environment = || environment(env_vars::DATABASE).map(PathBuf::from);
    let at_home =
        || environment(env_vars::HOME).map(|home| PathBuf::from(home).join(".cognitive/cognitive.db"));
    by_environment().or_else(|| config.audit.path.clone()).or_else(at_home)
}

fn choose(
    args: &ProviderArgs,
    config: &Config,
    of_module: &ModuleConfig,
    environment: Environment<'_>,
) -> Result<Choice, Failure> {
    let configured = of_module.provider.clone().or_else(|| config.provider.clone());
    let named =
        args.provider.clone().or_else(|| environment(env_vars::PROVIDER)).or_else(|| configured.clone());
    let model = || {
        let by_config = of_module.model.clone().or_else(|| config.model.clone());
        args.model.clone().or_else(|| environment(env_vars::MODEL)).or(by_config)
    };
    let service = |kind: Kind| {
        // An address in the configuration belongs to the provider that stands beside it.
        let own = configured.as_deref().is_none_or(|name| Kind::parse(name) == Some(kind));
        let by_config = config.base_url.clone().filter(|_| own);
        let by_environment = environment(kind.base_url_variable());
        let base_url = args.base_url.clone().or(by_environment).or(by_config);
        Choice::Service { kind, model: model(), base_url }
    };
    match named.as_deref() {
        Some("replay") => Ok(Choice::Replay),
        Some(name) => Kind::parse(name).map(service).ok_or_else(|| unknown(name)),
        None => Ok(first_with_credentials(environment).map_or(Choice::Nobody, service)),
    }
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
    Failure::new(ErrorCode::ProviderUnavailable, format!("there is no provider called: `{name}`"))
        .suggest(format!("Use one of: {}, replay", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(
        args: &ProviderArgs,
        config: &Config,
        environment: &[(&str, &str)],
    ) -> Result<Settings, Failure> {
        let look_up = |name: &str| {
            environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Settings::resolve(args, config, &look_up, "m")
    }

    fn service(settings: &Settings) -> (&'static str, Option<&str>, Option<&str>) {
        match &settings.provider {
            Choice::Service { kind, model, base_url } => (kind.name(), model.as_deref(), base_url.as_deref()),
            other => panic!("{other:?}"),
        }
    }

    // S-07: flag, then environment, then configuration, then the first service with credentials.
    #[test]
    fn precedence_is_flag_environment_configuration_credentials() {
        let flag = ProviderArgs {
            provider: Some("ollama".into()),
            model: Some("f".into()),
            ..ProviderArgs::default()
        };
        let config = Config { provider: Some("gemini".into()), model: Some("c".into()), ..Config::default() };
        let environment = [("LLM_PROVIDER", "anthropic"), ("LLM_MODEL", "e"), ("OPENAI_API_KEY", "k")];
        assert_eq!(service(&decide(&flag, &config, &environment).unwrap()), ("ollama", Some("f"), None));
        let none = ProviderArgs::default();
        assert_eq!(service(&decide(&none, &config, &environment).unwrap()), ("anthropic", Some("e"), None));
        assert_eq!(service(&decide(&none, &config, &environment[2..]).unwrap()), ("gemini", Some("c"), None));
        assert_eq!(
            service(&decide(&none, &Config::default(), &environment[2..]).unwrap()),
            ("openai", None, None)
        );
        assert_eq!(decide(&none, &Config::default(), &[]).unwrap().provider, Choice::Nobody);
    }

    #[test]
    fn an_address_belongs_to_the_provider_beside_it() {
        let config = Config {
            provider: Some("openai".into()),
            base_url: Some("http://own".into()),
            ..Config::default()
        };
        let none = ProviderArgs::default();
        assert_eq!(service(&decide(&none, &config, &[]).unwrap()).2, Some("http://own"));
        let other = ProviderArgs { provider: Some("anthropic".into()), ..ProviderArgs::default() };
        assert_eq!(service(&decide(&other, &config, &[]).unwrap()).2, None);
    }

    #[test]
    fn unknown_names_and_odd_numbers_are_refused() {
        let args = ProviderArgs { provider: Some("opnai".into()), ..ProviderArgs::default() };
        let failure = decide(&args, &Config::default(), &[]).unwrap_err();
        assert_eq!(failure.code(), ErrorCode::ProviderUnavailable);
        assert!(failure.suggestion().unwrap().contains("openai"));
        let config = Config { exec_min_confidence: Some(90.0), ..Config::default() };
        assert!(decide(&ProviderArgs::default(), &config, &[]).is_err());
    }

    #[test]
    fn a_module_can_differ_and_the_books_can_be_closed() {
        let mut config = Config { reask: Some(1), ..Config::default() };
        config.modules.insert(
            "m".into(),
            ModuleConfig { reask: Some(3), receipt: Some(true), ..ModuleConfig::default() },
        );
        let settings = decide(&ProviderArgs::default(), &config, &[("HOME", "/h")]).unwrap();
        assert_eq!((settings.reask, settings.receipt), (3, true));
        assert_eq!(settings.store, Some(PathBuf::from("/h/.cognitive/cognitive.db")));
        config.audit.enabled = Some(false);
        assert_eq!(decide(&ProviderArgs::default(), &config, &[("HOME", "/h")]).unwrap().store, None);
    }
}
