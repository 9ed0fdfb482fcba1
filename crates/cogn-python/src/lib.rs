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
    #[pymodule_export]
    use crate::batch::{RunGate, failed_row};
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

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
