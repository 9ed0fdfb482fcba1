//! The origin of each setting: flag, environment, project file, user file or default. Includes the settings of the
//! project's file that are not in effect. Shows no key, and addresses without their secrets.

use cognitive_contract::address::shown_setting;
use cognitive_net::Kind;
use cognitive_setup::config::Config;
use cognitive_setup::env_vars;
use cognitive_setup::layers::{Layers, ProjectFile};
use cognitive_setup::settings::{Environment, SettingOverrides};
use serde::Serialize;
use serde_json::{Value, json};

/// One setting.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct SettingState {
    /// The name in a file, such as `audit.path`.
    pub(super) setting: String,
    /// The effective value; null for the built-in default.
    pub(super) value: Value,
    /// `flag`, `environment`, `project file`, `user file` or `default`.
    pub(super) from: &'static str,
    /// The variable, if the value comes from the environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) variable: Option<&'static str>,
    /// The value in the project's file that is not in effect, because the file is not trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) not_trusted: Option<Value>,
}

/// Returns every setting, in the order of the configuration. `chosen` is the service that answers.
pub(super) fn settings(
    args: &SettingOverrides,
    layers: &Layers,
    chosen: Option<Kind>,
    environment: Environment<'_>,
) -> Vec<SettingState> {
    let none = Config::default();
    let (project, user) = (layers.project.as_ref(), layers.user.as_ref().unwrap_or(&none));
    let of_project = project.map(|project| project.counts.by_name()).unwrap_or_default();
    let of_user = user.by_name();
    let held = project.map(ProjectFile::withheld_settings).unwrap_or_default();
    let mut names: Vec<String> = none.by_name().into_iter().map(|(name, _)| name).collect();
    let more =
        of_project.iter().chain(&of_user).map(|(name, _)| name).chain(held.iter().map(|held| &held.setting));
    for name in more {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let said = |layer: &[(String, Value)], name: &str| {
        let value = layer.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        value.filter(|value| !value.is_null())
    };
    let state = |name: String| {
        let variable = variable(&name, chosen);
        let by_environment = variable.and_then(environment).map(Value::String);
        let (value, from) = if let Some(typed) = typed_option(args, &name) {
            (typed, "flag")
        } else if let Some(value) = by_environment {
            (value, "environment")
        } else if let Some(value) = said(&of_project, &name) {
            (value, "project file")
        } else if let Some(value) = said(&of_user, &name) {
            (value, "user file")
        } else {
            (Value::Null, "default")
        };
        let not_trusted =
            held.iter().find(|held| held.setting == name).map(|held| shown_setting(held.value.clone()));
        SettingState {
            value: shown_setting(value),
            from,
            variable: variable.filter(|_| from == "environment"),
            not_trusted,
            setting: name,
        }
    };
    names.into_iter().map(state).collect()
}

/// Returns the variable that overrides a setting.
fn variable(name: &str, chosen: Option<Kind>) -> Option<&'static str> {
    Some(match name {
        "provider" => env_vars::PROVIDER,
        "model" => env_vars::MODEL,
        "audit.path" => env_vars::DATABASE,
        "base_url" => chosen?.base_url_variable(),
        _ => return None,
    })
}

fn typed_option(args: &SettingOverrides, name: &str) -> Option<Value> {
    match name {
        "provider" => args.provider.as_ref().map(|value| json!(value)),
        "model" => args.model.as_ref().map(|value| json!(value)),
        "base_url" => args.base_url.as_ref().map(|value| json!(value)),
        "api" => args.api.map(|value| json!(value)),
        option => json!(args.run).get(option).cloned().filter(|value| !value.is_null()),
    }
}
