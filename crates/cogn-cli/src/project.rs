//! The configuration of this process: what was typed for `--trust-project`, the files, and what of them does not count.

use std::path::PathBuf;
use std::sync::{Once, OnceLock};

use cogn::config::Config;
use cogn::layers::Layers;
use cogn::wiring;
use cognitive_contract::Failure;

use crate::platform;
use crate::printer::Printer;

/// What was typed for `--trust-project`. It is said once, before any command begins, and holds for all of them.
static VOUCHED: OnceLock<String> = OnceLock::new();

/// Takes note of what was typed for `--trust-project`.
pub(crate) fn vouch(typed: Option<String>) {
    if let Some(typed) = typed {
        // There is one command line, so it is never set twice.
        let _ = VOUCHED.set(typed);
    }
}

/// The configuration files of the project and the user, and whether the first is trusted.
pub(crate) fn layers() -> Result<Layers, Failure> {
    wiring::layers(VOUCHED.get().map(String::as_str))
}

/// What the configuration files say. What of it does not count is said on stderr, once.
pub(crate) fn config() -> Result<Config, Failure> {
    static SAID: Once = Once::new();
    let layers = layers()?;
    if let Some(notice) = layers.notice() {
        SAID.call_once(|| Printer.warning(&notice));
    }
    Ok(layers.config())
}

/// This very program, which reads documents in a process of its own; also after its file was moved or replaced by a newer one.
pub(crate) fn this_program() -> PathBuf {
    platform::this_program()
}
