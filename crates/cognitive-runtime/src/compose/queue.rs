//! Which part may run next. Every part and every connection is looked at once, however the parts depend on each other.

use std::collections::{BTreeMap, BTreeSet};

use cognitive_contract::compose::CompositionPlan;

/// The parts that have not run yet.
pub(crate) struct PartQueue {
    /// How many of those that feed a part are not done, by place.
    blocked: BTreeMap<usize, usize>,
    /// Who waits for a part.
    feeds: BTreeMap<usize, Vec<usize>>,
    /// Where each part stands in the order.
    turns: BTreeMap<usize, usize>,
    /// Those that wait for nothing, by their turn.
    ready: BTreeSet<(usize, usize)>,
}

impl PartQueue {
    /// A queue of parts, in this order where the data leave a choice. What is not in it counts as done.
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

    /// Takes out the first part that waits for nothing any more.
    pub(crate) fn next(&mut self) -> Option<usize> {
        self.ready.pop_first().map(|(_, place)| place)
    }

    /// A part is over, whatever came of it.
    pub(crate) fn done(&mut self, place: usize) {
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
        queue.done(0);
        assert_eq!(queue.next(), None, "`b` is not done");
        queue.done(1);
        assert_eq!((queue.next(), queue.next()), (Some(2), None));
        // What is chosen alone waits for nobody.
        assert_eq!(PartQueue::new(&plan, &[2]).next(), Some(2));
    }
}
