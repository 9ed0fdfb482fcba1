//! Python functions that a run calls. `cogn._callbacks` starts them on a Python thread or event loop, never
//! on a runtime thread. Their results come back through a channel; dropping the call cancels it.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::caller;
use crate::from_python;

/// The Python part of this module.
const HOME: &str = "cogn._callbacks";

/// A message from a function.
#[derive(Debug)]
pub enum FunctionMessage {
    /// The next piece of its answer.
    Piece(String),
    /// It has finished.
    Done(FunctionAnswer),
    /// It raised an exception of one of the kinds in `cogn._callbacks`.
    Raised {
        /// `timeout`, `rate_limit`, `unavailable` or `error`.
        kind: String,
        /// The type of the exception and its text.
        message: String,
    },
}

/// The return value of a function.
#[derive(Debug, Default)]
pub struct FunctionAnswer {
    /// The answer, unless it was sent in pieces.
    pub value: Option<Value>,
    /// The model that answered.
    pub model: Option<String>,
    /// Input and output tokens.
    pub usage: Option<(u64, u64)>,
    /// `complete`, `cut_off` or `refused`.
    pub finish: Option<String>,
}

/// The channel through which a Python function sends its answer.
#[pyclass(frozen, name = "Reply", module = "cogn._native")]
pub struct ReplySlot(UnboundedSender<FunctionMessage>);

#[pymethods]
impl ReplySlot {
    /// Sends a piece. Returns whether the run still needs more.
    fn piece(&self, text: &Bound<'_, PyString>) -> PyResult<bool> {
        Ok(self.0.send(FunctionMessage::Piece(text.to_cow()?.into_owned())).is_ok())
    }

    /// Returns whether the run still waits for the answer.
    #[pyo3(name = "wanted")]
    fn is_waiting(&self) -> bool {
        !self.0.is_closed()
    }

    /// Sends the whole answer, or its end if it was sent in pieces.
    #[pyo3(name = "done", signature = (value = None, model = None, usage = None, finish = None))]
    fn complete(
        &self,
        value: Option<&Bound<'_, PyAny>>,
        model: Option<String>,
        usage: Option<(u64, u64)>,
        finish: Option<String>,
    ) -> PyResult<()> {
        let value = value.map(|value| from_python::value("answer", value)).transpose()?;
        // A dropped receiver is not an error of the function.
        let _ = self.0.send(FunctionMessage::Done(FunctionAnswer { value, model, usage, finish }));
        Ok(())
    }

    /// Reports an exception.
    #[pyo3(name = "raised")]
    fn fail(&self, kind: String, message: String) {
        let _ = self.0.send(FunctionMessage::Raised { kind, message });
    }
}

/// A function call in progress. Dropping it cancels it.
pub struct FunctionCall {
    /// The messages of the function.
    pub said: UnboundedReceiver<FunctionMessage>,
    cancel: Option<Py<PyAny>>,
}

impl Drop for FunctionCall {
    fn drop(&mut self) {
        self.said.close();
        if let Some(cancel) = self.cancel.take() {
            // Without an interpreter there is nothing to cancel.
            Python::try_attach(|py| drop(cancel.call0(py)));
        }
    }
}

impl FunctionCall {
    /// Records that the function has finished, so that dropping the call cancels nothing.
    pub fn mark_finished(&mut self) {
        self.cancel = None;
    }
}

/// Starts a function with an argument. The error is the reason why it could not be started.
pub fn start(
    function: &Py<PyAny>,
    argument: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>>,
) -> Result<FunctionCall, String> {
    static START: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let (sender, said) = unbounded_channel();
    let caller = caller::caller();
    let started = Python::try_attach(|py| -> PyResult<Py<PyAny>> {
        let start = START.import(py, HOME, "start")?;
        let (event_loop, context) = match &caller {
            Some(caller) => (caller.event_loop.clone_ref(py), caller.context.clone_ref(py)),
            None => (py.None(), py.None()),
        };
        let cancel = start.call1((function, argument(py)?, ReplySlot(sender), event_loop, context))?;
        Ok(cancel.unbind())
    });
    match started {
        Some(Ok(cancel)) => Ok(FunctionCall { said, cancel: Some(cancel) }),
        Some(Err(error)) => Err(error.to_string()),
        None => Err("the interpreter is shutting down".to_owned()),
    }
}

/// Returns a string attribute of a function.
pub fn text_attribute(function: &Bound<'_, PyAny>, name: &str) -> Option<String> {
    function.getattr(name).ok()?.extract().ok()
}

/// Returns a member of a dictionary; `None` if it is absent or `None`.
pub fn member<'py>(members: &Bound<'py, PyDict>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(members.get_item(name)?.filter(|value| !value.is_none()))
}
