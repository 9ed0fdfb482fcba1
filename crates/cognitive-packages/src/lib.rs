//! Cognitive Modules as packages: packs a folder into a reproducible archive, and unpacks an archive into a folder with
//! exactly its files.
//!
//! Accesses the module folders and runs the program `git`. Opens no socket, reads no environment variable, prints
//! nothing. No package can make it write or remove anything outside the module folder.
//!
//! # Modules
//!
//! - A package: `package` ([`Package`], a loadable module with the hashes of both forms), [`archive`] (the same bytes
//!   for the same files; refuses unsafe entries), `name`, [`signature`] (signs and verifies).
//! - Origins: `source` ([`PackageSource`], the address of a package), [`oci`] (the form in a registry), [`git`]
//!   (fetches a folder from a repository), [`git_history`] (earlier versions of a folder), [`index`] (a list of
//!   packages that any web server can serve).
//! - Installation: `module_folder` ([`ModuleFolder`] installs and removes packages), [`lock`] (the lock file).
//! - `error` has the errors, `platform` the system-specific code.

pub mod archive;
mod error;
pub mod git;
pub mod git_history;
pub mod index;
pub mod lock;
mod module_folder;
mod name;
pub mod oci;
mod package;
mod platform;
pub mod signature;
mod source;

pub use error::PackageError;
pub use lock::{LOCK_FILE, LockFile, LockedModule};
pub use module_folder::{InstallOutcome, InstalledState, ModuleFolder, Overwrite, PackageOrigin};
pub(crate) use name::path_fault;
pub use name::{check_name, check_publishable};
pub use oci::OciReference;
pub use package::{Package, sha256, tree_digest};
pub use source::PackageSource;
