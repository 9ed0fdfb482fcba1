//! What a module is made of, compiled once per loaded module: the plan of its `composition` block and the calls of its
//! prompt. Judges one module alone; whether its parts exist is for the graph to say.

use std::sync::{Arc, OnceLock};

use super::calls::{Directives, directives};
use super::compile::CompiledComposition;
use super::graph::ModuleNode;
use super::plan::CompositionPlan;
use crate::failure::Failure;
use crate::manifest::CompositionFile;

/// A module that is made of modules.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Composition {
    /// What runs when, and what flows where.
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
                let message = format!("the composition is wrong: {}", first.unwrap_or_default());
                Err(Failure::module_invalid(message))
            }
        }
    }

    /// The module in a graph of modules.
    #[must_use]
    pub fn node(&self, version: &str) -> ModuleNode {
        self.plan.node(version, &self.directives.calls)
    }
}

/// The composition of one module. The prompt is read when the module is made, because every run asks whether it calls
/// modules; the plan is compiled when it is first asked for, and shared by all runs.
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

    /// The composition; `None` for a module that is made of itself alone.
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
