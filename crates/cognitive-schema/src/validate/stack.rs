//! Bounds the stack that the recursive validator can use, both while it validates a value and while it compiles a
//! schema.
//! Refuses schemas that would not fit, because a stack overflow ends the process.

use super::graph::{Edge, Id, PerSchema, SchemaGraph, SchemaRefusal, SchemaWay};
use super::judges::JudgeOrder;
use super::limits::MAX_DEPTH;

/// Bytes of stack for the validator. Server threads have 2 MiB, which other frames share.
const MAX_STACK: u32 = 1_280 << 10;

/// References that the validator follows on the stack while it compiles; it defers the later ones.
const NESTED_REFERENCES: usize = 9;

/// Finds a schema that would make the validator use too much stack.
pub(super) fn check(graph: &SchemaGraph<'_>, order: &JudgeOrder) -> Result<(), SchemaRefusal> {
    let judging = "checking a deeply nested value would take too many steps from here";
    longest(graph, order.ids().iter().copied(), MAX_DEPTH, judging, |edge| Cost {
        bytes: while_judging(edge.way),
        counts: !edge.way.is_same_value(),
    })?;
    // A schema has a lower number than the schemas inside it, so descending order visits inner schemas first.
    let compiling = "the schemas and the references between them nest too deeply here";
    longest(graph, (0..graph.len()).rev(), NESTED_REFERENCES, compiling, |edge| Cost {
        bytes: while_compiling(edge.way),
        counts: edge.way == SchemaWay::Reference,
    })
}

struct Cost {
    bytes: u32,
    /// True for steps whose number is limited.
    counts: bool,
}

/// Finds the costliest path from each schema with at most `most` counted steps. `ids` must list each schema after those
/// that it reaches by steps that do not count.
fn longest<'a>(
    graph: &SchemaGraph<'a>,
    ids: impl Iterator<Item = Id> + Clone,
    most: usize,
    message: &str,
    cost: impl Fn(&Edge<'a>) -> Cost,
) -> Result<(), SchemaRefusal> {
    let mut before = PerSchema::new(graph);
    for _ in 0..most {
        let mut now: PerSchema<u32> = before.clone();
        let mut is_longer = false;
        for id in ids.clone() {
            let onward = graph.edges(id).iter().map(|edge| {
                let cost = cost(edge);
                cost.bytes + if cost.counts { before.at(edge.to) } else { now.at(edge.to) }
            });
            let bytes = onward.max().unwrap_or(0);
            if bytes > MAX_STACK {
                return Err(SchemaRefusal::new(id, message));
            }
            is_longer |= bytes != before.at(id);
            now.set(id, bytes);
        }
        before = now;
        if !is_longer {
            break;
        }
    }
    Ok(())
}

// Measured in a debug build, where frames are about three times as large as in a release build, and rounded up.

fn while_judging(way: SchemaWay<'_>) -> u32 {
    match way {
        SchemaWay::Reference => 1_200,
        // Preparation may wrap a branch in another schema (see `extensible`).
        SchemaWay::AnyOf => 1_500,
        SchemaWay::Also => 800,
        SchemaWay::OneOf
        | SchemaWay::Member(_)
        | SchemaWay::AnyMember
        | SchemaWay::RestMembers
        | SchemaWay::Name => 2_800,
        SchemaWay::Item(_) | SchemaWay::AnyItem | SchemaWay::RestItems => 1_400,
    }
}

fn while_compiling(way: SchemaWay<'_>) -> u32 {
    match way {
        SchemaWay::Reference => 8_000,
        SchemaWay::OneOf | SchemaWay::AnyOf => 12_500,
        SchemaWay::Member(_) | SchemaWay::AnyMember | SchemaWay::RestMembers => 11_500,
        SchemaWay::Also
        | SchemaWay::Name
        | SchemaWay::Item(_)
        | SchemaWay::AnyItem
        | SchemaWay::RestItems => 6_000,
    }
}
