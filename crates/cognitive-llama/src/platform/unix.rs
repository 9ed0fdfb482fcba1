//! Linux, macOS and other Unix systems: mapped files, one copy for all processes that map them.

#![expect(unsafe_code, reason = "mapped memory has no safe interface")]

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ptr::{self, NonNull};
use std::slice;

#[cfg(target_os = "linux")]
use rustix::mm::{Advice, madvise};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A mapped file for reading. It must not be shortened meanwhile: the system ends a process that reads a missing page,
/// with `SIGBUS`. The caller ensures that only the owner of the file can do that.
#[derive(Debug)]
pub(crate) struct MappedFile {
    start: NonNull<c_void>,
    length: usize,
}

// SAFETY: the memory can only be read, and belongs to the value until it is dropped, on any thread.
unsafe impl Send for MappedFile {}
// SAFETY: the memory can only be read.
unsafe impl Sync for MappedFile {}

impl MappedFile {
    /// Returns the whole file.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: this many bytes were mapped there, and they stay until `self` is dropped. Another process of this
        // user could write to the file. Every bit pattern is a byte, and no code relies on reading the same byte twice.
        unsafe { slice::from_raw_parts(self.start.as_ptr().cast(), self.length) }
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // SAFETY: `map` mapped exactly this, and no borrow of it is left.
        let _nothing_else_can_be_done = unsafe { munmap(self.start.as_ptr(), self.length) };
    }
}

/// Maps a whole file.
pub(crate) fn map(file: &File) -> io::Result<MappedFile> {
    let length = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    // SAFETY: the system chooses an address that nothing else uses.
    let start = unsafe { mmap(ptr::null_mut(), length, ProtFlags::READ, MapFlags::SHARED, file, 0) }?;
    let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
    let mapped = MappedFile { start, length };
    advise(start.as_ptr(), length);
    Ok(mapped)
}

/// Requests large pages for a vector that is still empty: with small pages, reading it takes a tenth longer.
pub(crate) fn prefer_large_pages<T>(room: &mut Vec<T>) {
    // The system refuses an address that is not at the start of a page.
    const PAGE: usize = 4096;
    let room = room.spare_capacity_mut();
    let (start, length) = (room.as_mut_ptr().cast::<c_void>(), size_of_val(room));
    let before = start.align_offset(PAGE);
    if let Some(length) =
        length.checked_sub(before).map(|length| length / PAGE * PAGE).filter(|length| *length > 0)
    {
        advise(start.wrapping_byte_add(before), length);
    }
}

/// Requests large pages, which only Linux supports. If none are available, small ones are used.
#[cfg(target_os = "linux")]
fn advise(start: *mut c_void, length: usize) {
    // SAFETY: the advice changes how memory is stored, but not its contents.
    let _only_slower = unsafe { madvise(start, length, Advice::LinuxHugepage) };
}

#[cfg(not(target_os = "linux"))]
fn advise(_: *mut c_void, _: usize) {}
