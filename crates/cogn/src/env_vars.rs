//! Every environment variable that is read, by name. Nothing else in the workspace reads the environment.

/// Further folders with modules, separated as in `PATH`.
pub const MODULES_PATH: &str = "COGNITIVE_MODULES_PATH";
/// The user's home directory, for `~/.cognitive/modules`.
pub const HOME: &str = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
