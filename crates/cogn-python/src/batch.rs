//! Runs one module many times with bounded concurrency: the core of `cogn.udf`. Returns one answer per input,
//! in the order of the inputs. A row that cannot be sent to a module becomes a failed envelope.

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
use crate::envelope_class;
use crate::from_python;
use crate::options::PythonOptions;
use crate::run::RunHandle;
use crate::runtime::NativeRuntime;

/// The highest concurrency of a gate. Each run in flight has its own memory and connection, so a typo must not start
/// millions.
const MAX_WIDTH: usize = 10_000;

/// Limits the number of concurrent runs, shared by all threads that use it.
#[pyclass(frozen, name = "Gate", module = "cogn._native")]
pub struct RunGate(Arc<Semaphore>);

/// A row: its run, or the reason why there is none.
type Row = Result<(ModuleRun, Scope), Failure>;

#[pymethods]
impl RunGate {
    #[new]
    fn new(width: usize) -> PyResult<Self> {
        if !(1..=MAX_WIDTH).contains(&width) {
            return Err(PyValueError::new_err(format!(
                "`concurrency` must be from 1 to {MAX_WIDTH}, found: {width}"
            )));
        }
        Ok(Self(Arc::new(Semaphore::new(width))))
    }

    /// Runs a module for each row, a pair of input and options. Waits for all envelopes with the GIL
    /// released.
    fn run_many<'py>(
        &self,
        py: Python<'py>,
        runtime: &NativeRuntime,
        module: &str,
        rows: &Bound<'py, PyList>,
    ) -> PyResult<Bound<'py, PyList>> {
        let rows = prepare_rows(py, runtime, module, rows)?;
        let engine = engine(py)?;
        let gate = Arc::clone(&self.0);
        // Runs on a thread of the runtime, because this one would have to be woken for each row. Dropping the
        // set cancels it.
        let mut whole = JoinSet::new();
        whole.spawn_on(answer_rows(gate, rows), engine.handle());
        let ended = engine.wait(py, async move { whole.join_next().await })?;
        let envelopes = ended.and_then(Result::ok);
        let envelopes =
            envelopes.ok_or_else(|| PyRuntimeError::new_err("the runs of this column were cancelled"))?;
        LoopResult::Envelopes(envelopes).object(py).and_then(|list| Ok(list.cast_into()?))
    }

    /// Does the same in the background, and resolves an asyncio future with the list.
    fn start_many(
        &self,
        py: Python<'_>,
        bridge: Py<Bridge>,
        future: Py<PyAny>,
        runtime: &NativeRuntime,
        module: &str,
        rows: &Bound<'_, PyList>,
    ) -> PyResult<RunHandle> {
        let rows = prepare_rows(py, runtime, module, rows)?;
        let gate = Arc::clone(&self.0);
        let task = engine(py)?.handle().spawn(async move {
            let envelopes = answer_rows(gate, rows).await;
            bridge::send(&bridge, future, LoopResult::Envelopes(envelopes));
        });
        Ok(RunHandle::new(task.abort_handle()))
    }
}

/// Returns the envelope of a row that never became a run.
#[pyfunction]
pub fn failed_row(py: Python<'_>, message: String) -> PyResult<Bound<'_, PyAny>> {
    envelope_class::envelope(py, no_input(message).into_envelope())
}

/// Returns the hash of each input, as in receipts and `cogn batch`. An invalid input also gets one: the hash
/// of its error message as a string, which no valid input has.
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

/// Prepares the runs. An invalid option raises an exception, because it affects every row; an invalid input
/// only fails its row.
fn prepare_rows(
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

/// Runs all rows. Dropping the future cancels all unfinished runs.
async fn answer_rows(gate: Arc<Semaphore>, rows: Vec<Row>) -> Vec<Envelope> {
    let mut envelopes: Vec<Option<Envelope>> = rows.iter().map(|_| None).collect();
    let mut running = JoinSet::new();
    for (index, row) in rows.into_iter().enumerate() {
        // Rows wait here and not in separate tasks, so that none starts while the others are being cancelled.
        // The gate is never closed.
        let permit = Arc::clone(&gate).acquire_owned().await;
        running.spawn(async move {
            let _permit = permit;
            let envelope = match row {
                Ok((run, scope)) => caller::run_in_scope(scope, Box::pin(run.run())).await,
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
