//! How many schemas judge one and the same value, one beside the other and one after the other.
//! Refuses circles, which would never end, long chains, and fans that a few lines of `allOf` can make endless.

use super::graph::{Graph, Id, PerSchema, Trouble};

/// How many schemas may judge one value. Honest modules stay below a hundred; a few lines of `allOf` that double at
/// each step reach billions.
pub(super) const MOST_JUDGES: i64 = 2_000;

/// How many schemas may hand on one value from each to the next: `$ref` to `allOf` to `$ref` and so on. Honest modules
/// stay below ten, and each step costs stack.
const LONGEST_CHAIN: usize = 32;

/// The schemas in an order in which each comes after all that judge the same value on its behalf.
pub(super) struct Order {
    ids: Vec<Id>,
    ranks: PerSchema<usize>,
    judges: PerSchema<i64>,
}

impl Order {
    /// Finds the order, which exists where no circle does.
    pub(super) fn find(graph: &Graph<'_>) -> Result<Self, Trouble> {
        let mut walk = Walk {
            graph,
            states: PerSchema::new(graph),
            chains: PerSchema::new(graph),
            order: Self { ids: Vec::new(), ranks: PerSchema::new(graph), judges: PerSchema::new(graph) },
        };
        for id in 0..graph.len() {
            walk.enter(id, 0)?;
        }
        Ok(walk.order)
    }

    /// All schemas, the judging ones before those that ask them.
    pub(super) fn ids(&self) -> &[Id] {
        &self.ids
    }

    /// Where a schema stands in the order.
    pub(super) fn rank(&self, id: Id) -> usize {
        self.ranks.at(id)
    }

    /// The schema that stands there.
    pub(super) fn ranked(&self, rank: usize) -> Option<Id> {
        self.ids.get(rank).copied()
    }

    /// How many schemas judge a value that this schema judges.
    pub(super) fn judges(&self, id: Id) -> i64 {
        self.judges.at(id)
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    New,
    Open,
    Done,
}

struct Walk<'g, 'a> {
    graph: &'g Graph<'a>,
    states: PerSchema<State>,
    /// The longest chain that begins at a schema.
    chains: PerSchema<usize>,
    order: Order,
}

impl Walk<'_, '_> {
    /// Goes no deeper than the longest chain allowed, so that the walk itself needs little stack.
    fn enter(&mut self, id: Id, above: usize) -> Result<(), Trouble> {
        match self.states.at(id) {
            State::Done => return Ok(()),
            State::Open => {
                let message = "leads back to itself without reading any further into the value";
                return Err(Trouble::new(id, message));
            }
            State::New if above >= LONGEST_CHAIN => return Err(too_long(id)),
            State::New => {}
        }
        self.states.set(id, State::Open);
        let (mut judges, mut chain) = (1_i64, 0);
        for next in self.graph.same_value(id) {
            self.enter(next, above + 1)?;
            judges += self.order.judges.at(next);
            chain = chain.max(self.chains.at(next) + 1);
        }
        if chain > LONGEST_CHAIN {
            return Err(too_long(id));
        }
        if judges > MOST_JUDGES {
            return Err(Trouble::new(id, format!("more than {MOST_JUDGES} schemas would judge one value")));
        }
        self.states.set(id, State::Done);
        self.chains.set(id, chain);
        self.order.judges.set(id, judges);
        self.order.ranks.set(id, self.order.ids.len());
        self.order.ids.push(id);
        Ok(())
    }
}

fn too_long(id: Id) -> Trouble {
    let message = format!("more than {LONGEST_CHAIN} schemas hand on one value from each to the next");
    Trouble::new(id, message)
}
