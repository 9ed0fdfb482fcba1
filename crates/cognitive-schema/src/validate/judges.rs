//! Counts the schemas that validate one value, both in parallel and in sequence.
//! Refuses cycles, which would never end, long chains, and combinations that a few lines of `allOf` can multiply
//! without bound.

use super::graph::{Id, PerSchema, SchemaGraph, SchemaRefusal};

/// The most schemas that may validate one value. Real modules stay below a hundred; a few lines of `allOf` that double
/// at each step reach billions.
pub(super) const MAX_JUDGES: i64 = 2_000;

/// The longest chain of schemas that pass on the same value: `$ref` to `allOf` to `$ref` and so on. Real modules stay
/// below ten, and each step costs stack.
const MAX_CHAIN_LENGTH: usize = 32;

/// An order of the schemas in which each comes after all schemas that it calls for the same value.
pub(super) struct JudgeOrder {
    ids: Vec<Id>,
    ranks: PerSchema<usize>,
    judges: PerSchema<i64>,
}

impl JudgeOrder {
    /// Finds the order. It exists only without cycles.
    pub(super) fn find(graph: &SchemaGraph<'_>) -> Result<Self, SchemaRefusal> {
        let mut walk = JudgeWalk {
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

    /// All schemas, each after the schemas that it calls.
    pub(super) fn ids(&self) -> &[Id] {
        &self.ids
    }

    /// The position of a schema in the order.
    pub(super) fn rank(&self, id: Id) -> usize {
        self.ranks.at(id)
    }

    /// The schema at that position.
    pub(super) fn schema_at(&self, rank: usize) -> Option<Id> {
        self.ids.get(rank).copied()
    }

    /// The number of schemas that validate a value of this schema, itself included.
    pub(super) fn judges(&self, id: Id) -> i64 {
        self.judges.at(id)
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum JudgeState {
    #[default]
    New,
    Open,
    Done,
}

struct JudgeWalk<'g, 'a> {
    graph: &'g SchemaGraph<'a>,
    states: PerSchema<JudgeState>,
    /// The longest chain that starts at a schema.
    chains: PerSchema<usize>,
    order: JudgeOrder,
}

impl JudgeWalk<'_, '_> {
    /// Recurses no deeper than the longest chain allowed, so that the walk itself needs little stack.
    fn enter(&mut self, id: Id, above: usize) -> Result<(), SchemaRefusal> {
        match self.states.at(id) {
            JudgeState::Done => return Ok(()),
            JudgeState::Open => {
                let message = "refers to itself without descending into the value";
                return Err(SchemaRefusal::new(id, message));
            }
            JudgeState::New if above >= MAX_CHAIN_LENGTH => return Err(too_long(id)),
            JudgeState::New => {}
        }
        self.states.set(id, JudgeState::Open);
        let (mut judges, mut chain) = (1_i64, 0);
        for next in self.graph.same_value(id) {
            self.enter(next, above + 1)?;
            judges += self.order.judges.at(next);
            chain = chain.max(self.chains.at(next) + 1);
        }
        if chain > MAX_CHAIN_LENGTH {
            return Err(too_long(id));
        }
        if judges > MAX_JUDGES {
            return Err(SchemaRefusal::new(
                id,
                format!("more than {MAX_JUDGES} schemas would check the same value"),
            ));
        }
        self.states.set(id, JudgeState::Done);
        self.chains.set(id, chain);
        self.order.judges.set(id, judges);
        self.order.ranks.set(id, self.order.ids.len());
        self.order.ids.push(id);
        Ok(())
    }
}

fn too_long(id: Id) -> SchemaRefusal {
    let message =
        format!("a chain of more than {MAX_CHAIN_LENGTH} references leads to the schema of one value");
    SchemaRefusal::new(id, message)
}
