//! The settings that a project's `cognitive.yaml` may not set without trust. A user who clones a repository has not
//! read that file. Settings that redirect keys, data or records therefore take effect only after `cogn trust` has
//! recorded the file, or if the user vouches for it. Every member of the configuration is classified here; a new member
//! fails to compile until it is.

mod ledger;
#[cfg(test)]
mod tests;

use std::path::Path;

use cognitive_contract::RunSettings;
use cognitive_contract::address::shown_setting;
use cognitive_contract::tier::Gate;
use serde::Serialize;
use serde_json::{Value, json};

use crate::config::{
    AuditConfig, BudgetConfig, ClimbConfig, Config, ContextConfig, KeepConfig, MediaConfig, ModuleConfig,
    PricesConfig, UntrustedAddress,
};
use crate::env_vars;
use crate::review_config::ReviewConfig;
use crate::serve_config::ServeConfig;
use crate::services::is_on_this_machine;
use crate::settings::{EMBEDDED, Environment, ProviderChoice, ServiceChoice, destinations, embedded_name};
use crate::weights::{KnownWeights, weights_file};

pub use ledger::{Ledger, TrustedFile};

/// The reason to hold back a limit of cost.
const COSTS_MORE: &str = "runs may cost more than your own file allows";

/// A setting that takes effect only in a trusted file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeldBack {
    /// Its name, such as `audit.path`.
    pub setting: String,
    /// Its value in the file, for display: addresses without their secrets.
    pub value: Value,
    /// The reason why it needs trust.
    pub because: &'static str,
}

/// Splits the settings of a project's file into those that always take effect and those that need trust. `below` is the
/// user's own file. A setting that does not change the effective value needs no trust.
#[must_use]
pub fn sift(
    says: &Config,
    below: &Config,
    file: &Path,
    environment: Environment<'_>,
) -> (Config, Vec<HeldBack>) {
    let mut withheld = WithheldSettings::default();
    // Without `..`, so that a new member must be classified here.
    let Config {
        provider,
        model,
        default_model,
        providers,
        climb,
        base_url,
        api,
        run,
        budget,
        prices,
        exec_min_confidence,
        audit,
        review,
        context,
        media,
        serve,
        modules,
        cognitive,
        base_url_of,
        untrusted_address: _,
    } = says.clone();
    let destinations = Destinations { below, environment };
    let (provider, model) = withheld.provider(provider, model, &destinations);
    let untrusted_address = base_url.filter(|url| Some(url) != below.base_url.as_ref()).map(|url| {
        withheld.note("base_url", json!(url), "the key and all inputs are sent there");
        UntrustedAddress { url, of: base_url_of, file: file.to_owned() }
    });
    let (provider_of_all, model_of_all) = (provider.clone(), model.clone());
    let counts = Config {
        provider,
        model,
        default_model: withheld.weights("default_model", default_model, below.default_model.as_ref()),
        providers: withheld.hold(
            "providers",
            providers,
            below.providers.as_ref(),
            "inputs are sent to these models",
        ),
        climb: withheld.climb(climb, below.climb),
        base_url: None,
        base_url_of: None,
        // The same service is asked in another form.
        api,
        untrusted_address,
        run: withheld.run("", run, below.run),
        budget: BudgetConfig {
            per_day: withheld.at_most(
                "budget.per_day".into(),
                budget.per_day,
                below.budget.per_day,
                COSTS_MORE,
            ),
            per_key: withheld.at_most(
                "budget.per_key".into(),
                budget.per_key,
                below.budget.per_key,
                COSTS_MORE,
            ),
        },
        prices: withheld.prices(prices, &below.prices),
        exec_min_confidence: withheld.at_least(exec_min_confidence, below.exec_min_confidence),
        audit: withheld.audit(audit, &below.audit),
        review: withheld.review(review, &below.review),
        context: ContextConfig {
            not_secret: withheld.hold(
                "context.not_secret",
                context.not_secret,
                below.context.not_secret.as_ref(),
                "context members that look like secrets reach the model",
            ),
        },
        media: withheld.media(media, &below.media),
        serve: withheld.serve(serve, &below.serve),
        modules: modules
            .into_iter()
            .map(|(name, own)| {
                let top = (provider_of_all.as_deref(), model_of_all.as_deref());
                let kept = withheld.module(&name, own, &destinations, top);
                (name, kept)
            })
            .collect(),
        cognitive,
    };
    (counts, withheld.held)
}

/// Collects the settings that are held back.
#[derive(Debug, Default)]
struct WithheldSettings {
    held: Vec<HeldBack>,
}

impl WithheldSettings {
    fn note(&mut self, setting: impl Into<String>, value: Value, because: &'static str) {
        self.held.push(HeldBack { setting: setting.into(), value: shown_setting(value), because });
    }

    /// Holds a setting back unless it equals the effective value `now`.
    fn hold<T: Serialize + PartialEq>(
        &mut self,
        setting: &str,
        says: Option<T>,
        now: Option<&T>,
        because: &'static str,
    ) -> Option<T> {
        let value = says?;
        if now == Some(&value) {
            return Some(value);
        }
        self.note(setting, json!(value), because);
        None
    }

    /// Judges provider and model for all modules. They take effect if every input goes where it would go without them.
    fn provider(
        &mut self,
        provider: Option<String>,
        model: Option<String>,
        destinations: &Destinations<'_>,
    ) -> (Option<String>, Option<String>) {
        let with = Config {
            provider: provider.clone().or_else(|| destinations.below.provider.clone()),
            model: model.clone().or_else(|| destinations.below.model.clone()),
            ..destinations.below.clone()
        };
        let modules = destinations.below.modules.keys().map(|name| Some(name.as_str()));
        let moves = std::iter::once(None).chain(modules).any(|module| destinations.moves(&with, module));
        self.choice("", (provider, model), moves, &with)
    }

    /// Judges provider and model for one module; `with` is the configuration that would apply the choice.
    fn choice(
        &mut self,
        place: &str,
        (provider, model): (Option<String>, Option<String>),
        moves: bool,
        with: &Config,
    ) -> (Option<String>, Option<String>) {
        if moves && (provider.is_some() || model.is_some()) {
            let because = "inputs are sent to another service than without this file";
            let (setting, value) = match &provider {
                Some(provider) => ("provider", json!(provider)),
                None => ("model", json!(model)),
            };
            self.note(format!("{place}{setting}"), value, because);
            // The model belongs to the service.
            return (None, None);
        }
        let named = provider.as_deref().or(with.provider.as_deref());
        let for_embedded = named.is_none_or(|name| name == EMBEDDED);
        let delicate = model.as_deref().and_then(|model| danger(model, for_embedded));
        if let Some(because) = delicate {
            self.note(format!("{place}model"), json!(model), because);
            return (provider, None);
        }
        (provider, model)
    }

    /// The weights of the embedded model.
    fn weights(&mut self, setting: &str, says: Option<String>, now: Option<&String>) -> Option<String> {
        let because = says.as_deref().and_then(|model| danger(model, true));
        match because {
            None => says,
            Some(because) => self.hold(setting, says, now, because),
        }
    }

    fn module(
        &mut self,
        name: &str,
        says: ModuleConfig,
        destinations: &Destinations<'_>,
        (provider_of_all, model_of_all): (Option<&str>, Option<&str>),
    ) -> ModuleConfig {
        let ModuleConfig { provider, model, api, run, local_only } = says;
        let below = destinations.below;
        let of_module = below.modules.get(name).cloned().unwrap_or_default();
        // A project cannot override a user's `local_only`. Without the note, the whole file would be in effect.
        let sends_away = local_only == Some(false) && of_module.local_only == Some(true);
        if sends_away {
            let because = "your own file keeps the inputs of this module on this machine";
            self.note(format!("modules.{name}.local_only"), json!(false), because);
        }
        let local_only = local_only.filter(|_| !sends_away);
        let below_of_module = of_module.run.or(below.run);
        let own = ModuleConfig {
            provider: provider.clone().or_else(|| of_module.provider.clone()),
            model: model.clone().or_else(|| of_module.model.clone()),
            ..of_module
        };
        let mut with = Config {
            provider: provider_of_all.map(str::to_owned).or_else(|| below.provider.clone()),
            model: model_of_all.map(str::to_owned).or_else(|| below.model.clone()),
            ..below.clone()
        };
        with.modules.insert(name.to_owned(), own.clone());
        let moves = destinations.moves(&with, Some(name));
        let seen = Config { provider: own.provider.or_else(|| with.provider.clone()), ..Config::default() };
        let place = format!("modules.{name}.");
        let (provider, model) = self.choice(&place, (provider, model), moves, &seen);
        let run = self.run(&place, run, below_of_module);
        ModuleConfig { provider, model, api, run, local_only }
    }

    /// Any file may raise a threshold.
    fn at_least(&mut self, says: Option<f64>, below: Option<f64>) -> Option<f64> {
        let value = says?;
        if value >= below.unwrap_or(Gate::default().exec_min_confidence.get()) {
            return Some(value);
        }
        self.note("exec_min_confidence", json!(value), "answers with a lower confidence pass in tier `exec`");
        None
    }

    /// The options of runs. Any file may tighten a limit. The others cost time or calls, which the limits cap, or make a
    /// run stricter.
    fn run(&mut self, place: &str, says: RunSettings, below: RunSettings) -> RunSettings {
        // Without `..`, so that a new option must be classified here.
        let RunSettings {
            max_calls,
            max_cost,
            max_output_tokens,
            timeout,
            strict_parse,
            reask: _,
            seed: _,
            thinking: _,
            receipt: _,
            early_stop: _,
            no_cache: _,
            enforcement: _,
        } = says;
        let calls = Some(below.call_limit());
        let name = |option: &str| format!("{place}{option}");
        let seconds = self.at_most(
            name("timeout"),
            timeout.map(|time| time.as_secs_f64()),
            below.timeout.map(|time| time.as_secs_f64()),
            "calls may take longer than your own file allows",
        );
        let is_looser = strict_parse == Some(false) && below.is_strict();
        if is_looser {
            let because = "replies are accepted that your own file refuses";
            self.note(name("strict_parse"), json!(false), because);
        }
        RunSettings {
            timeout: timeout.filter(|_| seconds.is_some()),
            strict_parse: strict_parse.filter(|_| !is_looser),
            max_calls: self.at_most(
                name("max_calls"),
                max_calls,
                calls,
                "runs may make more model calls than your own file allows",
            ),
            max_cost: self.at_most(name("max_cost"), max_cost, below.max_cost, COSTS_MORE),
            max_output_tokens: self.at_most(
                name("max_output_tokens"),
                max_output_tokens,
                below.max_output_tokens,
                "answers may be longer and cost more than your own file allows",
            ),
            ..says
        }
    }

    /// The rules for the next model of a ladder. A rule may only demand more of an answer than the user's own rule. An
    /// exemption demands less, so it needs trust if the user has a rule that it weakens.
    fn climb(&mut self, says: ClimbConfig, below: ClimbConfig) -> ClimbConfig {
        const WEAKER: &str = "weaker answers pass than your own file accepts";
        let mut keep = |setting: &str, loosens: bool, value: Value| {
            if loosens {
                self.note(setting, value, WEAKER);
            }
            !loosens
        };
        let ClimbConfig { below_confidence, above_risk, unless_agreed } = says;
        let exempts = |value: f64| match below.unless_agreed {
            Some(own) => value < own,
            None => below.below_confidence.is_some(),
        };
        ClimbConfig {
            below_confidence: below_confidence.filter(|value| {
                let loosens = below.below_confidence.is_some_and(|own| *value < own);
                keep("climb.below_confidence", loosens, json!(value))
            }),
            above_risk: above_risk.filter(|value| {
                let loosens = below.above_risk.is_some_and(|own| *value > own);
                keep("climb.above_risk", loosens, json!(value))
            }),
            unless_agreed: unless_agreed
                .filter(|value| keep("climb.unless_agreed", exempts(*value), json!(value))),
        }
    }

    /// Any file may lower a limit. If the user has no limit, every limit is lower.
    fn at_most<T: PartialOrd + Serialize>(
        &mut self,
        setting: String,
        says: Option<T>,
        below: Option<T>,
        because: &'static str,
    ) -> Option<T> {
        let value = says?;
        if below.is_none_or(|limit| value <= limit) {
            return Some(value);
        }
        self.note(setting, json!(value), because);
        None
    }

    /// Prices that are too low would weaken every cost limit.
    fn prices(&mut self, says: PricesConfig, below: &PricesConfig) -> PricesConfig {
        let said = (says != PricesConfig::default()).then_some(says);
        self.hold("prices", said, Some(below), "cost limits depend on these prices").unwrap_or_default()
    }

    fn audit(&mut self, says: AuditConfig, below: &AuditConfig) -> AuditConfig {
        let AuditConfig { enabled, payloads, path, required, keep } = says;
        let needed = below.required.unwrap_or(false);
        let kept = (keep != KeepConfig::default()).then_some(keep);
        let (recorded, bare) = (below.enabled.unwrap_or(true), below.payloads.unwrap_or(false));
        AuditConfig {
            enabled: self.hold("audit.enabled", enabled, Some(&recorded), "it decides if runs are recorded"),
            payloads: self.hold(
                "audit.payloads",
                payloads,
                Some(&bare),
                "it decides if records contain inputs and answers",
            ),
            path: self.hold(
                "audit.path",
                path,
                below.path.as_ref(),
                "the audit log and stored context are written there",
            ),
            required: self.hold(
                "audit.required",
                required,
                Some(&needed),
                "it decides if calls are made that cannot be recorded",
            ),
            keep: self
                .hold("audit.keep", kept, Some(&below.keep), "it decides which records are dropped")
                .unwrap_or_default(),
        }
    }

    /// Reviewed runs are stored with input and answer, and a full queue lets runs pass without review. The user's rules
    /// always apply.
    fn review(&mut self, says: ReviewConfig, below: &ReviewConfig) -> ReviewConfig {
        let ReviewConfig { rules, max_open, max_decided } = says;
        let because = "it limits the number of stored reviews";
        ReviewConfig {
            rules: self.hold(
                "review.rules",
                rules,
                below.rules.as_ref(),
                "inputs and answers of these runs are stored",
            ),
            max_open: self.hold("review.max_open", max_open, below.max_open.as_ref(), because),
            max_decided: self.hold("review.max_decided", max_decided, below.max_decided.as_ref(), because),
        }
    }

    fn serve(&mut self, says: ServeConfig, below: &ServeConfig) -> ServeConfig {
        // Any file may set the port and restrict what is served. A new member is held back.
        let ServeConfig { port, modules, bundled, transports, .. } = says.clone();
        let open = ServeConfig { port, modules, bundled, transports, ..ServeConfig::default() };
        let delicate = ServeConfig { port: None, modules: None, bundled: None, transports: None, ..says };
        let because = "it controls access to the server and its limits";
        let as_map = |config: &ServeConfig| match json!(config) {
            Value::Object(members) => members,
            _ => serde_json::Map::new(),
        };
        let (own, mut left) = (as_map(below), as_map(&open));
        for (name, value) in as_map(&delicate) {
            if value.is_null() {
                continue;
            }
            if own.get(&name) == Some(&value) {
                left.insert(name, value);
            } else {
                self.note(format!("serve.{name}"), value, because);
            }
        }
        serde_json::from_value(Value::Object(left)).unwrap_or_default()
    }

    fn media(&mut self, says: MediaConfig, below: &MediaConfig) -> MediaConfig {
        let MediaConfig {
            allow_http,
            trusted_origins,
            roots,
            max_size_mb,
            shortest_side,
            keep_metadata,
            uploads,
        } = says;
        let (plain, kept) = (below.allow_http.unwrap_or(false), below.keep_metadata.unwrap_or(false));
        let larger = max_size_mb.filter(|size| below.max_size_mb.is_some_and(|own| *size > own));
        MediaConfig {
            allow_http: self.hold(
                "media.allow_http",
                allow_http,
                Some(&plain),
                "media are fetched without TLS",
            ),
            trusted_origins: self.hold(
                "media.trusted_origins",
                trusted_origins,
                below.trusted_origins.as_ref(),
                "media are fetched from addresses inside your own network",
            ),
            roots: self.hold(
                "media.roots",
                roots,
                below.roots.as_ref(),
                "callers of `cogn serve` may name files there",
            ),
            // Any file may lower it.
            max_size_mb: match larger {
                None => max_size_mb,
                Some(_) => self.hold(
                    "media.max_size_mb",
                    larger,
                    None,
                    "media may be larger than your own file allows",
                ),
            },
            shortest_side,
            keep_metadata: self.hold(
                "media.keep_metadata",
                keep_metadata,
                Some(&kept),
                "image metadata, such as the place where it was taken, reaches the model",
            ),
            uploads: self.hold("media.uploads", uploads, below.uploads.as_ref(), "uploads are written there"),
        }
    }
}

/// Returns the risk of a model name: opening a file, or a download that the user did not request. The default weights
/// are small and downloaded in any case.
fn danger(model: &str, for_embedded: bool) -> Option<&'static str> {
    let name = embedded_name(model);
    if weights_file(name.unwrap_or(model)).is_some() {
        return Some("the file is opened as the weights of a model");
    }
    let known = KnownWeights::from_name(name.unwrap_or(model)).filter(|_| for_embedded || name.is_some());
    known
        .filter(|known| !known.are_usual())
        .map(|_| "hundreds of megabytes are downloaded, and as much memory is used")
}

/// The destinations of inputs without the project's file.
struct Destinations<'a> {
    below: &'a Config,
    environment: Environment<'a>,
}

impl Destinations<'_> {
    /// Returns whether another configuration would send the inputs of a module elsewhere. An unusable choice sends
    /// nothing, and the run reports the reason.
    fn moves(&self, with: &Config, module: Option<&str>) -> bool {
        let Ok(now) = destinations(with, self.environment, module) else { return false };
        let before = destinations(self.below, self.environment, module).unwrap_or_default();
        let is_known = |choice: &ProviderChoice| before.iter().any(|known| same_place(known, choice));
        let starts_alike = match (before.first(), now.first()) {
            (Some(before), Some(now)) => same_place(before, now),
            _ => false,
        };
        if starts_alike && now.iter().all(is_known) {
            return false;
        }
        // If the user chose nothing, a project may keep inputs on this machine.
        self.has_user_choice(module) || !now.iter().all(|choice| self.is_local(choice))
    }

    /// Returns whether the user's file or the environment names a provider or a model.
    fn has_user_choice(&self, module: Option<&str>) -> bool {
        let own = module.and_then(|name| self.below.modules.get(name));
        let named = |provider: &Option<String>, model: &Option<String>| provider.is_some() || model.is_some();
        own.is_some_and(|own| named(&own.provider, &own.model))
            || named(&self.below.provider, &self.below.model)
            || self.below.providers.is_some()
            || self.below.base_url.is_some()
            || [env_vars::PROVIDER, env_vars::MODEL].iter().any(|name| (self.environment)(name).is_some())
    }

    /// Returns whether inputs stay on this machine and no key is sent.
    fn is_local(&self, choice: &ProviderChoice) -> bool {
        match choice {
            ProviderChoice::Embedded { .. } | ProviderChoice::Replay => true,
            ProviderChoice::Service(ServiceChoice { kind, base_url, .. }) => {
                let has_key =
                    kind.key_variable().is_some_and(|variable| (self.environment)(variable).is_some());
                let address = base_url.as_deref().or_else(|| kind.default_base_url());
                !has_key && address.is_some_and(|address| is_on_this_machine(*kind, address))
            }
        }
    }
}

/// Returns whether two choices send inputs to the same place.
fn same_place(one: &ProviderChoice, other: &ProviderChoice) -> bool {
    match (one, other) {
        (ProviderChoice::Embedded { .. }, ProviderChoice::Embedded { .. }) => true,
        (ProviderChoice::Service(one), ProviderChoice::Service(other)) => {
            one.kind == other.kind && one.base_url == other.base_url
        }
        (one, other) => one == other,
    }
}
