//! The native half of the Python package `cogn`: exposes the runtime of the crate `cogn`. The other half, in
//! `packaging/python/src`, is the public interface. Contains no rules about modules or envelopes.
//!
//! Python threads wait with the GIL released. Functions of the program run on Python threads and event loops.
//! Runtime threads attach to the interpreter only to start or cancel such a function, to find the folder of a
//! module, or to wake an event loop.
//!
//! # Modules
//!
//! - Runs: `runtime` (the class that Python holds), `recipe` (how it is built, also in the child of a fork), `options`,
//!   `run`, `chunks` (a run as a stream), `batch` (many inputs with bounded concurrency).
//! - Threads: `engine` (the tokio runtime of the process; waiting, forks and exit) and `bridge` (results for an asyncio
//!   event loop).
//! - Python functions behind ports: `provider` and `tool`, started by `function`; `call` and `caller` are what they
//!   see.
//! - Values: `from_python` and `to_python`, `envelope_class` (envelopes and failures), `modules` (descriptions of modules),
//!   `column_shape` (answers as data frame columns).
//! - Tests: `golden` (golden tests for pytest) and `recorded_replies` (recorded replies).
//! - System-specific code: `platform`.

mod batch;
mod bridge;
mod call;
mod caller;
mod chunks;
mod column_shape;
mod engine;
mod envelope_class;
mod from_python;
mod function;
mod golden;
mod modules;
mod options;
mod platform;
mod provider;
mod recipe;
mod recorded_replies;
mod run;
mod runtime;
mod to_python;
mod tool;

use pyo3::prelude::*;

/// The native module that `cogn` imports.
#[pymodule(name = "_native")]
mod native {
    use std::sync::OnceLock;

    use pyo3::exceptions::PyImportError;
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::batch::{RunGate, failed_row, input_hashes};
    #[pymodule_export]
    use crate::bridge::Bridge;
    #[pymodule_export]
    use crate::call::CallView;
    #[pymodule_export]
    use crate::chunks::ChunkIterator;
    #[pymodule_export]
    use crate::column_shape::column_shape;
    #[pymodule_export]
    use crate::engine::{after_fork, close};
    #[pymodule_export]
    use crate::envelope_class::NativeEnvelope;
    #[pymodule_export]
    use crate::function::ReplySlot;
    #[pymodule_export]
    use crate::golden::{RecordingsHandle, golden_cases, golden_run};
    #[pymodule_export]
    use crate::modules::{GrowingData, assemble_envelope, unfit};
    #[pymodule_export]
    use crate::run::RunHandle;
    #[pymodule_export]
    use crate::runtime::NativeRuntime;

    /// Refuses a second interpreter: the library's static state belongs to one interpreter, and its objects
    /// must not mix.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        static INTERPRETER: OnceLock<usize> = OnceLock::new();
        // Each interpreter has its own `sys.modules` dictionary for its whole life, so its address identifies
        // the interpreter.
        let own = module.py().import("sys")?.getattr("modules")?.as_ptr() as usize;
        if *INTERPRETER.get_or_init(|| own) == own {
            return Ok(());
        }
        let message = "another interpreter of this process has already loaded `cogn`";
        Err(PyImportError::new_err(message))
    }

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
