//! The types of a configuration file, and how two files are merged. Holds the values as written; `layers.rs` reads the
//! files and `settings.rs` resolves them. Keys do not belong here: they come only from the environment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cognitive_contract::editor_schema::for_editors;
use cognitive_contract::money::Money;
use cognitive_contract::{Risk, RunSettings};
use cognitive_library::find::nearest;
use cognitive_library::yaml;
use cognitive_ports::openai_api::OpenAiApi;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::review_config::ReviewConfig;
use crate::serve_config::ServeConfig;
use crate::weights::weights_file;

/// The contents of a configuration file. All members are optional.
// Unknown keys are refused by `unknown_setting`: serde cannot refuse them beside flattened members.
#[derive(Debug, Clone, Default, Deserialize, Serialize, PartialEq, JsonSchema)]
#[serde(default)]
pub struct Config {
    /// The provider: `openai`, `anthropic`, `gemini`, `ollama`, `embedded` or another one in the list below.
    pub provider: Option<String>,
    /// The model, by the name that its provider uses.
    pub model: Option<String>,
    /// The default weights of the embedded model: a name in `cogn model list`, or a GGUF file.
    pub default_model: Option<String>,
    /// The model fallback chain, such as `embedded/qwen-0.5b` and `openai/gpt-5-mini`: the next model is asked until an
    /// answer is good enough. Replaces `provider` and `model`.
    pub providers: Option<Vec<String>>,
    /// The conditions, besides failures, under which the next of `providers` is asked.
    pub climb: ClimbConfig,
    /// The base URL of the service, if it is not the default one.
    pub base_url: Option<String>,
    /// The API of models that OpenAI's two can reach: `chat` or `responses`. Unless set, the model decides: OpenAI's models
    /// from GPT-5.5 on, and `*-pro` and Codex, need `responses`; all others get `chat`.
    pub api: Option<OpenAiApi>,
    /// The options of all runs.
    #[serde(flatten)]
    pub run: RunSettings,
    /// The daily spending limits. A run that could exceed one does not start.
    pub budget: BudgetConfig,
    /// Model prices, in addition to the bundled ones.
    pub prices: PricesConfig,
    /// The minimum confidence in tier `exec`; an answer below it fails.
    pub exec_min_confidence: Option<f64>,
    /// The audit log: its contents and retention.
    pub audit: AuditConfig,
    /// The rules for human review.
    pub review: ReviewConfig,
    /// The context that reaches a model.
    pub context: ContextConfig,
    /// The limits and permitted sources of media.
    pub media: MediaConfig,
    /// The settings of `cogn serve`.
    pub serve: ServeConfig,
    /// The settings of single modules.
    pub modules: BTreeMap<String, ModuleConfig>,
    /// `cognitive: {spec_versions: […]}`, as v2.2 prints the configuration of a runtime. Ignored: a file cannot change
    /// the supported versions.
    pub cognitive: Option<Value>,
    /// The provider that the file of `base_url` names, if it names one: the address is meant for that one only.
    #[serde(skip)]
    pub base_url_of: Option<String>,
    /// The address in an untrusted file, in place of `base_url`.
    #[serde(skip)]
    pub untrusted_address: Option<UntrustedAddress>,
}

/// The spending limits of a day in UTC.
#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize, PartialEq, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetConfig {
    /// The limit for all callers together, in US dollars.
    #[schemars(with = "Option<f64>")]
    pub per_day: Option<Money>,
    /// The limit for each key of the server, in US dollars; callers without a key share one.
    #[schemars(with = "Option<f64>")]
    pub per_key: Option<Money>,
}

impl BudgetConfig {
    fn or(self, other: Self) -> Self {
        Self { per_day: self.per_day.or(other.per_day), per_key: self.per_key.or(other.per_key) }
    }
}

/// Model prices.
#[derive(Debug, Clone, Default, Deserialize, Serialize, PartialEq, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PricesConfig {
    /// A file with your own price table in YAML or JSON, with `as_of` and `models`.
    #[schemars(with = "Option<String>")]
    pub file: Option<PathBuf>,
    /// The date of the prices in `models`, such as `2026-11-17`.
    pub as_of: Option<String>,
    /// Prices by `provider/model`, in US dollars per million tokens: `{input: 2.5, output: 10, cache_read: 1.25}`.
    pub models: BTreeMap<String, Value>,
}

impl PricesConfig {
    fn or(self, other: Self) -> Self {
        let mut models = other.models;
        models.extend(self.models);
        Self { file: self.file.or(other.file), as_of: self.as_of.or(other.as_of), models }
    }
}

/// When the next of `providers` is asked.
#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize, PartialEq, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClimbConfig {
    /// The answer has a lower confidence than this, from 0 to 1.
    pub below_confidence: Option<f64>,
    /// The answer has a higher risk than this: `none`, `low`, `medium` or `high`.
    pub above_risk: Option<Risk>,
    /// Exempts an answer that an earlier model gave, too, if one of the two has at least this confidence, from 0 to 1.
    pub unless_agreed: Option<f64>,
}

impl ClimbConfig {
    fn or(self, other: Self) -> Self {
        Self {
            below_confidence: self.below_confidence.or(other.below_confidence),
            above_risk: self.above_risk.or(other.above_risk),
            unless_agreed: self.unless_agreed.or(other.unless_agreed),
        }
    }
}

/// An address in an untrusted file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UntrustedAddress {
    /// The address.
    pub url: String,
    /// The provider that the file names, if any.
    pub of: Option<String>,
    /// The file.
    pub file: PathBuf,
}

/// The settings of the audit log.
#[derive(Debug, Clone, Default, Deserialize, Serialize, PartialEq, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AuditConfig {
    /// Records runs; the default is true.
    pub enabled: Option<bool>,
    /// Includes input and envelope in records.
    pub payloads: Option<bool>,
    /// The database: a file, or a PostgreSQL server as `postgres://USER@HOST/DATABASE` (its password comes from
    /// `COGNITIVE_DB_PASSWORD`).
    #[schemars(with = "Option<String>")]
    pub path: Option<PathBuf>,
    /// Refuses model calls that cannot be recorded.
    pub required: Option<bool>,
    /// The retention limits.
    pub keep: KeepConfig,
}

/// The retention limits of the audit log, for each tenant, or for each key without tenants.
#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize, PartialEq, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KeepConfig {
    /// Maximum number of records of runs and calls; events in runs have a quarter of it.
    pub records: Option<u64>,
    /// Maximum size of records, in MiB.
    pub mb: Option<u64>,
    /// Maximum size of payloads, in MiB.
    pub payload_mb: Option<u64>,
    /// Maximum age of records, in days; unlimited unless set.
    pub days: Option<u64>,
}

impl KeepConfig {
    fn or(self, other: Self) -> Self {
        Self {
            records: self.records.or(other.records),
            mb: self.mb.or(other.mb),
            payload_mb: self.payload_mb.or(other.payload_mb),
            days: self.days.or(other.days),
        }
    }
}

/// The context that reaches a model.
#[derive(Debug, Clone, Default, Deserialize, Serialize, PartialEq, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ContextConfig {
    /// Names of members that look like secrets but are not, such as `keywords`.
    pub not_secret: Option<Vec<String>>,
}

/// The limits and permitted sources of media.
#[derive(Debug, Clone, Default, Deserialize, Serialize, PartialEq, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MediaConfig {
    /// Also fetches media from `http` URLs.
    pub allow_http: Option<bool>,
    /// Origins in your own network that media may be fetched from, such as `http://media.internal:9000`.
    pub trusted_origins: Option<Vec<String>>,
    /// Folders whose files remote callers may name.
    #[schemars(with = "Option<Vec<String>>")]
    pub roots: Option<Vec<PathBuf>>,
    /// Maximum size of an item, in units of 1,048,576 bytes.
    pub max_size_mb: Option<u32>,
    /// Minimum length of the shorter side of an image, in pixels.
    pub shortest_side: Option<u32>,
    /// Sends image metadata, such as the place where it was taken, to the model.
    pub keep_metadata: Option<bool>,
    /// The folder for uploads to the server.
    #[schemars(with = "Option<String>")]
    pub uploads: Option<PathBuf>,
}

impl MediaConfig {
    fn or(self, other: Self) -> Self {
        Self {
            allow_http: self.allow_http.or(other.allow_http),
            trusted_origins: self.trusted_origins.or(other.trusted_origins),
            roots: self.roots.or(other.roots),
            max_size_mb: self.max_size_mb.or(other.max_size_mb),
            shortest_side: self.shortest_side.or(other.shortest_side),
            keep_metadata: self.keep_metadata.or(other.keep_metadata),
            uploads: self.uploads.or(other.uploads),
        }
    }
}

/// The settings of one module.
#[derive(Debug, Clone, Default, Deserialize, Serialize, PartialEq, JsonSchema)]
#[serde(default)]
pub struct ModuleConfig {
    /// The provider.
    pub provider: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The API of its model: `chat` or `responses`.
    pub api: Option<OpenAiApi>,
    /// The options of its runs.
    #[serde(flatten)]
    pub run: RunSettings,
    /// Ask only models on this machine, for the module and its parts.
    pub local_only: Option<bool>,
}

impl ModuleConfig {
    fn or(self, other: Self) -> Self {
        Self {
            provider: self.provider.or(other.provider),
            model: self.model.or(other.model),
            api: self.api.or(other.api),
            run: self.run.or(other.run),
            local_only: self.local_only.or(other.local_only),
        }
    }
}

/// Returns the JSON Schema of a configuration file, for editors.
#[must_use]
pub fn editor_schema() -> Value {
    let mut schema = SchemaSettings::draft07().into_generator().into_root_schema_for::<Config>().to_value();
    let old = json!({ "type": "number", "deprecated": true, "description": "The old name of `timeout`" });
    for pointer in ["/properties", "/definitions/ModuleConfig/properties"] {
        if let Some(Value::Object(members)) = schema.pointer_mut(pointer) {
            members.insert("timeout_seconds".to_owned(), old.clone());
        }
    }
    for_editors(schema, &[])
}

impl Config {
    /// Parses a file. The error is a reason with its line, without the file name.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim_start_matches('\u{feff}');
        let value = yaml::parse(text).map_err(|error| match error.offset {
            Some(offset) => format!("line {}: {}", line_of(text, offset), error.message),
            None => error.message,
        })?;
        if value.is_null() {
            return Ok(Self::default());
        }
        if let Some(unknown) = unknown_setting(&value, &Self::known_settings(&value), text) {
            return Err(unknown);
        }
        let mut config: Self = serde_json::from_value(value).map_err(|error| error.to_string())?;
        config.base_url_of.clone_from(&config.provider);
        Ok(config)
    }

    /// Returns all known settings as a sample value, with an entry for each module that the file names.
    fn known_settings(says: &Value) -> Value {
        let named =
            says.get("modules").and_then(Value::as_object).into_iter().flat_map(|modules| modules.keys());
        let modules = named.map(|name| (name.clone(), ModuleConfig::default())).collect();
        let models_with_prices =
            says.pointer("/prices/models").and_then(Value::as_object).into_iter().flatten();
        let prices = PricesConfig {
            models: models_with_prices.map(|(name, _)| (name.clone(), Value::Null)).collect(),
            ..PricesConfig::default()
        };
        serde_json::to_value(Self { prices, modules, ..Self::default() }).unwrap_or_default()
    }

    /// Resolves relative paths against the folder of the file, independent of the working directory.
    #[must_use]
    pub fn with_paths_from(mut self, folder: &Path) -> Self {
        if folder == Path::new(".") {
            return self;
        }
        let from = |path: PathBuf| if path.is_relative() { folder.join(path) } else { path };
        // The address of a server is not a path.
        let is_server = |path: &Path| path.to_str().is_some_and(|text| text.contains("://"));
        self.audit.path = self.audit.path.map(|path| if is_server(&path) { path } else { from(path) });
        self.default_model = self.default_model.map(|model| match weights_file(&model) {
            Some(file) => from(file).to_string_lossy().into_owned(),
            None => model,
        });
        self.media.uploads = self.media.uploads.map(from);
        self.media.roots = self.media.roots.map(|roots| roots.into_iter().map(from).collect());
        self.serve.keys_file = self.serve.keys_file.map(from);
        self.serve.edit = self.serve.edit.map(|folders| folders.into_iter().map(from).collect());
        self.prices.file = self.prices.file.map(from);
        self
    }

    /// Merges two files: this one wins, member by member, and `other` fills the gaps.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let mut modules = other.modules;
        for (name, own) in self.modules {
            let below = modules.remove(&name).unwrap_or_default();
            modules.insert(name, own.or(below));
        }
        let (base_url, base_url_of) = match self.base_url {
            Some(own) => (Some(own), self.base_url_of),
            None => (other.base_url, other.base_url_of),
        };
        Self {
            provider: self.provider.or(other.provider),
            model: self.model.or(other.model),
            providers: self.providers.or(other.providers),
            climb: self.climb.or(other.climb),
            default_model: self.default_model.or(other.default_model),
            base_url,
            base_url_of,
            api: self.api.or(other.api),
            untrusted_address: self.untrusted_address.or(other.untrusted_address),
            run: self.run.or(other.run),
            budget: self.budget.or(other.budget),
            prices: self.prices.or(other.prices),
            exec_min_confidence: self.exec_min_confidence.or(other.exec_min_confidence),
            audit: AuditConfig {
                enabled: self.audit.enabled.or(other.audit.enabled),
                payloads: self.audit.payloads.or(other.audit.payloads),
                path: self.audit.path.or(other.audit.path),
                required: self.audit.required.or(other.audit.required),
                keep: self.audit.keep.or(other.audit.keep),
            },
            review: self.review.or(other.review),
            context: ContextConfig { not_secret: self.context.not_secret.or(other.context.not_secret) },
            media: self.media.or(other.media),
            serve: self.serve.or(other.serve),
            modules,
            cognitive: self.cognitive.or(other.cognitive),
        }
    }

    /// Returns every setting by its name, such as `media.roots`, with its value; null if it is not set.
    #[must_use]
    pub fn by_name(&self) -> Vec<(String, Value)> {
        let mut found = Vec::new();
        flatten("", &serde_json::to_value(self).unwrap_or_default(), &mut found);
        // `cognitive` is accepted and ignored, so it is not a setting.
        found.retain(|(name, _)| name != "cognitive");
        found
    }
}

/// Returns the name of a setting that had another one.
fn new_name(old: &str) -> Option<&'static str> {
    (old == "timeout_seconds").then_some("timeout")
}

/// Returns a message about the first unknown setting, with its line and the closest known name.
fn unknown_setting(says: &Value, known: &Value, text: &str) -> Option<String> {
    let (Value::Object(says), Value::Object(known)) = (says, known) else { return None };
    for (name, inner) in says.iter().filter(|(name, _)| *name != "cognitive") {
        let Some(below) = known.get(name).or_else(|| known.get(new_name(name)?)) else {
            let at = text.lines().position(|line| names(line, name));
            let place = at.map(|at| format!("line {}: ", at + 1)).unwrap_or_default();
            let meant = nearest(name, known.keys().map(String::as_str));
            let meant = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
            return Some(format!("{place}unknown setting `{name}`{meant}"));
        };
        if let Some(unknown) = unknown_setting(inner, below, text) {
            return Some(unknown);
        }
    }
    None
}

/// Returns whether a line of YAML has a member with this name.
fn names(line: &str, name: &str) -> bool {
    let before_colon = |(at, _): (usize, &str)| {
        line.get(at + name.len()..)
            .is_some_and(|rest| rest.trim_start_matches(['"', '\'']).trim_start().starts_with(':'))
    };
    line.match_indices(name).any(before_colon)
}

/// Returns the line number of a byte, from 1.
fn line_of(text: &str, offset: usize) -> usize {
    text.get(..offset).unwrap_or(text).matches('\n').count() + 1
}

fn flatten(name: &str, value: &Value, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(members) if name != "cognitive" => {
            for (member, value) in members {
                let inner = if name.is_empty() { member.clone() } else { format!("{name}.{member}") };
                flatten(&inner, value, found);
            }
        }
        value => found.push((name.to_owned(), value.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_file_wins_member_by_member() {
        let first = Config::parse("model: large\nmodules: {m: {reask: 1}}\n").unwrap();
        let second = "provider: ollama\nmodel: small\nmodules: {m: {provider: vllm, reask: 2}}\naudit: {payloads: true}\n";
        let config = first.or(Config::parse(second).unwrap());
        assert_eq!((config.provider.as_deref(), config.model.as_deref()), (Some("ollama"), Some("large")));
        assert_eq!(config.audit.payloads, Some(true));
        assert_eq!(config.modules["m"].run.reask, Some(1));
        assert_eq!(config.modules["m"].provider.as_deref(), Some("vllm"));
        assert_eq!(Config::parse("").unwrap(), Config::default());
    }

    #[test]
    fn unknown_names_are_refused_and_so_are_those_of_this_program() {
        for text in ["modle: large\n", "base_url_of: openai\n", "untrusted_address: {}\n", "a: 1\na: 2\n"] {
            assert!(Config::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_slip_is_told_with_its_line_and_what_was_meant() {
        for (text, told) in [
            ("reask: 1\nmodle: large\n", "line 2: unknown setting `modle`; did you mean `model`?"),
            ("audit:\n  payload: true\n", "line 2: unknown setting `payload`; did you mean `payloads`?"),
            ("modules: {m: {reaks: 1}}\n", "line 1: unknown setting `reaks`; did you mean `reask`?"),
            ("frobnicate: 1\n", "line 1: unknown setting `frobnicate`"),
        ] {
            assert_eq!(Config::parse(text).unwrap_err(), told);
        }
        let broken = Config::parse("reask: 1\nmodel: [\n").unwrap_err();
        assert!(broken.starts_with("line "), "{broken}");
    }

    #[test]
    fn relative_paths_are_seen_from_the_folder_of_the_file() {
        let config = Config::parse("audit: {path: a.db}\nmedia: {roots: [in, /abs], uploads: up}\n").unwrap();
        let seen = config.clone().with_paths_from(Path::new(".."));
        assert_eq!(seen.audit.path, Some(PathBuf::from("../a.db")));
        assert_eq!(seen.media.roots, Some(vec![PathBuf::from("../in"), PathBuf::from("/abs")]));
        assert_eq!(config.clone().with_paths_from(Path::new(".")), config);
    }

    #[test]
    fn the_schema_for_editors_knows_what_the_reader_knows() {
        let schema = editor_schema();
        let accepts = |text: &str| cognitive_schema::accepts(&schema, &yaml::parse(text).unwrap());
        for text in [
            "model: large\n",
            "audit: {keep: {days: 30}}\nmodules: {m: {reask: 1}}\n",
            "cognitive: {spec_versions: []}\n",
        ] {
            assert!(Config::parse(text).is_ok() && accepts(text), "{text}");
        }
        for text in ["modle: large\n", "audit: {keep: {day: 30}}\n", "reask: two\n", "base_url_of: openai\n"]
        {
            assert!(Config::parse(text).is_err() && !accepts(text), "{text}");
        }
        assert!(schema["properties"]["model"]["description"].is_string());
    }

    #[test]
    fn an_address_stays_with_the_provider_of_its_own_file() {
        let user = Config::parse("provider: openai\nbase_url: https://own\n").unwrap();
        let both = Config::parse("provider: anthropic\n").unwrap().or(user);
        assert_eq!(both.provider.as_deref(), Some("anthropic"));
        assert_eq!(both.base_url_of.as_deref(), Some("openai"));
    }

    #[test]
    fn every_setting_has_a_name() {
        let config =
            Config::parse("media: {roots: [/a]}\nmodules: {m: {reask: 1}}\ncognitive: {x: 1}\n").unwrap();
        let named = config.by_name();
        let value =
            |name: &str| named.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        assert_eq!(value("media.roots"), Some(json!(["/a"])));
        assert_eq!(value("modules.m.reask"), Some(json!(1)));
        assert_eq!(value("audit.path"), Some(Value::Null));
        assert_eq!(value("cognitive"), None);
    }
}
