//! One batched step: each text reads some tokens, and every weight is read from memory once for all of them. Cuts the
//! tokens into blocks and assigns them to threads. A single token is computed by the calling thread, and helpers share
//! its products. The result of a text does not depend on the rest of the batch, bit by bit.

use std::ops::Range;

use super::Model;
use super::activations::Activations;
use super::attention::LayerCache;
use super::forward::{Block, Scratch, Stretch, WantedVectors};
use super::helper_pool::{CloseHelpers, HelperPool};
use super::layer_progress::{LayerProgress, StopOnPanic};
use super::likelihood;
use super::product::multiply_tiles_to;
use super::session::FeedError;
use super::tiles::ROWS;

/// The largest number of tokens in a block. It is large enough to use each weight often, and small enough to stay in
/// the second-level cache and to notice a cancellation in time.
pub(super) const BLOCK: usize = 64;
/// More threads than this only wait for memory.
const MAX_THREADS: usize = 64;

/// The state of a text that was read: its tokens, the keys and values of every layer, and its last logits.
#[derive(Debug)]
pub(super) struct ReadText {
    pub(super) tokens: Vec<u32>,
    memory: Vec<LayerCache>,
    logits: Vec<f32>,
}

impl ReadText {
    pub(super) fn new(model: &Model) -> Self {
        let memory = (0..model.shape.layers).map(|_| LayerCache::default()).collect();
        Self { tokens: Vec::new(), memory, logits: Vec::new() }
    }

    /// Forgets everything after the first `length` tokens.
    pub(super) fn truncate(&mut self, length: usize) {
        self.tokens.truncate(length);
        let kept = self.tokens.len();
        self.memory.iter_mut().for_each(|memory| memory.shrink(kept));
    }

    /// Creates another text that starts with the first `length` tokens of this one and shares their keys and values.
    pub(super) fn fork(&self, length: usize) -> Self {
        let tokens: Vec<u32> = self.tokens.iter().copied().take(length).collect();
        let memory = self.memory.iter().map(|memory| memory.share(tokens.len())).collect();
        Self { tokens, memory, logits: Vec::new() }
    }

    /// Returns the logits of the last call; zeros for an empty text.
    pub(super) fn logits(&mut self, model: &Model) -> &[f32] {
        self.logits.resize(model.tokenizer.len(), 0.0);
        &self.logits
    }

    /// Checks that this many more tokens fit.
    pub(super) fn check_room(&self, model: &Model, tokens: usize) -> Result<(), FeedError> {
        let left = model.shape.context - self.tokens.len();
        if tokens > left { Err(FeedError::Full) } else { Ok(()) }
    }
}

/// The part of one text in a step.
#[derive(Debug)]
pub(super) struct TextFeed<'a> {
    pub(super) text: &'a mut ReadText,
    /// The tokens to be read, and possibly later ones.
    pub(super) tokens: &'a [u32],
    /// The number of tokens that are read in this step.
    pub(super) count: usize,
    pub(super) wanted: WantedVectors,
    /// The log-likelihoods of all tokens but the first, if all vectors are wanted. The states of the last token, layer
    /// by layer, if states are wanted.
    pub(super) found: Vec<f32>,
}

impl<'a> TextFeed<'a> {
    pub(super) fn new(text: &'a mut ReadText, tokens: &'a [u32], wanted: WantedVectors) -> Self {
        Self { text, tokens, count: tokens.len(), wanted, found: Vec::new() }
    }
}

/// The threads of a step, and their buffers.
#[derive(Debug)]
pub(super) struct StepThreads {
    scratch: Vec<Scratch>,
    packed: Activations,
}

impl StepThreads {
    pub(super) fn new(threads: usize) -> Self {
        let scratch = (0..threads.clamp(1, MAX_THREADS)).map(|_| Scratch::default()).collect();
        Self { scratch, packed: Activations::default() }
    }

    pub(super) fn threads(&self) -> usize {
        self.scratch.len()
    }

    /// Reads tokens of all texts, whose room was checked. If `cancelled` returns true, it returns `None` and leaves the
    /// texts unchanged. `cancelled` is checked before each layer of each block of at most 64 tokens.
    pub(super) fn read(
        &mut self,
        model: &Model,
        feeds: &mut [TextFeed<'_>],
        cancelled: &dyn Fn() -> bool,
    ) -> Option<()> {
        for feed in &mut *feeds {
            let ReadText { tokens, memory, .. } = &mut *feed.text;
            let (first, heads) = (tokens.len(), model.shape.heads);
            for memory in memory {
                memory.reserve(first, first + feed.count, heads);
            }
        }
        let is_single = matches!(&*feeds, [feed] if feed.count == 1 && feed.wanted == WantedVectors::Last);
        if is_single && self.threads() > 1 {
            self.step(model, feeds.first_mut()?, cancelled)?;
        } else {
            let found = self.compute(model, feeds, cancelled)?;
            self.deliver(model, feeds, found);
        }
        for feed in feeds {
            feed.text.tokens.extend(feed.tokens.iter().take(feed.count));
        }
        Some(())
    }

    /// Computes one token and its logits. The helpers stay for all its layers, because starting them costs as much as a
    /// layer.
    fn step(&mut self, model: &Model, feed: &mut TextFeed<'_>, cancelled: &dyn Fn() -> bool) -> Option<()> {
        let helpers = self.threads() - 1;
        let scratch = self.scratch.first_mut()?;
        let packed = &mut self.packed;
        let ReadText { tokens, memory, logits } = &mut *feed.text;
        let (next, first) = (feed.tokens.get(..1)?, tokens.len());
        let stretches = [Stretch { memory, tokens: next, first, wanted: feed.wanted, text: 0 }];
        logits.resize(model.tokenizer.len(), 0.0);
        let (pool, board) = (HelperPool::new(model.kernel, helpers), LayerProgress::new(1));
        std::thread::scope(|scope| {
            let pool = &pool;
            let _close = CloseHelpers(pool);
            for helper in 0..helpers {
                scope.spawn(move || pool.help(helper));
            }
            let block = Block { model, stretches: &stretches, index: 0, after: 0..0, pool: Some(pool) };
            block.run(scratch, &board, cancelled)?;
            packed.normalise(model.kernel, &scratch.x, &model.weights.norm, model.shape.epsilon);
            pool.multiply(packed, &mut [(model.weights.head(), logits)]);
            Some(())
        })
    }

    /// Computes all tokens in blocks, and returns the results of each.
    fn compute(
        &mut self,
        model: &Model,
        feeds: &[TextFeed<'_>],
        cancelled: &dyn Fn() -> bool,
    ) -> Option<Vec<BlockResult>> {
        let plan = plan(feeds, self.threads());
        let threads = self.threads().min(plan.len());
        let board = LayerProgress::new(plan.len());
        // Blocks are assigned round-robin: the blocks of one text follow each other through the layers anyway. This
        // thread, the only one that may call `cancelled`, always gets some of them.
        let work = |thread: usize, scratch: &mut Scratch, cancelled: &dyn Fn() -> bool| {
            let _guard = StopOnPanic(&board);
            let mut found = Vec::new();
            for (index, (stretches, after)) in plan.iter().enumerate().skip(thread).step_by(threads) {
                let block = Block { model, stretches, index, after: after.clone(), pool: None };
                if block.run(scratch, &board, cancelled).is_none() {
                    board.stop();
                    return Vec::new();
                }
                found.extend(take(model, feeds, stretches, scratch));
                board.finish();
            }
            found
        };
        let (mine, others) = self.scratch.split_first_mut()?;
        std::thread::scope(|scope| {
            let work = &work;
            let helpers: Vec<_> = (1..threads)
                .zip(others)
                .map(|(thread, scratch)| scope.spawn(move || work(thread, scratch, &|| false)))
                .collect();
            let mut found = work(0, mine, cancelled);
            if board.wait_for_all(cancelled).is_none() {
                board.stop();
                return None;
            }
            found.extend(helpers.into_iter().flat_map(|helper| helper.join().unwrap_or_default()));
            Some(found)
        })
    }

    /// Distributes the results to the texts.
    fn deliver(&mut self, model: &Model, feeds: &mut [TextFeed<'_>], mut found: Vec<BlockResult>) {
        found.sort_by_key(|found| (found.text, found.first));
        let mut vectors = Vec::new();
        for BlockResult { text, vector, numbers, .. } in found {
            vectors.extend(vector);
            if let Some(feed) = feeds.get_mut(text) {
                feed.found.extend(numbers);
            }
        }
        let asked = feeds.iter_mut().filter(|feed| feed.wanted == WantedVectors::Last && feed.count > 0);
        let outs = asked.map(|feed| {
            feed.text.logits.resize(model.tokenizer.len(), 0.0);
            &mut *feed.text.logits
        });
        let outs = outs.collect();
        if !vectors.is_empty() {
            self.logits(model, &vectors, outs);
        }
    }

    /// Computes the logits of some vectors. The threads share the rows of the head.
    fn logits(&mut self, model: &Model, vectors: &[f32], outs: Vec<&mut [f32]>) {
        let threads = self.threads();
        let packed = &mut self.packed;
        packed.normalise(model.kernel, vectors, &model.weights.norm, model.shape.epsilon);
        let (packed, head) = (&*packed, model.weights.head());
        let tiles = head.tile_count();
        let share = tiles.div_ceil(threads);
        let starts = (0..tiles).step_by(share);
        let mut parts: Vec<(usize, Vec<&mut [f32]>)> = starts.map(|start| (start, Vec::new())).collect();
        for out in outs {
            let chunks = parts.iter_mut().zip(out.chunks_mut(share * ROWS));
            chunks.for_each(|((_, part), chunk)| part.push(chunk));
        }
        let compute = move |(from, mut outs): (usize, Vec<&mut [f32]>)| {
            let tiles = from..(from + share).min(tiles);
            multiply_tiles_to(model.kernel, head, tiles, packed, &mut |token, row, numbers| {
                let out = outs.get_mut(token).and_then(|out| out.get_mut(row..row + numbers.len()));
                if let Some(out) = out {
                    out.copy_from_slice(numbers);
                }
            });
        };
        std::thread::scope(|scope| {
            let mut parts = parts.into_iter();
            let mine = parts.next();
            parts.for_each(|part| drop(scope.spawn(move || compute(part))));
            mine.into_iter().for_each(compute);
        });
    }
}

/// The result of a block for one text.
struct BlockResult {
    text: usize,
    /// The position of the first token of its stretch.
    first: usize,
    /// The vector of the last token, if wanted.
    vector: Vec<f32>,
    /// Likelihoods or states, see [`TextFeed`].
    numbers: Vec<f32>,
}

/// Collects the wanted results of a computed block.
fn take(
    model: &Model,
    feeds: &[TextFeed<'_>],
    stretches: &[Stretch<'_>],
    scratch: &mut Scratch,
) -> Vec<BlockResult> {
    let width = model.shape.width;
    let Scratch { x, packed, states, .. } = scratch;
    let (mut found, mut known, mut next, mut rows) = (Vec::new(), Vec::new(), Vec::new(), &**x);
    let is_asked = |stretch: &&Stretch<'_>| stretch.wanted == WantedVectors::States;
    let (asked, mut earlier) = (stretches.iter().filter(is_asked).count(), 0);
    for stretch in stretches {
        let (mine, rest) = rows.split_at((stretch.vector_count() * width).min(rows.len()));
        rows = rest;
        let Stretch { text, first, wanted, .. } = *stretch;
        let vector = if wanted == WantedVectors::Last { mine.to_vec() } else { Vec::new() };
        let mut numbers = Vec::new();
        if wanted == WantedVectors::States {
            let mine = states.chunks_exact(width).skip(earlier).step_by(asked);
            numbers.extend(mine.flatten());
            earlier += 1;
        }
        found.push(BlockResult { text, first, vector, numbers });
        if let (WantedVectors::All, Some(feed)) = (wanted, feeds.get(text)) {
            let from = first - feed.text.tokens.len() + 1;
            let following = feed.tokens.get(from..).unwrap_or_default();
            let following = following.get(..stretch.tokens.len()).unwrap_or(following);
            known.extend(mine.iter().take(following.len() * width));
            next.extend(following.iter().map(|token| (found.len() - 1, *token)));
        }
    }
    let tokens: Vec<u32> = next.iter().map(|(_, token)| *token).collect();
    for ((index, _), likelihood) in
        next.iter().zip(likelihood::log_probabilities(model, packed, &known, &tokens))
    {
        found.get_mut(*index).into_iter().for_each(|found| found.numbers.push(likelihood));
    }
    found
}

/// The stretches of a block, and the blocks that it must follow.
type PlannedBlock<'a> = (Vec<Stretch<'a>>, Range<usize>);

/// Cuts the tokens into blocks that the threads share evenly.
fn plan<'a>(feeds: &'a [TextFeed<'_>], threads: usize) -> Vec<PlannedBlock<'a>> {
    let tokens = feeds.iter().map(|feed| feed.count).sum::<usize>();
    let size = block_size(tokens, threads.min(tokens));
    let mut blocks: Vec<PlannedBlock<'a>> = Vec::new();
    let mut room = 0;
    for (text, feed) in feeds.iter().enumerate() {
        let mut rest = feed.tokens.get(..feed.count).unwrap_or(feed.tokens);
        let mut first = feed.text.tokens.len();
        let mut before = None;
        while !rest.is_empty() {
            if room == 0 {
                let index = blocks.len();
                blocks.push((Vec::new(), before.unwrap_or(index)..index));
                room = size;
            }
            let (tokens, later) = rest.split_at(rest.len().min(room));
            // The last token is only needed at the end of a text.
            let wanted = if later.is_empty() { feed.wanted } else { feed.wanted.for_inner_part() };
            before = before.or(Some(blocks.len() - 1));
            if let Some((stretches, _)) = blocks.last_mut() {
                stretches.push(Stretch { memory: &feed.text.memory, tokens, first, wanted, text });
            }
            first += tokens.len();
            room -= tokens.len();
            rest = later;
        }
    }
    blocks
}

/// Returns the block size for a number of blocks that the threads share evenly, at most [`BLOCK`].
fn block_size(tokens: usize, threads: usize) -> usize {
    let blocks = tokens.div_ceil(BLOCK).next_multiple_of(threads.max(1));
    tokens.div_ceil(blocks.max(1))
}
