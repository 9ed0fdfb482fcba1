//! A run in the background that can be cancelled.

use pyo3::prelude::*;
use tokio::task::AbortHandle;

/// A handle for cancelling a run.
#[pyclass(frozen, module = "cogn._native")]
pub struct RunHandle(AbortHandle);

impl RunHandle {
    pub(crate) fn new(task: AbortHandle) -> Self {
        Self(task)
    }
}

#[pymethods]
impl RunHandle {
    /// Cancels the run if it has not ended. Closes the connection to the model.
    fn cancel(&self) {
        self.0.abort();
    }
}
