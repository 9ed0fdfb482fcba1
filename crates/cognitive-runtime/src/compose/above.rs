//! What a module inherits from the modules that call it: where it stands, and what they deny. (COMP-090)
//! A child can be denied more than it denies itself, never less.

use cognitive_contract::Module;
use cognitive_contract::manifest::{Allow, Policies, Tier};

use super::resolve::DEEPEST;

/// The modules above a run. Empty for a run that a surface asks for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Above {
    /// Their names, outermost first.
    path: Vec<String>,
    /// What they deny together.
    policies: Option<Policies>,
    /// The tier that the call asks for in place of the module's own.
    tier: Option<Tier>,
}

impl Above {
    /// Whether nobody is above.
    pub(crate) fn is_empty(&self) -> bool {
        self.path.is_empty()
    }

    /// Whether this is deeper than any graph that was found to be sound. A folder that changes during the run could
    /// lead here.
    pub(crate) fn is_endless(&self) -> bool {
        self.path.len() as u64 > DEEPEST
    }

    /// Where the caller stands, such as `outer/inner`; `None` for a run that a surface asks for. (S-05)
    pub(crate) fn span(&self) -> Option<String> {
        (!self.path.is_empty()).then(|| self.path.join("/"))
    }

    /// The tier of a module that runs here.
    pub(crate) fn tier(&self, module: &Module) -> Tier {
        self.tier.unwrap_or(module.manifest.tier)
    }

    /// The policies of a module that runs here.
    pub(crate) fn policies(&self, module: &Module) -> Policies {
        let own = module.manifest.policies.clone();
        self.policies.as_ref().map_or(own.clone(), |above| tightened(own, above))
    }

    /// What the children of a module that runs here inherit.
    pub(crate) fn below(&self, module: &Module, tier: Option<Tier>) -> Self {
        let mut path = self.path.clone();
        path.push(module.manifest.name.clone());
        Self { path, policies: Some(self.policies(module)), tier }
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
