//! Bounds how the work grows with the depth of a value.
//!
//! A schema may contain itself, but not twice at the same location. A tree whose `children` are trees is fine, and so
//! are `left` and `right`: each child is validated once. Two branches of one `oneOf` that both recurse through the same
//! member are refused. Each child would be validated twice, each grandchild four times, and a value thirty levels deep
//! a billion times. Without recursion, branches multiply only as far as the schemas nest, and the product has a limit.
//!
//! Alternatives with different required constants, such as `"type": "row"` and `"type": "column"`, count as one,
//! because no value matches both. Members that `patternProperties` names count as every member, since patterns are not
//! compared with names.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::graph::{Id, PerSchema, SchemaGraph, SchemaRefusal, SchemaWay};
use super::judges::{JudgeOrder, MAX_JUDGES};
use super::limits::MAX_DEPTH;

/// The most steps that this check itself may take. A real module needs a few hundred.
const MAX_STEPS: usize = 2_000_000;

/// A schema applies another schema to a part of its value, `times` over.
struct SentPart<'a> {
    by: Id,
    way: SchemaWay<'a>,
    to: Id,
    times: i64,
}

/// Finds a schema whose work grows too fast with the depth of the value.
pub(super) fn check(graph: &SchemaGraph<'_>, order: &JudgeOrder) -> Result<(), SchemaRefusal> {
    let mut reader = RecursionReader { graph, order, steps: 0 };
    let given = reader.all()?;
    let groups = Groups::find(graph, &given);
    let mut growth = Growth {
        order,
        rests: reader.fallback_schemas(),
        given: &given,
        groups: &groups,
        judges: PerSchema::new(graph),
        heights: PerSchema::new(graph),
    };
    groups.members.iter().enumerate().try_for_each(|(group, members)| growth.measure(group, members))
}

/// For each schema, the schemas of the members and items that it does not name.
struct FallbackSchemas {
    members: PerSchema<Option<Id>>,
    items: PerSchema<Option<Id>>,
}

/// The parts that a schema passes to other schemas. References are followed to their end.
struct AppliedSchemas<'a> {
    /// Passed in every case.
    always: Vec<SentPart<'a>>,
    /// Passed in one of several exclusive cases.
    cases: Vec<Vec<SentPart<'a>>>,
    /// Every schema that receives a part.
    targets: Vec<Id>,
}

type AllGiven<'a> = BTreeMap<Id, AppliedSchemas<'a>>;

struct RecursionReader<'g, 'a> {
    graph: &'g SchemaGraph<'a>,
    order: &'g JudgeOrder,
    steps: usize,
}

impl<'a> RecursionReader<'_, 'a> {
    fn all(&mut self) -> Result<AllGiven<'a>, SchemaRefusal> {
        let mut is_asked = PerSchema::new(self.graph);
        let mut heads = PerSchema::new(self.graph);
        for edge in (0..self.graph.len()).flat_map(|id| self.graph.edges(id)) {
            if edge.way.is_same_value() {
                is_asked.set(edge.to, true);
            } else {
                heads.set(self.end_of(edge.to), true);
            }
        }
        // A section, or a definition that nothing uses.
        for id in (0..self.graph.len()).filter(|id| !is_asked.at(*id)) {
            heads.set(self.end_of(id), true);
        }
        let heads = (0..self.graph.len()).filter(|id| heads.at(*id));
        heads.map(|id| Ok((id, self.applied_schemas(id)?))).collect()
    }

    fn fallback_schemas(&self) -> FallbackSchemas {
        let mut rests =
            FallbackSchemas { members: PerSchema::new(self.graph), items: PerSchema::new(self.graph) };
        for (id, edge) in
            (0..self.graph.len()).flat_map(|id| self.graph.edges(id).iter().map(move |edge| (id, edge)))
        {
            match edge.way {
                SchemaWay::RestMembers => rests.members.set(id, Some(self.end_of(edge.to))),
                SchemaWay::RestItems => rests.items.set(id, Some(self.end_of(edge.to))),
                _ => {}
            }
        }
        rests
    }

    /// The schema at the end of a chain of references. The chain ends, because `JudgeOrder` has refused cycles.
    fn end_of(&self, mut id: Id) -> Id {
        while let [edge] = self.graph.edges(id)
            && edge.way == SchemaWay::Reference
        {
            id = edge.to;
        }
        id
    }

    fn applied_schemas(&mut self, head: Id) -> Result<AppliedSchemas<'a>, SchemaRefusal> {
        let cases = self.cases(head);
        let always = self.sent_parts(head, &cases)?;
        let cases: Vec<Vec<SentPart<'a>>> =
            cases.into_iter().map(|case| self.sent_parts(case, &HashSet::new())).collect::<Result<_, _>>()?;
        let targets = always.iter().chain(cases.iter().flatten()).map(|sent| sent.to).collect();
        Ok(AppliedSchemas { always, cases, targets })
    }

    /// The alternatives of a schema that differ in a required constant.
    fn cases(&self, head: Id) -> HashSet<Id> {
        let alternatives = |way| self.graph.edges(head).iter().filter(move |edge| edge.way == way);
        let way =
            if alternatives(SchemaWay::OneOf).next().is_some() { SchemaWay::OneOf } else { SchemaWay::AnyOf };
        let tags = |id: Id| self.graph.tags(self.end_of(id));
        let Some((tag, _)) = alternatives(way).find_map(|edge| tags(edge.to).next()) else {
            return HashSet::new();
        };
        let mut said = HashSet::new();
        let mut is_new =
            |id: Id| tags(id).find(|(name, _)| *name == tag).is_some_and(|(_, text)| said.insert(text));
        alternatives(way).map(|edge| edge.to).filter(|id| is_new(*id)).collect()
    }

    /// Visits all schemas that validate the same value as `head`, each after all its callers. Skips the schemas in
    /// `apart`.
    fn sent_parts(&mut self, head: Id, apart: &HashSet<Id>) -> Result<Vec<SentPart<'a>>, SchemaRefusal> {
        let mut sent = Vec::new();
        let mut waiting = BTreeMap::from([(self.order.rank(head), 1)]);
        while let Some((rank, times)) = waiting.pop_last() {
            let Some(by) = self.order.schema_at(rank) else { continue };
            let edges = self.graph.edges(by);
            self.steps += 1 + edges.len();
            if self.steps > MAX_STEPS {
                return Err(SchemaRefusal::new(head, "too many schemas refer to each other here"));
            }
            for edge in edges {
                if edge.way.is_same_value() {
                    if by == head && apart.contains(&edge.to) {
                        continue;
                    }
                    *waiting.entry(self.order.rank(edge.to)).or_default() += times;
                } else if edge.way != SchemaWay::Name {
                    // A member name has no parts, so the search ends there.
                    sent.push(SentPart { by, way: edge.way, to: self.end_of(edge.to), times });
                }
            }
        }
        Ok(sent)
    }
}

/// Schemas that lead to each other. Each group comes after all groups that it leads to.
struct Groups {
    members: Vec<Vec<Id>>,
    of: PerSchema<usize>,
}

impl Groups {
    /// Runs Tarjan's algorithm with an explicit stack instead of recursion.
    fn find(graph: &SchemaGraph<'_>, given: &AllGiven<'_>) -> Self {
        let mut search = RecursionSearch {
            given,
            next: 1,
            numbers: PerSchema::new(graph),
            lowest: PerSchema::new(graph),
            open: Vec::new(),
            is_open: PerSchema::new(graph),
            groups: Self { members: Vec::new(), of: PerSchema::new(graph) },
        };
        for head in given.keys() {
            search.from(*head);
        }
        search.groups
    }
}

struct RecursionSearch<'s, 'a> {
    given: &'s AllGiven<'a>,
    next: usize,
    /// The visit number of a schema; zero before the visit.
    numbers: PerSchema<usize>,
    lowest: PerSchema<usize>,
    open: Vec<Id>,
    is_open: PerSchema<bool>,
    groups: Groups,
}

impl RecursionSearch<'_, '_> {
    fn from(&mut self, head: Id) {
        if self.numbers.at(head) != 0 {
            return;
        }
        self.meet(head);
        let mut path = vec![(head, 0)];
        while let Some((id, done)) = path.pop() {
            let next = self.given.get(&id).and_then(|given| given.targets.get(done)).copied();
            match next {
                Some(next) if self.numbers.at(next) == 0 => {
                    self.meet(next);
                    path.extend([(id, done), (next, 0)]);
                }
                Some(next) => {
                    if self.is_open.at(next) {
                        self.lower(id, self.lowest.at(next));
                    }
                    path.push((id, done + 1));
                }
                None => self.leave(id),
            }
        }
    }

    fn meet(&mut self, id: Id) {
        self.numbers.set(id, self.next);
        self.lowest.set(id, self.next);
        self.next += 1;
        self.open.push(id);
        self.is_open.set(id, true);
    }

    fn lower(&mut self, id: Id, to: usize) {
        self.lowest.set(id, self.lowest.at(id).min(to));
    }

    fn leave(&mut self, id: Id) {
        if self.lowest.at(id) != self.numbers.at(id) {
            return;
        }
        let mut members = Vec::new();
        while let Some(member) = self.open.pop() {
            self.is_open.set(member, false);
            self.groups.of.set(member, self.groups.members.len());
            members.push(member);
            if member == id {
                break;
            }
        }
        self.groups.members.push(members);
    }
}

struct Growth<'g, 'a> {
    order: &'g JudgeOrder,
    rests: FallbackSchemas,
    given: &'g AllGiven<'a>,
    groups: &'g Groups,
    /// The number of schemas that validate any one value at or below a value of this schema.
    judges: PerSchema<i64>,
    /// The number of levels below a value that a schema still has rules for.
    heights: PerSchema<usize>,
}

impl Growth<'_, '_> {
    fn measure(&mut self, group: usize, members: &[Id]) -> Result<(), SchemaRefusal> {
        let leads_back = members.iter().any(|id| self.targets(*id).any(|to| self.is_in(to, group)));
        let (mut here, mut below) = (0, 0);
        let mut height = 0;
        for id in members {
            if leads_back && self.busiest(*id, |to| i64::from(self.is_in(to, group))) > 1 {
                let message = "more than one branch refers back to this schema for the same member \
                               or item, so the work would multiply at each level";
                return Err(SchemaRefusal::new(*id, message));
            }
            here = here.max(self.order.judges(*id));
            below = below.max(self.busiest(*id, |to| self.load(to, group, leads_back)));
            let heights = self.targets(*id).map(|to| self.heights.at(to) + 1);
            height = heights.max().unwrap_or(0).max(height);
        }
        // A recursive group validates a value once more for every level above that passed a part down.
        let judges = if leads_back { here + below } else { here.max(below) };
        if let Some(first) = members.first().filter(|_| judges > MAX_JUDGES) {
            let message = format!("more than {MAX_JUDGES} schemas would check one value below this one");
            return Err(SchemaRefusal::new(*first, message));
        }
        for id in members {
            self.judges.set(*id, judges);
            self.heights.set(*id, if leads_back { MAX_DEPTH } else { height.min(MAX_DEPTH) });
        }
        Ok(())
    }

    fn targets(&self, id: Id) -> impl Iterator<Item = Id> {
        self.given.get(&id).into_iter().flat_map(|given| given.targets.iter().copied())
    }

    fn is_in(&self, id: Id, group: usize) -> bool {
        self.groups.of.at(id) == group
    }

    /// The number of validations that a schema outside the group adds to one value. A recursive group adds one at every
    /// level, and each has effect for as many levels as it has rules for.
    fn load(&self, to: Id, group: usize, leads_back: bool) -> i64 {
        if self.is_in(to, group) {
            return 0;
        }
        let levels = if leads_back { (self.heights.at(to) + 1).min(MAX_DEPTH) } else { 1 };
        self.judges.at(to) * i64::try_from(levels).unwrap_or(i64::MAX)
    }

    /// The largest sum of `load` for any one member or item.
    fn busiest(&self, id: Id, load: impl Fn(Id) -> i64) -> i64 {
        let Some(AppliedSchemas { always, cases, .. }) = self.given.get(&id) else { return 0 };
        let in_cases = cases.iter().map(|case| self.highest_load(always.iter().chain(case), &load));
        in_cases.max().unwrap_or_else(|| self.highest_load(always.iter(), &load))
    }

    fn highest_load<'s>(
        &self,
        sent: impl Iterator<Item = &'s SentPart<'s>>,
        load: impl Fn(Id) -> i64,
    ) -> i64 {
        let (mut any_member, mut any_item) = (0, 0);
        let mut certain: HashMap<SchemaWay<'_>, i64> = HashMap::new();
        for SentPart { by, way, to, times } in sent {
            let load_of = |to: Id| load(to) * times;
            match way {
                SchemaWay::AnyMember | SchemaWay::RestMembers => any_member += load_of(*to),
                SchemaWay::AnyItem | SchemaWay::RestItems => any_item += load_of(*to),
                certain_way => {
                    // A named member or item does not also go to the rest schema of the same schema.
                    let rest = if matches!(way, SchemaWay::Item(_)) {
                        &self.rests.items
                    } else {
                        &self.rests.members
                    };
                    let spared = rest.at(*by).map_or(0, load_of);
                    *certain.entry(*certain_way).or_default() += load_of(*to) - spared;
                }
            }
        }
        let certain = certain.into_iter().map(|(way, more)| match way {
            SchemaWay::Item(_) => any_item + more,
            _ => any_member + more,
        });
        certain.max().unwrap_or(0).max(any_member).max(any_item)
    }
}
