//! Describes modules to Python, and supports its typed interface: the growing data of a stream, the assembled
//! envelope, and the failure for data that does not fit a class.

use cogn::{ErrorCode, Failure, Module};
use cognitive_contract::lock::Lock;
use cognitive_contract::stream::{DataSoFar, assemble};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;

use crate::{envelope_class, from_python, to_python};

/// Describes a module as a dictionary: the manifest with all defaults, and the schemas of input and data in
/// plain form.
pub fn describe_module<'py>(py: Python<'py>, module: &Module) -> PyResult<Bound<'py, PyDict>> {
    let described = PyDict::new(py);
    let plain = module.plain_sections();
    described.set_item("manifest", to_python::object(py, &module.manifest)?)?;
    described.set_item("input", to_python::object(py, &plain.input)?)?;
    described.set_item("data", to_python::object(py, &plain.data)?)?;
    described.set_item("$defs", to_python::object(py, &plain.defs)?)?;
    described.set_item("prompt", &module.prompt)?;
    described.set_item("folder", module.folder.as_deref())?;
    Ok(described)
}

/// The data of a stream received so far.
#[pyclass(frozen, name = "DataSoFar", module = "cogn._native")]
#[derive(Default)]
pub struct GrowingData(Lock<DataSoFar>);

#[pymethods]
impl GrowingData {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Adds the member `chunk` of a chunk. Returns whether the data changed.
    fn take(&self, chunk: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Value::Object(mut chunk) = from_python::value("chunk", chunk)? else { return Ok(false) };
        let mut so_far = self.0.lock();
        match (chunk.get("field"), chunk.get("delta")) {
            (Some(Value::String(field)), Some(Value::String(text))) => Ok(so_far.append(field, text)),
            _ => match chunk.shift_remove("data") {
                Some(Value::Object(data)) => {
                    so_far.replace(data);
                    Ok(true)
                }
                _ => Ok(false),
            },
        }
    }

    /// Returns the data.
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python::object(py, self.0.lock().data())
    }
}

/// Assembles the envelope from the chunks of a stream.
#[pyfunction(name = "assembled")]
pub fn assemble_envelope<'py>(py: Python<'py>, chunks: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let Value::Array(chunks) = from_python::value("chunks", chunks)? else {
        return Err(pyo3::exceptions::PyTypeError::new_err("`chunks` must be a list"));
    };
    envelope_class::envelope(py, assemble(chunks))
}

/// Returns the failure for an answer that satisfies the module's contract but does not fit the requested
/// class. It contains the answer as partial data.
#[pyfunction]
pub fn unfit<'py>(py: Python<'py>, data: &Bound<'py, PyAny>, reason: &str) -> PyResult<Bound<'py, PyAny>> {
    let data = match from_python::value("data", data)? {
        Value::Object(data) => Some(data),
        _ => None,
    };
    let message = format!("cannot read the data as the requested type: {reason}");
    let failure = Failure::new(ErrorCode::SchemaValidationFailed, message)
        .with_partial(data)
        .suggest("Align the type with `data` in the module's `schema.json`");
    envelope_class::envelope(py, failure.into_envelope())
}
