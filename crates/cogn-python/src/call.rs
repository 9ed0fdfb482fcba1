//! The model call as a Python function sees it: attributes, and members with the same names. Values are only
//! copied on access.

use cogn::ModelCall;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyIterator, PyList, PyString, PyTuple};

use crate::to_python;

/// The names of all members.
const NAMES: [&str; 13] = [
    "instructions",
    "input",
    "module",
    "messages",
    "examples",
    "schema",
    "temperature",
    "seed",
    "max_output_tokens",
    "thinking",
    "timeout",
    "media",
    "answer_now",
];

/// A call to a model.
#[pyclass(frozen, mapping, name = "Call", module = "cogn._native")]
pub struct CallView(pub ModelCall);

#[pymethods]
impl CallView {
    #[getter]
    fn instructions<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        PyString::new(py, &self.0.instructions)
    }

    #[getter]
    fn input(&self) -> &str {
        &self.0.input
    }

    #[getter]
    fn module(&self) -> &str {
        &self.0.module
    }

    /// The prompt as chat messages: `system`, worked examples, `user`.
    #[getter]
    fn messages<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let turns = PyList::empty(py);
        let say = |role: &str, content: &str| {
            let turn = PyDict::new(py);
            turn.set_item("role", role)?;
            turn.set_item("content", content)?;
            turns.append(turn)
        };
        say("system", &self.0.instructions)?;
        for example in &self.0.examples {
            say("user", &example.input)?;
            say("assistant", &example.answer)?;
        }
        say("user", &self.0.input)?;
        Ok(turns)
    }

    #[getter]
    fn examples<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let examples = PyList::empty(py);
        for example in &self.0.examples {
            let made = PyDict::new(py);
            made.set_item("input", &example.input)?;
            made.set_item("answer", &example.answer)?;
            examples.append(made)?;
        }
        Ok(examples)
    }

    /// The contract in the dialect from the provider's attribute `dialect`; `None` without that attribute.
    #[getter]
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.0.schema.as_ref().map(|schema| to_python::object(py, &schema.schema)).transpose()
    }

    #[getter]
    fn temperature(&self) -> f64 {
        self.0.temperature
    }

    #[getter]
    fn seed(&self) -> Option<u64> {
        self.0.seed
    }

    #[getter]
    fn max_output_tokens(&self) -> Option<u64> {
        self.0.max_output_tokens
    }

    /// The token limit for thinking before the answer; `None` if it is not set.
    #[getter]
    fn thinking(&self) -> Option<u32> {
        self.0.thinking
    }

    /// The timeout in seconds.
    #[getter]
    fn timeout(&self) -> f64 {
        self.0.timeout.as_secs_f64()
    }

    /// The media items, each with its number, its type and its bytes as base64.
    #[getter]
    fn media<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let media = PyList::empty(py);
        for part in &self.0.media {
            let made = PyDict::new(py);
            made.set_item("index", part.index)?;
            made.set_item("media_type", part.media_type.mime())?;
            made.set_item("base64", PyBytes::new(py, &part.base64))?;
            media.append(made)?;
        }
        Ok(media)
    }

    #[getter]
    fn answer_now(&self) -> bool {
        self.0.answer_now
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        if !NAMES.contains(&&*name.to_cow()?) {
            return Err(PyKeyError::new_err(name.clone().unbind()));
        }
        slf.getattr(name)
    }

    #[pyo3(signature = (name, default = None))]
    fn get<'py>(
        slf: &Bound<'py, Self>,
        name: &Bound<'py, PyString>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if NAMES.contains(&&*name.to_cow()?) { slf.getattr(name).map(Some) } else { Ok(default) }
    }

    #[expect(clippy::unused_self, reason = "Python asks the object")]
    fn __contains__(&self, name: &str) -> bool {
        NAMES.contains(&name)
    }

    #[expect(clippy::unused_self, reason = "Python asks the object")]
    fn __len__(&self) -> usize {
        NAMES.len()
    }

    #[expect(clippy::unused_self, reason = "Python asks the object")]
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        Self::keys(py)?.try_iter()
    }

    #[staticmethod]
    fn keys(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
        PyTuple::new(py, NAMES)
    }

    fn __repr__(&self) -> String {
        format!("<Call of the module {}>", self.0.module)
    }
}
