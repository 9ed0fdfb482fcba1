//! Context among modules that call modules. The mode of the calling module governs its children: `main` shares the
//! context, `fork` gives each child a copy. Merges nothing: an update replaces the whole value of its type.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::manifest::ContextMode;

/// The context of one module during its run. Each update belongs to the turn of the child that made it: its place in
/// an order that does not depend on time. (D-28)
#[derive(Debug, Clone)]
pub struct ContextFlow {
    mode: ContextMode,
    context: Map<String, Value>,
    updates: BTreeMap<usize, Map<String, Value>>,
}

impl ContextFlow {
    /// Starts with the context given to the module, and the mode for its children.
    #[must_use]
    pub fn new(mode: ContextMode, context: Map<String, Value>) -> Self {
        Self { mode, context, updates: BTreeMap::new() }
    }

    /// Returns the copy that a child starts with: the context of the module, and the updates of the turns that the
    /// child follows.
    #[must_use]
    pub fn child_context(&self, follows: impl Fn(usize) -> bool) -> Map<String, Value> {
        let mut context = self.context.clone();
        for (_, updates) in self.updates.iter().filter(|(turn, _)| follows(**turn)) {
            context.extend(updates.clone());
        }
        context
    }

    /// Keeps the updates of a finished child under `main`, and ignores them under `fork`.
    pub fn child_done(&mut self, turn: usize, updates: Map<String, Value>) {
        if self.mode == ContextMode::Main {
            self.updates.insert(turn, updates);
        }
    }

    /// Returns the updates for the module's caller. For the same type, the last turn wins.
    #[must_use]
    pub fn into_updates(self) -> Map<String, Value> {
        self.updates.into_values().flatten().collect()
    }
}

/// Splits the updates from a module's children for the module's caller. The result of the module has only the types
/// that it declares; the others reach only the modules that share the context above it. (CTX-021, D-28)
#[must_use]
pub fn split_updates(
    updates: Map<String, Value>,
    declared: &[&str],
) -> (Map<String, Value>, Map<String, Value>) {
    updates.into_iter().partition(|(kind, _)| declared.contains(&kind.as_str()))
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
            assert_eq!(parent.child_context(|_| true), map(json!({ "s": 1 })));
            parent.child_done(0, map(json!({ "s": 2, "t": 9 })));
            assert_eq!(parent.child_context(|_| true), map(after), "the next child");
            assert_eq!(parent.child_context(|_| false), map(json!({ "s": 1 })), "a child beside it");
        }
    }

    // D-28: the order of the turns decides, and not the order in which the children end.
    #[test]
    fn d_28_the_last_turn_wins() {
        let mut flow = ContextFlow::new(ContextMode::Main, Map::new());
        flow.child_done(1, map(json!({ "s": 1 })));
        flow.child_done(0, map(json!({ "s": 0, "t": 0 })));
        assert_eq!(flow.child_context(|turn| turn == 0), map(json!({ "s": 0, "t": 0 })));
        assert_eq!(flow.into_updates(), map(json!({ "s": 1, "t": 0 })));
    }

    // CTX-052: a fork above keeps what its children share among themselves.
    #[test]
    fn ctx_052_the_caller_governs_its_children() {
        let mut child = ContextFlow::new(ContextMode::Main, map(json!({ "s": 1 })));
        child.child_done(0, map(json!({ "s": 2 })));
        let mut parent = ContextFlow::new(ContextMode::Fork, map(json!({ "s": 1 })));
        parent.child_done(0, child.into_updates());
        assert_eq!(parent.child_context(|_| true), map(json!({ "s": 1 })));
        assert!(parent.into_updates().is_empty());
    }
}
