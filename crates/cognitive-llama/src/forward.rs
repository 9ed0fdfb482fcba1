//! One block of tokens through all layers. Blocks of one prompt are computed at the same time, each by one thread; a
//! block waits, layer by layer, only for the keys and values of the blocks before it.

#![expect(
    clippy::indexing_slicing,
    reason = "the lengths follow from the shape of the model, which was checked on load"
)]

use super::Model;
use super::activations::Activations;
use super::attention::{LayerCache, Looks, PositionView, attend};
use super::board::Board;
use super::crew::Crew;
use super::gates::open;
use super::norm::normalise;
use super::product::multiply;
use super::rope::{Angles, TurnTable};
use super::shape::ModelShape;
use super::tiles::Matrix;
use super::weights::{LayerWeights, Projection};

/// The room that a block of tokens needs on its way; kept, because asking for it anew costs more than a token.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// One vector per token: what comes out in the end.
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
    /// Those of layers with a window, where they differ.
    local_turns: TurnTable,
    looks: Looks,
}

/// A block of tokens on its way.
pub(super) struct Block<'a> {
    pub(super) model: &'a Model,
    pub(super) memory: &'a [LayerCache],
    pub(super) tokens: &'a [u32],
    /// The position of the first token.
    pub(super) first: usize,
    /// The number of the block on the board.
    pub(super) index: usize,
    /// What is wanted of it besides its keys and values.
    pub(super) wanted: WantedVectors,
    /// Who helps with a single token.
    pub(super) crew: Option<&'a Crew<'a>>,
}

/// Which vectors of a block somebody will look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WantedVectors {
    /// None: it only stands before another.
    Nothing,
    /// That of the last token.
    Last,
    /// That of every token.
    All,
}

impl<'a> Block<'a> {
    /// Computes the block. Afterwards `scratch.x` has the vectors that are wanted. Asks `cancelled` before each layer;
    /// returns nothing if it, or the board, said stop.
    pub(super) fn run(
        &self,
        scratch: &mut Scratch,
        board: &Board,
        cancelled: &dyn Fn() -> bool,
    ) -> Option<()> {
        let shape = &self.model.shape;
        scratch.resize(self.tokens.len(), shape);
        for (token, x) in self.tokens.iter().zip(scratch.x.chunks_exact_mut(shape.width)) {
            self.model.weights.embedding.row(*token as usize, x);
        }
        if shape.architecture.scales_embedding {
            #[expect(clippy::cast_precision_loss, reason = "no model is wide enough to lose a digit")]
            let scale = (shape.width as f32).sqrt();
            scratch.x.iter_mut().for_each(|x| *x *= scale);
        }
        self.fill_turns(scratch);
        let layers = &self.model.weights.layers;
        for (index, layer) in layers.iter().enumerate() {
            if cancelled() {
                return None;
            }
            self.look_up(layer, scratch, index);
            self.memory[index].store(self.first, &scratch.key, &scratch.value, shape.heads);
            board.publish(self.index);
            let mut first = self.first;
            if index + 1 == layers.len() {
                // Nothing comes after the last layer but the logits of tokens that are wanted.
                match self.wanted {
                    WantedVectors::Nothing => return Some(()),
                    WantedVectors::Last => {
                        scratch.keep_last(shape);
                        first = self.first + self.tokens.len() - 1;
                    }
                    WantedVectors::All => {}
                }
            }
            board.wait_for_those_before(self.index, index + 1, cancelled)?;
            self.look_back(layer, scratch, first, index);
            self.feed_forward(layer, scratch);
        }
        Some(())
    }

    fn fill_turns(&self, scratch: &mut Scratch) {
        let (shape, tokens) = (&self.model.shape, self.tokens.len());
        let factors = self.model.weights.rope_factors.as_deref();
        let angles = Angles { base: shape.rope_base, scale: shape.rope_scale, factors };
        scratch.turns.fill(self.first, tokens, shape.heads.width, angles);
        if let Some(local) = shape.architecture.local {
            let angles = Angles { base: local.rope_base, scale: 1.0, factors: None };
            scratch.local_turns.fill(self.first, tokens, shape.heads.width, angles);
        }
    }

    /// Queries, keys and values, turned by their positions.
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
        match self.crew {
            Some(crew) => crew.multiply(packed, products),
            None => {
                for (matrix, out) in products {
                    multiply(self.model.kernel, matrix, packed, out);
                }
            }
        }
    }

    /// Adds the bias of queries or keys, and brings their heads to the length one, where the model wants it.
    fn complete(&self, projection: &Projection, out: &mut [f32]) {
        add_bias(out, projection.bias.as_deref());
        if let Some(norm) = &projection.norm {
            normalise(self.model.kernel, out, norm, self.model.shape.epsilon);
        }
    }

    fn look_back(&self, layer: &'a LayerWeights, scratch: &mut Scratch, first: usize, index: usize) {
        let (kernel, shape) = (self.model.kernel, &self.model.shape);
        let Scratch { query, seen, looks, packed, delta, x, .. } = scratch;
        let view = PositionView { first, window: shape.window(index), heads: shape.heads };
        attend(kernel, &self.memory[index], view, query, seen, looks);
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

    /// Adds what a part of a layer has computed.
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

    /// Drops all tokens but the last.
    fn keep_last(&mut self, shape: &ModelShape) {
        for (room, width) in [(&mut self.x, shape.width), (&mut self.query, shape.query_width())] {
            let from = room.len() - width;
            room.copy_within(from.., 0);
            room.truncate(width);
        }
        self.seen.truncate(shape.query_width());
        self.delta.truncate(shape.width);
        self.gate.truncate(shape.hidden);
        self.up.truncate(shape.hidden);
    }
}
