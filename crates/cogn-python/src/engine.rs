//! The tokio runtime that all runs of a process share, and how a Python thread waits for one: with the GIL released, and, in the
//! main thread, with an eye on Ctrl-C. A child of a fork starts anew; at the end of the interpreter everything is stopped before
//! Python goes away.
//!
//! [`ENGINE`] is only locked by a thread that holds the GIL. A fork holds it too, so the lock is free in every child.

use std::cell::Cell;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::watch;

use crate::failing;

/// How often the main thread asks whether somebody pressed Ctrl-C while it waits.
const SIGNAL_CHECK: Duration = Duration::from_millis(50);
/// How long the end of the interpreter waits for runs that were told to stop.
const PATIENCE: Duration = Duration::from_secs(5);

static ENGINE: Mutex<Option<Arc<Engine>>> = Mutex::new(None);
/// Counts the forks that this process came from; what was made before the last one is not used any more.
static GENERATION: AtomicU64 = AtomicU64::new(0);
static CLOSED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this is the thread that signals are delivered to; unknown at first.
    static IS_MAIN: Cell<Option<bool>> = const { Cell::new(None) };
}

/// The shared tokio runtime.
pub struct Engine {
    runtime: Mutex<Option<Runtime>>,
    handle: Handle,
    closing: watch::Sender<bool>,
    /// How many threads wait in here.
    waiting: AtomicUsize,
}

/// One thread that waits, counted.
struct Waiter<'a>(&'a AtomicUsize);

impl<'a> Waiter<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count)
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// How many forks this process came from.
pub fn generation() -> u64 {
    GENERATION.load(Ordering::Acquire)
}

/// The engine of this process, made at first use.
pub fn engine(py: Python<'_>) -> PyResult<Arc<Engine>> {
    if CLOSED.load(Ordering::Acquire) {
        if !is_main_thread(py)? {
            stay(py);
        }
        return Err(PyRuntimeError::new_err("the interpreter is shutting down: nothing can be run any more"));
    }
    let mut kept = ENGINE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(engine) = kept.as_ref() {
        return Ok(Arc::clone(engine));
    }
    let runtime = cogn::async_runtime::on_all_cores().map_err(|failure| failing::exception(py, failure))?;
    let handle = runtime.handle().clone();
    let engine = Arc::new(Engine {
        runtime: Mutex::new(Some(runtime)),
        handle,
        closing: watch::Sender::new(false),
        waiting: AtomicUsize::new(0),
    });
    *kept = Some(Arc::clone(&engine));
    Ok(engine)
}

impl Engine {
    /// The handle, to start tasks with.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Waits for something with the GIL released. A signal whose handler raises, such as Ctrl-C, drops the future.
    pub fn wait<T: Send>(&self, py: Python<'_>, future: impl Future<Output = T> + Send) -> PyResult<T> {
        if Handle::try_current().is_ok() {
            return Err(PyRuntimeError::new_err(
                "a run cannot wait for another one from within: use a thread",
            ));
        }
        let is_main = is_main_thread(py)?;
        let mut closing = self.closing.subscribe();
        let waiter = Waiter::new(&self.waiting);
        // A stream may ask for its next piece when all is over already, which is no change any more.
        if *closing.borrow_and_update() {
            drop(waiter);
            if !is_main {
                stay(py);
            }
            return Err(interrupted());
        }
        let mut is_over = false;
        py.detach(|| {
            let done = self.handle.block_on(async {
                let mut future = std::pin::pin!(future);
                loop {
                    tokio::select! {
                        biased;
                        done = &mut future => return Ok(done),
                        _ = closing.changed() => {
                            is_over = true;
                            return Err(interrupted());
                        }
                        () = tokio::time::sleep(SIGNAL_CHECK), if is_main => {
                            Python::try_attach(pending_signals).unwrap_or_else(|| Err(interrupted()))?;
                        }
                    }
                }
            });
            drop(waiter);
            if is_over && !is_main {
                park();
            }
            done
        })
    }
}

/// Where a thread other than the main one ends up when the interpreter ends: it can only be a daemon by then, since the others were waited
/// for. An exception would be printed while the interpreter takes its streams down, which aborts the process; so it stays, as Python
/// lets daemons stay that ask for the GIL.
fn stay(py: Python<'_>) -> ! {
    py.detach(|| park())
}

fn park() -> ! {
    loop {
        std::thread::park();
    }
}

/// Runs the handlers of signals that have come; Ctrl-C is an error.
fn pending_signals(py: Python<'_>) -> PyResult<()> {
    py.check_signals()
}

fn interrupted() -> PyErr {
    PyRuntimeError::new_err("the interpreter is shutting down: the run was cancelled")
}

fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    if let Some(known) = IS_MAIN.get() {
        return Ok(known);
    }
    let threading = py.import("threading")?;
    let is_main = threading.call_method0("main_thread")?.is(&threading.call_method0("current_thread")?);
    IS_MAIN.set(Some(is_main));
    Ok(is_main)
}

/// Called in the child after a fork. The threads of the runtime stayed behind, so it is left alone, and what it holds is not
/// given back: nobody could say in which state it is.
#[pyfunction]
pub fn after_fork() {
    GENERATION.fetch_add(1, Ordering::AcqRel);
    IS_MAIN.set(None);
    let kept = ENGINE.lock().unwrap_or_else(PoisonError::into_inner).take();
    std::mem::forget(kept);
}

/// Called at the end of the interpreter: cancels all runs and waits until no thread of ours can ask for Python again.
#[pyfunction]
pub fn close(py: Python<'_>) {
    CLOSED.store(true, Ordering::Release);
    let Some(engine) = ENGINE.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
    let runtime = engine.runtime.lock().unwrap_or_else(PoisonError::into_inner).take();
    py.detach(|| {
        engine.closing.send_replace(true);
        let began = Instant::now();
        while engine.waiting.load(Ordering::Acquire) > 0 && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
        if let Some(runtime) = runtime {
            runtime.shutdown_timeout(PATIENCE);
        }
    });
}
