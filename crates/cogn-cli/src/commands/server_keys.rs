//! The keys that open `cogn serve`: from the environment and from a file that nobody else should be able to read. Prints
//! none of them.

use cogn::serve_config::ServeConfig;
use cogn::{env_vars, wiring};
use cognitive_contract::{ErrorCode, Failure};
use cognitive_http::ApiKey;

use crate::platform;
use crate::printer::Printer;

/// The key of the environment, those that the configuration names by their variables, and those of the file.
pub(super) fn keys(config: &ServeConfig, printer: &Printer) -> Result<Vec<ApiKey>, Failure> {
    let mut keys = Vec::new();
    if let Some(key) = wiring::environment(env_vars::SERVER_KEY) {
        keys.push(key_named("default", &key)?);
    }
    for (name, variable) in config.keys.iter().flatten() {
        let key = wiring::environment(variable).ok_or_else(|| {
            let message = format!("`serve.keys.{name}` names a variable that is not set: `{variable}`");
            Failure::misconfigured(message)
                .suggest(format!("Set `{variable}` to the key, or take the line out"))
        })?;
        keys.push(key_named(name, &key)?);
    }
    let Some(path) = &config.keys_file else { return Ok(keys) };
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::new(ErrorCode::InvalidReference, format!("cannot read `{}`: {error}", path.display()))
    })?;
    if platform::others_can_read(path) {
        let path = path.display();
        printer.alarm(&format!(
            "others on this machine can read the keys in `{path}`; `chmod 600 {path}` prevents it"
        ));
    }
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, key) = line.split_once(char::is_whitespace).ok_or_else(|| {
            let message = format!("line {} of `{}` is not `NAME KEY`", number + 1, path.display());
            Failure::new(ErrorCode::InvalidInput, message)
        })?;
        keys.push(key_named(name, key.trim())?);
    }
    Ok(keys)
}

fn key_named(name: &str, key: &str) -> Result<ApiKey, Failure> {
    ApiKey::new(name, key).ok_or_else(|| {
        Failure::new(ErrorCode::InvalidInput, format!("the key `{name}` is too short"))
            .suggest("A key has at least 16 characters; `openssl rand -hex 24` makes one")
    })
}
