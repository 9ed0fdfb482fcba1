//! Archives of packages: [`write()`] gives the same bytes for the same files on every machine, [`read()`] takes nothing that could
//! reach outside of one folder or fill a disk. (REG-002, SEC-021, S-39)

mod read;
mod write;

use std::collections::BTreeMap;

pub use read::{ArchiveForm, UnpackedArchive, read};
pub use write::write;

/// The most files of a package.
pub const MAX_FILES: usize = 1_000;
/// The most bytes of all of them.
pub const MAX_BYTES: u64 = 50 << 20;
/// How many times larger than the archive its content may be. A small archive may hold much plain text.
const MAX_RATIO: u64 = 100;
/// Below this the ratio is not looked at.
const RATIO_FROM: u64 = 1 << 20;
/// The most that is read of the archive of a whole repository of which one folder is wanted.
const MAX_REPOSITORY: u64 = 1 << 30;

/// Files by their paths inside the folder of the module, in order.
pub type Files = BTreeMap<String, Vec<u8>>;

#[cfg(test)]
mod hostile_tests;
