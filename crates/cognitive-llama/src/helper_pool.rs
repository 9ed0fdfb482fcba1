//! A thread pool for the products of a single token, because several threads read weights from memory faster than one.
//! Free threads claim small chunks of work. The calling thread never waits for a helper that has not started; on a busy
//! machine it does all the work itself. The result does not depend on which thread computes a number.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, RwLock};

use super::activations::Activations;
use super::product::multiply_tiles;
use super::raw::Kernel;
use super::tiles::{Matrix, ROWS};

/// The approximate number of weight blocks per chunk: some ten microseconds of work.
const CHUNK_BLOCKS: usize = 512;
/// The number of times a helper polls for work before it sleeps. Two products are a few microseconds apart, and waking
/// a thread takes longer.
const MAX_SPINS: usize = 2_000;
/// The number of ticket bits for the next chunk. The chunk count has as many, and the remaining bits number the job.
const CHUNK_BITS: u32 = 20;
const CHUNK_MASK: u64 = (1 << CHUNK_BITS) - 1;

/// The state shared by the helpers and the calling thread.
#[derive(Debug)]
pub(super) struct HelperPool<'m> {
    kernel: Kernel,
    job: RwLock<HelperJob<'m>>,
    /// The number of the job, its chunk count, and the next chunk.
    ticket: AtomicU64,
    /// The number of chunks that helpers have finished.
    finished: AtomicUsize,
    /// One entry per helper.
    results: Vec<Mutex<HelperResults>>,
    sleepers: AtomicUsize,
    bed: Mutex<()>,
    woken: Condvar,
    closed: AtomicBool,
    broken: AtomicBool,
}

/// Products of one token with some matrices.
#[derive(Debug, Default)]
struct HelperJob<'m> {
    x: Activations,
    chunks: Vec<ProductChunk<'m>>,
}

/// A part of a product.
#[derive(Debug, Clone)]
struct ProductChunk<'m> {
    matrix: &'m Matrix,
    tiles: Range<usize>,
    /// The index of the result that it belongs to.
    target: usize,
}

/// The results of a helper.
#[derive(Debug, Default)]
struct HelperResults {
    chunks: Vec<usize>,
    /// The numbers of those chunks, one after the other.
    numbers: Vec<f32>,
}

impl ProductChunk<'_> {
    fn rows(&self) -> Range<usize> {
        self.tiles.start * ROWS..(self.tiles.end * ROWS).min(self.matrix.rows)
    }

    fn compute(&self, kernel: Kernel, x: &Activations, out: &mut [f32]) {
        multiply_tiles(kernel, self.matrix, self.tiles.clone(), x, out, self.matrix.rows);
    }
}

impl<'m> HelperPool<'m> {
    pub(super) fn new(kernel: Kernel, helpers: usize) -> Self {
        Self {
            kernel,
            job: RwLock::default(),
            ticket: AtomicU64::new(0),
            finished: AtomicUsize::new(0),
            results: (0..helpers).map(|_| Mutex::default()).collect(),
            sleepers: AtomicUsize::new(0),
            bed: Mutex::default(),
            woken: Condvar::new(),
            closed: AtomicBool::new(false),
            broken: AtomicBool::new(false),
        }
    }

    /// Multiplies matrices with one token, each into its result.
    pub(super) fn multiply(&self, x: &mut Activations, products: &mut [(&'m Matrix, &mut [f32])]) {
        let total = self.begin(x, products);
        let job = self.job.read().unwrap_or_else(PoisonError::into_inner);
        let mut mine = 0;
        while let Some(chunk) = self.claim().and_then(|index| job.chunks.get(index)) {
            self.compute_into(chunk, &job.x, products);
            mine += 1;
        }
        self.wait_for(total.saturating_sub(mine));
        if self.broken.load(Ordering::Acquire) {
            // A helper panicked; its claimed chunks are unknown, so everything is computed again.
            job.chunks.iter().for_each(|chunk| self.compute_into(chunk, &job.x, products));
        } else {
            self.gather(&job.chunks, products);
        }
        drop(job);
        std::mem::swap(x, &mut self.job.write().unwrap_or_else(PoisonError::into_inner).x);
    }

    /// Publishes the work; returns the number of chunks.
    fn begin(&self, x: &mut Activations, products: &[(&'m Matrix, &mut [f32])]) -> usize {
        let mut job = self.job.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(x, &mut job.x);
        job.chunks.clear();
        for (target, (matrix, _)) in products.iter().enumerate() {
            let (count, step) = (matrix.tile_count(), (CHUNK_BLOCKS / matrix.blocks().max(1)).max(1));
            let tiles = (0..count).step_by(step).map(|start| start..(start + step).min(count));
            job.chunks.extend(tiles.map(|tiles| ProductChunk { matrix, tiles, target }));
        }
        let total = job.chunks.len();
        drop(job);
        self.finished.store(0, Ordering::Relaxed);
        let number = (self.ticket.load(Ordering::Relaxed) >> (2 * CHUNK_BITS)).wrapping_add(1);
        let count = (total as u64).min(CHUNK_MASK) << CHUNK_BITS;
        self.ticket.store(number << (2 * CHUNK_BITS) | count, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            let _bed = self.lock_idle();
            self.woken.notify_all();
        }
        total
    }

    /// Claims the next free chunk.
    fn claim(&self) -> Option<usize> {
        let next = |ticket: u64| {
            let (next, count) = (ticket & CHUNK_MASK, ticket >> CHUNK_BITS & CHUNK_MASK);
            (next < count).then_some(ticket + 1)
        };
        let ticket = self.ticket.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next).ok()?;
        usize::try_from(ticket & CHUNK_MASK).ok()
    }

    fn compute_into(&self, chunk: &ProductChunk, x: &Activations, products: &mut [(&Matrix, &mut [f32])]) {
        let out = products.get_mut(chunk.target).and_then(|(_, out)| out.get_mut(chunk.rows()));
        if let Some(out) = out {
            chunk.compute(self.kernel, x, out);
        }
    }

    /// Waits for the chunks that helpers have claimed. A chunk takes microseconds, unless the system has preempted its
    /// thread.
    fn wait_for(&self, chunks: usize) {
        let mut spins = 0;
        while self.finished.load(Ordering::Acquire) < chunks && !self.broken.load(Ordering::Acquire) {
            spins += 1;
            if spins < MAX_SPINS { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }

    /// Copies the results of the helpers.
    fn gather(&self, chunks: &[ProductChunk], products: &mut [(&Matrix, &mut [f32])]) {
        for results in &self.results {
            let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
            let mut numbers = results.numbers.as_slice();
            for chunk in results.chunks.iter().filter_map(|index| chunks.get(*index)) {
                let (these, rest) = numbers.split_at(chunk.rows().len().min(numbers.len()));
                let out = products.get_mut(chunk.target).and_then(|(_, out)| out.get_mut(chunk.rows()));
                out.into_iter().flatten().zip(these).for_each(|(to, from)| *to = *from);
                numbers = rest;
            }
            results.chunks.clear();
            results.numbers.clear();
        }
    }

    fn lock_idle(&self) -> MutexGuard<'_, ()> {
        self.bed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a helper until the pool is closed.
    pub(super) fn help(&self, helper: usize) {
        let _guard = BreakOnPanic(self);
        let Some(results) = self.results.get(helper) else { return };
        let mut spins = 0;
        while !self.closed.load(Ordering::SeqCst) {
            if let Some(index) = self.claim() {
                self.compute(index, results);
                self.finished.fetch_add(1, Ordering::Release);
                spins = 0;
            } else if spins < MAX_SPINS {
                spins += 1;
                std::hint::spin_loop();
            } else {
                self.sleep();
                spins = 0;
            }
        }
    }

    fn compute(&self, index: usize, results: &Mutex<HelperResults>) {
        let job = self.job.read().unwrap_or_else(PoisonError::into_inner);
        let Some(chunk) = job.chunks.get(index) else { return };
        let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
        let start = results.numbers.len();
        results.chunks.push(index);
        results.numbers.resize(start + chunk.rows().len(), 0.0);
        if let Some(out) = results.numbers.get_mut(start..) {
            chunk.compute(self.kernel, &job.x, out);
        }
    }

    /// Sleeps until there is work. The caller checks for sleepers after it publishes work, and a helper checks for work
    /// after it registers as a sleeper. So one of the two always sees the other.
    fn sleep(&self) {
        let bed = self.lock_idle();
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let ticket = self.ticket.load(Ordering::SeqCst);
        let idle = ticket & CHUNK_MASK >= ticket >> CHUNK_BITS & CHUNK_MASK;
        if idle && !self.closed.load(Ordering::SeqCst) {
            drop(self.woken.wait(bed).unwrap_or_else(PoisonError::into_inner));
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    /// Ends the helpers.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        let _bed = self.lock_idle();
        self.woken.notify_all();
    }
}

/// Marks the pool as broken if its thread panics.
struct BreakOnPanic<'a, 'm>(&'a HelperPool<'m>);

impl Drop for BreakOnPanic<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken.store(true, Ordering::Release);
        }
    }
}

/// Closes a pool, also on panic: the thread scope would otherwise wait for the helpers forever.
pub(super) struct CloseHelpers<'a, 'm>(pub(super) &'a HelperPool<'m>);

impl Drop for CloseHelpers<'_, '_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use super::{CloseHelpers, HelperPool};
    use crate::activations::Activations;
    use crate::blocks::Encoding;
    use crate::gguf::Tensor;
    use crate::product::multiply;
    use crate::raw::Kernel;
    use crate::tiles::Matrix;

    fn matrix(rows: usize, columns: usize) -> Matrix {
        let bytes: Vec<u8> = (0..rows * columns / 32)
            .flat_map(|block| {
                (0..34).map(move |at| if at == 1 { 0x20 } else { (block * 7 + at * 13).to_le_bytes()[0] })
            })
            .collect();
        Matrix::pack(&Tensor { encoding: Encoding::Q8_0, columns, rows, bytes: &bytes }, "crew").unwrap()
    }

    #[test]
    fn a_crew_computes_what_one_thread_does_however_many_help() {
        let kernel = Kernel::fastest();
        let matrices = [matrix(1_000, 96), matrix(40, 96), matrix(5_000, 96)];
        let numbers: Vec<f32> = (0..96_u8).map(|at| f32::from(at % 17) - 8.0).collect();
        let mut x = Activations::default();
        x.quantise(kernel, &numbers, 96);
        let mut expected: Vec<Vec<f32>> = matrices.iter().map(|matrix| vec![0.0; matrix.rows]).collect();
        matrices.iter().zip(&mut expected).for_each(|(matrix, out)| multiply(kernel, matrix, &x, out));
        for helpers in [0, 1, 3] {
            let pool = HelperPool::new(kernel, helpers);
            std::thread::scope(|scope| {
                let _close = CloseHelpers(&pool);
                for helper in 0..helpers {
                    let pool = &pool;
                    scope.spawn(move || pool.help(helper));
                }
                for _ in 0..200 {
                    let mut outs: Vec<Vec<f32>> =
                        expected.iter().map(|out| vec![f32::NAN; out.len()]).collect();
                    let mut products: Vec<_> =
                        matrices.iter().zip(outs.iter_mut().map(Vec::as_mut_slice)).collect();
                    pool.multiply(&mut x, &mut products);
                    assert_eq!(outs, expected, "{helpers} helpers");
                }
            });
        }
    }

    #[test]
    fn a_helper_that_died_is_done_without() {
        let kernel = Kernel::fastest();
        let matrix = matrix(3_000, 64);
        let mut x = Activations::default();
        x.quantise(kernel, &[1.0; 64], 64);
        let (mut expected, mut out) = (vec![0.0; 3_000], vec![0.0; 3_000]);
        multiply(kernel, &matrix, &x, &mut expected);
        let pool = HelperPool::new(kernel, 1);
        // A helper that claimed a chunk and never finished it.
        pool.begin(&mut Activations::default(), &[(&matrix, &mut [])]);
        pool.broken.store(true, std::sync::atomic::Ordering::Release);
        pool.multiply(&mut x, &mut [(&matrix, &mut out)]);
        assert_eq!(out, expected);
    }
}
