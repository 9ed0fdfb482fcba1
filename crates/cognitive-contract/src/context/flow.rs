//! Context among modules that call modules. The mode of the calling module governs its children: `main` shares the
//! context, `fork` gives each child a copy. Merges nothing: an update replaces the whole value of its type.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::manifest::ContextMode;

/// The context of one module during its run.
#[derive(Debug, Clone)]
pub struct ContextFlow {
    mode: ContextMode,
    context: Map<String, Value>,
    changed: BTreeSet<String>,
}

impl ContextFlow {
    /// Starts with the context given to the module, and the mode for its children.
    #[must_use]
    pub fn new(mode: ContextMode, context: Map<String, Value>) -> Self {
        Self { mode, context, changed: BTreeSet::new() }
    }

    /// Returns the context that the module sees now.
    #[must_use]
    pub fn context(&self) -> &Map<String, Value> {
        &self.context
    }

    /// Returns the copy that a child starts with. Children that run in parallel all start with the same copy.
    #[must_use]
    pub fn handed_down(&self) -> Map<String, Value> {
        self.context.clone()
    }

    /// Applies the updates of a finished child under `main`, and ignores them under `fork`. Parallel children report in
    /// the order of their declaration; the last one wins.
    pub fn child_done(&mut self, updates: Map<String, Value>) {
        if self.mode == ContextMode::Main {
            self.update(updates);
        }
    }

    /// Applies the context that the module itself emits.
    pub fn update(&mut self, updates: Map<String, Value>) {
        for (kind, value) in updates {
            self.changed.insert(kind.clone());
            self.context.insert(kind, value);
        }
    }

    /// Returns the updates for the module's caller: its own, and under `main` also those of its children.
    #[must_use]
    pub fn into_updates(self) -> Map<String, Value> {
        let Self { context, changed, .. } = self;
        context.into_iter().filter(|(kind, _)| changed.contains(kind)).collect()
    }
}

/// Filters the updates from a module's children for the module's caller: only declared types are passed on. (CTX-021)
#[must_use]
pub fn handed_on(mut updates: Map<String, Value>, declared: &[&str]) -> Map<String, Value> {
    updates.retain(|kind, _| declared.contains(&kind.as_str()));
    updates
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn ctx_050_051_main_shares_and_fork_copies() {
        for (mode, after) in
            [(ContextMode::Main, json!({ "s": 2, "t": 9 })), (ContextMode::Fork, json!({ "s": 1 }))]
        {
            let mut parent = ContextFlow::new(mode, map(json!({ "s": 1 })));
            assert_eq!(parent.handed_down(), map(json!({ "s": 1 })));
            parent.child_done(map(json!({ "s": 2, "t": 9 })));
            assert_eq!(parent.handed_down(), map(after.clone()), "the next child");
            assert_eq!(parent.context(), &map(after));
        }
    }

    // CTX-052: parent fork, child main: the parent is unaffected, the child shares with its own children.
    #[test]
    fn ctx_052_the_caller_governs_its_children() {
        let mut parent = ContextFlow::new(ContextMode::Fork, map(json!({ "s": 1 })));
        let mut child = ContextFlow::new(ContextMode::Main, parent.handed_down());
        child.child_done(map(json!({ "s": 2 })));
        child.update(map(json!({ "own": 3 })));
        let updates = child.into_updates();
        assert_eq!(updates, map(json!({ "s": 2, "own": 3 })));
        parent.child_done(updates);
        assert_eq!(parent.context(), &map(json!({ "s": 1 })));
        assert!(parent.into_updates().is_empty());

        // The reverse: the grandchild's update stays with the child, and the child's own update is shared.
        let mut parent = ContextFlow::new(ContextMode::Main, map(json!({ "s": 1 })));
        let mut child = ContextFlow::new(ContextMode::Fork, parent.handed_down());
        child.child_done(map(json!({ "s": 2 })));
        child.update(map(json!({ "own": 3 })));
        parent.child_done(child.into_updates());
        assert_eq!(parent.context(), &map(json!({ "s": 1, "own": 3 })));
    }
}
