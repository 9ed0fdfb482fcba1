//! Cognitive Modules as packages: packs a folder into a reproducible archive, and unpacks an archive into a folder with
//! exactly its files.
//!
//! - [`Package`] is a loadable module with its [`archive`] and the hashes of both forms.
//! - [`PackageSource`] parses the address of a package. [`oci`] is the form in a registry, [`git`] fetches a folder
//!   from a repository, and [`index`] is a list of packages that any web server can serve.
//! - [`ModuleFolder`] installs and removes packages, and records them in the [`lock`] file.
//! - [`signature`] signs and verifies.
//!
//! Accesses the module folders and runs the program `git`. Opens no socket, reads no environment variable, prints
//! nothing. No package can make it write or remove anything outside the module folder.

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
