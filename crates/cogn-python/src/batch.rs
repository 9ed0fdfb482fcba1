//! Many runs of one module with a bound on how many go on at once: the core of `cogn.udf`. Answers come in the order of the
//! inputs, and one for each: a row that cannot even be sent to a module is a failed envelope like any other.

use std::sync::Arc;

use cogn::{Envelope, ErrorCode, Failure, ModuleRun, Value};
use cognitive_runtime::receipt::canonical_sha256;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::bridge::{self, Bridge, LoopResult};
use crate::caller::{self, Scope};
use crate::engine::engine;
use crate::failing;
use crate::from_python;
use crate::options::PythonOptions;
use crate::run::RunHandle;
use crate::runtime::NativeRuntime;

/// The most runs at once that a gate may let through.
const MAX_WIDTH: usize = 10_000;

/// Lets so many runs through at once, however many threads ask for them.
#[pyclass(frozen, name = "Gate", module = "cogn._native")]
pub struct RunGate(Arc<Semaphore>);

/// A row: its run, or why there is none.
type Row = Result<(ModuleRun, Scope), Failure>;

#[pymethods]
impl RunGate {
    #[new]
    fn new(width: usize) -> PyResult<Self> {
        if !(1..=MAX_WIDTH).contains(&width) {
            return Err(PyValueError::new_err(format!(
                "`concurrency` is from 1 to {MAX_WIDTH}, not: {width}"
            )));
        }
        Ok(Self(Arc::new(Semaphore::new(width))))
    }

    /// Runs a module for each row, a pair of input and options, and waits for all envelopes with the GIL released.
    fn run_many<'py>(
        &self,
        py: Python<'py>,
        runtime: &NativeRuntime,
        module: &str,
        rows: &Bound<'py, PyList>,
    ) -> PyResult<Bound<'py, PyList>> {
        let rows = prepared(py, runtime, module, rows)?;
        let engine = engine(py)?;
        let gate = Arc::clone(&self.0);
        // On a thread of the runtime, because this one would have to be woken for each row. What is dropped is ended.
        let mut whole = JoinSet::new();
        whole.spawn_on(answered(gate, rows), engine.handle());
        let ended = engine.wait(py, async move { whole.join_next().await })?;
        let envelopes = ended.and_then(Result::ok);
        let envelopes =
            envelopes.ok_or_else(|| PyRuntimeError::new_err("the runs of this column were ended"))?;
        LoopResult::Envelopes(envelopes).object(py).and_then(|list| Ok(list.cast_into()?))
    }

    /// The same in the background; resolves a future of asyncio with the list.
    fn start_many(
        &self,
        py: Python<'_>,
        bridge: Py<Bridge>,
        future: Py<PyAny>,
        runtime: &NativeRuntime,
        module: &str,
        rows: &Bound<'_, PyList>,
    ) -> PyResult<RunHandle> {
        let rows = prepared(py, runtime, module, rows)?;
        let gate = Arc::clone(&self.0);
        let task = engine(py)?.handle().spawn(async move {
            let envelopes = answered(gate, rows).await;
            bridge::send(&bridge, future, LoopResult::Envelopes(envelopes));
        });
        Ok(RunHandle::new(task.abort_handle()))
    }
}

/// The envelope of a row that never became a run.
#[pyfunction]
pub fn failed_row(py: Python<'_>, message: String) -> PyResult<Bound<'_, PyAny>> {
    failing::envelope(py, no_input(message).into_envelope())
}

/// The hash of each input, as receipts and `cogn batch` have it. What is no input has one as well: that of the reason as a text, which no
/// input has.
#[pyfunction]
pub fn input_hashes(py: Python<'_>, inputs: &Bound<'_, PyList>) -> Vec<String> {
    let value = |input: Bound<'_, PyAny>| {
        from_python::value("input", &input).unwrap_or_else(|error| Value::String(error.value(py).to_string()))
    };
    inputs.iter().map(|input| canonical_sha256(&value(input))).collect()
}

fn no_input(message: String) -> Failure {
    Failure::new(ErrorCode::InvalidInput, message)
}

/// What is wrong with an option is an exception, because it is wrong for every row. What is wrong with an input is not.
fn prepared(
    py: Python<'_>,
    runtime: &NativeRuntime,
    module: &str,
    rows: &Bound<'_, PyList>,
) -> PyResult<Vec<Row>> {
    let runtime = runtime.runtime(py)?;
    let mut runs = Vec::with_capacity(rows.len());
    for row in rows.iter() {
        let (input, options): (Bound<'_, PyAny>, Option<Bound<'_, PyDict>>) = row.extract()?;
        let mut options = PythonOptions::read(options.as_ref())?;
        let scope = options.scope();
        let run = options.apply(runtime.module_or_envelope(module), Some(&input));
        runs.push(run.map(|run| (run, scope)).map_err(|error| no_input(error.value(py).to_string())));
    }
    Ok(runs)
}

/// Dropping the future ends all runs that are not over.
async fn answered(gate: Arc<Semaphore>, rows: Vec<Row>) -> Vec<Envelope> {
    let mut envelopes: Vec<Option<Envelope>> = rows.iter().map(|_| None).collect();
    let mut running = JoinSet::new();
    for (index, row) in rows.into_iter().enumerate() {
        // A row waits here and not in a task of its own, so that none begins while the others are being ended. The gate is never
        // closed.
        let permit = Arc::clone(&gate).acquire_owned().await;
        running.spawn(async move {
            let _permit = permit;
            let envelope = match row {
                Ok((run, scope)) => caller::within(scope, run.run()).await,
                Err(failure) => failure.into_envelope(),
            };
            (index, envelope)
        });
    }
    while let Some(ended) = running.join_next().await {
        if let Ok((index, envelope)) = ended
            && let Some(place) = envelopes.get_mut(index)
        {
            *place = Some(envelope);
        }
    }
    let lost = || Failure::new(ErrorCode::InternalError, "the run of this row ended without an answer");
    envelopes.into_iter().map(|envelope| envelope.unwrap_or_else(|| lost().into_envelope())).collect()
}
