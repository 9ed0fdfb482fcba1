//! Attention: keys and values in pages of 32 positions, and the weighted sum over them. Pages are read one after the
//! other with a running maximum. So a page is read once for all tokens of a block, and memory does not grow with the
//! square of the prompt. The result of a token does not depend on the tokens computed with it.

#![expect(
    clippy::indexing_slicing,
    reason = "the lengths follow from the shape of the model, which was checked on load"
)]
#![expect(
    clippy::inline_always,
    reason = "only what is inlined is compiled for the instructions of its kernel"
)]

use std::sync::{Arc, PoisonError, RwLock};

use super::activations::{fold, sum};
use super::exp::exp;
use super::raw::{Kernel, Work, mul_add};

/// The number of positions in a page, and of numbers that are computed in parallel.
pub(super) const PAGE: usize = 32;

/// The layout of the heads of a layer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heads {
    /// The number of query heads.
    pub(super) queries: usize,
    /// The number of key-value heads; each serves the same number of query heads.
    pub(super) keys: usize,
    /// The width of a head; a multiple of 32.
    pub(super) width: usize,
}

/// The keys and values of 32 positions of one layer.
#[derive(Debug, Clone)]
struct CachePage {
    /// Per head and column, 32 positions.
    keys: Box<[f32]>,
    /// Per head and position, the columns.
    values: Box<[f32]>,
}

/// The keys and values of one layer. The locks are practically uncontended: writes to a page are short, and the
/// positions that other threads read in it are complete by then. Texts with a common prefix share its pages; shared
/// pages are never written.
#[derive(Debug, Default)]
pub(super) struct LayerCache {
    pages: Vec<Arc<RwLock<CachePage>>>,
}

impl LayerCache {
    /// Allocates pages up to `positions` in all, for writing from `first` on. Copies shared pages in that range.
    pub(super) fn reserve(&mut self, first: usize, positions: usize, heads: Heads) {
        for page in self.pages.iter_mut().skip(first / PAGE) {
            if Arc::get_mut(page).is_none() {
                let copy = page.read().unwrap_or_else(PoisonError::into_inner).clone();
                *page = Arc::new(RwLock::new(copy));
            }
        }
        let size = heads.keys * heads.width * PAGE;
        let page = || CachePage { keys: vec![0.0; size].into(), values: vec![0.0; size].into() };
        let count = positions.div_ceil(PAGE).max(self.pages.len());
        self.pages.resize_with(count, || Arc::new(RwLock::new(page())));
    }

    /// Returns a cache that shares the keys and values up to this many positions.
    pub(super) fn share(&self, positions: usize) -> Self {
        Self { pages: self.pages.iter().take(positions.div_ceil(PAGE)).map(Arc::clone).collect() }
    }

    /// Frees the pages beyond this many positions.
    pub(super) fn shrink(&mut self, positions: usize) {
        self.pages.truncate(positions.div_ceil(PAGE));
    }

    /// Stores the keys and values of the positions from `first` on, one row each.
    pub(super) fn store(&self, first: usize, keys: &[f32], values: &[f32], heads: Heads) {
        let row = heads.keys * heads.width;
        let rows = keys.chunks_exact(row).zip(values.chunks_exact(row));
        for (position, (keys, values)) in (first..).zip(rows) {
            let mut page = self.pages[position / PAGE].write().unwrap_or_else(PoisonError::into_inner);
            let slot = position % PAGE;
            for (column, key) in keys.iter().enumerate() {
                page.keys[column * PAGE + slot] = *key;
            }
            for (head, values) in values.chunks_exact(heads.width).enumerate() {
                let at = (head * PAGE + slot) * heads.width;
                page.values[at..at + heads.width].copy_from_slice(values);
            }
        }
    }
}

/// The buffers of attention.
#[derive(Debug, Default)]
pub(super) struct Looks {
    /// The largest score per token and head.
    largest: Vec<f32>,
    /// The sum of the weights per token and head.
    total: Vec<f32>,
}

/// The positions that a block of tokens attends to.
#[derive(Debug, Clone, Copy)]
pub(super) struct PositionView {
    /// The position of the first token.
    pub(super) first: usize,
    /// The number of positions that each token sees, itself included; `None` if it sees everything.
    pub(super) window: Option<usize>,
    pub(super) heads: Heads,
}

impl PositionView {
    /// The first position that a token sees.
    #[inline(always)]
    fn begins(&self, token: usize) -> usize {
        match self.window {
            Some(window) => (self.first + token + 1).saturating_sub(window),
            None => 0,
        }
    }
}

/// Writes the attention output of each head of the tokens into `out`.
pub(super) fn attend(
    kernel: Kernel,
    memory: &LayerCache,
    view: PositionView,
    queries: &[f32],
    out: &mut [f32],
    looks: &mut Looks,
) {
    let PositionView { first, heads, .. } = view;
    let tokens = queries.len() / (heads.queries * heads.width);
    looks.largest.clear();
    looks.largest.resize(tokens * heads.queries, f32::NEG_INFINITY);
    looks.total.clear();
    looks.total.resize(tokens * heads.queries, 0.0);
    out.fill(0.0);
    let pages = (first + tokens).div_ceil(PAGE);
    // Pages before the window of every token are not even locked.
    let skipped = view.begins(0) / PAGE;
    for (at, page) in memory.pages[..pages].iter().enumerate().skip(skipped) {
        let page = page.read().unwrap_or_else(PoisonError::into_inner);
        let page = &*page;
        kernel.run(PageLook { kernel, page, start: at * PAGE, view, queries, out, looks });
    }
    for (row, total) in out.chunks_exact_mut(heads.width).zip(&looks.total) {
        for x in row {
            *x /= total;
        }
    }
}

/// One page, attended to by all tokens of a block.
struct PageLook<'a> {
    kernel: Kernel,
    page: &'a CachePage,
    /// The first position of the page.
    start: usize,
    view: PositionView,
    queries: &'a [f32],
    out: &'a mut [f32],
    looks: &'a mut Looks,
}

/// The positions of a page that a token sees, as a half-open range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct VisibleSlots {
    from: usize,
    to: usize,
}

impl Work for PageLook<'_> {
    #[inline(always)]
    fn run<const FUSED: bool>(mut self) {
        let Heads { queries, keys, width } = self.view.heads;
        let shared = queries / keys;
        let mut tokens = self.queries.len() / (queries * width);
        if let Some(window) = self.view.window {
            // Tokens whose window starts after the page do not see it.
            tokens = tokens.min((self.start + PAGE + window - 1).saturating_sub(self.view.first));
        }
        let rows = tokens * shared;
        for head in 0..keys {
            // Neither do tokens before the page.
            let mut row = self.start.saturating_sub(self.view.first) * shared;
            while row < rows {
                let visible = self.visible(row / shared);
                let count = (rows - row).min(4);
                // Rows that see different parts of the page are computed one by one.
                let together = visible == self.visible((row + count - 1) / shared);
                let mut indices = [0; 4];
                for (at, index) in indices.iter_mut().enumerate() {
                    let row = row + at;
                    *index = row / shared * queries + head * shared + row % shared;
                }
                let [a, b, c, d] = indices;
                match if together { count } else { 1 } {
                    4 => self.look::<FUSED, 4>(head, [a, b, c, d], visible),
                    3 => self.look::<FUSED, 3>(head, [a, b, c], visible),
                    2 => self.look::<FUSED, 2>(head, [a, b], visible),
                    _ => self.look::<FUSED, 1>(head, [a], visible),
                }
                row += if together { count } else { 1 };
            }
        }
    }
}

impl PageLook<'_> {
    /// The positions of the page that a token sees.
    #[inline(always)]
    fn visible(&self, token: usize) -> VisibleSlots {
        let from = self.view.begins(token).saturating_sub(self.start);
        VisibleSlots { from, to: (self.view.first + token + 1 - self.start).min(PAGE) }
    }

    /// Computes `R` heads of `queries` that share a head of the page.
    #[inline(always)]
    fn look<const FUSED: bool, const R: usize>(
        &mut self,
        head: usize,
        rows: [usize; R],
        visible: VisibleSlots,
    ) {
        let width = self.view.heads.width;
        let size = width * PAGE;
        let keys = &self.page.keys[head * size..(head + 1) * size];
        let values = &self.page.values[head * size..head * size + visible.to * width];
        let mut weights = [[0.0; PAGE]; R];
        let mut asked: [&[f32]; R] = [&[]; R];
        for r in 0..R {
            asked[r] = &self.queries[rows[r] * width..(rows[r] + 1) * width];
        }
        self.kernel.blend(&mut weights, asked, keys, PAGE);
        let mut factors = [0.0; R];
        for r in 0..R {
            factors[r] = self.looks.weigh::<FUSED>(rows[r], &mut weights[r], visible);
        }
        let mut visible_weights: [&[f32]; R] = [&[]; R];
        for r in 0..R {
            visible_weights[r] = &weights[r][..visible.to];
        }
        for part in (0..width).step_by(PAGE) {
            let mut sums = [[0.0; PAGE]; R];
            for r in 0..R {
                let at = rows[r] * width + part;
                for (sum, out) in sums[r].iter_mut().zip(&self.out[at..at + PAGE]) {
                    *sum = out * factors[r];
                }
            }
            self.kernel.blend(&mut sums, visible_weights, &values[part..], width);
            for r in 0..R {
                let at = rows[r] * width + part;
                self.out[at..at + PAGE].copy_from_slice(&sums[r]);
            }
        }
    }
}

impl Looks {
    /// Turns the scores of a page into weights. Returns the factor for the sums of all earlier pages.
    #[inline(always)]
    fn weigh<const FUSED: bool>(
        &mut self,
        row: usize,
        scores: &mut [f32; PAGE],
        visible: VisibleSlots,
    ) -> f32 {
        let seen = |slot: usize| slot >= visible.from && slot < visible.to;
        for (slot, score) in scores.iter_mut().enumerate() {
            *score = if seen(slot) { *score } else { f32::NEG_INFINITY };
        }
        let before = self.largest[row];
        let largest = fold(*scores, |one, other| if one > other { one } else { other });
        let largest = if before > largest { before } else { largest };
        for (slot, score) in scores.iter_mut().enumerate() {
            let weight = exp::<FUSED>(*score - largest);
            *score = if seen(slot) { weight } else { 0.0 };
        }
        let factor = if before == f32::NEG_INFINITY { 0.0 } else { exp::<FUSED>(before - largest) };
        self.largest[row] = largest;
        self.total[row] = mul_add::<FUSED>(self.total[row], factor, sum(*scores));
        factor
    }
}
