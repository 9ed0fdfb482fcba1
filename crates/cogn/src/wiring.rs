//! Joins the parts: reads the environment and builds what commands need from it.

use std::env;
use std::path::{Path, PathBuf};

use cognitive_library::Library;

use crate::env_vars;

/// The places where modules are looked for, given this process's directory and environment.
pub(crate) fn library() -> Library {
    let home = env::var_os(env_vars::HOME).map(PathBuf::from).filter(|home| !home.as_os_str().is_empty());
    let extra: Vec<PathBuf> = env::var_os(env_vars::MODULES_PATH)
        .map(|paths| env::split_paths(&paths).filter(|path| !path.as_os_str().is_empty()).collect())
        .unwrap_or_default();
    Library::new(Path::new("."), home.as_deref(), &extra)
}
