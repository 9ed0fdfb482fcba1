//! Where a run was asked for: the event loop and the context variables that functions of the program see when the run calls
//! them, and the replies that were recorded for it. Both travel with the run, not with the runtime, which many runs share.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use pyo3::prelude::*;

/// What belongs to one run and not to its runtime.
pub type Scope = (Option<Arc<AskedFrom>>, Option<Replies>);

/// Recorded replies by module.
pub type Replies = Arc<BTreeMap<String, String>>;

/// The place in a Python program that asked for a run.
pub struct AskedFrom {
    /// The running event loop, or `None`.
    pub event_loop: Py<PyAny>,
    /// The context variables.
    pub context: Py<PyAny>,
}

impl AskedFrom {
    /// Reads a pair of event loop and context.
    pub fn read(pair: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (event_loop, context) = pair.extract()?;
        Ok(Self { event_loop, context })
    }
}

tokio::task_local! {
    static SCOPE: Scope;
}

/// A future with what belongs to its run. Nothing is done where there is nothing.
pub async fn within<T>(scope: Scope, future: impl Future<Output = T>) -> T {
    if scope.0.is_none() && scope.1.is_none() {
        return future.await;
    }
    SCOPE.scope(scope, future).await
}

/// Who asked for this run, if it is known.
pub fn caller() -> Option<Arc<AskedFrom>> {
    SCOPE.try_with(|(caller, _)| caller.clone()).ok().flatten()
}

/// The replies that were recorded for this run.
pub fn replies() -> Option<Replies> {
    SCOPE.try_with(|(_, replies)| replies.clone()).ok().flatten()
}
