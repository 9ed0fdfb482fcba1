//! What has to hold before a request leaves for a model, the first one of a call and every repetition: the run, and every
//! module that it is a part of, have calls left, its worst case has room in the limit of cost, and the audit knows of it. Every request of every provider passes
//! here and is counted once; an answer from the cache sends no request and costs nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cognitive_contract::ports::Provider;
use cognitive_contract::{ErrorCode, Failure, Module};
use serde_json::json;

use crate::audit::RunAudit;
use crate::compose::lineage::Lineage;
use crate::cost::CallCost;

/// The calls that a run and all of its parts may make together.
#[derive(Debug)]
pub(crate) struct CallBudget {
    limit: u64,
    made: AtomicU64,
    /// The module that set the limit in its manifest; `None` if the operator did.
    set_by: Option<String>,
}

impl CallBudget {
    /// What the operator allows.
    pub(crate) fn of_operator(limit: u64) -> Arc<Self> {
        Arc::new(Self { limit, made: AtomicU64::new(0), set_by: None })
    }

    /// What a module allows itself and its parts, if it says so.
    pub(crate) fn of_module(module: &Module) -> Option<Arc<Self>> {
        let set_by = Some(module.manifest.name.clone());
        Some(Arc::new(Self { limit: module.manifest.max_calls?, made: AtomicU64::new(0), set_by }))
    }

    /// No limit: it only counts what is made below it.
    pub(crate) fn count_only() -> Arc<Self> {
        Arc::new(Self { limit: u64::MAX, made: AtomicU64::new(0), set_by: None })
    }

    /// How many calls were asked for.
    pub(crate) fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// Counts calls that were made before this process began.
    pub(crate) fn add(&self, calls: u64) {
        self.made.fetch_add(calls, Ordering::Relaxed);
    }

    /// Takes one call. What was refused is not given back: the run ends with it.
    fn take(&self) -> Result<(), Failure> {
        if self.made.fetch_add(1, Ordering::Relaxed) < self.limit {
            return Ok(());
        }
        Err(self.exceeded(format!("the limit of model calls is reached: {}", self.limit)))
    }

    /// Refuses what would certainly need more than this.
    pub(crate) fn has_room_for(&self, calls: u64) -> Result<(), Failure> {
        if calls <= self.limit {
            return Ok(());
        }
        let message = format!("the module needs at least {calls} model calls, the limit is: {}", self.limit);
        Err(self.exceeded(message).with_detail("calls", json!(calls)))
    }

    fn exceeded(&self, message: String) -> Failure {
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

/// What a request of one run has to pass before it leaves.
#[derive(Clone)]
pub(crate) struct CallPermit<'a> {
    pub(crate) module: &'a Module,
    pub(crate) lineage: &'a Lineage,
    pub(crate) audit: &'a RunAudit<'a>,
    pub(crate) provider: &'a dyn Provider,
    /// What it may cost, if the run has a limit of cost.
    pub(crate) cost: Option<CallCost>,
}

impl CallPermit<'_> {
    /// Lets one request leave, or says why it may not.
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
