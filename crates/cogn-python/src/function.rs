//! Functions of the program that a run calls: started in Python by `cogn._callbacks`, on a thread or an event loop of Python's
//! own, never on a thread of the runtime. What they say comes back through a channel; whoever drops the call cancels it.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::caller;
use crate::from_python;

/// The Python half.
const HOME: &str = "cogn._callbacks";

/// What a function says.
#[derive(Debug)]
pub enum FunctionSaid {
    /// The next piece of its answer.
    Piece(String),
    /// It is done.
    Done(FunctionAnswer),
    /// It raised an exception, of a kind that `cogn._callbacks` names.
    Raised {
        /// `timeout`, `rate_limit`, `unavailable` or `error`.
        kind: String,
        /// The type of the exception and its text.
        message: String,
    },
}

/// What a function returned.
#[derive(Debug, Default)]
pub struct FunctionAnswer {
    /// The answer, unless it came in pieces.
    pub value: Option<Value>,
    /// The model that answered.
    pub model: Option<String>,
    /// Tokens read and written.
    pub usage: Option<(u64, u64)>,
    /// `complete`, `cut_off` or `refused`.
    pub finish: Option<String>,
}

/// The place where a function of the program puts its answer.
#[pyclass(frozen, name = "Reply", module = "cogn._native")]
pub struct ReplySlot(UnboundedSender<FunctionSaid>);

#[pymethods]
impl ReplySlot {
    /// Takes a piece; says whether anybody still wants more.
    fn piece(&self, text: &Bound<'_, PyString>) -> PyResult<bool> {
        Ok(self.0.send(FunctionSaid::Piece(text.to_cow()?.into_owned())).is_ok())
    }

    /// Whether anybody still waits for the answer.
    fn wanted(&self) -> bool {
        !self.0.is_closed()
    }

    /// Takes the whole answer, or its end if it came in pieces.
    #[pyo3(signature = (value = None, model = None, usage = None, finish = None))]
    fn done(
        &self,
        value: Option<&Bound<'_, PyAny>>,
        model: Option<String>,
        usage: Option<(u64, u64)>,
        finish: Option<String>,
    ) -> PyResult<()> {
        let value = value.map(|value| from_python::value("answer", value)).transpose()?;
        // Nobody to hear it is no error of the function.
        let _ = self.0.send(FunctionSaid::Done(FunctionAnswer { value, model, usage, finish }));
        Ok(())
    }

    /// Takes note of an exception.
    fn raised(&self, kind: String, message: String) {
        let _ = self.0.send(FunctionSaid::Raised { kind, message });
    }
}

/// A call that goes on in Python. Dropping it cancels it.
pub struct Started {
    /// What the function says.
    pub said: UnboundedReceiver<FunctionSaid>,
    cancel: Option<Py<PyAny>>,
}

impl Drop for Started {
    fn drop(&mut self) {
        self.said.close();
        if let Some(cancel) = self.cancel.take() {
            // Without an interpreter there is nothing left to cancel.
            Python::try_attach(|py| drop(cancel.call0(py)));
        }
    }
}

impl Started {
    /// Takes note that the function is done, so that nothing has to be cancelled.
    pub fn ended(&mut self) {
        self.cancel = None;
    }
}

/// Starts a function with an argument. The error says why it could not even be started.
pub fn start(
    function: &Py<PyAny>,
    argument: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>>,
) -> Result<Started, String> {
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
        Some(Ok(cancel)) => Ok(Started { said, cancel: Some(cancel) }),
        Some(Err(error)) => Err(error.to_string()),
        None => Err("the interpreter is shutting down".to_owned()),
    }
}

/// An attribute of a function that is a text.
pub fn text_attribute(function: &Bound<'_, PyAny>, name: &str) -> Option<String> {
    function.getattr(name).ok()?.extract().ok()
}

/// A member of a dictionary, `None` if it is absent or `None`.
pub fn member<'py>(members: &Bound<'py, PyDict>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(members.get_item(name)?.filter(|value| !value.is_none()))
}
