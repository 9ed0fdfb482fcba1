//! The composition of a module, compiled once per loaded module: the plan of its `composition` block and the calls of
//! its prompt. Checks only this module; the graph checks whether its parts exist.

use std::sync::{Arc, OnceLock};

use super::calls::{Directives, directives};
use super::compile::CompiledComposition;
use super::graph::ModuleNode;
use super::plan::CompositionPlan;
use crate::failure::Failure;
use crate::manifest::CompositionFile;

/// A module that is composed of modules.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Composition {
    /// The order of the parts and the data flow.
    pub plan: CompositionPlan,
    /// The calls and values in the prompt.
    pub directives: Arc<Directives>,
}

impl Composition {
    fn compile(file: Option<&CompositionFile>, directives: &Arc<Directives>) -> Result<Self, Failure> {
        let compiled = match file {
            Some(file) => CompositionPlan::compile(file, &directives.calls),
            None => CompositionPlan::compile(&CompositionFile::default(), &directives.calls),
        };
        match compiled {
            Ok(CompiledComposition { plan, .. }) => Ok(Self { plan, directives: Arc::clone(directives) }),
            Err(faults) => {
                let first = faults.first().map(|fault| format!("`{}`: {}", fault.path, fault.message));
                let message = format!("invalid composition: {}", first.unwrap_or_default());
                Err(Failure::module_invalid(message))
            }
        }
    }

    /// Returns this module's node for a graph of modules.
    #[must_use]
    pub fn node(&self, version: &str) -> ModuleNode {
        self.plan.node(version, &self.directives.calls)
    }
}

/// The composition of one module. The prompt is parsed when the module is created, because every run needs to know
/// whether it calls modules. The plan is compiled on first use and shared by all runs.
#[derive(Debug, Clone)]
pub(crate) struct MadeOf {
    pub(crate) directives: Arc<Directives>,
    pub(crate) stands_alone: bool,
    compiled: Arc<OnceLock<Result<Composition, Failure>>>,
}

impl MadeOf {
    pub(crate) fn new(file: Option<&CompositionFile>, prompt: &str) -> Self {
        let directives = Arc::new(directives(prompt));
        let stands_alone = file.is_none() && directives.calls.is_empty();
        Self { directives, stands_alone, compiled: Arc::default() }
    }

    /// Returns the composition; `None` for a module that uses no other modules.
    pub(crate) fn composition(
        &self,
        file: Option<&CompositionFile>,
    ) -> Result<Option<&Composition>, Failure> {
        if self.stands_alone {
            return Ok(None);
        }
        let compiled = self.compiled.get_or_init(|| Composition::compile(file, &self.directives));
        compiled.as_ref().map(Some).map_err(Failure::clone)
    }
}
