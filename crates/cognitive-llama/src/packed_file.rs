//! Weights packed into a file, which is written once and mapped by any number of processes, so that they share one
//! copy. The file contains a preamble, the unchanged header of the weights, and each tensor in the layout of the
//! computation. The positions of the tensors follow from the header, with the same checks as in a file of weights.
//!
//! Opening a file reads all of it and verifies a checksum that detects power cuts, full disks and failing disks. The
//! checksum does not protect against deliberate changes. Refuses files packed by another version.

use std::fs::File;
use std::io::{Read, Seek as _, SeekFrom, Write};
use std::sync::Arc;

use super::blocks::Encoding;
use super::gguf::{Extent, Gguf, HeaderGap, damaged_error, unreadable};
use super::platform::{self, MappedFile};
use super::tiles::Matrix;
use super::weights::{PackedTensor, PackedTensors, numbers, read_each};
use super::{FileHeader, MAX_HEADER_LENGTH, Model, ModelParts, WeightsError};

/// The first bytes of the file.
const MAGIC: &[u8; 8] = b"COGNTILE";
/// Changes with every change of the tiles, their order or the preamble.
const VERSION: u32 = 1;
/// Detects files from processors with another byte order.
const ORDER: u32 = 0x0102_0304;
/// The length of the preamble, including zeros at its end.
const PREAMBLE: usize = 128;
/// Every part of the file starts at a multiple of this many bytes.
const ALIGNMENT: usize = 64;

/// The first bytes of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Preamble {
    /// The length of the file that was packed.
    source_length: u64,
    /// The length of the header.
    header_length: u64,
    /// The length of everything after the preamble.
    body_length: u64,
    /// The checksum of the body and of the length of the source.
    sum: u64,
    /// The hash of the file that was packed.
    sha256: String,
}

impl Preamble {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(ORDER.to_ne_bytes());
        bytes.extend(VERSION.to_ne_bytes());
        for number in [self.source_length, self.header_length, self.body_length, self.sum] {
            bytes.extend(number.to_ne_bytes());
        }
        bytes.extend(self.sha256.bytes());
        bytes.resize(PREAMBLE, 0);
        bytes
    }

    /// Reads the preamble of a file, if it has this format and version.
    fn read(bytes: &[u8]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk::<8>()?;
        let (marks, rest) = rest.split_first_chunk::<8>()?;
        let expected = [ORDER.to_ne_bytes(), VERSION.to_ne_bytes()].concat();
        let (numbers, rest) = rest.split_first_chunk::<32>()?;
        let (numbers, _) = numbers.as_chunks::<8>();
        let &[source_length, header_length, body_length, sum] = numbers else { return None };
        let sha256 = String::from_utf8(rest.get(..64)?.to_vec()).ok()?;
        (magic == MAGIC && *marks == *expected).then_some(Self {
            source_length: u64::from_ne_bytes(source_length),
            header_length: u64::from_ne_bytes(header_length),
            body_length: u64::from_ne_bytes(body_length),
            sum: u64::from_ne_bytes(sum),
            sha256,
        })
    }
}

/// Packs weights into an empty file. The preamble is written last; without it the file is invalid.
pub(super) fn write(
    header: &FileHeader,
    data: &mut dyn Read,
    sha256: &str,
    to: &File,
) -> Result<(), WeightsError> {
    let parts = ModelParts::read(&header.gguf)?;
    put(to, &[0; PREAMBLE])?;
    let mut body_length = put(to, header.bytes)?;
    read_each(&parts.extents, data, &mut |_, tensor| {
        body_length += match tensor {
            PackedTensor::Matrix(matrix) => put(to, matrix.bytes())?,
            PackedTensor::Vector(vector) => {
                put(to, &vector.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>())?
            }
        };
        Ok(())
    })?;
    let mapped = platform::map(to).map_err(unreadable)?;
    let body = mapped.bytes().get(PREAMBLE..).filter(|body| body.len() as u64 == body_length);
    let preamble = Preamble {
        source_length: header.length,
        header_length: header.bytes.len() as u64,
        body_length,
        sum: sum(header.length, body.ok_or_else(|| damaged_error("the packed file was not empty"))?),
        sha256: sha256.to_owned(),
    };
    let mut file = to;
    file.seek(SeekFrom::Start(0)).map_err(unreadable)?;
    file.write_all(&preamble.bytes()).map_err(unreadable)
}

/// Writes bytes and their padding; returns the length of both.
fn put(mut to: &File, bytes: &[u8]) -> Result<u64, WeightsError> {
    let length = bytes.len().next_multiple_of(ALIGNMENT);
    to.write_all(bytes).map_err(unreadable)?;
    let zeros = [0; ALIGNMENT];
    to.write_all(zeros.get(..length - bytes.len()).unwrap_or_default()).map_err(unreadable)?;
    Ok(length as u64)
}

/// Opens a file written by [`write`].
pub(super) fn open(file: &File, sha256: &str) -> Result<Model, WeightsError> {
    let mapped = Arc::new(platform::map(file).map_err(unreadable)?);
    let preamble =
        Preamble::read(mapped.bytes()).ok_or_else(|| damaged_error("no packed weights of this version"))?;
    let body = mapped.bytes().get(PREAMBLE..).unwrap_or_default();
    if preamble.sha256 != sha256 || preamble.body_length != body.len() as u64 {
        return Err(damaged_error("packed weights of another file, or of another length"));
    }
    // The header is copied, so that later changes of the file cannot invalidate the checks.
    let header = usize::try_from(preamble.header_length.min(MAX_HEADER_LENGTH)).unwrap_or(usize::MAX);
    let header = body.get(..header).ok_or_else(|| damaged_error("packed weights end early"))?.to_vec();
    if sum(preamble.source_length, body) != preamble.sum {
        return Err(damaged_error("packed weights are damaged"));
    }
    let length = usize::try_from(preamble.source_length).unwrap_or(usize::MAX);
    let gguf = Gguf::read(&header, length).map_err(|unread| match unread {
        HeaderGap::Refused(error) => error,
        HeaderGap::GoesOn => damaged_error("packed weights end within their header"),
    })?;
    let parts = ModelParts::read(&gguf)?;
    let tensors = tensors(&parts.extents, &mapped, PREAMBLE + header.len().next_multiple_of(ALIGNMENT))?;
    parts.with(tensors)
}

/// Returns the tensors that follow each other in a file from this offset on.
fn tensors<'a>(
    extents: &[Extent<'a>],
    file: &Arc<MappedFile>,
    mut at: usize,
) -> Result<PackedTensors<'a>, WeightsError> {
    let mut tensors = PackedTensors::default();
    for extent in extents {
        let (tensor, length) = if extent.encoding == Encoding::F32 {
            let bytes = file.bytes().get(at..).and_then(|bytes| bytes.get(..extent.length));
            let bytes = bytes.ok_or_else(|| damaged_error("packed weights end early"))?;
            (PackedTensor::Vector(numbers(bytes)), bytes.len())
        } else {
            let matrix = Matrix::in_file(extent, file, at)?;
            let length = matrix.bytes().len();
            (PackedTensor::Matrix(matrix), length)
        };
        tensors.put(extent.name, tensor);
        at += length.next_multiple_of(ALIGNMENT);
    }
    Ok(tensors)
}

/// The number of bytes that are summed together.
const STRETCH: usize = 1 << 20;
/// More threads would only wait for memory.
const MAX_THREADS: usize = 4;

/// Returns a checksum of a number and bytes that depends on their positions. Several threads share the work; the result
/// does not depend on how many.
fn sum(number: u64, bytes: &[u8]) -> u64 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let stretches: Vec<&[u8]> = bytes.chunks(STRETCH).collect();
    let share = stretches.len().div_ceil(cores).max(1);
    let sums = std::thread::scope(|scope| {
        let add = |share: &[&[u8]]| share.iter().map(|stretch| sum_of_stretch(stretch)).collect::<Vec<u64>>();
        let threads: Vec<_> = stretches.chunks(share).map(|share| scope.spawn(move || add(share))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_default()).collect::<Vec<_>>()
    });
    sums.into_iter().flatten().fold(number, mix)
}

/// Eight parallel sums, and the sums of those sums: the latter depend on positions.
fn sum_of_stretch(bytes: &[u8]) -> u64 {
    let (rows, rest) = bytes.as_chunks::<64>();
    let (mut once, mut twice) = ([0_u64; 8], [0_u64; 8]);
    for row in rows {
        for ((once, twice), word) in once.iter_mut().zip(&mut twice).zip(row.as_chunks().0) {
            *once = once.wrapping_add(u64::from_ne_bytes(*word));
            *twice = twice.wrapping_add(*once);
        }
    }
    let rest = rest.iter().map(|byte| u64::from(*byte));
    once.into_iter().chain(twice).chain(rest).fold(bytes.len() as u64, mix)
}

fn mix(sum: u64, next: u64) -> u64 {
    (sum.rotate_left(25) ^ next).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::{PREAMBLE, Preamble, STRETCH, sum};

    #[test]
    fn a_preamble_comes_back_and_one_of_another_version_does_not() {
        let preamble = Preamble {
            source_length: 1,
            header_length: 2,
            body_length: 3,
            sum: u64::MAX,
            sha256: "a".repeat(64),
        };
        let mut bytes = preamble.bytes();
        assert_eq!((bytes.len(), Preamble::read(&bytes)), (PREAMBLE, Some(preamble)));
        assert_eq!(Preamble::read(&bytes[..100]), None);
        for place in [0, 8, 12] {
            bytes[place] ^= 1;
            assert_eq!(Preamble::read(&bytes), None);
            bytes[place] ^= 1;
        }
    }

    #[test]
    fn what_a_disk_loses_changes_the_sum() {
        let bytes: Vec<u8> = (0..STRETCH * 2 + 100).map(|at| (at * 7 + at / 251).to_le_bytes()[0]).collect();
        let right = sum(0, &bytes);
        let mut turned = bytes.clone();
        for place in [0, 5_000, STRETCH, bytes.len() - 1] {
            turned[place] ^= 0x10;
            assert_ne!(sum(0, &turned), right, "a bit at {place}");
            turned[place] ^= 0x10;
        }
        turned[4096..8192].fill(0);
        assert_ne!(sum(0, &turned), right, "a page of zeros");
        let mut swapped = bytes.clone();
        swapped[..2 * 4096].rotate_left(4096);
        assert_ne!(sum(0, &swapped), right, "two pages that changed places");
        assert_ne!(sum(0, &bytes[..bytes.len() - 1]), right, "a byte less");
        assert_ne!(sum(1, &bytes), right, "another source");
    }
}
