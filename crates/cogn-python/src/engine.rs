//! The tokio runtime that all runs of a process share. Python threads wait for it with the GIL released; the
//! main thread also checks for Ctrl-C. The child of a fork creates a new one. At interpreter shutdown,
//! everything is stopped before Python goes away.
//!
//! [`ENGINE`] is only locked by a thread that holds the GIL. A fork holds it too, so the lock is free in
//! every child.

use std::cell::Cell;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cognitive_contract::lock::Lock;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::watch;

use crate::envelope_class;

/// The interval at which the waiting main thread checks for Ctrl-C. Python runs its signal handlers only in that
/// thread.
const SIGNAL_CHECK: Duration = Duration::from_millis(50);
/// The longest wait for cancelled runs at interpreter shutdown. Without it, a run that does not react would block the
/// exit.
const PATIENCE: Duration = Duration::from_secs(5);

static ENGINE: Lock<Option<Arc<Engine>>> = Lock::new(None);
/// The number of forks that led to this process. Objects from before the last fork are not used any more.
static GENERATION: AtomicU64 = AtomicU64::new(0);
static CLOSED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// True if this thread receives signals; `None` until checked.
    static IS_MAIN: Cell<Option<bool>> = const { Cell::new(None) };
}

/// The shared tokio runtime.
pub struct Engine {
    runtime: Lock<Option<Runtime>>,
    handle: Handle,
    closing: watch::Sender<bool>,
    /// The number of threads that wait in [`Engine::wait`].
    waiting: AtomicUsize,
}

/// Counts one waiting thread until it is dropped.
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

/// Returns the number of forks that led to this process.
pub fn generation() -> u64 {
    GENERATION.load(Ordering::Acquire)
}

/// Returns the engine of this process, and creates it at first use.
pub fn engine(py: Python<'_>) -> PyResult<Arc<Engine>> {
    if CLOSED.load(Ordering::Acquire) {
        if !is_main_thread(py)? {
            stay(py);
        }
        return Err(PyRuntimeError::new_err("the interpreter is shutting down: no run can start"));
    }
    let mut kept = ENGINE.lock();
    if let Some(engine) = kept.as_ref() {
        return Ok(Arc::clone(engine));
    }
    let runtime = cognitive_setup::async_runtime::on_all_cores()
        .map_err(|failure| envelope_class::exception(py, failure))?;
    let handle = runtime.handle().clone();
    let engine = Arc::new(Engine {
        runtime: Lock::new(Some(runtime)),
        handle,
        closing: watch::Sender::new(false),
        waiting: AtomicUsize::new(0),
    });
    *kept = Some(Arc::clone(&engine));
    Ok(engine)
}

impl Engine {
    /// Returns the handle for starting tasks.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Waits for a future with the GIL released. A signal handler that raises, such as Ctrl-C, drops the
    /// future.
    pub fn wait<T: Send>(&self, py: Python<'_>, future: impl Future<Output = T> + Send) -> PyResult<T> {
        if Handle::try_current().is_ok() {
            return Err(PyRuntimeError::new_err(
                "a run cannot wait for another run inside its own callback: use a thread",
            ));
        }
        let is_main = is_main_thread(py)?;
        let mut closing = self.closing.subscribe();
        let waiter = Waiter::new(&self.waiting);
        // A stream may request a chunk after shutdown has begun; `changed` would not report that again.
        if *closing.borrow_and_update() {
            drop(waiter);
            if !is_main {
                stay(py);
            }
            return Err(interrupt_error());
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
                            return Err(interrupt_error());
                        }
                        () = tokio::time::sleep(SIGNAL_CHECK), if is_main => {
                            Python::try_attach(pending_signals).unwrap_or_else(|| Err(interrupt_error()))?;
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

/// Parks a thread that is not the main one at interpreter shutdown. Only daemon threads remain by then.
/// Raising an exception would print while the interpreter closes its streams, which aborts the process.
/// Python itself also parks daemon threads that request the GIL.
fn stay(py: Python<'_>) -> ! {
    py.detach(|| park())
}

fn park() -> ! {
    loop {
        std::thread::park();
    }
}

/// Runs the handlers of pending signals; Ctrl-C is an error.
fn pending_signals(py: Python<'_>) -> PyResult<()> {
    py.check_signals()
}

fn interrupt_error() -> PyErr {
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

/// Called in the child after a fork. The runtime's threads exist only in the parent and its state is unknown,
/// so it is leaked and not dropped.
#[pyfunction]
pub fn after_fork() {
    GENERATION.fetch_add(1, Ordering::AcqRel);
    IS_MAIN.set(None);
    let kept = ENGINE.lock().take();
    std::mem::forget(kept);
}

/// Called at interpreter shutdown: cancels all runs and waits until none of our threads can call Python
/// again.
#[pyfunction]
pub fn close(py: Python<'_>) {
    CLOSED.store(true, Ordering::Release);
    let Some(engine) = ENGINE.lock().take() else { return };
    let runtime = engine.runtime.lock().take();
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
