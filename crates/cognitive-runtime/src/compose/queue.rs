//! Decides which part may run next. Looks at every part and every connection once, however the parts depend
//! on each other.

use std::collections::{BTreeMap, BTreeSet};

use cognitive_contract::compose::CompositionPlan;

/// The parts that have not run yet.
pub(crate) struct PartQueue {
    /// The number of unfinished parts that feed a part, by position.
    blocked: BTreeMap<usize, usize>,
    /// The parts that wait for a part.
    feeds: BTreeMap<usize, Vec<usize>>,
    /// The turn of each part in the given order.
    turns: BTreeMap<usize, usize>,
    /// The parts that wait for nothing, by turn.
    ready: BTreeSet<(usize, usize)>,
}

impl PartQueue {
    /// A queue of parts, in this order where the data flow leaves a choice. Parts that are not in `order`
    /// count as done.
    pub(crate) fn new(plan: &CompositionPlan, order: &[usize]) -> Self {
        let turns: BTreeMap<usize, usize> =
            order.iter().enumerate().map(|(turn, place)| (*place, turn)).collect();
        let mut queue =
            Self { blocked: BTreeMap::new(), feeds: BTreeMap::new(), turns, ready: BTreeSet::new() };
        for place in order {
            let after = plan.parts.get(*place).map(|part| part.after.as_slice()).unwrap_or_default();
            let waits_for: Vec<usize> =
                after.iter().copied().filter(|before| queue.turns.contains_key(before)).collect();
            queue.blocked.insert(*place, waits_for.len());
            for before in &waits_for {
                queue.feeds.entry(*before).or_default().push(*place);
            }
            if waits_for.is_empty() {
                queue.free(*place);
            }
        }
        queue
    }

    /// Removes the first part that waits for nothing.
    pub(crate) fn next(&mut self) -> Option<usize> {
        self.ready.pop_first().map(|(_, place)| place)
    }

    /// Marks a part as done, whatever its outcome.
    pub(crate) fn mark_done(&mut self, place: usize) {
        for next in self.feeds.remove(&place).unwrap_or_default() {
            let left = self.blocked.get_mut(&next).map_or(0, |count| {
                *count = count.saturating_sub(1);
                *count
            });
            if left == 0 {
                self.free(next);
            }
        }
    }

    fn free(&mut self, place: usize) {
        let turn = self.turns.get(&place).copied().unwrap_or_default();
        self.ready.insert((turn, place));
    }
}

#[cfg(test)]
mod tests {
    use cognitive_contract::manifest::CompositionFile;
    use serde_json::{Value, json};

    use super::*;

    fn plan(file: Value) -> CompositionPlan {
        let file: CompositionFile = serde_json::from_value(file).unwrap();
        CompositionPlan::compile(&file, &[]).unwrap().plan
    }

    // COMP-002: each after all that feed it, otherwise in order.
    #[test]
    fn comp_002_a_part_comes_when_all_that_feed_it_are_done() {
        let requires = ["a", "b", "c", "d"].map(|name| json!({ "name": name }));
        let dataflow = json!([{ "from": ["a", "b"], "to": "c" }, { "from": "input", "to": "d" }]);
        let plan = plan(json!({ "requires": requires, "dataflow": dataflow }));
        let mut queue = PartQueue::new(&plan, &[0, 1, 2, 3]);
        assert_eq!((queue.next(), queue.next(), queue.next()), (Some(0), Some(1), Some(3)));
        queue.mark_done(0);
        assert_eq!(queue.next(), None, "`b` is not done");
        queue.mark_done(1);
        assert_eq!((queue.next(), queue.next()), (Some(2), None));
        // A part that is queued alone waits for no other.
        assert_eq!(PartQueue::new(&plan, &[2]).next(), Some(2));
    }
}
