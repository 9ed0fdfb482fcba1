//! The runtime as a Python object. A run returns an envelope; exceptions are for misuse, and for modules whose
//! `failure.contract` is `throw`. The child of a fork rebuilds it from its recipe, because threads and connections stay with the parent.

use std::sync::Arc;

use cogn::{ModuleRun, Runtime};
use cognitive_contract::lock::Lock;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::bridge::{self, Bridge, LoopResult};
use crate::caller;
use crate::chunks::ChunkIterator;
use crate::engine::{self, engine};
use crate::envelope_class;
use crate::modules;
use crate::options::PythonOptions;
use crate::recipe::Recipe;
use crate::run::RunHandle;
use crate::to_python;

/// A runtime that runs modules.
#[pyclass(frozen, name = "Runtime", module = "cogn._native")]
pub struct NativeRuntime {
    recipe: Recipe,
    /// The fork generation and the runtime built in it. Only locked by a thread that holds the GIL and does
    /// not release it.
    made: Lock<(u64, Arc<Runtime>)>,
}

impl NativeRuntime {
    pub(crate) fn runtime(&self, py: Python<'_>) -> PyResult<Arc<Runtime>> {
        let now = engine::generation();
        {
            let made = self.made.lock();
            if made.0 == now {
                return Ok(Arc::clone(&made.1));
            }
        }
        let new = Arc::new(self.recipe.make(py)?);
        let old = std::mem::replace(&mut *self.made.lock(), (now, Arc::clone(&new)));
        // The threads of the old runtime are gone and its files are shared with the parent, so it is leaked
        // and not dropped.
        std::mem::forget(old);
        Ok(new)
    }

    /// Prepares a run, with its scope.
    fn prepare(
        &self,
        py: Python<'_>,
        module: &str,
        input: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<(ModuleRun, caller::Scope)> {
        let mut options = PythonOptions::read(options)?;
        let scope = options.scope();
        let run = self.runtime(py)?.module_or_envelope(module);
        Ok((options.apply(run, input)?, scope))
    }
}

#[pymethods]
impl NativeRuntime {
    /// Builds a runtime from its parts.
    #[new]
    fn new(py: Python<'_>, parts: &Bound<'_, PyDict>) -> PyResult<Self> {
        let recipe = Recipe::read(parts)?;
        let made = Lock::new((engine::generation(), Arc::new(recipe.make(py)?)));
        Ok(Self { recipe, made })
    }

    /// Runs a module and waits for its envelope, with the GIL released.
    #[pyo3(signature = (module, input = None, options = None))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        module: &str,
        input: Option<&Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (run, scope) = self.prepare(py, module, input, options)?;
        match engine(py)?.wait(py, Box::pin(caller::run_in_scope(scope, run.run_by_contract())))? {
            Ok(envelope) => envelope_class::envelope(py, envelope),
            Err(thrown) => Err(envelope_class::failure_exception(py, thrown.into_envelope())),
        }
    }

    /// Runs a module in the background and resolves an asyncio future with its envelope.
    #[pyo3(signature = (bridge, future, module, input = None, options = None))]
    fn start(
        &self,
        py: Python<'_>,
        bridge: Py<Bridge>,
        future: Py<PyAny>,
        module: &str,
        input: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<RunHandle> {
        let (run, scope) = self.prepare(py, module, input, options)?;
        let task = engine(py)?.handle().spawn(async move {
            let result = match Box::pin(caller::run_in_scope(scope, run.run_by_contract())).await {
                Ok(envelope) => LoopResult::Envelope(Box::new(envelope)),
                Err(thrown) => LoopResult::Thrown(Box::new(thrown.into_envelope())),
            };
            bridge::send(&bridge, future, result);
        });
        Ok(RunHandle::new(task.abort_handle()))
    }

    /// Runs a module as a stream of chunks.
    #[pyo3(signature = (module, input = None, options = None))]
    fn stream(
        &self,
        py: Python<'_>,
        module: &str,
        input: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<ChunkIterator> {
        let (run, scope) = self.prepare(py, module, input, options)?;
        Ok(ChunkIterator::new(engine(py)?, scope, run.stream()))
    }

    /// Declares what this runtime can do with its models.
    fn capabilities<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let declared = self.runtime(py)?.host().declare_capabilities();
        to_python::object(py, &cognitive_runtime::declaration(&declared))
    }

    /// Returns the names of all available modules.
    fn names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let modules = self.runtime(py)?.modules();
        Ok(py.detach(|| modules.names()))
    }

    /// Describes a module: its manifest, schemas, prompt and folder.
    fn module<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyDict>> {
        let modules = self.runtime(py)?.modules();
        let module = py.detach(|| modules.module(name));
        modules::describe_module(py, &*module.map_err(|failure| envelope_class::exception(py, failure))?)
    }

    /// Notices about the configuration, for people.
    #[getter]
    fn notices(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.runtime(py)?.notices().to_vec())
    }
}
