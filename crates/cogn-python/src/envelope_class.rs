//! Converts envelopes and failures for Python: `cogn.Envelope` is a dictionary, `cogn.Failure` an exception.

use cogn::{Envelope, Failure};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};

use crate::to_python;

/// The Python module that defines both classes.
const HOME: &str = "cogn._envelope";

/// The original envelope behind the Python dictionary.
#[pyclass(frozen, name = "Written", module = "cogn._native")]
pub struct NativeEnvelope(Envelope);

#[pymethods]
impl NativeEnvelope {
    /// The JSON text that the runtime writes.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&self.0).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }
}

/// Converts an envelope to `cogn.Envelope`.
pub fn envelope(py: Python<'_>, envelope: Envelope) -> PyResult<Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let made = CLASS.import(py, HOME, "Envelope")?.call0()?;
    to_python::fill(made.cast::<PyDict>()?, &envelope)?;
    made.setattr(pyo3::intern!(py, "_written"), NativeEnvelope(envelope))?;
    Ok(made)
}

/// Converts a failure to `cogn.Failure`.
pub fn exception(py: Python<'_>, failure: Failure) -> PyErr {
    failure_exception(py, failure.into_envelope())
}

/// Converts a failed envelope to `cogn.Failure`.
pub fn failure_exception(py: Python<'_>, failed: Envelope) -> PyErr {
    let made = envelope(py, failed).and_then(|envelope| {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        CLASS.import(py, HOME, "Failure")?.call1((envelope,))
    });
    made.map_or_else(|error| error, PyErr::from_value)
}
