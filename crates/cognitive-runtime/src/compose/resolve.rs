//! Checks whether a composition can run: every part is installed, no cycle, not too deep. (COMP-063,
//! COMP-070, COMP-071) Asks no model; a composition that cannot run costs nothing.
//!
//! The plan of each module is compiled once, with the module. The graph over all modules is built for each run, and
//! only joins these plans. Any module may have been replaced since the last run, and only the source knows.

use cognitive_contract::compose::Composition;
use cognitive_contract::compose::graph::{Graph, GraphFault, MissingModule, ModuleNode, Sound};
use cognitive_contract::ports::ModuleSource;
use cognitive_contract::{ErrorCode, Failure, Module, Warning};
use serde_json::json;

use super::lineage::Lineage;
use crate::host::Host;
use crate::run_context::CACHE;

/// The code of warnings about parts.
pub(crate) const NOTICE: &str = "COMPOSITION";

/// Deeper compositions are refused whatever their manifests say: every level of a run needs stack space.
pub(crate) const MAX_DEPTH: u64 = 16;

/// Checks everything that a module can reach. The warnings name missing optional parts.
pub(crate) fn check(
    host: &Host,
    module: &Module,
    lineage: &Lineage,
    made_of: &Composition,
) -> Result<Vec<Warning>, Failure> {
    if let Some(place) = made_of.plan.custom_at().filter(|_| host.aggregate.is_none()) {
        let message = format!("`{place}` needs a function of the host, which has none");
        return Err(Failure::module_invalid(message).with_detail("path", json!(place)));
    }
    let sound = sound(host.modules.as_ref(), module, Some(made_of), |_, _| {})?;
    for budget in lineage.budgets() {
        budget.has_room_for(sound.calls)?;
    }
    let root = module.manifest.name.as_str();
    let warning = |absent: &MissingModule| Warning::new(NOTICE, absent.message());
    let own = sound.absent.iter().filter(|absent| absent.needed_by == root);
    Ok(own.map(warning).collect())
}

/// Finds everything that a module can reach, calls `tell` for each installed module, and checks the whole
/// graph.
pub(crate) fn sound(
    modules: &dyn ModuleSource,
    module: &Module,
    made_of: Option<&Composition>,
    mut tell: impl FnMut(&str, &ModuleNode),
) -> Result<Sound, Failure> {
    let root = module.manifest.name.as_str();
    let mut graph = Graph::new(root);
    let mut add = |graph: &mut Graph, name: &str, node: ModuleNode| {
        tell(name, &node);
        graph.add(name, node);
    };
    while let Some(name) = graph.next_unknown() {
        if name == root {
            add(&mut graph, root, node(module, made_of));
        } else if let Ok(found) = modules.module(&name)
            && let Ok(made_of) = found.composition()
        {
            add(&mut graph, &name, node(&found, made_of));
        }
    }
    let sound = graph.check().map_err(GraphFault::into_failure)?;
    if sound.depth > MAX_DEPTH {
        let message =
            format!("module calls are nested {} levels deep, the limit is {MAX_DEPTH}", sound.depth);
        return Err(Failure::new(ErrorCode::MaxDepthExceeded, message));
    }
    Ok(sound)
}

fn node(module: &Module, made_of: Option<&Composition>) -> ModuleNode {
    let version = &module.manifest.version;
    let node = match made_of {
        Some(composition) => composition.node(version),
        None => ModuleNode { version: version.clone(), asks: true, ..ModuleNode::default() },
    };
    // A module with cached answers may need no call.
    if module.manifest.context.emits.iter().any(|emit| emit.kind == CACHE) {
        return ModuleNode { asks: false, certain: Vec::new(), ..node };
    }
    node
}
