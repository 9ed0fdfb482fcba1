//! The fallback for systems other than Unix, such as Windows: no file is mapped, so every process packs weights into
//! its own memory.

use std::fs::File;
use std::io;

/// A mapped file, which does not exist on these systems.
#[derive(Debug)]
pub(crate) enum UnmappedFile {}

impl UnmappedFile {
    /// Returns the whole file.
    pub(crate) fn bytes(&self) -> &[u8] {
        match *self {}
    }
}

/// Always fails, because these systems map no files.
pub(crate) fn map(_: &File) -> io::Result<UnmappedFile> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Does nothing on these systems.
pub(crate) fn prefer_large_pages<T>(_: &mut Vec<T>) {}
