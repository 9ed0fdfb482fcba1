//! Connects the package commands with packages: [`obtain`] gets a package from any source, [`package_index`] queries an
//! index, [`registry_login`] finds the login of a registry, [`install`] installs packages. `cognitive-packages`
//! defines packages and checks writes; `cognitive-net` opens every connection.

pub(crate) mod install;
pub(crate) mod obtain;
pub(crate) mod package_index;
pub(crate) mod registry_login;

use std::path::PathBuf;

use cognitive_packages::signature::TrustedKey;
use cognitive_packages::{ModuleFolder, PackageError};
use cognitive_setup::{env_vars, wiring};

use crate::printer::{Exit, Printer};

/// The folder for installed packages.
#[derive(Debug, clap::Args)]
pub(crate) struct FolderArgs {
    /// Use `~/.cognitive/modules`, shared by all your projects, instead of this project
    #[arg(long)]
    user: bool,
}

impl FolderArgs {
    /// Returns the module folder, and the folder that relative paths in its lock file refer to.
    pub(crate) fn folder(&self) -> Result<(ModuleFolder, PathBuf), PackageError> {
        if !self.user {
            let root = wiring::project_root();
            return Ok((ModuleFolder::in_project(&root), root));
        }
        let home = wiring::home()
            .ok_or_else(|| PackageError::new(format!("no home folder: `{}` is not set", env_vars::HOME)))?;
        Ok((ModuleFolder::in_home(&home), home))
    }
}

/// The options for downloads of packages.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ReachArgs {
    /// URL of the index, for sources that are only a name
    #[arg(long, value_name = "URL")]
    pub(crate) registry: Option<String>,
    /// Connect to the registry without TLS; the default only for a registry on this machine
    #[arg(long)]
    pub(crate) plain_http: bool,
}

impl ReachArgs {
    /// Returns the named index, or the one of the environment.
    pub(crate) fn index_address(&self) -> Option<String> {
        self.registry
            .clone()
            .or_else(|| wiring::environment(env_vars::REGISTRY))
            .filter(|url| !url.is_empty())
    }
}

/// The keys for required signatures.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct KeyArgs {
    /// Require a signature of this minisign key, given as text or as a file
    #[arg(long, value_name = "KEY")]
    key: Vec<String>,
}

impl KeyArgs {
    pub(crate) fn keys(&self) -> Result<Vec<TrustedKey>, PackageError> {
        let read = |given: &String| {
            let text = if std::path::Path::new(given).is_file() {
                std::fs::read_to_string(given).map_err(PackageError::io("read", given.as_ref()))?
            } else {
                given.clone()
            };
            TrustedKey::parse(&text)
        };
        self.key.iter().map(read).collect()
    }
}

/// The options for a dry run and for JSON output.
#[derive(Debug, clap::Args)]
pub(crate) struct TellArgs {
    /// Show what would be done; writes and sends nothing
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Prints the error.
pub(crate) fn refuse(error: &PackageError, printer: &Printer) -> Exit {
    printer.error(error.message(), error.suggestion());
    Exit::Bad
}
