//! Every environment variable that is read, by name. Nothing else in the workspace reads the environment.

/// Further folders with modules, separated as in `PATH`.
pub const MODULES_PATH: &str = "COGNITIVE_MODULES_PATH";
/// The user's home directory, for `~/.cognitive`.
pub const HOME: &str = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
/// Who answers, unless `--provider` says so.
pub const PROVIDER: &str = "LLM_PROVIDER";
/// The model, unless `--model` says so.
pub const MODEL: &str = "LLM_MODEL";
/// Where the store is, unless the configuration says so.
pub const DATABASE: &str = "COGNITIVE_DB";

/// The variables that hold keys and addresses of providers are named by `cognitive_net::Kind`.
pub const OF_PROVIDERS: &str = "<PROVIDER>_API_KEY, <PROVIDER>_BASE_URL";
