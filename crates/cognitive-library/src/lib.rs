//! Cognitive Modules on disk: finding, loading, validating, migrating and creating them.
//!
//! The only access to module files. Every format — v2.5, v2.2, v2.1, v1, v0 — becomes one
//! [`Module`](cognitive_contract::Module) here, and code outside this crate does not depend on the format.
//!
//! Opens no socket, reads no environment variable, prints nothing.
//!
//! # Modules
//!
//! - Reading: [`folder`] (the only way to read files of a module), [`find`] (looks a name up), [`load`](mod@load)
//!   (turns a folder into a module), [`formats`] (one reader per format), [`module_cache`] (caches modules until their files
//!   change), [`bundled_modules`] (the modules in the binary), `examples` and `trained_models`.
//! - Validation: [`validate`](mod@validate) reports everything that an author should know, as a [`finding`] with its
//!   location; `sources` holds the texts that findings point into.
//! - Writing, each folder completely or not at all: [`migrate`], [`init`], `put_folder` and `change_folder`.
//!   `draft_folder` is a folder with unsaved changes.
//! - Export: [`skill`] (a module as an Agent Skill) and `folder_files`.
//! - File formats: [`json`] and [`yaml`], both with limits. System-specific code: `platform`.

pub mod bundled_modules;
mod change_folder;
mod draft_folder;
mod examples;
pub mod find;
pub mod finding;
pub mod folder;
mod folder_files;
pub mod formats;
pub mod init;
pub mod json;
pub mod load;
pub mod migrate;
pub mod module_cache;
mod platform;
mod put_folder;
pub mod skill;
mod sources;
mod trained_models;
pub mod validate;
pub mod yaml;

pub use change_folder::{change_folder, folder_hash};
pub use draft_folder::{DraftFolder, draft_hash};
pub use find::{FoundModule, Library, ModuleOrigin};
pub use finding::{Finding, Severity};
pub use folder::Folder;
pub use folder_files::files_of;
pub use load::{ModuleLoadError, load};
pub use module_cache::ModuleCache;
pub use put_folder::{put_folder, remove_folder, remove_staged};
pub use validate::{Mode, ValidationReport, ValidationSurroundings, validate, validate_in, validate_with};
