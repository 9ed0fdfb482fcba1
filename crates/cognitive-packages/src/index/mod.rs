//! A list of packages as plain files, in the form of the published registry (REG-001, REG-007, REG-009):
//! [`RegistryEntry`] is one package, [`read()`] reads lists of both forms, [`build()`] writes the files that any web
//! server can serve.

mod build;
mod entry;
mod read;

pub use build::{BuildOptions, StaticIndex, build};
pub use entry::{
    Dependencies, Deprecation, Distribution, EntryDependency, EntryMetadata, Identity, Quality,
    RegistryEntry, Timestamps,
};
pub use read::{PackageList, newest, read};
