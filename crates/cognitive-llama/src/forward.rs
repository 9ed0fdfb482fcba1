//! The forward pass of one block of tokens through all layers. A block contains stretches of one or more texts, each
//! with its own keys and values. Blocks run in parallel, one thread each. Per layer, a block waits only for the keys
//! and values of earlier blocks of the same text.

#![expect(
    clippy::indexing_slicing,
    reason = "the lengths follow from the shape of the model, which was checked on load"
)]

use std::ops::Range;

use super::Model;
use super::activations::Activations;
use super::attention::{LayerCache, Looks, PositionView, attend};
use super::gates::open;
use super::helper_pool::HelperPool;
use super::layer_progress::LayerProgress;
use super::norm::normalise;
use super::product::multiply;
use super::rope::{Angles, TurnTable};
use super::shape::ModelShape;
use super::tiles::Matrix;
use super::weights::{LayerWeights, Projection};

/// The buffers of a forward pass. They are reused, because allocating them costs more than a token.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// One vector per token; the result at the end.
    pub(super) x: Vec<f32>,
    pub(super) packed: Activations,
    query: Vec<f32>,
    key: Vec<f32>,
    value: Vec<f32>,
    seen: Vec<f32>,
    delta: Vec<f32>,
    gate: Vec<f32>,
    up: Vec<f32>,
    turns: TurnTable,
    /// The rotations of layers with a window, where they differ.
    local_turns: TurnTable,
    looks: Looks,
    /// The states of last tokens that were requested, layer by layer, and within a layer text by text.
    pub(super) states: Vec<f32>,
}

/// Consecutive tokens of one text.
#[derive(Debug, Clone)]
pub(super) struct Stretch<'a> {
    pub(super) memory: &'a [LayerCache],
    pub(super) tokens: &'a [u32],
    /// The position of the first token.
    pub(super) first: usize,
    /// The requested vectors, in addition to its keys and values.
    pub(super) wanted: WantedVectors,
    /// The index of its text in the step.
    pub(super) text: usize,
}

impl Stretch<'_> {
    /// The number of requested vectors.
    pub(super) fn vector_count(&self) -> usize {
        match self.wanted {
            WantedVectors::Nothing => 0,
            WantedVectors::Last | WantedVectors::States => self.tokens.len().min(1),
            WantedVectors::All => self.tokens.len(),
        }
    }
}

/// A block of tokens in computation.
pub(super) struct Block<'a> {
    pub(super) model: &'a Model,
    pub(super) stretches: &'a [Stretch<'a>],
    /// The index of the block on the board.
    pub(super) index: usize,
    /// The blocks that contain the text before it.
    pub(super) after: Range<usize>,
    /// The helpers for its products.
    pub(super) pool: Option<&'a HelperPool<'a>>,
}

/// The vectors of a stretch that the caller needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WantedVectors {
    /// None: only its keys and values are needed.
    Nothing,
    /// The vector of the last token.
    Last,
    /// The vector of every token.
    All,
    /// The vector of the last token after each layer.
    States,
}

impl WantedVectors {
    /// Returns the vectors needed of a part before the end of a text.
    pub(super) fn for_inner_part(self) -> Self {
        match self {
            Self::Nothing | Self::Last | Self::States => Self::Nothing,
            Self::All => Self::All,
        }
    }
}

impl<'a> Block<'a> {
    /// Computes the block and leaves the requested vectors in `scratch.x`. Checks `cancelled` before each layer.
    /// Returns `None` if it, or the board, stops the computation.
    pub(super) fn run(
        &self,
        scratch: &mut Scratch,
        board: &LayerProgress,
        cancelled: &dyn Fn() -> bool,
    ) -> Option<()> {
        let shape = &self.model.shape;
        let tokens = self.stretches.iter().flat_map(|stretch| stretch.tokens);
        scratch.resize(tokens.clone().count(), shape);
        for (token, x) in tokens.zip(scratch.x.chunks_exact_mut(shape.width)) {
            self.model.weights.embedding.row(*token as usize, x);
        }
        if shape.architecture.scales_embedding {
            #[expect(clippy::cast_precision_loss, reason = "no model is wide enough to lose a digit")]
            let scale = (shape.width as f32).sqrt();
            scratch.x.iter_mut().for_each(|x| *x *= scale);
        }
        self.fill_turns(scratch);
        scratch.states.clear();
        let layers = &self.model.weights.layers;
        for (index, layer) in layers.iter().enumerate() {
            if cancelled() {
                return None;
            }
            self.look_up(layer, scratch, index);
            self.store(scratch, index);
            board.publish(self.index);
            // After the last layer only the requested tokens are needed, for their logits.
            let is_last = index + 1 == layers.len();
            if is_last {
                self.drop_unwanted(scratch);
                if scratch.x.is_empty() {
                    return Some(());
                }
            }
            board.wait_for(self.after.clone(), index + 1, cancelled)?;
            self.look_back(layer, scratch, index, is_last);
            self.feed_forward(layer, scratch);
            self.note_states(scratch, is_last);
        }
        Some(())
    }

    /// Records the state of last tokens after a layer, where requested.
    fn note_states(&self, scratch: &mut Scratch, only_wanted: bool) {
        let (width, mut end) = (self.model.shape.width, 0);
        let Scratch { x, states, .. } = scratch;
        for stretch in self.stretches {
            end += if only_wanted { stretch.vector_count() } else { stretch.tokens.len() };
            if stretch.wanted == WantedVectors::States {
                states.extend_from_slice(&x[(end - 1) * width..end * width]);
            }
        }
    }

    fn fill_turns(&self, scratch: &mut Scratch) {
        let shape = &self.model.shape;
        let factors = self.model.weights.rope_factors.as_deref();
        let angles = Angles { base: shape.rope_base, scale: shape.rope_scale, factors };
        let positions =
            self.stretches.iter().flat_map(|stretch| stretch.first..stretch.first + stretch.tokens.len());
        scratch.turns.fill(positions.clone(), shape.heads.width, angles);
        if let Some(local) = shape.architecture.local {
            let angles = Angles { base: local.rope_base, scale: 1.0, factors: None };
            scratch.local_turns.fill(positions, shape.heads.width, angles);
        }
    }

    /// Stores keys and values in the cache of each text.
    fn store(&self, scratch: &Scratch, index: usize) {
        let shape = &self.model.shape;
        let mut from = 0;
        for stretch in self.stretches {
            let to = from + stretch.tokens.len() * shape.key_width();
            let (keys, values) = (&scratch.key[from..to], &scratch.value[from..to]);
            stretch.memory[index].store(stretch.first, keys, values, shape.heads);
            from = to;
        }
    }

    /// Drops the tokens without requested vectors.
    fn drop_unwanted(&self, scratch: &mut Scratch) {
        let shape = &self.model.shape;
        let (mut from, mut kept) = (0, 0);
        for stretch in self.stretches {
            from += stretch.tokens.len();
            for row in from - stretch.vector_count()..from {
                for (room, width) in
                    [(&mut scratch.x, shape.width), (&mut scratch.query, shape.query_width())]
                {
                    room.copy_within(row * width..(row + 1) * width, kept * width);
                }
                kept += 1;
            }
        }
        scratch.resize(kept, shape);
    }

    /// Computes queries, keys and values, rotated by their positions.
    fn look_up(&self, layer: &'a LayerWeights, scratch: &mut Scratch, index: usize) {
        let (kernel, shape) = (self.model.kernel, &self.model.shape);
        let Scratch { x, packed, query, key, value, turns, local_turns, .. } = scratch;
        packed.normalise(kernel, x, &layer.attention_norm, shape.epsilon);
        let products = &mut [
            (&layer.query.matrix, &mut **query),
            (&layer.key.matrix, &mut **key),
            (&layer.value, &mut **value),
        ];
        self.multiply(packed, products);
        self.complete(&layer.query, query);
        self.complete(&layer.key, key);
        add_bias(value, layer.value_bias.as_deref());
        let turns = if shape.window(index).is_some() { local_turns } else { turns };
        turns.turn(query, shape.query_width(), shape, shape.query_scale());
        turns.turn(key, shape.key_width(), shape, 1.0);
    }

    /// Multiplies matrices with the tokens, each into its result.
    fn multiply(&self, packed: &mut Activations, products: &mut [(&'a Matrix, &mut [f32])]) {
        match self.pool {
            Some(pool) => pool.multiply(packed, products),
            None => {
                for (matrix, out) in products {
                    multiply(self.model.kernel, matrix, packed, out);
                }
            }
        }
    }

    /// Adds the bias of queries or keys and normalises their heads, if the model has these.
    fn complete(&self, projection: &Projection, out: &mut [f32]) {
        add_bias(out, projection.bias.as_deref());
        if let Some(norm) = &projection.norm {
            normalise(self.model.kernel, out, norm, self.model.shape.epsilon);
        }
    }

    fn look_back(&self, layer: &'a LayerWeights, scratch: &mut Scratch, index: usize, only_wanted: bool) {
        let (kernel, shape) = (self.model.kernel, &self.model.shape);
        let Scratch { query, seen, looks, packed, delta, x, .. } = scratch;
        let mut from = 0;
        for stretch in self.stretches {
            let tokens = if only_wanted { stretch.vector_count() } else { stretch.tokens.len() };
            let first = stretch.first + stretch.tokens.len() - tokens;
            let view = PositionView { first, window: shape.window(index), heads: shape.heads };
            let to = from + tokens * shape.query_width();
            if tokens > 0 {
                attend(kernel, &stretch.memory[index], view, &query[from..to], &mut seen[from..to], looks);
            }
            from = to;
        }
        packed.quantise(kernel, seen, shape.query_width());
        self.multiply(packed, &mut [(&layer.attention_output, &mut **delta)]);
        self.add(x, delta, layer.attention_outer_norm.as_deref());
    }

    fn feed_forward(&self, layer: &'a LayerWeights, scratch: &mut Scratch) {
        let (kernel, shape) = (self.model.kernel, &self.model.shape);
        let Scratch { x, packed, gate, up, delta, .. } = scratch;
        packed.normalise(kernel, x, &layer.feed_norm, shape.epsilon);
        self.multiply(packed, &mut [(&layer.gate, &mut **gate), (&layer.up, &mut **up)]);
        open(kernel, shape.architecture.gate, gate, up);
        packed.quantise(kernel, gate, shape.hidden);
        self.multiply(packed, &mut [(&layer.down, &mut **delta)]);
        self.add(x, delta, layer.feed_outer_norm.as_deref());
    }

    /// Adds the output of a part of a layer.
    fn add(&self, x: &mut [f32], delta: &mut [f32], norm: Option<&[f32]>) {
        if let Some(norm) = norm {
            normalise(self.model.kernel, delta, norm, self.model.shape.epsilon);
        }
        x.iter_mut().zip(delta).for_each(|(x, delta)| *x += *delta);
    }
}

/// Adds a bias to each row.
fn add_bias(x: &mut [f32], bias: Option<&[f32]>) {
    let Some(bias) = bias else { return };
    for row in x.chunks_exact_mut(bias.len()) {
        row.iter_mut().zip(bias).for_each(|(x, bias)| *x += bias);
    }
}

impl Scratch {
    fn resize(&mut self, tokens: usize, shape: &ModelShape) {
        let (queries, keys) = (shape.query_width(), shape.key_width());
        for (room, width) in [
            (&mut self.x, shape.width),
            (&mut self.query, queries),
            (&mut self.key, keys),
            (&mut self.value, keys),
            (&mut self.seen, queries),
            (&mut self.delta, shape.width),
            (&mut self.gate, shape.hidden),
            (&mut self.up, shape.hidden),
        ] {
            room.resize(tokens * width, 0.0);
        }
    }
}
