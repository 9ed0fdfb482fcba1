//! A run that goes on in the background, and can be cancelled.

use pyo3::prelude::*;
use tokio::task::AbortHandle;

/// The way to cancel a run.
#[pyclass(frozen, module = "cogn._native")]
pub struct RunHandle(AbortHandle);

impl RunHandle {
    pub(crate) fn new(task: AbortHandle) -> Self {
        Self(task)
    }
}

#[pymethods]
impl RunHandle {
    /// Cancels it, unless it is over. The connection to the model is closed.
    fn cancel(&self) {
        self.0.abort();
    }
}
