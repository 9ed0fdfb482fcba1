//! The configuration files: `cognitive.yaml` in the project over `~/.cognitive/config.yaml`.
//! Holds what was written; `settings.rs` decides. Keys do not belong here: they come from the environment only.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cognitive_library::yaml;
use serde::Deserialize;

/// What a configuration file may say. Everything is optional.
#[derive(Debug, Clone, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Who answers.
    pub provider: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The address of the service.
    pub base_url: Option<String>,
    /// Seconds for each call.
    pub timeout_seconds: Option<u64>,
    /// How often the model is asked again after a broken answer.
    pub reask: Option<u32>,
    /// The most model calls of one run.
    pub max_calls: Option<u64>,
    /// Take no liberties with the model's syntax.
    pub strict_parse: Option<bool>,
    /// Stop a call as soon as its answer cannot become valid any more.
    pub early_stop: Option<bool>,
    /// Put the receipt into `meta.provenance`.
    pub receipt: Option<bool>,
    /// Below this an exec answer fails.
    pub exec_min_confidence: Option<f64>,
    /// The books.
    pub audit: AuditConfig,
    /// What context reaches a model.
    pub context: ContextConfig,
    /// What media may be, and where they may come from.
    pub media: MediaConfig,
    /// What differs for single modules.
    pub modules: BTreeMap<String, ModuleConfig>,
    /// `cognitive: {spec_versions: […]}`, as v2.2 prints the configuration of a runtime. Read past: which versions are
    /// understood is not for a file to decide.
    pub cognitive: Option<serde_json::Value>,
}

/// How the books are kept.
#[derive(Debug, Clone, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct AuditConfig {
    /// Whether runs are recorded; they are unless this is false.
    pub enabled: Option<bool>,
    /// Whether records carry input and envelope.
    pub payloads: Option<bool>,
    /// The database file.
    pub path: Option<PathBuf>,
}

/// What context reaches a model.
#[derive(Debug, Clone, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct ContextConfig {
    /// Names of members that are no secrets although they look like it, such as `keywords`.
    pub not_secret: Option<Vec<String>>,
}

/// What media may be, and where they may come from.
#[derive(Debug, Clone, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct MediaConfig {
    /// Whether `http` addresses are fetched besides `https`.
    pub allow_http: Option<bool>,
    /// Origins inside the own network that are fetched from, such as `http://media.internal:9000`.
    pub trusted_origins: Option<Vec<String>>,
    /// Folders whose files callers from outside may name.
    pub roots: Option<Vec<PathBuf>>,
    /// The largest item, in units of 1,048,576 bytes.
    pub max_size_mb: Option<u32>,
    /// The shortest side of an image, in pixels.
    pub shortest_side: Option<u32>,
    /// Whether notes about an image, such as where it was taken, reach the model.
    pub keep_metadata: Option<bool>,
    /// The folder for uploads to the server.
    pub uploads: Option<PathBuf>,
}

impl MediaConfig {
    fn over(self, other: Self) -> Self {
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

/// What differs for one module.
#[derive(Debug, Clone, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct ModuleConfig {
    /// Who answers.
    pub provider: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// How often the model is asked again.
    pub reask: Option<u32>,
    /// Stop a call as soon as its answer cannot become valid any more.
    pub early_stop: Option<bool>,
    /// Put the receipt into `meta.provenance`.
    pub receipt: Option<bool>,
}

impl Config {
    /// Reads the project's file and the user's; the project wins, member by member.
    pub fn read(project: &Path, home: Option<&Path>) -> Result<Self, String> {
        let own = read_file(&project.join("cognitive.yaml"))?.unwrap_or_default();
        let user = home.map(|home| read_file(&home.join(".cognitive/config.yaml"))).transpose()?.flatten();
        Ok(own.over(user.unwrap_or_default()))
    }

    fn over(self, other: Self) -> Self {
        let mut modules = other.modules;
        modules.extend(self.modules);
        Self {
            provider: self.provider.or(other.provider),
            model: self.model.or(other.model),
            base_url: self.base_url.or(other.base_url),
            timeout_seconds: self.timeout_seconds.or(other.timeout_seconds),
            reask: self.reask.or(other.reask),
            max_calls: self.max_calls.or(other.max_calls),
            strict_parse: self.strict_parse.or(other.strict_parse),
            early_stop: self.early_stop.or(other.early_stop),
            receipt: self.receipt.or(other.receipt),
            exec_min_confidence: self.exec_min_confidence.or(other.exec_min_confidence),
            audit: AuditConfig {
                enabled: self.audit.enabled.or(other.audit.enabled),
                payloads: self.audit.payloads.or(other.audit.payloads),
                path: self.audit.path.or(other.audit.path),
            },
            context: ContextConfig { not_secret: self.context.not_secret.or(other.context.not_secret) },
            media: self.media.over(other.media),
            modules,
            cognitive: self.cognitive.or(other.cognitive),
        }
    }
}

fn read_file(path: &Path) -> Result<Option<Config>, String> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("cannot read `{}`: {error}", path.display())),
    };
    let broken = |reason: &str| format!("`{}`: {reason}", path.display());
    let value = yaml::parse(&text).map_err(|error| broken(&error.message))?;
    if value.is_null() {
        return Ok(None);
    }
    serde_json::from_value(value).map(Some).map_err(|error| broken(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_wins_member_by_member_and_unknown_keys_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (project, home) = (dir.path().join("p"), dir.path().join("h"));
        fs::create_dir_all(home.join(".cognitive")).unwrap();
        fs::create_dir_all(&project).unwrap();
        assert_eq!(Config::read(&project, Some(&home)).unwrap(), Config::default());
        fs::write(
            home.join(".cognitive/config.yaml"),
            "provider: ollama\nmodel: small\naudit: {payloads: true}\n",
        )
        .unwrap();
        fs::write(project.join("cognitive.yaml"), "model: large\nmodules: {m: {reask: 1}}\n").unwrap();
        let config = Config::read(&project, Some(&home)).unwrap();
        assert_eq!((config.provider.as_deref(), config.model.as_deref()), (Some("ollama"), Some("large")));
        assert_eq!(config.audit.payloads, Some(true));
        assert_eq!(config.modules["m"].reask, Some(1));
        fs::write(project.join("cognitive.yaml"), "modle: large\n").unwrap();
        assert!(Config::read(&project, None).unwrap_err().contains("unknown field `modle`"));
    }
}
