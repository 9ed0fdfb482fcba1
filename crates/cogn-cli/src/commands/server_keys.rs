//! The API keys of `cogn serve`, from the environment and from a file that other users should not be able to read.
//! Prints none of them.

use cognitive_contract::{ErrorCode, Failure};
use cognitive_http::{ApiKey, KeyRole, Roles};
use cognitive_setup::serve_config::ServeConfig;
use cognitive_setup::{env_vars, wiring};

use crate::platform;
use crate::printer::Printer;

/// Returns the key of the environment, the keys in the variables that the configuration names, and those of the file.
pub(super) fn keys(config: &ServeConfig, printer: &Printer) -> Result<Vec<ApiKey>, Failure> {
    let mut keys = Vec::new();
    if let Some(key) = wiring::environment(env_vars::SERVER_KEY) {
        keys.push(key_named("default", &key)?);
    }
    for (name, said) in config.keys.iter().flatten() {
        let variable = said.variable();
        let key = wiring::environment(variable).ok_or_else(|| {
            let message = format!("`serve.keys.{name}` names a variable that is not set: `{variable}`");
            Failure::config_fault(message).suggest(format!("Set `{variable}` to the key, or remove the line"))
        })?;
        let roles = said.roles().map(|words| roles(name, words)).transpose()?;
        keys.push(with_roles(key_named(name, &key)?, roles));
    }
    let Some(path) = &config.keys_file else { return Ok(keys) };
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::new(ErrorCode::InvalidReference, format!("cannot read `{}`: {error}", path.display()))
    })?;
    if platform::others_can_read(path) {
        let path = path.display();
        printer.alarm(&format!(
            "other users of this machine can read the keys in `{path}`; `chmod 600 {path}` prevents it"
        ));
    }
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, key, said) = match words[..] {
            [name, key] => (name, key, None),
            [name, key, said] => (name, key, Some(said)),
            _ => {
                let message =
                    format!("line {} of `{}` is not `NAME KEY [ROLE,…]`", number + 1, path.display());
                return Err(Failure::new(ErrorCode::InvalidInput, message));
            }
        };
        let words = said.map(|said| said.split(',').map(str::to_owned).collect::<Vec<_>>());
        let roles = words.map(|words| roles(name, &words)).transpose()?;
        keys.push(with_roles(key_named(name, key)?, roles));
    }
    Ok(keys)
}

fn with_roles(key: ApiKey, roles: Option<Roles>) -> ApiKey {
    match roles {
        Some(roles) => key.with_roles(roles),
        None => key,
    }
}

fn roles(name: &str, words: &[String]) -> Result<Roles, Failure> {
    let role = |word: &String| {
        KeyRole::parse(word.trim()).ok_or_else(|| {
            let known = KeyRole::ALL.map(KeyRole::word).join(", ");
            Failure::new(ErrorCode::InvalidInput, format!("the key `{name}` has an unknown role: `{word}`"))
                .suggest(format!("Use some of: {known}"))
        })
    };
    words.iter().map(role).collect::<Result<Vec<_>, _>>().map(Roles::from_roles)
}

fn key_named(name: &str, key: &str) -> Result<ApiKey, Failure> {
    ApiKey::new(name, key).ok_or_else(|| {
        Failure::new(ErrorCode::InvalidInput, format!("the key `{name}` is too short"))
            .suggest("A key needs at least 16 characters; `openssl rand -hex 24` generates one")
    })
}
