//! One block of tokens through all layers. Blocks of one prompt are computed at the same time, each by one thread; a
//! block waits, layer by layer, only for the keys and values of the blocks before it.

#![expect(
    clippy::indexing_slicing,
    reason = "the lengths follow from the shape of the model, which was checked on load"
)]

use super::Model;
use super::activations::Activations;
use super::attention::{LayerCache, Looks, attend};
use super::board::Board;
use super::exp::gate;
use super::product::multiply;
use super::weights::{LayerWeights, ModelShape};

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
    /// Cosine and sine per token and pair of columns.
    turns: Vec<(f32, f32)>,
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

impl Block<'_> {
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
        scratch.turn_table(self.first, self.tokens.len(), shape);
        let layers = &self.model.weights.layers;
        for (index, layer) in layers.iter().enumerate() {
            if cancelled() {
                return None;
            }
            self.look_up(layer, scratch);
            self.memory[index].store(self.first, &scratch.key, &scratch.value, shape.heads);
            board.publish(self.index);
            let mut first = self.first;
            if index + 1 == layers.len() {
                // Nothing comes after the last layer but the logits of tokens that are wanted.
                match self.wanted {
                    WantedVectors::Nothing => return Some(()),
                    WantedVectors::Last => {
                        scratch.keep_last(shape.width, shape.hidden);
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

    /// Queries, keys and values, turned by their positions.
    fn look_up(&self, layer: &LayerWeights, scratch: &mut Scratch) {
        let (kernel, shape) = (self.model.kernel, &self.model.shape);
        scratch.packed.normalise(kernel, &scratch.x, &layer.attention_norm, shape.epsilon);
        multiply(kernel, &layer.query, &scratch.packed, &mut scratch.query);
        multiply(kernel, &layer.key, &scratch.packed, &mut scratch.key);
        multiply(kernel, &layer.value, &scratch.packed, &mut scratch.value);
        let head = shape.heads.width;
        #[expect(clippy::cast_precision_loss, reason = "no head is wide enough to lose a digit")]
        let scale = 1.0 / (head as f32).sqrt();
        turn(&mut scratch.query, shape.width, head, &scratch.turns, scale);
        turn(&mut scratch.key, shape.heads.keys * head, head, &scratch.turns, 1.0);
    }

    fn look_back(&self, layer: &LayerWeights, scratch: &mut Scratch, first: usize, index: usize) {
        let (kernel, heads) = (self.model.kernel, self.model.shape.heads);
        let Scratch { query, seen, looks, packed, delta, x, .. } = scratch;
        attend(kernel, &self.memory[index], first, query, seen, looks, heads);
        packed.quantise(kernel, seen, self.model.shape.width);
        multiply(kernel, &layer.attention_output, packed, delta);
        x.iter_mut().zip(delta).for_each(|(x, delta)| *x += *delta);
    }

    fn feed_forward(&self, layer: &LayerWeights, scratch: &mut Scratch) {
        let (kernel, shape) = (self.model.kernel, &self.model.shape);
        scratch.packed.normalise(kernel, &scratch.x, &layer.feed_norm, shape.epsilon);
        multiply(kernel, &layer.gate, &scratch.packed, &mut scratch.gate);
        multiply(kernel, &layer.up, &scratch.packed, &mut scratch.up);
        gate(kernel, &mut scratch.gate, &scratch.up);
        scratch.packed.quantise(kernel, &scratch.gate, shape.hidden);
        multiply(kernel, &layer.down, &scratch.packed, &mut scratch.delta);
        scratch.x.iter_mut().zip(&scratch.delta).for_each(|(x, delta)| *x += delta);
    }
}

impl Scratch {
    fn resize(&mut self, tokens: usize, shape: &ModelShape) {
        let keys = shape.heads.keys * shape.heads.width;
        for (room, width) in [
            (&mut self.x, shape.width),
            (&mut self.query, shape.width),
            (&mut self.key, keys),
            (&mut self.value, keys),
            (&mut self.seen, shape.width),
            (&mut self.delta, shape.width),
            (&mut self.gate, shape.hidden),
            (&mut self.up, shape.hidden),
        ] {
            room.resize(tokens * width, 0.0);
        }
    }

    /// Drops all tokens but the last.
    fn keep_last(&mut self, width: usize, hidden: usize) {
        for room in [&mut self.x, &mut self.query] {
            let from = room.len() - width;
            room.copy_within(from.., 0);
            room.truncate(width);
        }
        self.seen.truncate(width);
        self.delta.truncate(width);
        self.gate.truncate(hidden);
        self.up.truncate(hidden);
    }

    /// The angle of a pair of columns grows with the position, the slower the further the pair is to the right.
    #[expect(clippy::cast_precision_loss, reason = "positions and columns are far below 2^24")]
    fn turn_table(&mut self, first: usize, tokens: usize, shape: &ModelShape) {
        let head = shape.heads.width;
        let step = shape.rope_base.powf(-2.0 / head as f32);
        self.turns.clear();
        for position in first..first + tokens {
            let mut angle = position as f32;
            for _ in 0..head / 2 {
                let (sin, cos) = angle.sin_cos();
                self.turns.push((cos, sin));
                angle *= step;
            }
        }
    }
}

/// Turns each pair of columns by its angle.
fn turn(x: &mut [f32], row: usize, head: usize, turns: &[(f32, f32)], scale: f32) {
    for (row, turns) in x.chunks_exact_mut(row).zip(turns.chunks_exact(head / 2)) {
        for head in row.chunks_exact_mut(head) {
            for (pair, (cos, sin)) in head.as_chunks_mut::<2>().0.iter_mut().zip(turns) {
                let [one, other] = *pair;
                *pair = [(one * cos - other * sin) * scale, (one * sin + other * cos) * scale];
            }
        }
    }
}
