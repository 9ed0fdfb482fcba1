//! Every environment variable that is read, by name. Nothing else in the workspace reads the environment.

use crate::platform;

/// Further folders with modules, separated as in `PATH`.
pub const MODULES_PATH: &str = "COGNITIVE_MODULES_PATH";
/// The user's home directory, for `~/.cognitive`; on Windows `USERPROFILE` says it.
pub const HOME: &str = platform::HOME;
/// The name of this user, for decisions in `cogn review`.
pub const USER: &str = "USER";
/// Who answers, unless `--provider` says so.
pub const PROVIDER: &str = "LLM_PROVIDER";
/// The model, unless `--model` says so.
pub const MODEL: &str = "LLM_MODEL";
/// Where the store is, unless the configuration says so.
pub const DATABASE: &str = "COGNITIVE_DB";
/// The password of the store where it is on a server, unless its address has one.
pub const DATABASE_PASSWORD: &str = "COGNITIVE_DB_PASSWORD";
/// The key that opens `cogn serve`.
pub const SERVER_KEY: &str = "COGNITIVE_API_KEY";

/// The address that `cogn serve` listens on, unless `--host` says so.
pub const SERVE_HOST: &str = "COGN_SERVE_HOST";
/// Its port, unless `--port` says so.
pub const SERVE_PORT: &str = "COGN_SERVE_PORT";
/// The file with its keys, unless `--keys` says so.
pub const SERVE_KEYS: &str = "COGN_SERVE_KEYS";
/// Web origins that may call it, separated by commas, unless `--cors` says so.
pub const SERVE_CORS: &str = "COGN_SERVE_CORS";
/// The modules that it offers, separated by commas, unless `--modules` says so.
pub const SERVE_MODULES: &str = "COGN_SERVE_MODULES";
/// Runs per minute and client, unless `--rate` says so.
pub const SERVE_RATE: &str = "COGN_SERVE_RATE";

/// The Redis that several servers share, unless `--shared` says so.
pub const SERVE_SHARED: &str = "COGN_SERVE_SHARED";
/// Its password, unless its address has one.
pub const SERVE_SHARED_PASSWORD: &str = "COGN_SERVE_SHARED_PASSWORD";

/// The program that `cogn studio` opens its page with, instead of the one of the system.
pub const BROWSER: &str = "BROWSER";

/// Trusts the project's `cognitive.yaml`: `1`, or the sha256 that the file must have.
pub const TRUST_PROJECT: &str = "COGN_TRUST_PROJECT";
/// Lets a key go over `http://` to another machine, unless it is `0` or `false`.
pub const PLAIN_HTTP: &str = "COGN_ALLOW_PLAIN_HTTP";

/// The file with the weights of the embedded model, unless `--model` names one.
pub const WEIGHTS: &str = "COGN_MODEL";
/// Forbids to fetch weights, unless it is `0` or `false`.
pub const OFFLINE: &str = "COGN_OFFLINE";
/// The user's cache, if not `~/.cache`.
pub const CACHE: &str = "XDG_CACHE_HOME";
/// The width of the output in columns, instead of that of the terminal.
pub const COLUMNS: &str = "COLUMNS";
/// Set by completion scripts: the shell that asks what can be typed next.
pub const COMPLETE: &str = "COGN_COMPLETE";
/// Where `uv` and `pip` are looked for.
pub const PATH: &str = "PATH";
/// A mirror of the hub that models are published on, by the name that its own tools use.
pub const HUB: &str = "HF_ENDPOINT";

/// Set on build servers: there, `cogn test --accept` writes nothing.
pub const BUILD_SERVER: &str = "CI";

/// The variables that hold keys and addresses of providers are named by `cognitive_net::Kind`.
pub const OF_PROVIDERS: &str = "<PROVIDER>_API_KEY, <PROVIDER>_BASE_URL";

/// The index of packages, unless `--registry` says so.
pub const REGISTRY: &str = "COGN_REGISTRY";
/// The host of the OCI registry that the login below is for, as `ghcr.io`. It is told to no other.
pub const REGISTRY_HOST: &str = "COGN_REGISTRY_HOST";
/// The login of that registry, instead of that of docker or podman: a name, or a token alone.
pub const REGISTRY_USER: &str = "COGN_REGISTRY_USER";
/// The password that goes with the name.
pub const REGISTRY_PASSWORD: &str = "COGN_REGISTRY_PASSWORD";
/// A token that the registry itself gave out.
pub const REGISTRY_TOKEN: &str = "COGN_REGISTRY_TOKEN";
/// Origins inside that a registry may lead to, such as that of its logins or its storage, separated by commas.
pub const REGISTRY_TRUST: &str = "COGN_REGISTRY_TRUST";
/// The file with podman's logins, by the name that podman uses.
pub const CONTAINERS_FILE: &str = "REGISTRY_AUTH_FILE";
/// Where podman keeps them for as long as the user is logged in.
pub const RUNTIME_FOLDER: &str = "XDG_RUNTIME_DIR";
/// The folder with docker's logins, by the name that docker uses.
pub const DOCKER_FOLDER: &str = "DOCKER_CONFIG";
/// Where repositories of `github:` are, for a GitHub of one's own.
pub const GITHUB: &str = "COGN_GITHUB_URL";
/// The password of the key that packages are signed with.
pub const SIGN_PASSWORD: &str = "COGN_SIGN_PASSWORD";
