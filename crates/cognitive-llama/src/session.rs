//! A text being read: its tokens, and the keys and values of every layer. Decides how a prompt is cut into blocks and who
//! computes them; a single token is computed by the calling thread, and others help with its products.

use std::sync::Arc;

use super::Model;
use super::activations::Activations;
use super::attention::LayerCache;
use super::board::{Board, StopOnPanic};
use super::crew::{CloseCrew, Crew};
use super::forward::{Block, Scratch, WantedVectors};
use super::likelihood;
use super::product::multiply_tiles;
use super::tiles::ROWS;

/// A block of a prompt has no more tokens than this: large enough to use each weight often, small enough to stay in the
/// second cache and to be asked in time whether to go on.
const BLOCK: usize = 64;

/// What has been read so far: the keys and values of every layer.
#[derive(Debug)]
pub struct TokenSession {
    model: Arc<Model>,
    threads: usize,
    tokens: Vec<u32>,
    memory: Vec<LayerCache>,
    /// One for each thread.
    scratch: Vec<Scratch>,
    packed: Activations,
    logits: Vec<f32>,
}

/// Why a session could not read on. It is as it was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedError {
    /// The context is full.
    Full,
    /// Somebody asked to stop.
    Cancelled,
}

impl TokenSession {
    /// An empty session. Computes with up to `threads` threads.
    #[must_use]
    pub fn new(model: Arc<Model>, threads: usize) -> Self {
        let memory = (0..model.shape.layers).map(|_| LayerCache::default()).collect();
        let logits = vec![0.0; model.tokenizer.len()];
        let threads = threads.clamp(1, 64);
        let scratch = (0..threads).map(|_| Scratch::default()).collect();
        Self { model, threads, tokens: Vec::new(), memory, scratch, packed: Activations::default(), logits }
    }

    /// What it has read.
    #[must_use]
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Forgets everything after the first `length` tokens.
    pub fn truncate(&mut self, length: usize) {
        self.tokens.truncate(length);
        let kept = self.tokens.len();
        self.memory.iter_mut().for_each(|memory| memory.shrink(kept));
    }

    /// Reads on and returns the logits after the last token, one per token of the vocabulary. `cancelled` is asked before
    /// each layer of each block of at most 64 tokens. A token that the vocabulary does not have reads as an empty one.
    /// Without tokens, the logits are those of the last time.
    pub fn feed(&mut self, tokens: &[u32], cancelled: &dyn Fn() -> bool) -> Result<&[f32], FeedError> {
        let first = self.make_room(tokens)?;
        if tokens.is_empty() {
            return Ok(&self.logits);
        }
        if let ([token], 2..) = (tokens, self.threads) {
            self.step(*token, first, cancelled).ok_or(FeedError::Cancelled)?;
            self.tokens.push(*token);
            return Ok(&self.logits);
        }
        let wanted = |is_last| if is_last { WantedVectors::Last } else { WantedVectors::Nothing };
        let keep = |block: &Block<'_>, scratch: &mut Scratch| {
            (block.wanted == WantedVectors::Last).then(|| scratch.x.clone())
        };
        let vectors = self.compute(tokens, first, wanted, keep, cancelled).ok_or(FeedError::Cancelled)?;
        if let Some(x) = vectors.into_iter().flatten().next() {
            self.logits(&x, self.threads.min(tokens.len()));
        }
        self.tokens.extend_from_slice(tokens);
        Ok(&self.logits)
    }

    /// Reads on and returns how likely each token was after those before it, as a logarithm: one number less than there
    /// are tokens, because the first only stands before the others. The logits of [`feed`](Self::feed) stay those of its
    /// last time.
    pub fn likelihoods(
        &mut self,
        tokens: &[u32],
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Vec<f32>, FeedError> {
        let first = self.make_room(tokens)?;
        if tokens.is_empty() {
            return Ok(Vec::new());
        }
        let judge = |block: &Block<'_>, scratch: &mut Scratch| {
            let from = block.first - first + 1;
            likelihood::of(block.model, scratch, tokens.get(from..).unwrap_or_default())
        };
        let parts = self
            .compute(tokens, first, |_| WantedVectors::All, judge, cancelled)
            .ok_or(FeedError::Cancelled)?;
        self.tokens.extend_from_slice(tokens);
        Ok(parts.concat())
    }

    /// The position of the next token, if so many more fit.
    fn make_room(&mut self, tokens: &[u32]) -> Result<usize, FeedError> {
        let first = self.tokens.len();
        if tokens.len() > self.model.shape.context - first {
            return Err(FeedError::Full);
        }
        let heads = self.model.shape.heads;
        self.memory.iter_mut().for_each(|memory| memory.reserve(first + tokens.len(), heads));
        Ok(first)
    }

    /// Computes one token and its logits. The helpers stay for all layers of it: calling them costs as much as a layer.
    fn step(&mut self, token: u32, first: usize, cancelled: &dyn Fn() -> bool) -> Option<()> {
        let (model, memory, logits, packed) =
            (&*self.model, &self.memory, &mut self.logits, &mut self.packed);
        let scratch = self.scratch.first_mut()?;
        let (helpers, tokens) = (self.threads - 1, [token]);
        let (crew, board) = (Crew::new(model.kernel, helpers), Board::new(1));
        std::thread::scope(|scope| {
            let crew = &crew;
            let _close = CloseCrew(crew);
            for helper in 0..helpers {
                scope.spawn(move || crew.help(helper));
            }
            let wanted = WantedVectors::Last;
            let block = Block { model, memory, tokens: &tokens, first, index: 0, wanted, crew: Some(crew) };
            block.run(scratch, &board, cancelled)?;
            packed.normalise(model.kernel, &scratch.x, &model.weights.norm, model.shape.epsilon);
            crew.multiply(packed, &mut [(model.weights.head(), logits)]);
            Some(())
        })
    }

    /// Computes tokens in blocks, and what `take` makes of each block, in their order.
    fn compute<T: Send>(
        &mut self,
        tokens: &[u32],
        first: usize,
        wanted: impl Fn(bool) -> WantedVectors + Sync,
        take: impl Fn(&Block<'_>, &mut Scratch) -> T + Sync,
        cancelled: &dyn Fn() -> bool,
    ) -> Option<Vec<T>> {
        let size = block_size(tokens.len(), self.threads.min(tokens.len()));
        let blocks: Vec<_> = (first..).step_by(size).zip(tokens.chunks(size)).collect();
        let threads = self.threads.min(blocks.len());
        let board = Board::new(blocks.len());
        let (model, memory) = (&*self.model, &self.memory);
        let block = |index: usize| {
            let (first, tokens) = *blocks.get(index)?;
            Some(Block {
                model,
                memory,
                tokens,
                first,
                index,
                wanted: wanted(index + 1 == blocks.len()),
                crew: None,
            })
        };
        // Blocks are dealt in turn: they follow each other through the layers anyway, and this thread, the only one that
        // may ask whether to go on, is sure to get its share.
        let work = |thread: usize, scratch: &mut Scratch, cancelled: &dyn Fn() -> bool| {
            let _guard = StopOnPanic(&board);
            let mut taken = Vec::new();
            for block in (thread..blocks.len()).step_by(threads).filter_map(block) {
                if block.run(scratch, &board, cancelled).is_none() {
                    board.stop();
                    return Vec::new();
                }
                taken.push((block.index, take(&block, scratch)));
                board.finish();
            }
            taken
        };
        let (mine, others) = self.scratch.split_first_mut()?;
        let mut taken = std::thread::scope(|scope| {
            let work = &work;
            let helpers: Vec<_> = (1..threads)
                .zip(others)
                .map(|(thread, scratch)| scope.spawn(move || work(thread, scratch, &|| false)))
                .collect();
            let mut taken = work(0, mine, cancelled);
            if board.wait_for_all(cancelled).is_none() {
                board.stop();
                return None;
            }
            taken.extend(helpers.into_iter().flat_map(|helper| helper.join().unwrap_or_default()));
            Some(taken)
        })?;
        taken.sort_by_key(|(index, _)| *index);
        Some(taken.into_iter().map(|(_, taken)| taken).collect())
    }

    /// The logits of one vector. The rows are shared out between the threads that have been at work.
    fn logits(&mut self, x: &[f32], threads: usize) {
        let (model, packed) = (&*self.model, &mut self.packed);
        packed.normalise(model.kernel, x, &model.weights.norm, model.shape.epsilon);
        let (packed, head) = (&*packed, model.weights.head());
        let tiles = head.tile_count();
        let share = tiles.div_ceil(threads);
        let rows = self.logits.len();
        std::thread::scope(|scope| {
            let mut parts = (0..tiles).step_by(share).zip(self.logits.chunks_mut(share * ROWS));
            let mine = parts.next();
            let compute = move |(from, out): (usize, &mut [f32])| {
                multiply_tiles(model.kernel, head, from..(from + share).min(tiles), packed, out, rows);
            };
            for part in parts {
                scope.spawn(move || compute(part));
            }
            mine.into_iter().for_each(compute);
        });
    }
}

/// As many blocks as threads can share evenly, none longer than [`BLOCK`].
fn block_size(tokens: usize, threads: usize) -> usize {
    let blocks = tokens.div_ceil(BLOCK).next_multiple_of(threads);
    tokens.div_ceil(blocks)
}
