//! Tests with hand-written, very long and random graphs. The random ones are compared with an independent check.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::*;

/// Parses lines such as `a: b c`; a name without a line is missing.
fn graph(root: &str, lines: &[&str]) -> Graph {
    let mut graph = Graph::new(root);
    for line in lines {
        let (name, needs) = line.split_once(':').unwrap();
        let needs = needs.split_whitespace().map(Need::required_module).collect();
        graph.add(name, ModuleNode { needs, ..ModuleNode::default() });
    }
    graph
}

fn circle(graph: &Graph) -> String {
    match graph.check() {
        Err(GraphFault::Circle(way)) => way.join(" "),
        other => panic!("{other:?}"),
    }
}

#[test]
fn comp_070_a_circle_is_told_with_its_way() {
    assert_eq!(circle(&graph("a", &["a: b", "b: c", "c: a"])), "a b c a");
    assert_eq!(circle(&graph("a", &["a: b", "b: c", "c: b"])), "a b c b");
    assert_eq!(circle(&graph("a", &["a: a"])), "a a");
    let fault = graph("A", &["A: B", "B: C", "C: A"]).check().unwrap_err();
    assert_eq!(fault.message(), "modules call each other in a circle: A → B → C → A");
    assert_eq!(fault.into_failure().code(), ErrorCode::CircularDependency);
}

#[test]
fn comp_070_a_circle_through_what_is_optional_or_stands_in_is_one() {
    let mut through = graph("a", &["b: a"]);
    let optional = Need { optional: true, ..Need::required_module("b") };
    through.add("a", ModuleNode { needs: vec![optional], ..ModuleNode::default() });
    assert_eq!(circle(&through), "a b a");
    let fallback = Need { fallback: Some("b".to_owned()), ..Need::required_module("gone") };
    through.add("a", ModuleNode { needs: vec![fallback], ..ModuleNode::default() });
    assert_eq!(circle(&through), "a b a");
}

#[test]
fn a_circle_that_the_root_cannot_reach_does_not_matter() {
    assert!(graph("a", &["a: b", "b:", "x: y", "y: x"]).check().is_ok());
}

#[test]
fn comp_072_a_diamond_is_no_circle_and_everything_comes_after_what_it_needs() {
    let sound = graph("a", &["a: b c", "b: d", "c: d", "d:"]).check().unwrap();
    assert_eq!(sound.order, ["d", "b", "c", "a"]);
    assert_eq!(sound.depth, 2);
}

#[test]
fn comp_071_the_longest_way_counts_and_inner_limits_only_tighten() {
    // The short cut `a → e` does not hide the long path.
    let lines = ["a: e b", "b: c", "c: d", "d: e", "e: f", "f: g", "g:"];
    let fault = graph("a", &lines).check().unwrap_err();
    assert_eq!(fault.code(), ErrorCode::MaxDepthExceeded);
    assert_eq!(fault.message(), "module calls are nested more than 5 levels deep: a → b → c → d → e → f → g");

    let limited = |name: &str, limit: u64| {
        let mut limited = graph("a", &lines);
        let needs = limited.node(limited.places[name]).unwrap().needs.clone();
        limited.add(name, ModuleNode { needs, max_depth: Some(limit), ..ModuleNode::default() });
        limited
    };
    assert_eq!(limited("a", 6).check().unwrap().depth, 6);
    assert!(limited("c", 99).check().is_err(), "an inner limit lifts nothing");
    let mut tight = limited("a", 9);
    let needs = vec![Need::required_module("f")];
    tight.add("e", ModuleNode { needs, max_depth: Some(1), ..ModuleNode::default() });
    let expected = GraphFault::TooDeep { way: vec!["e".into(), "f".into(), "g".into()], limit: 1 };
    assert_eq!(tight.check(), Err(expected));
}

#[test]
fn comp_071_depth_equal_to_the_limit_is_allowed() {
    assert_eq!(graph("0", &["0: 1", "1: 2", "2: 3", "3: 4", "4: 5", "5:"]).check().unwrap().depth, 5);
}

#[test]
fn comp_011_what_is_missing_is_named_with_who_needs_it() {
    let fault = graph("a", &["a: b ghost", "b: spirit ghost"]).check().unwrap_err();
    let GraphFault::Missing(absent) = &fault else { panic!("{fault:?}") };
    let named: Vec<_> = absent.iter().map(|each| format!("{}<{}", each.name, each.needed_by)).collect();
    assert_eq!(named, ["ghost<a", "ghost<b", "spirit<b"]);
    assert_eq!(fault.code(), ErrorCode::ModuleNotFound);
    assert!(fault.message().ends_with("`ghost`; and 2 more"), "{}", fault.message());
    assert_eq!(graph("a", &[]).check().unwrap_err().message(), "module `a` is not installed");
}

#[test]
fn comp_011_012_a_fallback_or_an_option_makes_up_for_what_is_missing() {
    let with = |need: Need| {
        let mut graph = graph("a", &["spare:", "lame: ghost"]);
        graph.add("a", ModuleNode { needs: vec![need], ..ModuleNode::default() });
        graph.check()
    };
    let fallback =
        |name: &str, fallback: &str| Need { fallback: Some(fallback.into()), ..Need::required_module(name) };
    assert_eq!(with(fallback("ghost", "spare")).unwrap().order, ["spare", "a"]);
    assert!(with(fallback("ghost", "phantom")).is_err());
    assert!(with(Need::required_module("lame")).is_err());
    // Both exist, so one may fail; the fallback is in the graph because it may run.
    assert_eq!(with(fallback("lame", "spare")).unwrap().order, ["lame", "spare", "a"]);
    let absent = with(Need { optional: true, ..Need::required_module("lame") }).unwrap().absent;
    assert_eq!(absent, [MissingModule { name: "ghost".into(), needed_by: "lame".into() }]);
    let absent = with(Need { optional: true, ..Need::required_module("ghost") }).unwrap().absent;
    assert_eq!(absent, [MissingModule { name: "ghost".into(), needed_by: "a".into() }]);
}

#[test]
fn comp_021_another_version_is_not_there() {
    let check = |range: &str| {
        let mut graph = Graph::new("a");
        let range = VersionRange::parse(range).unwrap();
        graph.add(
            "a",
            ModuleNode { needs: vec![Need { range, ..Need::required_module("b") }], ..ModuleNode::default() },
        );
        graph.add("b", ModuleNode { version: "1.4.0".to_owned(), ..ModuleNode::default() });
        graph.check()
    };
    assert!(check("^1.0.0").is_ok());
    assert_eq!(check("^2.0.0").unwrap_err().code(), ErrorCode::ModuleNotFound);
}

#[test]
fn names_are_handed_out_once_so_that_modules_are_loaded_once() {
    let mut graph = Graph::new("a");
    let mut asked = Vec::new();
    while let Some(name) = graph.next_unknown() {
        let needs = match name.as_str() {
            "a" => vec![Need::required_module("b"), Need::required_module("c")],
            "b" => vec![Need { fallback: Some("d".into()), ..Need::required_module("c") }],
            _ => Vec::new(),
        };
        graph.add(&name, ModuleNode { needs, ..ModuleNode::default() });
        asked.push(name);
    }
    assert_eq!(asked, ["a", "b", "c", "d"]);
    assert!(graph.check().is_ok());
}

/// A chain of diamonds with 2^n paths through it.
fn ladder(length: usize) -> Graph {
    let mut graph = Graph::new("0");
    for step in 0..length {
        let (left, right) = (format!("{step}l"), format!("{step}r"));
        let needs = vec![Need::required_module(left.as_str()), Need::required_module(right.as_str())];
        graph
            .add(&step.to_string(), ModuleNode { needs, max_depth: Some(u64::MAX), ..ModuleNode::default() });
        for side in [left, right] {
            graph.add(
                &side,
                ModuleNode {
                    needs: vec![Need::required_module((step + 1).to_string())],
                    ..ModuleNode::default()
                },
            );
        }
    }
    graph.add(&length.to_string(), ModuleNode::default());
    graph
}

#[test]
fn ten_thousand_modules_in_a_row_need_no_stack_and_no_exponential_time() {
    let on_a_small_stack = std::thread::Builder::new().stack_size(64 << 10).spawn(|| {
        let mut graph = ladder(10_000);
        assert_eq!(graph.check().unwrap().depth, 20_000);
        graph.add("10000", ModuleNode { needs: vec![Need::required_module("0")], ..ModuleNode::default() });
        let fault = graph.check().unwrap_err();
        assert!(fault.message().len() < 200, "{}", fault.message());
        assert_eq!(fault.code(), ErrorCode::CircularDependency);
    });
    on_a_small_stack.unwrap().join().unwrap();
}

/// One dependency, by number.
#[derive(Debug, Clone, Copy)]
struct Edge {
    to: usize,
    optional: bool,
    fallback: Option<usize>,
}

/// Modules by number; `present[n]` is true if module `n` exists.
#[derive(Debug, Clone)]
struct Plain {
    edges: Vec<Vec<Edge>>,
    present: Vec<bool>,
    limit: u64,
}

impl Plain {
    fn graph(&self) -> Graph {
        let mut graph = Graph::new("0");
        for (place, edges) in self.edges.iter().enumerate().filter(|(place, _)| self.present[*place]) {
            let need = |edge: &Edge| Need {
                optional: edge.optional,
                fallback: edge.fallback.map(|place| place.to_string()),
                ..Need::required_module(edge.to.to_string())
            };
            let max_depth = (place == 0).then_some(self.limit);
            let needs = edges.iter().map(need).collect();
            graph.add(&place.to_string(), ModuleNode { max_depth, needs, ..ModuleNode::default() });
        }
        graph
    }

    /// The modules that a dependency can use.
    fn targets(&self, edge: Edge) -> Vec<usize> {
        [Some(edge.to), edge.fallback].into_iter().flatten().filter(|place| self.present[*place]).collect()
    }

    fn needs(&self) -> Vec<(usize, Edge)> {
        let present = (0..self.edges.len()).filter(|place| self.present[*place]);
        present.flat_map(|place| self.edges[place].iter().map(move |edge| (place, *edge))).collect()
    }

    fn reaches(&self) -> Vec<Vec<bool>> {
        let count = self.edges.len();
        let mut reach = vec![vec![false; count]; count];
        for (from, edge) in self.needs() {
            self.targets(edge).into_iter().for_each(|to| reach[from][to] = true);
        }
        for middle in 0..count {
            let through = reach[middle].clone();
            for row in reach.iter_mut().filter(|row| row[middle]) {
                row.iter_mut().zip(&through).for_each(|(to, further)| *to |= further);
            }
        }
        reach
    }

    /// Computes the verdict by other means: sets that grow to a fixed point, reachability by a matrix. Finds
    /// the longest path by relaxing every edge once per module.
    fn verdict(&self) -> Option<ErrorCode> {
        let (count, needs) = (self.edges.len(), self.needs());
        let mut must = vec![false; count];
        must[0] = true;
        for _ in 0..count {
            for (from, edge) in needs.iter().filter(|(_, edge)| !edge.optional) {
                if let [only] = self.targets(*edge)[..] {
                    must[only] |= must[*from];
                }
            }
        }
        let lacks =
            |(from, edge): &(usize, Edge)| must[*from] && !edge.optional && self.targets(*edge).is_empty();
        if needs.iter().any(lacks) {
            return Some(ErrorCode::ModuleNotFound);
        }
        let reach = self.reaches();
        if (0..count).any(|place| (place == 0 || reach[0][place]) && reach[place][place]) {
            return Some(ErrorCode::CircularDependency);
        }
        let mut depth: BTreeMap<usize, u64> = BTreeMap::from([(0, 0)]);
        for _ in 0..count {
            for (from, edge) in &needs {
                let Some(next) = depth.get(from).map(|depth| depth + 1) else { continue };
                for to in self.targets(*edge) {
                    let old = depth.entry(to).or_default();
                    *old = (*old).max(next);
                }
            }
        }
        let deepest = depth.values().max().copied().unwrap_or_default();
        (deepest > self.limit).then_some(ErrorCode::MaxDepthExceeded)
    }
}

/// Up to 200 modules, each called by an earlier one, so that many are reachable. Adds dependencies that lead forward
/// (diamonds), a few that lead anywhere (cycles), and a few missing modules.
fn plain() -> impl Strategy<Value = Plain> {
    (1_usize..=200, 0_usize..3).prop_flat_map(|(count, degree)| {
        let need =
            move || (0..count, 0..count, prop::bool::weighted(0.2), prop::option::weighted(0.1, 0..count));
        let tree = prop::collection::vec(need(), count);
        let forward = prop::collection::vec(need(), 0..=count * degree);
        let anywhere = prop::collection::vec(need(), 0..2);
        let gone = prop::collection::vec(0..count, 0..3);
        (tree, 1..=count, forward, anywhere, gone, 0_u64..60).prop_map(
            move |(tree, nearness, forward, anywhere, gone, limit)| {
                let mut edges = vec![Vec::new(); count];
                for (to, (seed, _, optional, fallback)) in tree.into_iter().enumerate().skip(1) {
                    let from = to - 1 - seed % nearness.min(to);
                    let fallback = fallback.filter(|fallback| *fallback > from);
                    edges[from].push(Edge { to, optional, fallback });
                }
                for (one, other, optional, fallback) in
                    forward.into_iter().filter(|(one, other, ..)| one != other)
                {
                    let (from, to) = (one.min(other), one.max(other));
                    let fallback = fallback.filter(|fallback| *fallback > from);
                    edges[from].push(Edge { to, optional, fallback });
                }
                for (from, to, optional, fallback) in anywhere {
                    edges[from].push(Edge { to, optional, fallback });
                }
                let present = (0..count).map(|place| place == 0 || !gone.contains(&place)).collect();
                Plain { edges, present, limit }
            },
        )
    })
}

#[test]
fn random_graphs_are_of_every_kind() {
    let mut runner = TestRunner::deterministic();
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..200 {
        let plain = plain().new_tree(&mut runner).unwrap().current();
        *kinds.entry(format!("{:?}", plain.graph().check().err().map(|fault| fault.code()))).or_default() +=
            1;
    }
    assert!(kinds.len() == 4 && kinds.values().all(|count| *count >= 10), "{kinds:?}");
}

proptest! {
    // The reference check takes cubic time.
    #![proptest_config(ProptestConfig::with_cases(150))]

    // COMP-070, COMP-071, COMP-072
    #[test]
    fn any_graph_gets_the_verdict_of_an_independent_check(plain in plain()) {
        let verdict = plain.graph().check();
        prop_assert_eq!(verdict.as_ref().err().map(GraphFault::code), plain.verdict());
        match verdict {
            Ok(sound) => {
                let order: Vec<usize> = sound.order.iter().map(|name| name.parse().unwrap()).collect();
                let turn: BTreeMap<usize, usize> = order.iter().enumerate().map(|(turn, place)| (*place, turn)).collect();
                prop_assert_eq!((turn.len(), order.last()), (order.len(), Some(&0)));
                for (from, edge) in plain.needs().into_iter().filter(|(from, _)| turn.contains_key(from)) {
                    for to in plain.targets(edge) {
                        prop_assert!(turn[&to] < turn[&from]);
                    }
                }
            }
            Err(GraphFault::Circle(way)) => {
                let way: Vec<usize> = way.iter().map(|name| name.parse().unwrap()).collect();
                prop_assert_eq!(way[0], 0);
                prop_assert!(way[..way.len() - 1].contains(way.last().unwrap()));
                for pair in way.windows(2) {
                    prop_assert!(plain.edges[pair[0]].iter().any(|edge| plain.targets(*edge).contains(&pair[1])));
                }
            }
            Err(_) => {}
        }
    }
}

// Certain calls are counted once per run of a module, without walking every path; missing modules count zero.
#[test]
fn certain_calls_are_counted_without_being_made() {
    let mut graph = Graph::new("0");
    while let Some(name) = graph.next_unknown() {
        let level: u32 = name.parse().unwrap();
        let twice = || {
            vec![
                Need::required_module((level + 1).to_string()),
                Need::required_module((level + 1).to_string()),
            ]
        };
        let certain = if level < 4 { twice() } else { Vec::new() };
        let node = ModuleNode {
            needs: certain.clone(),
            certain,
            asks: level != 1,
            max_depth: Some(9),
            ..ModuleNode::default()
        };
        graph.add(&name, node);
    }
    assert_eq!(graph.check().unwrap().calls, 1 + 4 + 8 + 16);
    let mut endless = Graph::new("0");
    while let Some(name) = endless.next_unknown() {
        let level: u32 = name.parse().unwrap();
        let next =
            if level < 99 { vec![Need::required_module((level + 1).to_string()); 4] } else { Vec::new() };
        let node = ModuleNode {
            needs: next.clone(),
            certain: next,
            asks: true,
            max_depth: Some(200),
            ..ModuleNode::default()
        };
        endless.add(&name, node);
    }
    assert_eq!(endless.check().unwrap().calls, u64::MAX);
}
