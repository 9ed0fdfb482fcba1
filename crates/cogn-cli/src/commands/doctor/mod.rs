//! `cogn doctor`: settings with their origins, modules, providers and their reachability, and the next steps. Continues
//! if a file is unusable, and reports the reason. Never shows a key, and sends one only to an address that a run would
//! send it to.

mod origins;
mod show;

use std::path::PathBuf;

use cognitive_contract::address::bare_url;
use cognitive_library::{Library, Mode, ModuleOrigin, ValidationSurroundings, validate_with};
use cognitive_net::{Kind, ProviderConfig, Secret};
use cognitive_setup::config::Config;
use cognitive_setup::embedded_model::{self, WeightsAtHand};
use cognitive_setup::layers::{Layers, USER_FILE};
use cognitive_setup::settings::{
    EMBEDDED, OverrideScope, ProviderChoice, SettingOverrides, Settings, store_path,
};
use cognitive_setup::stores::existing_store;
use cognitive_setup::weights::{BUILT_IN, KnownWeights, WeightsChoice, hash_of};
use cognitive_setup::{async_runtime, env_vars, wiring};
use cognitive_store::{Store, StoreOptions};
use cognitive_testing::GoldenExpectations;
use serde::Serialize;

use self::origins::SettingState;
use crate::args::provider::ProviderArgs;
use crate::printer::{Exit, Printer};
use crate::project;

/// Options of `doctor`.
#[derive(Debug, clap::Args)]
pub struct DoctorArgs {
    /// Also check that the configured providers respond
    #[arg(long)]
    live: bool,
    /// Also show unconfigured providers and unset settings
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    provider: ProviderArgs,
}

/// The state of a provider.
#[derive(Debug, Serialize)]
struct ProviderState {
    name: &'static str,
    configured: bool,
    /// The variable that holds the key, never the key.
    key: Option<&'static str>,
    /// The address that a run would use, without secret parts.
    address: Option<String>,
    live: Option<bool>,
    says: Option<String>,
}

/// The state of the embedded model.
#[derive(Debug, Default, Serialize)]
struct EmbeddedState {
    /// True if this build has the engine.
    in_this_build: bool,
    /// True if the weights are available and verified.
    weights: bool,
    /// True if another file has taken their place.
    damaged: bool,
    sha256: Option<String>,
    path: Option<PathBuf>,
    says: String,
    /// The known weights that a run would use.
    #[serde(skip)]
    known: Option<&'static KnownWeights>,
}

/// The state of the store.
#[derive(Debug, Serialize)]
struct StoreState {
    path: Option<PathBuf>,
    ok: Option<bool>,
    says: String,
}

/// A configuration file.
#[derive(Debug, Serialize)]
struct FileState {
    path: PathBuf,
    /// `read`, `not there`, or the reason why it is not fully in effect.
    says: String,
    good: bool,
}

/// The state of the project's file.
#[derive(Debug, Serialize)]
struct ProjectState {
    path: PathBuf,
    sha256: String,
    trusted: bool,
    says: String,
}

/// A project module that shadows another one with the same name.
#[derive(Debug, Serialize)]
struct Hiding {
    name: String,
    hides: Vec<ModuleOrigin>,
}

/// The complete report.
#[derive(Debug, Serialize)]
struct Health {
    version: &'static str,
    /// The reasons why a file or a setting is unusable. The rest of the report ignores them.
    problems: Vec<String>,
    chosen_provider: Option<&'static str>,
    /// The model that a run would call.
    model: Option<String>,
    files: Vec<FileState>,
    project_file: Option<ProjectState>,
    settings: Vec<SettingState>,
    embedded: EmbeddedState,
    providers: Vec<ProviderState>,
    modules: usize,
    own_modules: usize,
    broken_modules: Vec<String>,
    hiding_modules: Vec<Hiding>,
    store: StoreState,
    /// The next steps, the most important first.
    next: Vec<String>,
}

impl Health {
    fn good(&self) -> bool {
        let reached = self.providers.iter().all(|provider| provider.says.is_none());
        let weights = self.chosen_provider != Some(EMBEDDED) || !self.embedded.damaged;
        self.problems.is_empty()
            && self.broken_modules.is_empty()
            && self.store.ok != Some(false)
            && reached
            && weights
    }
}

/// Prints the report; the exit code is bad if a configured part does not work.
pub fn doctor(args: &DoctorArgs, library: &Library, printer: &Printer) -> Exit {
    let health = examine(args, library);
    if args.json {
        printer.json(&health);
    } else {
        show::show(&health, args.all, printer);
    }
    if health.good() { Exit::Good } else { Exit::Bad }
}

fn examine(args: &DoctorArgs, library: &Library) -> Health {
    let (layers, mut problems) = project::usable_layers();
    let config = layers.config();
    let overrides = args.provider.overrides();
    let settings = Settings::resolve(&overrides, &config, &wiring::environment, OverrideScope::Process)
        .or_else(|failure| {
            problems.push(failure.message().to_owned());
            // The defaults without flags, configuration and environment cannot fail.
            Settings::resolve(
                &SettingOverrides::default(),
                &Config::default(),
                &|_| None,
                OverrideScope::Process,
            )
        });
    let (modules, own_modules, broken_modules) = modules(library);
    let chosen = settings.as_ref().ok().and_then(|settings| match &settings.provider {
        ProviderChoice::Service(service) => Some(service.kind),
        ProviderChoice::Replay | ProviderChoice::Embedded { .. } => None,
    });
    let settled = settings.as_ref().ok().filter(|_| problems.is_empty());
    let mut health = Health {
        version: env!("CARGO_PKG_VERSION"),
        chosen_provider: settled.map(|settings| name(&settings.provider)),
        model: settled.and_then(model),
        files: files(&layers, &problems),
        project_file: project(&layers),
        settings: origins::settings(&overrides, &layers, chosen, &wiring::environment),
        embedded: settings.as_ref().map(embedded_state).unwrap_or_default(),
        providers: settings
            .iter()
            .flat_map(|settings| Kind::all().map(|kind| provider(kind, args, &config, settings)))
            .collect(),
        modules,
        own_modules,
        broken_modules,
        hiding_modules: shadowing_modules(library),
        store: store(&config),
        next: Vec::new(),
        problems,
    };
    health.next = show::next(&health, args.live);
    health
}

fn name(provider: &ProviderChoice) -> &'static str {
    match provider {
        ProviderChoice::Service(service) => service.kind.name(),
        ProviderChoice::Replay => "replay",
        ProviderChoice::Embedded { .. } => EMBEDDED,
    }
}

/// Returns the model that a run would call, as far as it is known in advance.
fn model(settings: &Settings) -> Option<String> {
    match &settings.provider {
        ProviderChoice::Service(_) => wiring::model(settings).map(str::to_owned),
        ProviderChoice::Embedded { weights: WeightsChoice::File(file) } => Some(file.display().to_string()),
        ProviderChoice::Embedded { weights } => Some(weights.name()),
        ProviderChoice::Replay => None,
    }
}

/// Returns the configuration files that are searched, with the state of each.
fn files(layers: &Layers, problems: &[String]) -> Vec<FileState> {
    let state = |path: PathBuf, read: Option<(String, bool)>| {
        let shown = format!("`{}`", path.display());
        let broken = problems.iter().find(|problem| problem.contains(&shown));
        let (says, good) = match (broken, read) {
            (Some(_), _) => ("cannot be used, see above".to_owned(), false),
            (None, Some(read)) => read,
            (None, None) => ("not there".to_owned(), true),
        };
        FileState { path, says, good }
    };
    let of_project = match &layers.project {
        Some(file) => (file.path.clone(), Some((file.standing.words(), file.standing.is_good()))),
        None => (project::file(), None),
    };
    let user = wiring::home().map(|home| home.join(USER_FILE));
    let user = user.map(|path| (path, layers.user.as_ref().map(|_| ("read".to_owned(), true))));
    [Some(of_project), user].into_iter().flatten().map(|(path, read)| state(path, read)).collect()
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

/// Returns the modules that shadow others with the same name.
fn shadowing_modules(library: &Library) -> Vec<Hiding> {
    let found = library.list().into_iter().filter(|found| !found.hides.is_empty());
    found.map(|found| Hiding { name: found.name, hides: found.hides }).collect()
}

fn embedded_state(settings: &Settings) -> EmbeddedState {
    let choice = match &settings.provider {
        ProviderChoice::Embedded { weights } => weights.clone(),
        _ => wiring::environment(env_vars::WEIGHTS)
            .map_or(WeightsChoice::Usual, |file| WeightsChoice::File(PathBuf::from(file))),
    };
    let usual = || choice.file(&wiring::environment);
    let (weights, path, says) = match embedded_model::at_hand(&choice, &wiring::environment) {
        Some(WeightsAtHand::BuiltIn(_)) => (true, None, "the weights are built in".to_owned()),
        Some(WeightsAtHand::File(path)) if path.is_file() => return weights_in(path, choice.known_weights()),
        Some(WeightsAtHand::File(path)) => (false, Some(path), "no such file".to_owned()),
        None if settings.offline => (false, usual(), "no weights, and downloads are disabled".to_owned()),
        None => (false, usual(), "no weights yet; the first run that needs them downloads them".to_owned()),
    };
    let says = if embedded_model::IN_THIS_BUILD { says } else { "not part of this build".to_owned() };
    EmbeddedState {
        in_this_build: embedded_model::IN_THIS_BUILD,
        weights,
        damaged: false,
        sha256: BUILT_IN.map(|weights| weights.sha256.to_owned()),
        path,
        says,
        known: choice.known_weights(),
    }
}

/// Returns the state of an existing file of weights.
fn weights_in(path: PathBuf, known: Option<&'static KnownWeights>) -> EmbeddedState {
    let hashed = hash_of(&path, &wiring::environment);
    let says = match &hashed {
        _ if !embedded_model::IN_THIS_BUILD => "not part of this build".to_owned(),
        Ok(sha256) if KnownWeights::with_hash(sha256).is_some() => "weights found; sha256 matches".to_owned(),
        Ok(sha256) => format!("custom weights, sha256 {sha256}"),
        Err(why) => match known {
            Some(known) => format!("damaged: {why}; `{}` downloads the weights again", known.pull_command()),
            None => format!("damaged: {why}"),
        },
    };
    EmbeddedState {
        in_this_build: embedded_model::IN_THIS_BUILD,
        weights: hashed.is_ok(),
        damaged: hashed.is_err(),
        sha256: hashed.ok(),
        path: Some(path),
        says,
        known,
    }
}

/// Returns the state of a service. The chosen service has the address that a run would use; others have that of the
/// environment.
fn provider(kind: Kind, args: &DoctorArgs, config: &Config, settings: &Settings) -> ProviderState {
    let key = kind.key_variable().and_then(wiring::environment).and_then(Secret::new);
    let is_chosen = matches!(&settings.provider, ProviderChoice::Service(service) if service.kind == kind);
    let address = match &settings.provider {
        ProviderChoice::Service(service) if is_chosen => service.base_url.clone(),
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

/// Requests the model list of a service. The error is the reason for the failure, without the key.
fn reach(kind: Kind, key: Option<Secret>, address: Option<String>, plain_http: bool) -> Result<(), String> {
    let mut config = ProviderConfig::new(kind).with_key(key);
    config.base_url = address;
    config.plain_http = plain_http;
    let runtime = async_runtime::on_this_thread().map_err(|failure| failure.message().to_owned())?;
    runtime.block_on(cognitive_net::probe(&config)).map(|_| ()).map_err(|error| error.to_string())
}

/// Returns the number of modules, the number of user modules, and the broken ones.
fn modules(library: &Library) -> (usize, usize, Vec<String>) {
    let found = library.list();
    let own = found.iter().filter(|found| found.origin != ModuleOrigin::Bundled).count();
    let around = ValidationSurroundings { expectations: Some(&GoldenExpectations), ..Default::default() };
    let broken = found.iter().filter(|found| !validate_with(around, &found.folder, Mode::Standard).valid());
    let broken = broken.map(|found| found.name.clone()).collect();
    (found.len(), own, broken)
}

fn store(config: &Config) -> StoreState {
    let path = store_path(config, &wiring::environment);
    let (ok, says) = match path.as_deref().map(|path| existing_store(path, StoreOptions::default())) {
        None => (None, "the audit log is disabled".to_owned()),
        Some(Ok(Some(_))) => (Some(true), "in use".to_owned()),
        Some(Ok(None)) => (None, "no runs recorded yet".to_owned()),
        Some(Err(error)) => (Some(false), error.to_string()),
    };
    // The address of a server may contain a password.
    StoreState { path: path.as_deref().map(Store::display_path), ok, says }
}
