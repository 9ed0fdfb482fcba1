//! `cogn doctor`: what is configured and by whom, what is found, what can be reached. Never shows a key, and sends none to
//! an address that a run would not send it to.

mod origins;

use std::path::PathBuf;

use cogn::config::Config;
use cogn::embedded::{self, WeightsAtHand};
use cogn::layers::Layers;
use cogn::settings::{EMBEDDED, ProviderChoice, Settings, store_path};
use cogn::weights::{BUILT_IN, SMOLLM2, WeightsFolder, hash_of};
use cogn::{async_runtime, env_vars, wiring};
use cognitive_contract::address::bare_url;
use cognitive_library::{Library, Mode, ModuleOrigin, validate};
use cognitive_net::{Kind, ProviderConfig, Secret};
use cognitive_store::Store;
use serde::Serialize;

use self::origins::SettingState;
use super::fail;
use crate::args::provider::ProviderArgs;
use crate::printer::{BAD, DOUBT, Exit, FAINT, GOOD, HEAD, NOTE, Printer, table};
use crate::project;

/// Options of `doctor`.
#[derive(Debug, clap::Args)]
pub struct DoctorArgs {
    /// Also ask the configured providers whether they answer
    #[arg(long)]
    live: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    provider: ProviderArgs,
}

/// What is known of a provider.
#[derive(Debug, Serialize)]
struct ProviderState {
    name: &'static str,
    configured: bool,
    /// The variable that holds the key, never the key.
    key: Option<&'static str>,
    /// Where a run would ask, without what an address can hide.
    address: Option<String>,
    live: Option<bool>,
    says: Option<String>,
}

/// What is known of the embedded model.
#[derive(Debug, Serialize)]
struct EmbeddedState {
    /// Whether this build has the engine.
    in_this_build: bool,
    /// Whether the weights are at hand and are what they should be.
    weights: bool,
    /// Whether there is something else in their place.
    damaged: bool,
    sha256: Option<String>,
    path: Option<PathBuf>,
    says: String,
}

/// What is known of the store.
#[derive(Debug, Serialize)]
struct StoreState {
    path: Option<PathBuf>,
    ok: Option<bool>,
    says: String,
}

/// What is known of the project's file.
#[derive(Debug, Serialize)]
struct ProjectState {
    path: PathBuf,
    sha256: String,
    trusted: bool,
    says: String,
}

/// A module of the project that stands in the place of another one with its name.
#[derive(Debug, Serialize)]
struct Hiding {
    name: String,
    hides: Vec<ModuleOrigin>,
}

/// All of it.
#[derive(Debug, Serialize)]
struct Health {
    version: &'static str,
    chosen_provider: Option<&'static str>,
    project_file: Option<ProjectState>,
    settings: Vec<SettingState>,
    embedded: EmbeddedState,
    providers: Vec<ProviderState>,
    modules: usize,
    broken_modules: Vec<String>,
    hiding_modules: Vec<Hiding>,
    store: StoreState,
}

impl Health {
    fn good(&self) -> bool {
        let reached = self.providers.iter().all(|provider| provider.says.is_none());
        let weights = self.chosen_provider != Some(EMBEDDED) || !self.embedded.damaged;
        self.broken_modules.is_empty() && self.store.ok != Some(false) && reached && weights
    }
}

/// Reports; the exit code is bad if something that is configured does not work.
pub fn doctor(args: &DoctorArgs, library: &Library, printer: &Printer) -> Exit {
    let decided = project::layers().and_then(|layers| {
        let config = layers.config();
        let overrides = args.provider.overrides();
        let settings = Settings::resolve(&overrides, &config, &wiring::environment, "")?;
        Ok((layers, config, settings))
    });
    let (layers, config, settings) = match decided {
        Ok(decided) => decided,
        Err(failure) => return fail(&failure, printer),
    };
    let (modules, broken_modules) = modules(library);
    let (chosen_provider, chosen) = match &settings.provider {
        ProviderChoice::Service { kind, .. } => (kind.name(), Some(*kind)),
        ProviderChoice::Replay => ("replay", None),
        ProviderChoice::Embedded { .. } => (EMBEDDED, None),
    };
    let health = Health {
        version: env!("CARGO_PKG_VERSION"),
        chosen_provider: Some(chosen_provider),
        project_file: project(&layers),
        settings: origins::settings(&args.provider.overrides(), &layers, chosen, &wiring::environment),
        embedded: embedded_state(&settings),
        providers: Kind::all().map(|kind| provider(kind, args, &config, &settings)).collect(),
        modules,
        broken_modules,
        hiding_modules: hiding(library),
        store: store(&config),
    };
    if args.json {
        printer.json(&health);
    } else {
        show(&health, printer);
    }
    if health.good() { Exit::Good } else { Exit::Bad }
}

fn project(layers: &Layers) -> Option<ProjectState> {
    let project = layers.project.as_ref()?;
    Some(ProjectState {
        path: project.path.clone(),
        sha256: project.sha256.clone(),
        trusted: project.standing.is_good(),
        says: project.standing.words(),
    })
}

/// The modules of the project that others with their names are hidden by.
fn hiding(library: &Library) -> Vec<Hiding> {
    let found = library.list().into_iter().filter(|found| !found.hides.is_empty());
    found.map(|found| Hiding { name: found.name, hides: found.hides }).collect()
}

fn embedded_state(settings: &Settings) -> EmbeddedState {
    let of_settings = match &settings.provider {
        ProviderChoice::Embedded { file } => file.clone(),
        _ => wiring::environment(env_vars::WEIGHTS).map(PathBuf::from),
    };
    let usual = || WeightsFolder::of(&SMOLLM2, &wiring::environment).map(|place| place.file());
    let (weights, path, says) = match embedded::at_hand(of_settings.as_deref(), &wiring::environment) {
        Some(WeightsAtHand::BuiltIn(_)) => (true, None, "the weights are part of this program".to_owned()),
        Some(WeightsAtHand::File(path)) if path.is_file() => return weights_in(path),
        Some(WeightsAtHand::File(path)) => (false, Some(path), "no such file".to_owned()),
        None if settings.offline => (false, usual(), "no weights, and fetching is forbidden".to_owned()),
        None => (false, usual(), "no weights yet; the first run that needs them fetches them".to_owned()),
    };
    let says = if embedded::IN_THIS_BUILD { says } else { "not part of this build".to_owned() };
    EmbeddedState {
        in_this_build: embedded::IN_THIS_BUILD,
        weights,
        damaged: false,
        sha256: BUILT_IN.map(|weights| weights.sha256.to_owned()),
        path,
        says,
    }
}

/// What is known of a file that is there.
fn weights_in(path: PathBuf) -> EmbeddedState {
    let hashed = hash_of(&path, &wiring::environment);
    let says = match &hashed {
        _ if !embedded::IN_THIS_BUILD => "not part of this build".to_owned(),
        Ok(sha256) if sha256 == SMOLLM2.sha256 => "the weights are here; sha256 matches".to_owned(),
        Ok(sha256) => format!("custom weights, sha256 {sha256}"),
        Err(why) => format!("damaged: {why}; `cogn model pull` fetches the weights again"),
    };
    EmbeddedState {
        in_this_build: embedded::IN_THIS_BUILD,
        weights: hashed.is_ok(),
        damaged: hashed.is_err(),
        sha256: hashed.ok(),
        path: Some(path),
        says,
    }
}

/// The service that answers is shown with the address that a run would use; of the others the environment tells.
fn provider(kind: Kind, args: &DoctorArgs, config: &Config, settings: &Settings) -> ProviderState {
    let key = kind.key_variable().and_then(wiring::environment).and_then(Secret::new);
    let is_chosen =
        matches!(&settings.provider, ProviderChoice::Service { kind: chosen, .. } if *chosen == kind);
    let address = match &settings.provider {
        ProviderChoice::Service { base_url, .. } if is_chosen => base_url.clone(),
        _ => wiring::environment(kind.base_url_variable()),
    };
    let refused = settings.refused_address.as_ref().filter(|_| is_chosen);
    let is_set_up = key.is_some() || (!kind.needs_key() && address.is_some());
    let asked = args.live && is_set_up && refused.is_none();
    let reached = asked.then(|| reach(kind, key, address.clone(), settings.plain_http));
    let place = match &config.untrusted_address {
        Some(untrusted) if refused.is_some() => Some(untrusted.url.clone()),
        _ => address.or_else(|| kind.default_base_url().map(str::to_owned)),
    };
    ProviderState {
        name: kind.name(),
        configured: is_set_up,
        key: kind.key_variable(),
        address: place.map(|place| bare_url(&place)),
        live: reached.as_ref().map(Result::is_ok),
        says: refused.map(|refused| refused.message().to_owned()).or_else(|| reached.and_then(Result::err)),
    }
}

/// Asks a service for its models; the error says why it did not answer, without the key.
fn reach(kind: Kind, key: Option<Secret>, address: Option<String>, plain_http: bool) -> Result<(), String> {
    let mut config = ProviderConfig::new(kind).with_key(key);
    config.base_url = address;
    config.plain_http = plain_http;
    let runtime = async_runtime::on_this_thread().map_err(|failure| failure.message().to_owned())?;
    runtime.block_on(cognitive_net::probe(&config)).map(|_| ()).map_err(|error| error.to_string())
}

fn modules(library: &Library) -> (usize, Vec<String>) {
    let found = library.list();
    let broken = found.iter().filter(|found| !validate(&found.folder, Mode::Standard).valid());
    let broken = broken.map(|found| found.name.clone()).collect();
    (found.len(), broken)
}

fn store(config: &Config) -> StoreState {
    let path = store_path(config, &wiring::environment);
    let (ok, says) = match path.as_deref().map(Store::open_existing) {
        None => (None, "the audit log is switched off".to_owned()),
        Some(Ok(Some(_))) => (Some(true), "in use".to_owned()),
        Some(Ok(None)) => (None, "no runs recorded yet".to_owned()),
        Some(Err(error)) => (Some(false), error.to_string()),
    };
    StoreState { path, ok, says }
}

fn show(health: &Health, printer: &Printer) {
    let store = &health.store;
    let path = store.path.as_ref().map_or_else(|| "-".to_owned(), |path| path.display().to_string());
    let broken = if health.broken_modules.is_empty() {
        String::new()
    } else {
        format!(", {BAD}broken{BAD:#}: {}", health.broken_modules.join(", "))
    };
    printer.out(format!("{HEAD}cogn {}{HEAD:#}", health.version));
    printer.out(format!("provider  {}", health.chosen_provider.unwrap_or("none is configured")));
    let weights =
        health.embedded.path.as_ref().map_or_else(|| "-".to_owned(), |path| path.display().to_string());
    printer.out(format!("embedded  {weights} ({})", health.embedded.says));
    printer.out(format!("modules   {}{broken}", health.modules));
    for module in &health.hiding_modules {
        let hides: Vec<&str> = module.hides.iter().map(|origin| origin.word()).collect();
        printer.out(format!(
            "          {NOTE}{}{NOTE:#} hides the one of: {}",
            module.name,
            hides.join(", ")
        ));
    }
    printer.out(format!("store     {path} ({})", store.says));
    show_settings(health, printer);
    printer.out("");
    let heads = ["PROVIDER", "STATE", "KEY", "ADDRESS"].map(|head| format!("{HEAD}{head}{HEAD:#}"));
    let mut rows = vec![heads.to_vec()];
    rows.extend(health.providers.iter().map(|provider| {
        let state = match (&provider.says, provider.configured, provider.live) {
            (Some(says), ..) => format!("{BAD}{says}{BAD:#}"),
            (None, _, Some(_)) => format!("{GOOD}answers{GOOD:#}"),
            (None, true, None) => format!("{GOOD}configured{GOOD:#}"),
            (None, false, None) => format!("{FAINT}not configured{FAINT:#}"),
        };
        let text = |value: Option<&str>| value.unwrap_or("-").to_owned();
        vec![provider.name.to_owned(), state, text(provider.key), text(provider.address.as_deref())]
    }));
    for line in table(&rows) {
        printer.out(line);
    }
}

/// What somebody has set, and by whom it was set.
fn show_settings(health: &Health, printer: &Printer) {
    if let Some(project) = &health.project_file {
        let style = if project.trusted { GOOD } else { DOUBT };
        printer.out(format!("project   {} ({style}{}{style:#})", project.path.display(), project.says));
    }
    let told = health.settings.iter().filter(|state| state.from != "default" || state.not_trusted.is_some());
    let rows: Vec<Vec<String>> = told
        .map(|state| {
            let value = match &state.value {
                serde_json::Value::Null => "-".to_owned(),
                serde_json::Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let from =
                state.variable.map_or_else(|| state.from.to_owned(), |variable| format!("`{variable}`"));
            let held = state.not_trusted.as_ref().map_or_else(String::new, |value| {
                format!("{DOUBT}not trusted{DOUBT:#}: {value} (see `cogn trust`)")
            });
            vec![format!("{NOTE}{}{NOTE:#}", state.setting), value, format!("{FAINT}{from}{FAINT:#}"), held]
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    let heads = ["SETTING", "VALUE", "FROM", ""].map(|head| format!("{HEAD}{head}{HEAD:#}"));
    printer.out("");
    for line in table(&[vec![heads.to_vec()], rows].concat()) {
        printer.out(line);
    }
}
