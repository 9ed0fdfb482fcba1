//! Tiles in memory of this process, or in a file that is mapped. Both are slices to whoever computes with them.

use std::ops::Deref;
use std::slice;
use std::sync::Arc;

use super::super::platform::MappedFile;
use super::super::tiles::{Q4Block, Q5Block, Q6Block, Q8Block};

/// A block that is the same in memory and in a file.
///
/// # Safety
///
/// Every pattern of bits is a value of the type, and it has no bytes of which nothing is known.
pub(crate) unsafe trait PlainBlock: Copy {}

// SAFETY: whole numbers in order of their size, as `repr(C)` has them. The assertions below count that nothing lies between.
unsafe impl PlainBlock for Q4Block {}
// SAFETY: as above.
unsafe impl PlainBlock for Q5Block {}
// SAFETY: as above.
unsafe impl PlainBlock for Q6Block {}
// SAFETY: as above.
unsafe impl PlainBlock for Q8Block {}
const _: () = assert!(size_of::<Q4Block>() == 2 * 32 + 4 * 64);
const _: () = assert!(size_of::<Q5Block>() == 2 * 32 + 4 * 64 + 64);
const _: () = assert!(size_of::<Q6Block>() == 2 * 32 + 4 * 64 + 2 * 64);
const _: () = assert!(size_of::<Q8Block>() == 32 + 8 * 64);

/// Blocks of weights.
#[derive(Debug)]
pub(crate) enum TileStore<T> {
    /// Of this process alone.
    Memory(Vec<T>),
    /// In a file, from this byte on.
    File { file: Arc<MappedFile>, at: usize, count: usize },
}

impl<T: PlainBlock> TileStore<T> {
    /// So many blocks of a file, from this byte on. Nothing if they are not in it, or not where a block can be.
    pub(crate) fn in_file(file: &Arc<MappedFile>, at: usize, count: usize) -> Option<Self> {
        let bytes = file.bytes().get(at..)?.get(..count.checked_mul(size_of::<T>())?)?;
        let file = Arc::clone(file);
        bytes.as_ptr().cast::<T>().is_aligned().then_some(Self::File { file, at, count })
    }

    /// The blocks as a file has them.
    pub(crate) fn bytes(&self) -> &[u8] {
        let blocks: &[T] = self;
        // SAFETY: so many bytes are there, and `PlainBlock` says that all of them are known.
        unsafe { slice::from_raw_parts(blocks.as_ptr().cast(), size_of_val(blocks)) }
    }
}

impl<T: PlainBlock> Deref for TileStore<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Self::Memory(blocks) => blocks,
            // SAFETY: `in_file` found that they are within the file and aligned; the file stays as it is mapped as long as this
            // value. Every pattern of bits is a block.
            Self::File { file, at, count } => unsafe {
                slice::from_raw_parts(file.bytes().as_ptr().add(*at).cast(), *count)
            },
        }
    }
}
