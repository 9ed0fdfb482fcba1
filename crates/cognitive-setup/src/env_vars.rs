//! The names of all environment variables that are read. No other code of the workspace reads the environment.

use crate::platform;

/// Additional module folders, separated as in `PATH`.
pub const MODULES_PATH: &str = "COGNITIVE_MODULES_PATH";
/// The user's home directory, for `~/.cognitive`; `USERPROFILE` on Windows.
pub const HOME: &str = platform::HOME;
/// The name of the user, recorded with decisions in `cogn review`.
pub const USER: &str = "USER";
/// The provider, unless `--provider` names one.
pub const PROVIDER: &str = "LLM_PROVIDER";
/// The model, unless `--model` names one.
pub const MODEL: &str = "LLM_MODEL";
/// The location of the store, unless the configuration sets it.
pub const DATABASE: &str = "COGNITIVE_DB";
/// The password of a store on a server, unless its address contains one.
pub const DATABASE_PASSWORD: &str = "COGNITIVE_DB_PASSWORD";
/// The API key of `cogn serve`.
pub const SERVER_KEY: &str = "COGNITIVE_API_KEY";

/// The address that `cogn serve` listens on, unless `--host` is set.
pub const SERVE_HOST: &str = "COGN_SERVE_HOST";
/// The port of `cogn serve`, unless `--port` is set.
pub const SERVE_PORT: &str = "COGN_SERVE_PORT";
/// The key file of `cogn serve`, unless `--keys` is set.
pub const SERVE_KEYS: &str = "COGN_SERVE_KEYS";
/// Web origins that may call `cogn serve`, separated by commas, unless `--cors` is set.
pub const SERVE_CORS: &str = "COGN_SERVE_CORS";
/// The modules that `cogn serve` offers, separated by commas, unless `--modules` is set.
pub const SERVE_MODULES: &str = "COGN_SERVE_MODULES";
/// Runs per minute and client, unless `--rate` is set.
pub const SERVE_RATE: &str = "COGN_SERVE_RATE";

/// The Redis that several servers share, unless `--shared` is set.
pub const SERVE_SHARED: &str = "COGN_SERVE_SHARED";
/// The password of that Redis, unless its address contains one.
pub const SERVE_SHARED_PASSWORD: &str = "COGN_SERVE_SHARED_PASSWORD";

/// The program that `cogn studio` opens its page with, instead of the system's browser.
pub const BROWSER: &str = "BROWSER";

/// Trusts the project's `cognitive.yaml`: `1`, or the required sha256 of the file.
pub const TRUST_PROJECT: &str = "COGN_TRUST_PROJECT";
/// Allows sending a key over `http://` to another machine, unless it is `0` or `false`.
pub const PLAIN_HTTP: &str = "COGN_ALLOW_PLAIN_HTTP";

/// The file with the weights of the embedded model, unless `--model` names one.
pub const WEIGHTS: &str = "COGN_MODEL";
/// Forbids downloading weights, unless it is `0` or `false`.
pub const OFFLINE: &str = "COGN_OFFLINE";
/// The user's cache folder; the default is `~/.cache`.
pub const CACHE: &str = "XDG_CACHE_HOME";
/// The width of the output in columns, instead of the terminal's width.
pub const COLUMNS: &str = "COLUMNS";
/// Set by completion scripts to the shell that requests completions.
pub const COMPLETE: &str = "COGN_COMPLETE";
/// The search path for `uv` and `pip`.
pub const PATH: &str = "PATH";
/// A mirror of the model hub. The name is the one that the hub's own tools use.
pub const HUB: &str = "HF_ENDPOINT";

/// Set in CI: there, `cogn test --accept` writes nothing.
pub const BUILD_SERVER: &str = "CI";

/// The pattern of variables that hold keys and addresses of providers; `cognitive_net::Kind` has the names.
pub const OF_PROVIDERS: &str = "<PROVIDER>_API_KEY, <PROVIDER>_BASE_URL";

/// The index of packages, unless `--registry` is set.
pub const REGISTRY: &str = "COGN_REGISTRY";
/// The host of the OCI registry that the login below is for, such as `ghcr.io`. The login is sent to no other host.
pub const REGISTRY_HOST: &str = "COGN_REGISTRY_HOST";
/// The user name for that registry, instead of the login of docker or podman; or a token alone.
pub const REGISTRY_USER: &str = "COGN_REGISTRY_USER";
/// The password for the user name.
pub const REGISTRY_PASSWORD: &str = "COGN_REGISTRY_PASSWORD";
/// A token issued by the registry.
pub const REGISTRY_TOKEN: &str = "COGN_REGISTRY_TOKEN";
/// Internal origins that a registry may redirect to, such as its login or storage, separated by commas.
pub const REGISTRY_TRUST: &str = "COGN_REGISTRY_TRUST";
/// The file with podman's logins; the name is podman's own.
pub const CONTAINERS_FILE: &str = "REGISTRY_AUTH_FILE";
/// The folder where podman stores logins for the user's session.
pub const RUNTIME_FOLDER: &str = "XDG_RUNTIME_DIR";
/// The folder with docker's logins; the name is docker's own.
pub const DOCKER_FOLDER: &str = "DOCKER_CONFIG";
/// The base address for `github:` repositories, for a self-hosted GitHub.
pub const GITHUB: &str = "COGN_GITHUB_URL";
/// The password of the key that signs packages.
pub const SIGN_PASSWORD: &str = "COGN_SIGN_PASSWORD";
