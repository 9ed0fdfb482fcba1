//! The checks before a request leaves for a model, for the first request of a call and for every retry. The
//! run and every module above it have calls left, the worst case fits the cost limit, and the audit log has a
//! record.
//! Every request of every provider passes here and is counted once. An answer from the cache sends no request
//! and costs nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cognitive_contract::ports::Provider;
use cognitive_contract::{ErrorCode, Failure, Module};
use serde_json::json;

use crate::audit::RunAudit;
use crate::compose::lineage::Lineage;
use crate::cost::CallCost;

/// The number of calls that a run and all of its parts may make together.
#[derive(Debug)]
pub(crate) struct CallBudget {
    limit: u64,
    made: AtomicU64,
    /// The module that set the limit in its manifest; `None` if the operator did.
    set_by: Option<String>,
}

impl CallBudget {
    /// The operator's limit.
    pub(crate) fn for_operator(limit: u64) -> Arc<Self> {
        Arc::new(Self { limit, made: AtomicU64::new(0), set_by: None })
    }

    /// The limit that a module sets for itself and its parts, if it sets one.
    pub(crate) fn for_module(module: &Module) -> Option<Arc<Self>> {
        let set_by = Some(module.manifest.name.clone());
        Some(Arc::new(Self { limit: module.manifest.max_calls?, made: AtomicU64::new(0), set_by }))
    }

    /// A budget without a limit: it only counts the calls below it.
    pub(crate) fn count_only() -> Arc<Self> {
        Arc::new(Self { limit: u64::MAX, made: AtomicU64::new(0), set_by: None })
    }

    /// The number of calls that were requested.
    pub(crate) fn requested_calls(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// Adds calls that were made before this process started.
    pub(crate) fn add(&self, calls: u64) {
        self.made.fetch_add(calls, Ordering::Relaxed);
    }

    /// Takes one call. A refused call stays counted: the run ends with it.
    fn take(&self) -> Result<(), Failure> {
        if self.made.fetch_add(1, Ordering::Relaxed) < self.limit {
            return Ok(());
        }
        Err(self.limit_failure(format!("the limit of model calls is reached: {}", self.limit)))
    }

    /// Refuses a run that needs at least `calls` if that exceeds the limit.
    pub(crate) fn has_room_for(&self, calls: u64) -> Result<(), Failure> {
        if calls <= self.limit {
            return Ok(());
        }
        let message = format!("the module needs at least {calls} model calls, the limit is: {}", self.limit);
        Err(self.limit_failure(message).with_detail("calls", json!(calls)))
    }

    fn limit_failure(&self, message: String) -> Failure {
        let failure =
            Failure::new(ErrorCode::CallLimitExceeded, message).with_detail("max_calls", json!(self.limit));
        match &self.set_by {
            Some(module) => failure
                .with_detail("module", json!(module))
                .suggest(format!("Raise `max_calls` in the `module.yaml` of `{module}`")),
            None => failure.suggest(
                "If the run is meant to be this large, raise `max_calls` in the configuration, or use `--max-calls`",
            ),
        }
    }
}

/// The checks that a request of one run must pass before it leaves.
#[derive(Clone)]
pub(crate) struct CallPermit<'a> {
    pub(crate) module: &'a Module,
    pub(crate) lineage: &'a Lineage,
    pub(crate) audit: &'a RunAudit<'a>,
    pub(crate) provider: &'a dyn Provider,
    /// The worst-case cost of the request, if the run has a cost limit.
    pub(crate) cost: Option<CallCost>,
}

impl CallPermit<'_> {
    /// Permits one request to leave, or returns the reason why it may not.
    pub(crate) async fn obtain(&self) -> Result<(), Failure> {
        for budget in self.lineage.budgets() {
            budget.take()?;
        }
        if let Some(cost) = &self.cost {
            cost.hold()?;
        }
        self.audit.commit_call(self.module, self.provider).await
    }
}
