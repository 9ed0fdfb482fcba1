//! The block types of GGUF files, one file each, and their conversion to a [`Matrix`](super::tiles::Matrix). Four kinds
//! of tiles hold all of them; types that fit no tile exactly are rounded to eight bits per 32 columns. Refuses unknown
//! types, by name if they have one.

mod bf16;
mod f16;
mod q3_k;
mod q4_0;
mod q4_1;
mod q4_k;
mod q5_0;
mod q5_1;
mod q5_k;
mod q6_k;
mod q8_0;
mod scales;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::WeightsError;
use super::gguf::{Extent, Tensor, damaged_error, unsupported_error};
use super::platform::{self, MappedFile};
use super::raw::{PlainBlock, TileStore};
use super::tiles::{COLUMNS, ROWS, Tiles};

/// The encoding of the numbers of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(non_camel_case_types, reason = "these are the established names of the formats")]
pub(super) enum Encoding {
    F32,
    F16,
    BF16,
    Q3_K,
    Q4_0,
    Q4_1,
    Q4_K,
    Q5_0,
    Q5_1,
    Q5_K,
    Q6_K,
    Q8_0,
}

impl Encoding {
    /// All encodings that a matrix may have.
    #[cfg(test)]
    pub(super) const OF_MATRICES: [Self; 11] = [
        Self::F16,
        Self::BF16,
        Self::Q3_K,
        Self::Q4_0,
        Self::Q4_1,
        Self::Q4_K,
        Self::Q5_0,
        Self::Q5_1,
        Self::Q5_K,
        Self::Q6_K,
        Self::Q8_0,
    ];

    /// Returns the encoding with this number in the file; `tensor` names the tensor in errors.
    pub(super) fn from_number(kind: u32, tensor: &str) -> Result<Self, WeightsError> {
        let name = match kind {
            0 => return Ok(Self::F32),
            1 => return Ok(Self::F16),
            2 => return Ok(Self::Q4_0),
            3 => return Ok(Self::Q4_1),
            6 => return Ok(Self::Q5_0),
            7 => return Ok(Self::Q5_1),
            8 => return Ok(Self::Q8_0),
            11 => return Ok(Self::Q3_K),
            12 => return Ok(Self::Q4_K),
            13 => return Ok(Self::Q5_K),
            14 => return Ok(Self::Q6_K),
            30 => return Ok(Self::BF16),
            10 => "Q2_K",
            15 => "Q8_K",
            16 => "IQ2_XXS",
            17 => "IQ2_XS",
            18 => "IQ3_XXS",
            19 => "IQ1_S",
            20 => "IQ4_NL",
            21 => "IQ3_S",
            22 => "IQ2_S",
            23 => "IQ4_XS",
            39 => "MXFP4",
            other => return Err(unsupported_error(&format!("tensor `{tensor}` has type {other}"))),
        };
        Err(unsupported_error(&format!("tensor `{tensor}` has type {name}")))
    }

    /// The number of values in a block, and its length in bytes.
    pub(super) const fn block(self) -> (usize, usize) {
        match self {
            Self::F32 => (1, 4),
            Self::F16 | Self::BF16 => (1, 2),
            Self::Q3_K => (256, 110),
            Self::Q4_0 => (32, 18),
            Self::Q4_1 => (32, 20),
            Self::Q4_K => (256, 144),
            Self::Q5_0 => (32, 22),
            Self::Q5_1 => (32, 24),
            Self::Q5_K => (256, 176),
            Self::Q6_K => (256, 210),
            Self::Q8_0 => (32, 34),
        }
    }
}

/// A type of blocks, and the tiles that hold it.
trait FileBlock {
    /// The length of a block in a file; for plain numbers, that of 32 of them.
    const BYTES: usize;
    /// The number of values per block: 32 for each tile that a block is written to.
    const NUMBERS: usize;
    /// The tile type that a block becomes.
    type Tile: PlainBlock + Send;
    /// A tile of zeros.
    const EMPTY: Self::Tile;

    /// Writes a block into one row of its tiles. Writes nothing if the block is too short.
    fn put(from: &[u8], tiles: &mut [Self::Tile], row: usize);
}

/// The source of the tiles of a tensor.
trait TileSource {
    /// Returns the tiles for blocks of one type.
    fn take<B: FileBlock>(self) -> Option<TileStore<B::Tile>>;
}

/// Packs the rows of a tensor whose shape has been checked.
pub(super) fn tiles(tensor: &Tensor, name: &str) -> Result<Tiles, WeightsError> {
    match tensor.encoding {
        Encoding::F32 => Err(unsupported_error(&format!("tensor `{name}` is a matrix of type F32"))),
        encoding => tiles_from(encoding, Packing(tensor)).ok_or_else(|| missing(name)),
    }
}

/// Returns the tiles of a tensor that was packed earlier, at this offset of a file.
pub(super) fn tiles_in_file(
    extent: &Extent,
    file: &Arc<MappedFile>,
    at: usize,
) -> Result<Tiles, WeightsError> {
    let count = extent.rows.div_ceil(ROWS) * (extent.columns / COLUMNS);
    tiles_from(extent.encoding, InFile { file, at, count }).ok_or_else(|| missing(extent.name))
}

fn missing(name: &str) -> WeightsError {
    damaged_error(&format!("the tiles of tensor `{name}` are missing"))
}

/// Selects the tile type for each block type.
fn tiles_from(encoding: Encoding, source: impl TileSource) -> Option<Tiles> {
    Some(match encoding {
        Encoding::F32 => return None,
        Encoding::F16 => Tiles::Q8(source.take::<f16::F16>()?),
        Encoding::BF16 => Tiles::Q8(source.take::<bf16::Bf16>()?),
        Encoding::Q3_K => Tiles::Q6(source.take::<q3_k::Q3K>()?),
        Encoding::Q4_0 => Tiles::Q4(source.take::<q4_0::Q4>()?),
        Encoding::Q4_1 => Tiles::Q4(source.take::<q4_1::Q4WithMin>()?),
        Encoding::Q4_K => Tiles::Q4(source.take::<q4_k::Q4K>()?),
        Encoding::Q5_0 => Tiles::Q5(source.take::<q5_0::Q5>()?),
        Encoding::Q5_1 => Tiles::Q5(source.take::<q5_1::Q5WithMin>()?),
        Encoding::Q5_K => Tiles::Q5(source.take::<q5_k::Q5K>()?),
        Encoding::Q6_K => Tiles::Q6(source.take::<q6_k::Q6K>()?),
        Encoding::Q8_0 => Tiles::Q8(source.take::<q8_0::Q8>()?),
    })
}

/// A tensor as stored in a file of weights.
struct Packing<'a>(&'a Tensor<'a>);

impl TileSource for Packing<'_> {
    fn take<B: FileBlock>(self) -> Option<TileStore<B::Tile>> {
        Some(TileStore::Memory(pack::<B>(self.0)))
    }
}

/// A number of tiles in a packed file.
struct InFile<'a> {
    file: &'a Arc<MappedFile>,
    at: usize,
    count: usize,
}

impl TileSource for InFile<'_> {
    fn take<B: FileBlock>(self) -> Option<TileStore<B::Tile>> {
        TileStore::in_file(self.file, self.at, self.count)
    }
}

/// Tensors of at least this many bytes are packed by several threads.
const MIN_SHARED: usize = 1 << 20;
/// More threads would only wait for memory.
const MAX_THREADS: usize = 4;

/// Packs each 16 rows into a strip of tiles. Threads share the strips, because packing takes half of the time to open a
/// file.
fn pack<B: FileBlock>(tensor: &Tensor) -> Vec<B::Tile> {
    let row_length = tensor.columns / B::NUMBERS * B::BYTES;
    let blocks = tensor.columns / COLUMNS;
    let strips = tensor.rows.div_ceil(ROWS);
    let mut packed = Vec::with_capacity(strips * blocks);
    platform::prefer_large_pages(&mut packed);
    packed.resize(strips * blocks, B::EMPTY);
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let share = strips.div_ceil(if tensor.bytes.len() < MIN_SHARED { 1 } else { cores }).max(1);
    std::thread::scope(|scope| {
        let tiles = packed.chunks_mut((share * blocks).max(1));
        let mut shares = tiles.zip(tensor.bytes.chunks((share * ROWS * row_length).max(1)));
        let mine = shares.next();
        for (tiles, bytes) in shares {
            scope.spawn(move || pack_strips::<B>(tiles, bytes, blocks, row_length));
        }
        if let Some((tiles, bytes)) = mine {
            pack_strips::<B>(tiles, bytes, blocks, row_length);
        }
    });
    packed
}

fn pack_strips<B: FileBlock>(packed: &mut [B::Tile], bytes: &[u8], blocks: usize, row_length: usize) {
    let strips = packed.chunks_exact_mut(blocks.max(1)).zip(bytes.chunks((ROWS * row_length).max(1)));
    for (strip, rows) in strips {
        for (row, bytes) in rows.chunks_exact(row_length.max(1)).enumerate() {
            let tiles = strip.chunks_exact_mut(B::NUMBERS / COLUMNS);
            for (tiles, block) in tiles.zip(bytes.chunks_exact(B::BYTES)) {
                B::put(block, tiles, row);
            }
        }
    }
}
