//! Properties that a run inherits from the runs above it: their names, their policies and the calls they have
//! left. (COMP-090)
//! A child can be denied more than its own policies deny, never less.

use std::sync::{Arc, OnceLock};

use cognitive_contract::Module;
use cognitive_contract::manifest::{Allow, AllowedTools, Policies, Tier};
use cognitive_contract::money::Money;
use serde_json::{Map, Value};

use super::caller_references::CallerReferences;
use super::resolve::MAX_DEPTH;
use crate::call_budget::CallBudget;
use crate::cost::CostMeter;
use crate::host::Host;
use crate::stages::media::MediaCache;

/// The runs above a run. Empty for a root run.
#[derive(Clone, Default)]
pub(crate) struct Lineage {
    /// The names of the runs above, outermost first.
    path: Vec<String>,
    /// The combined policies of the runs above.
    policies: Option<Policies>,
    /// The tool list of each of them, innermost first.
    tools: Vec<AllowedTools>,
    /// The tier that the call requests instead of the module's own.
    tier: Option<Tier>,
    /// The call budgets: the operator's limit first, then those of the modules above and of the module that
    /// runs here. Empty until the run starts.
    budgets: Vec<Arc<CallBudget>>,
    /// The cost meter of the root run and all runs below it. Set once the run is admitted under a cost limit.
    meter: Arc<OnceLock<Arc<CostMeter>>>,
    /// The maximum number of rounds of the root run, the first included. 0 and 1 mean the same.
    pub(crate) rounds: u32,
    /// The texts that the caller of the root run sent.
    pub(crate) references: CallerReferences,
    /// The media cache that the outermost composition and all runs below it share.
    pub(crate) media: Option<Arc<MediaCache>>,
    /// The context of a part, separate from its input. (CTX-053)
    pub(crate) context: Map<String, Value>,
}

impl Lineage {
    /// Returns whether a module that runs here may only ask models on this machine. True if it, or a module
    /// above it, is configured so.
    pub(crate) fn is_local_only(&self, host: &Host, module: &Module) -> bool {
        host.is_local_only(|name| module.manifest.name == name || self.path.iter().any(|above| above == name))
    }

    /// Returns whether this is a root run.
    pub(crate) fn is_empty(&self) -> bool {
        self.path.is_empty()
    }

    /// Returns whether this is deeper than any graph that passed the checks. A module folder that changes
    /// during the run could cause that.
    pub(crate) fn is_endless(&self) -> bool {
        self.path.len() as u64 > MAX_DEPTH
    }

    /// The call budgets that apply to a run here.
    pub(crate) fn budgets(&self) -> &[Arc<CallBudget>] {
        &self.budgets
    }

    /// The cost meter of the run, if it has a limit.
    pub(crate) fn meter(&self) -> Option<Arc<CostMeter>> {
        self.meter.get().cloned()
    }

    /// Sets the cost meter. Later calls have no effect.
    pub(crate) fn set_meter(&self, meter: Arc<CostMeter>) {
        let _ = self.meter.set(meter);
    }

    /// Applies the operator's limit to the calls of a run and all of its parts, unless an outer run has set
    /// it.
    pub(crate) fn limit_by_operator(&mut self, limit: u64) {
        if self.budgets.is_empty() {
            self.budgets.push(CallBudget::for_operator(limit));
        }
    }

    /// Adds the module's limit, if it sets one, to the calls of the run that starts here and of all runs
    /// below it.
    pub(crate) fn limit_by_module(&mut self, module: &Module) {
        self.budgets.extend(CallBudget::for_module(module));
    }

    /// Counts the calls of the run that starts here and of all runs below it.
    pub(crate) fn count_calls(&mut self) -> Arc<CallBudget> {
        let count = CallBudget::count_only();
        self.budgets.push(Arc::clone(&count));
        count
    }

    /// Counts calls and cost of a part that ran before this process started.
    pub(crate) fn add_earlier_costs(&self, calls: u64, cost: Option<Money>) {
        self.budgets.iter().for_each(|budget| budget.add(calls));
        if let (Some(meter), Some(cost)) = (self.meter.get(), cost) {
            meter.add(cost);
        }
    }

    /// Lets the run that starts here and all runs below it share their media.
    pub(crate) fn share_media(&mut self) {
        self.media.get_or_insert_with(Arc::default);
    }

    /// The path of the caller, such as `outer/inner`; `None` for a root run. (S-05)
    pub(crate) fn span(&self) -> Option<String> {
        (!self.path.is_empty()).then(|| self.path.join("/"))
    }

    /// Returns a module in the tier that the call requests. (COMP-061)
    pub(crate) fn in_tier(&self, module: Arc<Module>) -> Arc<Module> {
        match self.tier {
            Some(tier) if tier != module.manifest.tier => Arc::new(module.in_tier(tier)),
            _ => module,
        }
    }

    /// The effective policies of a module that runs here.
    pub(crate) fn policies(&self, module: &Module) -> Policies {
        let own = module.manifest.policies.clone();
        self.policies.as_ref().map_or(own.clone(), |above| tighten_policies(own, above))
    }

    /// The tool lists of a module that runs here and of those above it, its own list first.
    pub(crate) fn tools<'a>(&'a self, module: &'a Module) -> Vec<&'a AllowedTools> {
        [&module.manifest.tools].into_iter().chain(&self.tools).collect()
    }

    /// The lineage of a child of a module that runs here.
    pub(crate) fn child_of(
        &self,
        module: &Module,
        tier: Option<Tier>,
        references: &CallerReferences,
    ) -> Self {
        let mut path = self.path.clone();
        path.push(module.manifest.name.clone());
        let tools = self.tools(module).into_iter().cloned().collect();
        let (policies, references) = (Some(self.policies(module)), references.clone());
        let budgets = self.budgets.clone();
        let (media, meter) = (self.media.clone(), Arc::clone(&self.meter));
        Self {
            path,
            policies,
            tools,
            tier,
            budgets,
            meter,
            rounds: 1,
            references,
            media,
            context: Map::new(),
        }
    }
}

fn tighten_policies(mut own: Policies, above: &Policies) -> Policies {
    let tighten = |own: &mut Allow, above: Allow| {
        if above == Allow::Deny {
            *own = Allow::Deny;
        }
    };
    tighten(&mut own.network, above.network);
    tighten(&mut own.filesystem_write, above.filesystem_write);
    tighten(&mut own.side_effects, above.side_effects);
    tighten(&mut own.code_execution, above.code_execution);
    own.tools &= above.tools;
    for (name, allow) in &above.other {
        tighten(own.other.entry(name.clone()).or_insert(*allow), *allow);
    }
    own
}
