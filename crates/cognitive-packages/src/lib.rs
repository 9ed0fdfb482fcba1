//! Cognitive Modules as packages: from a folder to an archive that is the same on every machine, and from an archive to a folder
//! that holds nothing else.
//!
//! - [`Package`] is a module that loads, with its [`archive`] and the hashes of both forms.
//! - [`PackageSource`] reads where a package comes from; [`oci`] is its form in a registry, [`git`] takes it out of a repository,
//!   [`index`] is a list of packages that any web server can serve.
//! - [`ModuleFolder`] installs and removes, with the [`lock`] file that says what is there.
//! - [`signature`] signs and verifies.
//!
//! The door to the folders that modules are installed into, and to the program `git`. Opens no socket, reads no environment
//! variable, prints nothing. Whatever a package claims, nothing outside of the folder of modules is written or removed.

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
