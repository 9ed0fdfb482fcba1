//! The configuration of this process: what was typed for `--trust-project` and `--config`, the files, and what of them does
//! not count.

use std::path::PathBuf;
use std::sync::{Once, OnceLock};

use cogn::config::Config;
use cogn::layers::{Layers, PROJECT_FILE, USER_FILE};
use cogn::wiring;
use cognitive_contract::Failure;
use cognitive_library::Library;

use crate::platform;
use crate::printer::Printer;

/// What was typed for `--trust-project`. It is said once, before any command begins, and holds for all of them.
static VOUCHED: OnceLock<String> = OnceLock::new();

/// The file that was typed for `--config`.
static NAMED: OnceLock<PathBuf> = OnceLock::new();

/// Takes note of what was typed for `--trust-project` and for `--config`. There is one command line, so neither is set twice.
pub(crate) fn vouch(typed: Option<String>, config: Option<PathBuf>) {
    if let Some(typed) = typed {
        let _ = VOUCHED.set(typed);
    }
    if let Some(config) = config {
        let _ = NAMED.set(config);
    }
}

/// The configuration files of the project and the user, and whether the first is trusted.
pub(crate) fn layers() -> Result<Layers, Failure> {
    wiring::layers(VOUCHED.get().map(String::as_str), NAMED.get().map(PathBuf::as_path))
}

/// The same as far as the files can be used, with the reason for each that cannot.
pub(crate) fn usable_layers() -> (Layers, Vec<String>) {
    wiring::usable_layers(VOUCHED.get().map(String::as_str), NAMED.get().map(PathBuf::as_path))
}

/// The file of the project that would be read, whether it is there or not.
pub(crate) fn file() -> PathBuf {
    NAMED.get().cloned().unwrap_or_else(|| wiring::project_root().join(PROJECT_FILE))
}

/// What the configuration files say. What of it does not count is said on stderr, once.
pub(crate) fn config() -> Result<Config, Failure> {
    static SAID: Once = Once::new();
    let layers = layers()?;
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

/// The name that a module has itself, for a name or path as it was typed. Configuration names modules by it.
pub(crate) fn own_name(library: &Library, typed: &str) -> String {
    library.load(typed).map_or_else(|_| typed.to_owned(), |module| module.manifest.name.clone())
}

/// This very program, which reads documents in a process of its own; also after its file was moved or replaced by a newer one.
pub(crate) fn this_program() -> PathBuf {
    platform::this_program()
}
