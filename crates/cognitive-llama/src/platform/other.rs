//! The fallback for systems that are no Unix, such as Windows: no file is mapped, so that every process packs weights into
//! memory of its own.

use std::fs::File;
use std::io;

/// There is none.
#[derive(Debug)]
pub(crate) enum UnmappedFile {}

impl UnmappedFile {
    /// Everything that it holds.
    pub(crate) fn bytes(&self) -> &[u8] {
        match *self {}
    }
}

/// Refuses.
pub(crate) fn map(_: &File) -> io::Result<UnmappedFile> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Nobody is asked.
pub(crate) fn prefer_large_pages<T>(_: &mut Vec<T>) {}
