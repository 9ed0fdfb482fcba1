//! Archives of packages. [`write()`] produces the same bytes for the same files on every machine. [`read()`] refuses
//! archives that would write outside one folder or fill a disk. (REG-002, SEC-021, S-39)

mod read;
mod write;

use std::collections::BTreeMap;

pub use read::{ArchiveForm, UnpackedArchive, read};
pub use write::write;

/// The maximum number of files in a package. Archives are untrusted; without limits, one could fill the disk.
pub const MAX_FILES: usize = 1_000;
/// The maximum number of bytes in all files. They are held in memory until all of them are checked.
pub const MAX_BYTES: u64 = 50 << 20;
/// The maximum ratio of unpacked to packed size. It is high because plain text compresses well.
const MAX_RATIO: u64 = 100;
/// The ratio is not checked up to this unpacked size. Small files of repeated text have a high ratio and do no harm.
const RATIO_FROM: u64 = 1 << 20;
/// The maximum unpacked size of a repository archive from which only one folder is read.
const MAX_REPOSITORY: u64 = 1 << 30;

/// Files by their paths inside the module folder, in order.
pub type Files = BTreeMap<String, Vec<u8>>;

#[cfg(test)]
mod hostile_tests;
