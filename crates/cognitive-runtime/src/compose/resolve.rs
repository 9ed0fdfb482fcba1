//! What a module is made of, and whether that can run: every part there, no circle, not too deep.
//! (COMP-063, COMP-070, COMP-071) Asks no model; a composition that cannot run costs nothing.

use cognitive_contract::compose::calls::{Directives, directives};
use cognitive_contract::compose::graph::{Absent, Graph, GraphFault, Node, Sound};
use cognitive_contract::compose::{Compiled, Plan};
use cognitive_contract::ports::ModuleSource;
use cognitive_contract::{ErrorCode, Failure, Module, Warning};
use serde_json::json;

use super::above::Above;
use crate::host::Host;
use crate::memory::CACHE;

/// The word of notices about parts.
pub(crate) const NOTICE: &str = "COMPOSITION";

/// Deeper compositions are refused whatever their manifests say: every level of a run takes room on the stack.
pub(crate) const DEEPEST: u64 = 16;

/// A module that is made of modules.
pub(crate) struct Composition {
    pub(crate) plan: Plan,
    pub(crate) directives: Directives,
}

/// Whether a module is made of itself alone.
pub(crate) fn stands_alone(module: &Module) -> bool {
    module.manifest.composition.is_none() && directives(&module.prompt).calls.is_empty()
}

/// What a module is made of; `None` if it stands alone.
pub(crate) fn composition(module: &Module) -> Result<Option<Composition>, Failure> {
    if stands_alone(module) {
        return Ok(None);
    }
    let directives = directives(&module.prompt);
    let file = module.manifest.composition.clone().unwrap_or_default();
    match Plan::compile(&file, &directives.calls) {
        Ok(Compiled { plan, .. }) => Ok(Some(Composition { plan, directives })),
        Err(faults) => {
            let first = faults.first().map(|fault| format!("`{}`: {}", fault.path, fault.message));
            Err(Failure::module_invalid(format!("the composition is wrong: {}", first.unwrap_or_default())))
        }
    }
}

/// Judges everything that a module can lead to. The warnings name what is missing and can be done without.
pub(crate) fn check(
    host: &Host,
    module: &Module,
    above: &Above,
    made_of: &Composition,
) -> Result<Vec<Warning>, Failure> {
    if let Some(place) = made_of.plan.custom_at().filter(|_| host.aggregate.is_none()) {
        let message = format!("`{place}` asks for a function of the host, and there is none");
        return Err(Failure::module_invalid(message).with_detail("path", json!(place)));
    }
    let sound = sound(host.modules.as_ref(), module, Some(made_of), |_, _| {})?;
    for budget in above.budgets() {
        budget.has_room_for(sound.calls)?;
    }
    let root = module.manifest.name.as_str();
    let warning = |absent: &Absent| Warning::new(NOTICE, absent.message());
    let own = sound.absent.iter().filter(|absent| absent.needed_by == root);
    Ok(own.map(warning).collect())
}

/// Finds everything that a module can lead to, tells each module that is there, and judges the whole.
pub(crate) fn sound(
    modules: &dyn ModuleSource,
    module: &Module,
    made_of: Option<&Composition>,
    mut tell: impl FnMut(&str, &Node),
) -> Result<Sound, Failure> {
    let root = module.manifest.name.as_str();
    let mut graph = Graph::new(root);
    let mut add = |graph: &mut Graph, name: &str, node: Node| {
        tell(name, &node);
        graph.add(name, node);
    };
    while let Some(name) = graph.next_unknown() {
        if name == root {
            add(&mut graph, root, node(module, made_of));
        } else if let Ok(found) = modules.module(&name)
            && let Ok(made_of) = composition(&found)
        {
            add(&mut graph, &name, node(&found, made_of.as_ref()));
        }
    }
    let sound = graph.check().map_err(GraphFault::into_failure)?;
    if sound.depth > DEEPEST {
        let message = format!("modules call each other {} deep, which is more than {DEEPEST}", sound.depth);
        return Err(Failure::new(ErrorCode::MaxDepthExceeded, message));
    }
    Ok(sound)
}

fn node(module: &Module, made_of: Option<&Composition>) -> Node {
    let version = &module.manifest.version;
    let node = match made_of {
        Some(Composition { plan, directives }) => plan.node(version, &directives.calls),
        None => Node { version: version.clone(), asks: true, ..Node::default() },
    };
    // A module whose answers are kept may cost nothing.
    if module.manifest.context.emits.iter().any(|emit| emit.kind == CACHE) {
        return Node { asks: false, certain: Vec::new(), ..node };
    }
    node
}
