//! Envelopes and failures as Python sees them: `cogn.Envelope`, a dictionary, and `cogn.Failure`, an exception.

use cogn::{Envelope, Failure};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};

use crate::to_python;

/// Where both classes are defined.
const HOME: &str = "cogn._envelope";

/// The envelope as the runtime made it, behind the dictionary that Python sees.
#[pyclass(frozen, module = "cogn._native")]
pub struct Written(Envelope);

#[pymethods]
impl Written {
    /// The text that the runtime writes.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&self.0).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }
}

/// An envelope as `cogn.Envelope`.
pub fn envelope(py: Python<'_>, envelope: Envelope) -> PyResult<Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let made = CLASS.import(py, HOME, "Envelope")?.call0()?;
    to_python::fill(made.cast::<PyDict>()?, &envelope)?;
    made.setattr(pyo3::intern!(py, "_written"), Written(envelope))?;
    Ok(made)
}

/// A failure as `cogn.Failure`.
pub fn exception(py: Python<'_>, failure: Failure) -> PyErr {
    let made = envelope(py, failure.into_envelope()).and_then(|envelope| {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        CLASS.import(py, HOME, "Failure")?.call1((envelope,))
    });
    made.map_or_else(|error| error, PyErr::from_value)
}
