//! Delivers results from runs to an asyncio event loop. Runtime threads put results into a queue and wake the
//! loop through a socket, so that they never wait for the GIL. The loop takes all results at once. Loops that
//! cannot watch sockets are woken by `call_soon_threadsafe`.

use std::sync::atomic::{AtomicBool, Ordering};

use cogn::{Chunk, Envelope};
use cognitive_contract::lock::Lock;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::platform::{self, WakingSockets};
use crate::{envelope_class, to_python};

/// A result for the Python program.
pub enum LoopResult {
    /// The answer.
    Envelope(Box<Envelope>),
    /// The failure of a module that throws.
    Thrown(Box<Envelope>),
    /// The answers of many runs.
    Envelopes(Vec<Envelope>),
    /// A chunk of a stream, or its end.
    Chunk(Option<Box<Chunk>>),
}

impl LoopResult {
    /// Converts it to a Python object; `None` for the end of a stream.
    pub fn object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        match self {
            Self::Envelope(envelope) => envelope_class::envelope(py, *envelope),
            Self::Thrown(envelope) => Err(envelope_class::failure_exception(py, *envelope)),
            Self::Envelopes(envelopes) => {
                let list = PyList::empty(py);
                for envelope in envelopes {
                    list.append(envelope_class::envelope(py, envelope)?)?;
                }
                Ok(list.into_any())
            }
            Self::Chunk(Some(chunk)) => to_python::object(py, &chunk),
            Self::Chunk(None) => Ok(py.None().into_bound(py)),
        }
    }
}

/// The bridge to one event loop.
#[pyclass(frozen, module = "cogn._native")]
pub struct Bridge {
    event_loop: Py<PyAny>,
    queue: Lock<Vec<(Py<PyAny>, LoopResult)>>,
    sockets: WakingSockets,
    /// True if the loop watches the socket.
    is_watched: AtomicBool,
}

#[pymethods]
impl Bridge {
    /// Creates a bridge to a loop, which has to run in this thread.
    #[new]
    fn new(event_loop: Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self {
            event_loop: event_loop.unbind(),
            queue: Lock::default(),
            sockets: platform::waking_sockets()?,
            is_watched: AtomicBool::new(true),
        })
    }

    /// The descriptor of the socket that the loop has to watch; `None` if the platform has none.
    #[getter(watched)]
    fn watched_socket(&self) -> Option<i32> {
        platform::watched_socket(&self.sockets)
    }

    /// Records that this loop cannot watch sockets.
    #[pyo3(name = "watch_nothing")]
    fn disable_watching(&self) {
        self.is_watched.store(false, Ordering::Release);
    }

    /// Delivers the queued results. Called by the loop.
    fn deliver(&self, py: Python<'_>) -> PyResult<()> {
        platform::drain(&self.sockets);
        let due = std::mem::take(&mut *self.queue.lock());
        for (future, outcome) in due {
            let future = future.bind(py);
            // The future is already done if the program has cancelled it.
            if future.call_method0(pyo3::intern!(py, "done"))?.is_truthy()? {
                continue;
            }
            let (method, result) = match outcome.object(py) {
                Ok(object) => (pyo3::intern!(py, "set_result"), object),
                Err(error) => {
                    (pyo3::intern!(py, "set_exception"), error.into_value(py).into_bound(py).into_any())
                }
            };
            future.call_method1(method, (result,))?;
        }
        Ok(())
    }
}

/// Puts a result into the queue of a bridge and wakes its loop.
pub fn send(bridge: &Py<Bridge>, future: Py<PyAny>, outcome: LoopResult) {
    let shared = bridge.get();
    let first = {
        let mut queue = shared.queue.lock();
        queue.push((future, outcome));
        queue.len() == 1
    };
    if first && !(shared.is_watched.load(Ordering::Acquire) && platform::wake(&shared.sockets)) {
        // A closed loop accepts no more results, and no task waits for them.
        Python::try_attach(|py| {
            let deliver = bridge.getattr(py, "deliver").ok()?;
            shared.event_loop.call_method1(py, "call_soon_threadsafe", (deliver,)).ok()
        });
    }
}
