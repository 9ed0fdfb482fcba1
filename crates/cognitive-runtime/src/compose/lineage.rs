//! What a run inherits from the runs above it: their names, what they deny, and the calls that they have left. (COMP-090)
//! A child can be denied more than it denies itself, never less.

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

/// The runs above a run. Empty for a run that a surface asks for.
#[derive(Clone, Default)]
pub(crate) struct Lineage {
    /// Their names, outermost first.
    path: Vec<String>,
    /// What they deny together.
    policies: Option<Policies>,
    /// Which tools each of them lets be used, innermost first.
    tools: Vec<AllowedTools>,
    /// The tier that the call asks for in place of the module's own.
    tier: Option<Tier>,
    /// The model calls that are left, the operator's limit first, then those of the modules above and of the one that
    /// runs here. Empty until the run begins.
    budgets: Vec<Arc<CallBudget>>,
    /// The money of the outermost run and all below it, once the run is let begin under a limit.
    meter: Arc<OnceLock<Arc<CostMeter>>>,
    /// How often the outermost run may be repeated, itself included; 0 and 1 are the same.
    pub(crate) rounds: u32,
    /// What the caller of the outermost run sent.
    pub(crate) references: CallerReferences,
    /// The media that the outermost composition and all below it share.
    pub(crate) media: Option<Arc<MediaCache>>,
    /// The context of a part, beside its input. (CTX-053)
    pub(crate) context: Map<String, Value>,
}

impl Lineage {
    /// Returns whether a module that runs here may only ask models on this machine: it, or a module above it, is configured
    /// so.
    pub(crate) fn is_local_only(&self, host: &Host, module: &Module) -> bool {
        host.is_local_only(|name| module.manifest.name == name || self.path.iter().any(|above| above == name))
    }

    /// Whether a surface asked for the run.
    pub(crate) fn is_empty(&self) -> bool {
        self.path.is_empty()
    }

    /// Whether this is deeper than any graph that was found to be sound. A folder that changes during the run could
    /// lead here.
    pub(crate) fn is_endless(&self) -> bool {
        self.path.len() as u64 > MAX_DEPTH
    }

    /// The calls that are left to a run here.
    pub(crate) fn budgets(&self) -> &[Arc<CallBudget>] {
        &self.budgets
    }

    /// The money of the run, if it has a limit.
    pub(crate) fn meter(&self) -> Option<Arc<CostMeter>> {
        self.meter.get().cloned()
    }

    /// Begins to count money. The first meter counts.
    pub(crate) fn set_meter(&self, meter: Arc<CostMeter>) {
        let _ = self.meter.set(meter);
    }

    /// The operator's limit to the calls of a run and all of its parts, unless an outer run has brought it.
    pub(crate) fn limit_by_operator(&mut self, limit: u64) {
        if self.budgets.is_empty() {
            self.budgets.push(CallBudget::of_operator(limit));
        }
    }

    /// One more limit to the calls of the run that begins here and of all below it, if the module sets one.
    pub(crate) fn limit_by_module(&mut self, module: &Module) {
        self.budgets.extend(CallBudget::of_module(module));
    }

    /// Counts the calls of the run that begins here and of all below it.
    pub(crate) fn count_calls(&mut self) -> Arc<CallBudget> {
        let count = CallBudget::count_only();
        self.budgets.push(Arc::clone(&count));
        count
    }

    /// Counts what a run here took that was made before this process began.
    pub(crate) fn took_before(&self, calls: u64, cost: Option<Money>) {
        self.budgets.iter().for_each(|budget| budget.add(calls));
        if let (Some(meter), Some(cost)) = (self.meter.get(), cost) {
            meter.add(cost);
        }
    }

    /// Lets the run that begins here and all below it share their media.
    pub(crate) fn share_media(&mut self) {
        self.media.get_or_insert_with(Arc::default);
    }

    /// The path of the caller, such as `outer/inner`; `None` for a run that a surface asks for. (S-05)
    pub(crate) fn span(&self) -> Option<String> {
        (!self.path.is_empty()).then(|| self.path.join("/"))
    }

    /// A module that runs here, in the tier that the call asks for. (COMP-061)
    pub(crate) fn in_tier(&self, module: Arc<Module>) -> Arc<Module> {
        match self.tier {
            Some(tier) if tier != module.manifest.tier => Arc::new(module.in_tier(tier)),
            _ => module,
        }
    }

    /// The policies of a module that runs here.
    pub(crate) fn policies(&self, module: &Module) -> Policies {
        let own = module.manifest.policies.clone();
        self.policies.as_ref().map_or(own.clone(), |above| tightened(own, above))
    }

    /// Which tools a module that runs here and those above it let be used, its own list first.
    pub(crate) fn tools<'a>(&'a self, module: &'a Module) -> Vec<&'a AllowedTools> {
        [&module.manifest.tools].into_iter().chain(&self.tools).collect()
    }

    /// What a child of a module that runs here inherits.
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

fn tightened(mut own: Policies, above: &Policies) -> Policies {
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
