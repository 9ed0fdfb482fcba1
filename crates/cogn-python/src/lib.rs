//! The native half of the Python package `cogn`: the runtime of the crate `cogn` behind Python's own interface. The other half,
//! in `packaging/python/src`, is what programs see. No rule about modules or envelopes lives here.
//!
//! Threads: Python's threads wait with the GIL released; functions of the program run on threads and event loops of Python; the
//! threads of the runtime attach to the interpreter only to start such a function or to cancel it.

mod batch;
mod bridge;
mod call;
mod caller;
mod chunks;
mod column_shape;
mod engine;
mod failing;
mod from_python;
mod function;
mod golden;
mod modules;
mod options;
mod platform;
mod provider;
mod recipe;
mod recorded;
mod run;
mod runtime;
mod to_python;
mod tool;

use pyo3::prelude::*;

/// What `cogn` imports.
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
    use crate::failing::Written;
    #[pymodule_export]
    use crate::function::ReplySlot;
    #[pymodule_export]
    use crate::golden::{RecordingsHandle, golden_cases, golden_run};
    #[pymodule_export]
    use crate::modules::{GrowingData, assembled, unfit};
    #[pymodule_export]
    use crate::run::RunHandle;
    #[pymodule_export]
    use crate::runtime::NativeRuntime;

    /// What the library keeps belongs to one interpreter; objects of two must not meet.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        static INTERPRETER: OnceLock<usize> = OnceLock::new();
        // Each interpreter has a dictionary of modules of its own, for as long as it lives.
        let own = module.py().import("sys")?.getattr("modules")?.as_ptr() as usize;
        if *INTERPRETER.get_or_init(|| own) == own {
            return Ok(());
        }
        let message = "`cogn` is loaded by another interpreter of this process already: one at a time";
        Err(PyImportError::new_err(message))
    }

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
