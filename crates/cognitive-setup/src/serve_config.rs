//! The settings of `cogn serve` apart from the provider. A flag overrides the environment, which overrides the
//! configuration file. All three use the same names, so each setting is available in all of them. Holds no key, only
//! the names of the variables and of the file that hold keys.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use cognitive_contract::{ErrorCode, Failure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::env_vars;
use crate::settings::Environment;

/// The settings of the server. All members are optional.
#[derive(Debug, Clone, Default, Deserialize, Serialize, PartialEq, Eq, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServeConfig {
    /// The address to listen on; any but a loopback address needs a key.
    #[schemars(with = "Option<String>")]
    pub host: Option<IpAddr>,
    /// The port; 0 picks a free one.
    pub port: Option<u16>,
    /// API keys: the name of each, and the environment variable that holds it; `{env, roles}` also sets its roles.
    pub keys: Option<BTreeMap<String, ServerKeyConfig>>,
    /// A file with keys, one `NAME KEY [ROLE,…]` per line.
    #[schemars(with = "Option<String>")]
    pub keys_file: Option<PathBuf>,
    /// Serves Studio as the first page; the default is true.
    pub studio: Option<bool>,
    /// Folders in which authors may change modules. Without any, modules cannot be changed over HTTP.
    #[schemars(with = "Option<Vec<String>>")]
    pub edit: Option<Vec<PathBuf>>,
    /// Models that authors may name in addition to the configured one, such as `openai/gpt-5-mini` or
    /// `embedded/qwen-0.5b`.
    pub models: Option<Vec<String>>,
    /// Web origins that may call from a browser.
    pub cors: Option<Vec<String>>,
    /// The modules to offer; all by default.
    pub modules: Option<Vec<String>>,
    /// Offers the bundled modules as well; the default is true.
    pub bundled: Option<bool>,
    /// The tools that agents see at `/mcp`: `all`, `search`, or names of modules separated by commas.
    pub tools: Option<String>,
    /// Runs per minute and client; 0 is no limit.
    pub rate: Option<u32>,
    /// Streams at once per client; 0 is no limit.
    pub streams: Option<usize>,
    /// Connections at once per address; 0 is no limit.
    pub per_address: Option<usize>,
    /// Maximum size of a request body, in units of 1,048,576 bytes.
    pub max_body_mb: Option<usize>,
    /// Seconds that a model call continues after its client disconnects.
    pub grace_seconds: Option<u64>,
    /// Seconds that open streams may take to finish when the server stops.
    pub drain_seconds: Option<u64>,
    /// Transports for streams: `sse`, `ndjson`, `websocket`; all by default.
    pub transports: Option<Vec<String>>,
    /// Redis shared by several servers: they share rate limits, streams and logins.
    pub shared: Option<String>,
    /// The collector that traces are sent to.
    pub otlp: Option<String>,
    /// Writes an access log; the default is true.
    pub access_log: Option<bool>,
}

/// A key of the server.
#[derive(Debug, Clone, Deserialize, Serialize, PartialEq, Eq, JsonSchema)]
#[serde(untagged)]
pub enum ServerKeyConfig {
    /// The variable that holds a key which runs modules.
    Variable(String),
    /// The variable that holds a key, and the roles of the key.
    WithRoles(RoledKeyConfig),
}

/// A key and its roles.
#[derive(Debug, Clone, Deserialize, Serialize, PartialEq, Eq, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoledKeyConfig {
    /// The variable that holds it.
    pub env: String,
    /// `run`, `author`, `review` and `admin`, which is all of them.
    pub roles: Vec<String>,
}

impl ServerKeyConfig {
    /// Returns the variable that holds the key.
    #[must_use]
    pub fn variable(&self) -> &str {
        match self {
            Self::Variable(variable) => variable,
            Self::WithRoles(key) => &key.env,
        }
    }

    /// Returns the roles of the key, if any are set.
    #[must_use]
    pub fn roles(&self) -> Option<&[String]> {
        match self {
            Self::Variable(_) => None,
            Self::WithRoles(key) => Some(&key.roles),
        }
    }
}

impl ServeConfig {
    /// Merges all three: flags, environment, configuration.
    pub fn decide(typed: Self, config: &Self, environment: Environment<'_>) -> Result<Self, Failure> {
        Ok(typed.or(Self::from_environment(environment)?).or(config.clone()))
    }

    /// Reads the settings of the environment.
    fn from_environment(environment: Environment<'_>) -> Result<Self, Failure> {
        let list = |variable: &str| {
            let text = environment(variable)?;
            Some(text.split(',').map(|each| each.trim().to_owned()).filter(|each| !each.is_empty()).collect())
        };
        Ok(Self {
            host: read(environment, env_vars::SERVE_HOST, "an IP address")?,
            port: read(environment, env_vars::SERVE_PORT, "a port")?,
            rate: read(environment, env_vars::SERVE_RATE, "a number of runs per minute")?,
            keys_file: environment(env_vars::SERVE_KEYS).map(PathBuf::from),
            cors: list(env_vars::SERVE_CORS),
            modules: list(env_vars::SERVE_MODULES),
            shared: environment(env_vars::SERVE_SHARED),
            ..Self::default()
        })
    }

    /// Merges two sets of settings: this one wins, and `other` fills the gaps.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            host: self.host.or(other.host),
            port: self.port.or(other.port),
            keys: self.keys.or(other.keys),
            keys_file: self.keys_file.or(other.keys_file),
            studio: self.studio.or(other.studio),
            edit: self.edit.or(other.edit),
            models: self.models.or(other.models),
            cors: self.cors.or(other.cors),
            modules: self.modules.or(other.modules),
            bundled: self.bundled.or(other.bundled),
            tools: self.tools.or(other.tools),
            rate: self.rate.or(other.rate),
            streams: self.streams.or(other.streams),
            per_address: self.per_address.or(other.per_address),
            max_body_mb: self.max_body_mb.or(other.max_body_mb),
            grace_seconds: self.grace_seconds.or(other.grace_seconds),
            drain_seconds: self.drain_seconds.or(other.drain_seconds),
            transports: self.transports.or(other.transports),
            shared: self.shared.or(other.shared),
            otlp: self.otlp.or(other.otlp),
            access_log: self.access_log.or(other.access_log),
        }
    }
}

fn read<T: FromStr>(environment: Environment<'_>, variable: &str, what: &str) -> Result<Option<T>, Failure> {
    let Some(text) = environment(variable) else { return Ok(None) };
    text.trim().parse().map(Some).map_err(|_| {
        let text = cognitive_contract::text::cut(&text, 80);
        Failure::new(ErrorCode::InvalidInput, format!("`{variable}` is not {what}: `{text}`"))
            .suggest(format!("Correct `{variable}`, or leave it out"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precedence_is_flag_environment_configuration() {
        let environment = |name: &str| match name {
            env_vars::SERVE_PORT => Some("9001".to_owned()),
            env_vars::SERVE_MODULES => Some("a, b,".to_owned()),
            _ => None,
        };
        let config =
            ServeConfig { port: Some(9002), rate: Some(7), streams: Some(1), ..ServeConfig::default() };
        let typed = ServeConfig { rate: Some(9), ..ServeConfig::default() };
        let decided = ServeConfig::decide(typed, &config, &environment).unwrap();
        assert_eq!((decided.port, decided.rate, decided.streams), (Some(9001), Some(9), Some(1)));
        assert_eq!(decided.modules, Some(vec!["a".to_owned(), "b".to_owned()]));
    }

    #[test]
    fn a_key_may_say_what_it_is_good_for() {
        let says = serde_json::json!({ "keys": { "app": "APP_KEY", "ann": { "env": "ANN_KEY", "roles": ["review"] } } });
        let config: ServeConfig = serde_json::from_value(says).unwrap();
        let keys = config.keys.unwrap();
        assert_eq!((keys["app"].variable(), keys["app"].roles()), ("APP_KEY", None));
        assert_eq!((keys["ann"].variable(), keys["ann"].roles().unwrap().len()), ("ANN_KEY", 1));
        for odd in
            [serde_json::json!({ "env": "A" }), serde_json::json!({ "env": "A", "roles": [], "more": 1 })]
        {
            let says = serde_json::json!({ "keys": { "ann": odd } });
            assert!(serde_json::from_value::<ServeConfig>(says).is_err());
        }
    }

    #[test]
    fn a_variable_that_cannot_be_read_is_named() {
        let environment = |name: &str| (name == env_vars::SERVE_HOST).then(|| "localhost".to_owned());
        let refused = ServeConfig::decide(ServeConfig::default(), &ServeConfig::default(), &environment);
        let refused = refused.unwrap_err();
        assert_eq!(refused.message(), "`COGN_SERVE_HOST` is not an IP address: `localhost`");
        assert!(refused.suggestion().is_some());
    }
}
