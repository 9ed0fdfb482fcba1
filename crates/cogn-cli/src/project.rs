//! The configuration of this process: the values of `--trust-project` and `--config`, the files, and the settings that
//! are not in effect.

use std::path::PathBuf;
use std::sync::{Once, OnceLock};

use cognitive_contract::Failure;
use cognitive_contract::ports::ModuleSource;
use cognitive_library::{Library, ModuleCache};
use cognitive_setup::config::Config;
use cognitive_setup::layers::{Layers, PROJECT_FILE, USER_FILE};
use cognitive_setup::{Runtime, RuntimeBuilder, wiring};

use crate::args::provider::ProviderArgs;
use crate::platform;
use crate::printer::Printer;

/// The value of `--trust-project`. It is set once, before any command starts, and applies to all of them.
static VOUCHED: OnceLock<String> = OnceLock::new();

/// The value of `--config`.
static NAMED: OnceLock<PathBuf> = OnceLock::new();

/// Stores the values of `--trust-project` and `--config`. There is one command line, so each is set only once.
pub(crate) fn set_trust_options(typed: Option<String>, config: Option<PathBuf>) {
    if let Some(typed) = typed {
        let _ = VOUCHED.set(typed);
    }
    if let Some(config) = config {
        let _ = NAMED.set(config);
    }
}

/// Reads the usable configuration files and returns the reason for each one that is unusable.
pub(crate) fn usable_layers() -> (Layers, Vec<String>) {
    wiring::usable_layers(VOUCHED.get().map(String::as_str), NAMED.get().map(PathBuf::as_path))
}

/// Returns the path of the project's file, which may be missing.
pub(crate) fn file() -> PathBuf {
    NAMED.get().cloned().unwrap_or_else(|| wiring::project_root().join(PROJECT_FILE))
}

/// Reads the merged configuration. Settings that are not in effect are reported on stderr, once.
pub(crate) fn config() -> Result<Config, Failure> {
    static SAID: Once = Once::new();
    let layers = wiring::layers(VOUCHED.get().map(String::as_str), NAMED.get().map(PathBuf::as_path))?;
    SAID.call_once(|| {
        if let Some(notice) = layers.notice() {
            Printer.warning(&notice);
        }
        let user = wiring::home().map(|home| home.join(USER_FILE)).filter(|_| layers.user.is_some());
        let project = layers.project.as_ref().map(|project| project.path.clone());
        for file in project.into_iter().chain(user) {
            Printer.detail("configuration", file.display());
        }
    });
    Ok(layers.config())
}

/// Starts the runtime of a command: its flags over the environment over the files of this project and user.
pub(crate) fn runtime(library: &Library, typed: &ProviderArgs) -> Result<RuntimeBuilder, Failure> {
    let builder = Runtime::builder().with_env().config(config()?).overrides(typed.overrides());
    Ok(builder.module_source(ModuleCache::new(library.clone())).document_reader(this_program()))
}

/// Returns the module's own name for a typed name or path. The configuration refers to modules by that name.
pub(crate) fn own_name(modules: &dyn ModuleSource, typed: &str) -> String {
    modules.module(typed).map_or_else(|_| typed.to_owned(), |module| module.manifest.name.clone())
}

/// Returns the path of this program, which reads documents in a separate process; on Linux it stays valid after the
/// file was moved or replaced.
pub(crate) fn this_program() -> PathBuf {
    platform::this_program()
}
