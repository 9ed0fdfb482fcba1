//! Which modules call which, judged before anything runs: nothing missing, no circle, not too deep.
//! (COMP-011, COMP-021, COMP-070 to COMP-072)
//! Visits every module and every edge once and keeps its own stack, so neither a diamond nor a chain of ten thousand
//! modules costs more than its size. Loads nothing: modules are added as they are found.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use super::version::VersionRange;
use crate::code::ErrorCode;
use crate::failure::Failure;

/// How deep modules may call modules where the root does not say.
pub const DEFAULT_DEPTH: u64 = 5;
/// Longer paths are shown without their middle.
const SHOWN_NAMES: usize = 12;

/// One module that another one needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// Its name.
    pub name: String,
    /// Which versions will do. A module of another version counts as not there.
    pub range: VersionRange,
    /// Whether the caller can do without it.
    pub optional: bool,
    /// What is used in its place, in any version.
    pub fallback: Option<String>,
}

impl Need {
    /// A module that is needed, in any version.
    #[must_use]
    pub fn of(name: impl Into<String>) -> Self {
        Self { name: name.into(), range: VersionRange::any(), optional: false, fallback: None }
    }
}

/// What the graph has to know of a module.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModuleNode {
    /// Its version.
    pub version: String,
    /// Its own `max_depth`, if it has one.
    pub max_depth: Option<u64>,
    /// What it needs: `requires` first, then calls, in order.
    pub needs: Vec<Need>,
    /// What every run of it runs, each as often as it does.
    pub certain: Vec<Need>,
    /// Whether every run of it asks a model itself.
    pub asks: bool,
}

/// Modules and what they need.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// Every name that was heard of; `None` for a module that is not there, or was not looked for.
    nodes: Vec<(String, Option<ModuleNode>)>,
    places: HashMap<String, usize>,
    /// Names up to here have been handed out by `next_unknown`.
    asked: usize,
}

/// Why a graph cannot run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GraphFault {
    /// Modules that are needed and not there.
    Missing(Vec<Absent>),
    /// Modules that call each other in a circle: the way from the root until a name comes back.
    Circle(Vec<String>),
    /// Modules that call each other too deeply: the longest way below the module that sets the limit.
    TooDeep {
        /// The way down, beginning with that module.
        way: Vec<String>,
        /// How deep is allowed.
        limit: u64,
    },
}

/// A module that is not there, or not in the version that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Absent {
    /// Its name.
    pub name: String,
    /// Who needs it.
    pub needed_by: String,
}

/// A graph that can run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sound {
    /// Every module that can be reached, each after all that it needs; the root is last.
    pub order: Vec<String>,
    /// The depth of the deepest module; the root has 0.
    pub depth: u64,
    /// Modules that are not there and that the root can do without.
    pub absent: Vec<Absent>,
    /// How many model calls a run makes for certain, if nothing fails. What hangs on a condition is not counted.
    pub calls: u64,
}

impl Graph {
    /// A graph that will begin at `root`.
    #[must_use]
    pub fn new(root: &str) -> Self {
        let mut graph = Self::default();
        graph.place(root);
        graph
    }

    /// The next name that was heard of and not handed out yet: look for it, and [`add`](Self::add) what is found.
    pub fn next_unknown(&mut self) -> Option<String> {
        let (name, _) = self.nodes.get(self.asked)?;
        let name = name.clone();
        self.asked += 1;
        Some(name)
    }

    /// Adds a module that was found. A name that is never added is not there.
    pub fn add(&mut self, name: &str, node: ModuleNode) {
        for need in &node.needs {
            self.place(&need.name);
            if let Some(fallback) = &need.fallback {
                self.place(fallback);
            }
        }
        let place = self.place(name);
        if let Some((_, slot)) = self.nodes.get_mut(place) {
            *slot = Some(node);
        }
    }

    fn place(&mut self, name: &str) -> usize {
        match self.places.entry(name.to_owned()) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                let place = self.nodes.len();
                self.nodes.push((name.to_owned(), None));
                *entry.insert(place)
            }
        }
    }

    /// Judges the graph. What is missing is told first, then circles, then depth: a module that is not there says
    /// nothing about what it would call, and a circle has no depth.
    pub fn check(&self) -> Result<Sound, GraphFault> {
        let (fatal, absent) = self.absent();
        if !fatal.is_empty() {
            return Err(GraphFault::Missing(fatal));
        }
        let walk = self.walk()?;
        let root_limit = self.node(0).and_then(|node| node.max_depth).unwrap_or(DEFAULT_DEPTH);
        for place in walk.order.iter().rev() {
            let own = self.node(*place).and_then(|node| node.max_depth);
            let limit = if *place == 0 { root_limit } else { own.unwrap_or(u64::MAX) };
            if walk.height(*place) > limit {
                return Err(GraphFault::TooDeep { way: self.names(&walk.way_down(*place)), limit });
            }
        }
        let calls = self.calls(&walk.order);
        Ok(Sound { order: self.names(&walk.order), depth: walk.height(0), absent, calls })
    }

    /// The certain calls of the root. `order` has every module after all that it needs, so each is counted once, however
    /// often it runs.
    fn calls(&self, order: &[usize]) -> u64 {
        let mut calls = vec![0_u64; self.nodes.len()];
        for place in order {
            let Some(node) = self.node(*place) else { continue };
            let runs = node.certain.iter().filter_map(|need| self.targets(need).into_iter().flatten().next());
            let below = runs.filter_map(|part| calls.get(part));
            let sum = below.fold(u64::from(node.asks), |sum, calls| sum.saturating_add(*calls));
            if let Some(slot) = calls.get_mut(*place) {
                *slot = sum;
            }
        }
        calls.first().copied().unwrap_or_default()
    }

    fn node(&self, place: usize) -> Option<&ModuleNode> {
        self.nodes.get(place).and_then(|(_, node)| node.as_ref())
    }

    fn names(&self, places: &[usize]) -> Vec<String> {
        places.iter().filter_map(|place| self.nodes.get(*place)).map(|(name, _)| name.clone()).collect()
    }

    /// Where a module that fits stands.
    fn found(&self, name: &str, range: &VersionRange) -> Option<usize> {
        let place = *self.places.get(name)?;
        range.matches(&self.node(place)?.version).then_some(place)
    }

    /// The modules that a need can lead to: what is asked for, and what stands in for it.
    fn targets(&self, need: &Need) -> [Option<usize>; 2] {
        let fallback = need.fallback.as_deref().and_then(|name| self.found(name, &VersionRange::any()));
        [self.found(&need.name, &need.range), fallback]
    }

    /// What is not there: first what the root cannot do without, then the rest.
    fn absent(&self) -> (Vec<Absent>, Vec<Absent>) {
        if self.node(0).is_none() {
            let name = self.names(&[0]).pop().unwrap_or_default();
            return (vec![Absent { needed_by: name.clone(), name }], Vec::new());
        }
        let (mut fatal, mut tolerable) = (Vec::new(), Vec::new());
        // Places that must run, and those that may fail because something else takes over.
        let (mut must, mut open, mut may) = (HashSet::from([0]), vec![0], Vec::new());
        while let Some(place) = open.pop() {
            for (need, targets) in self.needs(place) {
                match targets {
                    [None, None] if need.optional => tolerable.push(self.absence(need, place)),
                    [None, None] => fatal.push(self.absence(need, place)),
                    [Some(only), None] | [None, Some(only)] if !need.optional => {
                        if must.insert(only) {
                            open.push(only);
                        }
                    }
                    some => may.extend(some.into_iter().flatten()),
                }
            }
        }
        self.absent_below(may, must, &mut tolerable);
        for list in [&mut fatal, &mut tolerable] {
            list.sort_unstable();
            list.dedup();
        }
        (fatal, tolerable)
    }

    /// What is not there for modules that may fail.
    fn absent_below(&self, mut open: Vec<usize>, mut seen: HashSet<usize>, found: &mut Vec<Absent>) {
        while let Some(place) = open.pop() {
            if !seen.insert(place) {
                continue;
            }
            for (need, targets) in self.needs(place) {
                open.extend(targets.into_iter().flatten());
                if targets == [None, None] {
                    found.push(self.absence(need, place));
                }
            }
        }
    }

    fn needs(&self, place: usize) -> impl Iterator<Item = (&Need, [Option<usize>; 2])> {
        let needs = self.node(place).map(|node| node.needs.as_slice()).unwrap_or_default();
        needs.iter().map(|need| (need, self.targets(need)))
    }

    fn absence(&self, need: &Need, place: usize) -> Absent {
        let needed_by = self.names(&[place]).pop().unwrap_or_default();
        Absent { name: need.name.clone(), needed_by }
    }

    /// Depth first from the root, with a stack of our own.
    fn walk(&self) -> Result<GraphWalk, GraphFault> {
        let mut walk = GraphWalk::new(self.nodes.len());
        let mut stack = vec![Visit::new(0, self.edges(0))];
        walk.enter(0);
        while let Some(visit) = stack.last_mut() {
            let Some(next) = visit.edges.next() else {
                let done = visit.place;
                stack.pop();
                walk.leave(done, stack.last().map(|parent| parent.place));
                continue;
            };
            let place = visit.place;
            match walk.state(next) {
                VisitState::New => {
                    walk.enter(next);
                    stack.push(Visit::new(next, self.edges(next)));
                }
                VisitState::Open => {
                    let mut way: Vec<usize> = stack.iter().map(|visit| visit.place).collect();
                    way.push(next);
                    return Err(GraphFault::Circle(self.names(&way)));
                }
                VisitState::Done => walk.deepen(place, next),
            }
        }
        Ok(walk)
    }

    fn edges(&self, place: usize) -> std::vec::IntoIter<usize> {
        self.needs(place).flat_map(|(_, targets)| targets).flatten().collect::<Vec<_>>().into_iter()
    }
}

struct Visit {
    place: usize,
    edges: std::vec::IntoIter<usize>,
}

impl Visit {
    fn new(place: usize, edges: std::vec::IntoIter<usize>) -> Self {
        Self { place, edges }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VisitState {
    New,
    Open,
    Done,
}

/// What a walk has learnt of each place: its state, and how far the longest way below it goes and where it begins.
struct GraphWalk {
    places: Vec<(VisitState, u64, Option<usize>)>,
    order: Vec<usize>,
}

impl GraphWalk {
    fn new(count: usize) -> Self {
        Self { places: vec![(VisitState::New, 0, None); count], order: Vec::new() }
    }

    fn state(&self, place: usize) -> VisitState {
        self.places.get(place).map_or(VisitState::Done, |(state, _, _)| *state)
    }

    fn height(&self, place: usize) -> u64 {
        self.places.get(place).map_or(0, |(_, height, _)| *height)
    }

    fn enter(&mut self, place: usize) {
        if let Some((state, _, _)) = self.places.get_mut(place) {
            *state = VisitState::Open;
        }
    }

    fn leave(&mut self, place: usize, parent: Option<usize>) {
        if let Some((state, _, _)) = self.places.get_mut(place) {
            *state = VisitState::Done;
        }
        self.order.push(place);
        if let Some(parent) = parent {
            self.deepen(parent, place);
        }
    }

    fn deepen(&mut self, place: usize, child: usize) {
        let through = self.height(child) + 1;
        if let Some((_, height, deepest)) = self.places.get_mut(place)
            && through > *height
        {
            (*height, *deepest) = (through, Some(child));
        }
    }

    fn way_down(&self, place: usize) -> Vec<usize> {
        let below = |place: &usize| self.places.get(*place).and_then(|(_, _, deepest)| *deepest);
        std::iter::successors(Some(place), below).collect()
    }
}

impl GraphFault {
    /// The published code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Missing(_) => ErrorCode::ModuleNotFound,
            Self::Circle(_) => ErrorCode::CircularDependency,
            Self::TooDeep { .. } => ErrorCode::MaxDepthExceeded,
        }
    }

    /// What is wrong, in one line.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Missing(absent) => {
                let first = absent.first().map_or_else(String::new, Absent::message);
                match absent.len() {
                    0 | 1 => first,
                    count => format!("{first}; and {} more", count - 1),
                }
            }
            Self::Circle(way) => format!("modules call each other in a circle: {}", arrows(way)),
            Self::TooDeep { way, limit } => {
                format!("modules call each other more than {limit} deep: {}", arrows(way))
            }
        }
    }

    /// The failure that a caller sees.
    pub fn into_failure(self) -> Failure {
        let failure = Failure::new(self.code(), self.message());
        match self {
            Self::Missing(_) => failure
                .suggest("Run `cogn list` to see which modules there are, and in which version")
                .suggest_remotely("Ask whoever runs this server to add the module"),
            Self::Circle(_) => failure,
            Self::TooDeep { .. } => {
                failure.suggest("Raise `composition.max_depth` of the module that you run")
            }
        }
    }
}

impl Absent {
    /// Who misses what.
    #[must_use]
    pub fn message(&self) -> String {
        let Self { name, needed_by } = self;
        if name == needed_by {
            return format!("module `{name}` is not installed");
        }
        format!(
            "module `{needed_by}` needs a module that is not installed, or not in a matching version: `{name}`"
        )
    }
}

fn arrows(way: &[String]) -> String {
    let half = SHOWN_NAMES / 2;
    match (way.get(..half), way.len().checked_sub(half).and_then(|start| way.get(start..))) {
        (Some(start), Some(end)) if way.len() > SHOWN_NAMES => {
            format!("{} → … → {}", start.join(" → "), end.join(" → "))
        }
        _ => way.join(" → "),
    }
}

#[cfg(test)]
mod tests;
