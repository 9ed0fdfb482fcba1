//! The Python caller of a run (event loop and context variables, for functions that the run calls) and the
//! recorded replies of the run. Both belong to the run and not to the runtime, which many runs share.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use cognitive_contract::RecordedReply;
use pyo3::prelude::*;

/// The data that belongs to one run and not to its runtime.
pub type Scope = (Option<Arc<PythonCaller>>, Option<Replies>);

/// Recorded replies by module.
pub type Replies = Arc<BTreeMap<String, RecordedReply>>;

/// The Python caller of a run.
pub struct PythonCaller {
    /// The running event loop, or `None`.
    pub event_loop: Py<PyAny>,
    /// The context variables.
    pub context: Py<PyAny>,
}

impl PythonCaller {
    /// Reads a pair of event loop and context.
    pub fn read(pair: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (event_loop, context) = pair.extract()?;
        Ok(Self { event_loop, context })
    }
}

tokio::task_local! {
    static SCOPE: Scope;
}

/// Runs a future with the scope of its run. Does nothing if the scope is empty.
pub async fn run_in_scope<T>(scope: Scope, future: impl Future<Output = T>) -> T {
    if scope.0.is_none() && scope.1.is_none() {
        return future.await;
    }
    SCOPE.scope(scope, future).await
}

/// Returns the caller of the current run, if it is known.
pub fn caller() -> Option<Arc<PythonCaller>> {
    SCOPE.try_with(|(caller, _)| caller.clone()).ok().flatten()
}

/// Returns the recorded replies of the current run.
pub fn replies() -> Option<Replies> {
    SCOPE.try_with(|(_, replies)| replies.clone()).ok().flatten()
}
