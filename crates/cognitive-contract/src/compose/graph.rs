//! The call graph of modules, checked before a run: no missing modules, no cycle, not too deep. (COMP-011, COMP-021,
//! COMP-070 to COMP-072)
//! Visits every module and every edge once with its own stack. So the cost is linear, even for diamonds or a chain of
//! ten thousand modules. Loads nothing: the caller adds modules as it finds them.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use super::version::VersionRange;
use crate::code::ErrorCode;
use crate::failure::Failure;

/// The default maximum depth of nested modules, if the root sets none. Each level multiplies the calls of a run.
pub const DEFAULT_DEPTH: u64 = 5;
/// Longer paths are shown without their middle.
const SHOWN_NAMES: usize = 12;

/// A dependency on another module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// Its name.
    pub name: String,
    /// The accepted versions. A module of another version counts as missing.
    pub range: VersionRange,
    /// True if the caller can run without it.
    pub optional: bool,
    /// The module to use instead, in any version.
    pub fallback: Option<String>,
}

impl Need {
    /// A required module, in any version.
    #[must_use]
    pub fn required_module(name: impl Into<String>) -> Self {
        Self { name: name.into(), range: VersionRange::any(), optional: false, fallback: None }
    }
}

/// The data about a module that the graph needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModuleNode {
    /// Its version.
    pub version: String,
    /// Its own `max_depth`, if it has one.
    pub max_depth: Option<u64>,
    /// Its dependencies: `requires` first, then calls, in order.
    pub needs: Vec<Need>,
    /// The modules that every run of it runs, each as often as it runs.
    pub certain: Vec<Need>,
    /// True if every run of it calls a model itself.
    pub asks: bool,
}

/// Modules and their dependencies.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// Every known name; `None` for a module that is missing or not looked up yet.
    nodes: Vec<(String, Option<ModuleNode>)>,
    places: HashMap<String, usize>,
    /// The number of names that `next_unknown` has returned.
    asked: usize,
}

/// The reason why a graph cannot run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GraphFault {
    /// Required modules that are missing.
    Missing(Vec<MissingModule>),
    /// Modules that call each other in a cycle: the path from the root to the repeated name.
    Circle(Vec<String>),
    /// A call chain that is too deep: the longest path below the module that sets the limit.
    TooDeep {
        /// The path, starting with that module.
        way: Vec<String>,
        /// The maximum depth.
        limit: u64,
    },
}

/// A module that is missing, or not available in an accepted version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MissingModule {
    /// Its name.
    pub name: String,
    /// The module that needs it.
    pub needed_by: String,
}

/// A graph that can run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sound {
    /// Every reachable module, each after all its dependencies; the root is last.
    pub order: Vec<String>,
    /// The depth of the deepest module; the root has 0.
    pub depth: u64,
    /// Missing modules that the root can run without.
    pub absent: Vec<MissingModule>,
    /// The number of model calls that a run makes for certain, if nothing fails. Conditional calls are not counted.
    pub calls: u64,
}

impl Graph {
    /// Creates a graph with this root.
    #[must_use]
    pub fn new(root: &str) -> Self {
        let mut graph = Self::default();
        graph.place(root);
        graph
    }

    /// Returns the next known name that was not returned before. Look it up, and [`add`](Self::add) the result.
    pub fn next_unknown(&mut self) -> Option<String> {
        let (name, _) = self.nodes.get(self.asked)?;
        let name = name.clone();
        self.asked += 1;
        Some(name)
    }

    /// Adds a module. A name that is never added counts as missing.
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

    /// Checks the graph. Missing modules are reported first, then cycles, then depth: the calls of a missing module are
    /// unknown, and a cycle has no depth.
    pub fn check(&self) -> Result<Sound, GraphFault> {
        let (fatal, absent) = self.missing_modules();
        if !fatal.is_empty() {
            return Err(GraphFault::Missing(fatal));
        }
        let walk = self.walk()?;
        let root_limit = self.node(0).and_then(|node| node.max_depth).unwrap_or(DEFAULT_DEPTH);
        for place in walk.order.iter().rev() {
            let own = self.node(*place).and_then(|node| node.max_depth);
            let limit = if *place == 0 { root_limit } else { own.unwrap_or(u64::MAX) };
            if walk.height(*place) > limit {
                return Err(GraphFault::TooDeep { way: self.names(&walk.deepest_path(*place)), limit });
            }
        }
        let calls = self.calls(&walk.order);
        Ok(Sound { order: self.names(&walk.order), depth: walk.height(0), absent, calls })
    }

    /// Returns the certain calls of the root. `order` has every module after its dependencies, so each sum is computed
    /// once, however often the module runs.
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

    /// Returns the index of a module in an accepted version.
    fn find_index(&self, name: &str, range: &VersionRange) -> Option<usize> {
        let place = *self.places.get(name)?;
        range.matches(&self.node(place)?.version).then_some(place)
    }

    /// Returns the modules that a dependency can use: the module itself and its fallback.
    fn targets(&self, need: &Need) -> [Option<usize>; 2] {
        let fallback = need.fallback.as_deref().and_then(|name| self.find_index(name, &VersionRange::any()));
        [self.find_index(&need.name, &need.range), fallback]
    }

    /// Returns the missing modules: first the required ones, then the optional ones.
    fn missing_modules(&self) -> (Vec<MissingModule>, Vec<MissingModule>) {
        if self.node(0).is_none() {
            let name = self.names(&[0]).pop().unwrap_or_default();
            return (vec![MissingModule { needed_by: name.clone(), name }], Vec::new());
        }
        let (mut fatal, mut tolerable) = (Vec::new(), Vec::new());
        // Modules that must run, and modules that may fail because another one replaces them.
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
        self.collect_missing(may, must, &mut tolerable);
        for list in [&mut fatal, &mut tolerable] {
            list.sort_unstable();
            list.dedup();
        }
        (fatal, tolerable)
    }

    /// Collects the missing dependencies of modules that may fail.
    fn collect_missing(
        &self,
        mut open: Vec<usize>,
        mut seen: HashSet<usize>,
        found: &mut Vec<MissingModule>,
    ) {
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

    fn absence(&self, need: &Need, place: usize) -> MissingModule {
        let needed_by = self.names(&[place]).pop().unwrap_or_default();
        MissingModule { name: need.name.clone(), needed_by }
    }

    /// Walks the graph depth first from the root. Uses its own stack, because recursion could overflow for long chains.
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

/// The state of a walk for each module: its visit state, its height, and the child on its longest path.
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

    fn deepest_path(&self, place: usize) -> Vec<usize> {
        let below = |place: &usize| self.places.get(*place).and_then(|(_, _, deepest)| *deepest);
        std::iter::successors(Some(place), below).collect()
    }
}

impl GraphFault {
    /// Returns the published error code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Missing(_) => ErrorCode::ModuleNotFound,
            Self::Circle(_) => ErrorCode::CircularDependency,
            Self::TooDeep { .. } => ErrorCode::MaxDepthExceeded,
        }
    }

    /// Returns the error message, in one line.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Missing(absent) => {
                let first = absent.first().map_or_else(String::new, MissingModule::message);
                match absent.len() {
                    0 | 1 => first,
                    count => format!("{first}; and {} more", count - 1),
                }
            }
            Self::Circle(way) => format!("modules call each other in a circle: {}", arrows(way)),
            Self::TooDeep { way, limit } => {
                format!("module calls are nested more than {limit} levels deep: {}", arrows(way))
            }
        }
    }

    /// Converts the fault to the failure for the caller.
    pub fn into_failure(self) -> Failure {
        let failure = Failure::new(self.code(), self.message());
        match self {
            Self::Missing(_) => failure
                .suggest("Run `cogn list` to see the installed modules and their versions")
                .suggest_remotely("Ask the server operator to add the module"),
            Self::Circle(_) => failure,
            Self::TooDeep { .. } => {
                failure.suggest("Raise `composition.max_depth` of the module that you run")
            }
        }
    }
}

impl MissingModule {
    /// Names the missing module and the module that needs it.
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
