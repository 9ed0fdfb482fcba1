//! A run as a stream of chunks, which Python pulls synchronously or through an asyncio future. The run only
//! progresses while a chunk is requested; dropping or closing the stream cancels it.

use std::pin::Pin;
use std::sync::Arc;

use cogn::{Chunk, Stream, StreamExt as _};
use cognitive_contract::lock::Lock;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::bridge::{self, Bridge, LoopResult};
use crate::caller::{self, Scope};
use crate::engine::{self, Engine};
use crate::run::RunHandle;
use crate::to_python;

type Source = Pin<Box<dyn Stream<Item = Chunk> + Send>>;

/// The chunks of one run.
#[pyclass(frozen, name = "Chunks", module = "cogn._native")]
pub struct ChunkIterator {
    engine: Arc<Engine>,
    generation: u64,
    scope: Scope,
    /// `Busy` while a thread waits for the next chunk, `Over` at the end.
    source: Arc<Lock<SourceState>>,
}

enum SourceState {
    Ready(Source),
    Busy,
    Over,
}

impl ChunkIterator {
    pub(crate) fn new(
        engine: Arc<Engine>,
        scope: Scope,
        source: impl Stream<Item = Chunk> + Send + 'static,
    ) -> Self {
        let source = Arc::new(Lock::new(SourceState::Ready(Box::pin(source))));
        Self { engine, generation: engine::generation(), scope, source }
    }

    /// Takes the source in order to pull the next chunk.
    fn take(&self) -> PyResult<Option<Source>> {
        if self.generation != engine::generation() {
            return Err(PyRuntimeError::new_err(
                "cannot continue a stream in the child of a fork: start it again",
            ));
        }
        let mut state = self.source.lock();
        match std::mem::replace(&mut *state, SourceState::Busy) {
            SourceState::Ready(source) => Ok(Some(source)),
            SourceState::Busy => {
                Err(PyRuntimeError::new_err("another thread is already reading this stream"))
            }
            SourceState::Over => {
                *state = SourceState::Over;
                Ok(None)
            }
        }
    }
}

/// Returns the source, unless the stream ended or was closed in the meantime.
fn return_source(state: &Lock<SourceState>, source: Option<Source>) {
    let mut state = state.lock();
    if matches!(*state, SourceState::Busy) {
        *state = source.map_or(SourceState::Over, SourceState::Ready);
    }
}

async fn pull(mut source: Source) -> (Option<Chunk>, Option<Source>) {
    let chunk = source.next().await;
    let left = chunk.is_some().then_some(source);
    (chunk, left)
}

#[pymethods]
impl ChunkIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(source) = self.take()? else { return Ok(None) };
        let pulled = self.engine.wait(py, caller::run_in_scope(self.scope.clone(), pull(source)));
        let (chunk, left) = pulled.inspect_err(|_| return_source(&self.source, None))?;
        py.detach(|| return_source(&self.source, left));
        chunk.map(|chunk| to_python::object(py, &chunk)).transpose()
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, PyTuple>) {
        self.close(py);
    }

    /// Resolves a future with the next chunk, or with `None` at the end.
    fn pull(&self, bridge: Py<Bridge>, future: Py<PyAny>) -> PyResult<RunHandle> {
        let source = self.take()?;
        let (state, scope) = (Arc::clone(&self.source), self.scope.clone());
        let task = self.engine.handle().spawn(async move {
            let chunk = match source {
                Some(source) => {
                    let (chunk, left) = caller::run_in_scope(scope, pull(source)).await;
                    return_source(&state, left);
                    chunk
                }
                None => {
                    return_source(&state, None);
                    None
                }
            };
            bridge::send(&bridge, future, LoopResult::Chunk(chunk.map(Box::new)));
        });
        Ok(RunHandle::new(task.abort_handle()))
    }

    /// Cancels the run.
    fn close(&self, py: Python<'_>) {
        if self.generation != engine::generation() {
            return;
        }
        let old = std::mem::replace(&mut *self.source.lock(), SourceState::Over);
        // Dropping the source may call Python, so the GIL is released.
        py.detach(|| {
            let _context = self.engine.handle().enter();
            drop(old);
        });
    }
}

impl Drop for ChunkIterator {
    fn drop(&mut self) {
        if self.generation != engine::generation() {
            // A stream from before a fork belongs to the parent process.
            let state = &mut *self.source.lock();
            std::mem::forget(std::mem::replace(state, SourceState::Over));
            return;
        }
        let _context = self.engine.handle().enter();
        let state = &mut *self.source.lock();
        *state = SourceState::Over;
    }
}
