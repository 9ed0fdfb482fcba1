//! Tiles in memory or in a mapped file. Computations see both as slices.

use std::ops::Deref;
use std::slice;
use std::sync::Arc;

use super::super::platform::MappedFile;
use super::super::tiles::{Q4Block, Q5Block, Q6Block, Q8Block};

/// A block with the same bytes in memory and in a file.
///
/// # Safety
///
/// Every bit pattern is a value of the type, and it has no padding bytes.
pub(crate) unsafe trait PlainBlock: Copy {}

// SAFETY: integers in the order of `repr(C)`. The assertions below check that there is no padding.
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
    /// In memory of this process alone.
    Memory(Vec<T>),
    /// In a mapped file, at this offset.
    File { file: Arc<MappedFile>, at: usize, count: usize },
}

impl<T: PlainBlock> TileStore<T> {
    /// Returns `count` blocks of a file at this offset. Returns `None` if they exceed the file or are not aligned.
    pub(crate) fn in_file(file: &Arc<MappedFile>, at: usize, count: usize) -> Option<Self> {
        let bytes = file.bytes().get(at..)?.get(..count.checked_mul(size_of::<T>())?)?;
        let file = Arc::clone(file);
        bytes.as_ptr().cast::<T>().is_aligned().then_some(Self::File { file, at, count })
    }

    /// Returns the blocks as stored in a file.
    pub(crate) fn bytes(&self) -> &[u8] {
        let blocks: &[T] = self;
        // SAFETY: this many bytes exist, and `PlainBlock` guarantees that all of them are initialised.
        unsafe { slice::from_raw_parts(blocks.as_ptr().cast(), size_of_val(blocks)) }
    }
}

impl<T: PlainBlock> Deref for TileStore<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Self::Memory(blocks) => blocks,
            // SAFETY: `in_file` checked that they are within the file and aligned. The file stays mapped as long as
            // this value lives. Every bit pattern is a block.
            Self::File { file, at, count } => unsafe {
                slice::from_raw_parts(file.bytes().as_ptr().add(*at).cast(), *count)
            },
        }
    }
}
