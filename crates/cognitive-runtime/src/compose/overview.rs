//! A readable overview of a composition: every reachable module with its version, and the order of the parts.
//! Checks a module like a run does, and asks no model.

use std::collections::HashMap;
use std::fmt::Write;

use cognitive_contract::compose::graph::ModuleNode;
use cognitive_contract::compose::plan::{AnswerSource, FlowSource, FlowStep, FlowTarget};
use cognitive_contract::compose::{CompositionPlan, Mapping, RoutingRule};
use cognitive_contract::ports::ModuleSource;
use cognitive_contract::{Failure, Module};
use serde::Serialize;

use super::resolve::sound;

/// The overview of a composition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Overview {
    /// The name of the module.
    pub module: String,
    /// The pattern in which its parts run.
    pub pattern: &'static str,
    /// The parts that always run, in order.
    pub runs: Vec<String>,
    /// The source of the answer: `parts`, `chosen part` or `prompt`.
    pub answer: &'static str,
    /// The time limit of the whole composition.
    pub timeout_ms: u64,
    /// The depth of the deepest module.
    pub depth: u64,
    /// The minimum number of model calls of a run in which nothing fails.
    pub calls: u64,
    /// The steps of the data flow, in the order of `dataflow`.
    pub steps: Vec<OverviewStep>,
    /// The rules of a conditional composition, in evaluation order.
    pub rules: Vec<OverviewRule>,
    /// Every installed module that can be reached, the module itself first.
    pub modules: Vec<OverviewMember>,
}

/// One step of the data flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OverviewStep {
    /// The sources: `input`, or parts by name.
    pub from: Vec<String>,
    /// The targets: parts by name, or `output`.
    pub to: Vec<String>,
    /// The condition under which the step is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// The mapped members; empty if the whole value is passed.
    pub mapping: Vec<OverviewMapping>,
}

/// A member that a step produces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OverviewMapping {
    /// The name of the member.
    pub member: String,
    /// The path that the value is read from.
    pub path: String,
}

/// One rule of `routing`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OverviewRule {
    /// The condition of the rule.
    pub condition: String,
    /// The part that runs next; `None` if the result so far is the answer.
    pub next: Option<String>,
}

/// A module of the composition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OverviewMember {
    /// The name of the module.
    pub name: String,
    /// The version of the module.
    pub version: String,
    /// The modules that it requires.
    pub needs: Vec<OverviewEdge>,
}

/// A dependency of one module on another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OverviewEdge {
    /// The required module.
    pub name: String,
    /// Its version; `None` if it is not installed, or not in a matching version.
    pub version: Option<String>,
    /// True if the dependency is optional.
    pub optional: bool,
    /// The fallback module.
    pub fallback: Option<String>,
}

/// Inspects a module and all modules that it can reach. Fails if the module could not run.
pub fn overview(modules: &dyn ModuleSource, module: &Module) -> Result<Overview, Failure> {
    let made_of = module.composition()?;
    let mut found: Vec<(String, ModuleNode)> = Vec::new();
    let sound = sound(modules, module, made_of, |name, node| {
        found.push((name.to_owned(), node.clone()));
    })?;
    let versions: HashMap<&str, &str> =
        found.iter().map(|(name, node)| (name.as_str(), node.version.as_str())).collect();
    let plan = made_of.map(|made_of| &made_of.plan);
    let names =
        plan.into_iter().flat_map(|plan| plan.order.iter().filter_map(|place| plan.parts.get(*place)));
    Ok(Overview {
        module: module.manifest.name.clone(),
        pattern: plan.map_or("none", |plan| plan.pattern.word()),
        runs: names.map(|part| part.name.clone()).collect(),
        answer: match plan.map(|plan| plan.answer) {
            Some(AnswerSource::Flow) => "parts",
            Some(AnswerSource::Chosen) => "chosen part",
            Some(AnswerSource::Prompt) | None => "prompt",
        },
        timeout_ms: plan.map_or(0, |plan| u64::try_from(plan.timeout.as_millis()).unwrap_or(u64::MAX)),
        depth: sound.depth,
        calls: sound.calls,
        steps: plan.map(steps).unwrap_or_default(),
        rules: plan.map(rules).unwrap_or_default(),
        modules: found.iter().map(|(name, node)| member(name, node, &versions)).collect(),
    })
}

fn steps(plan: &CompositionPlan) -> Vec<OverviewStep> {
    let name = |place: usize| plan.parts.get(place).map(|part| part.name.clone()).unwrap_or_default();
    let source = |source: &FlowSource| match source {
        FlowSource::Input => "input".to_owned(),
        FlowSource::Part(place) => name(*place),
    };
    let target = |target: &FlowTarget| match target {
        FlowTarget::Part(place) => name(*place),
        FlowTarget::Output => "output".to_owned(),
    };
    let step = |step: &FlowStep| OverviewStep {
        from: step.from.iter().map(source).collect(),
        to: step.to.iter().map(target).collect(),
        condition: step.condition.as_ref().map(|condition| condition.source().to_owned()),
        mapping: step
            .mapping
            .iter()
            .flat_map(Mapping::paths)
            .map(|(member, path)| OverviewMapping { member: member.to_owned(), path: path.to_string() })
            .collect(),
    };
    plan.steps.iter().map(step).collect()
}

fn rules(plan: &CompositionPlan) -> Vec<OverviewRule> {
    let rule = |rule: &RoutingRule| OverviewRule {
        condition: rule.condition.source().to_owned(),
        next: rule.next.clone(),
    };
    plan.rules.iter().map(rule).collect()
}

fn member(name: &str, node: &ModuleNode, versions: &HashMap<&str, &str>) -> OverviewMember {
    let edges = node.needs.iter().map(|need| OverviewEdge {
        name: need.name.clone(),
        version: versions
            .get(need.name.as_str())
            .filter(|version| need.range.matches(version))
            .map(|version| (*version).to_owned()),
        optional: need.optional,
        fallback: need.fallback.clone(),
    });
    OverviewMember { name: name.to_owned(), version: node.version.clone(), needs: edges.collect() }
}

impl Overview {
    /// Renders a Mermaid graph: the steps with their conditions if the module has any, else the dependencies;
    /// and the fallbacks.
    #[must_use]
    pub fn mermaid(&self) -> String {
        let mut text = "graph TD\n".to_owned();
        let mut places: HashMap<&str, String> = HashMap::new();
        let has_flow = !self.steps.is_empty() || !self.rules.is_empty();
        let asks = self.answer == "prompt";
        for (place, member) in self.modules.iter().enumerate() {
            // If the parts give the answer, the module itself is the picture and not a node in it.
            if place == 0 && has_flow && !asks {
                continue;
            }
            places.insert(&member.name, format!("n{place}"));
            let _ =
                writeln!(text, "  n{place}[\"{}\"]", label(&format!("{} {}", member.name, member.version)));
        }
        if has_flow {
            self.draw_flow(&mut text, &places);
        }
        for (from, member) in self.modules.iter().enumerate() {
            // The module's own dependencies are already drawn as a flow.
            let drawn = has_flow && from == 0;
            for edge in &member.needs {
                let arrow = if edge.optional { "-.->" } else { "-->" };
                let found = edge.version.as_ref().and_then(|_| places.get(edge.name.as_str()));
                if let Some(to) = found.filter(|_| !drawn) {
                    let _ = writeln!(text, "  n{from} {arrow} {to}");
                }
                if let Some(to) = edge.fallback.as_deref().and_then(|name| places.get(name)) {
                    let _ = writeln!(text, "  n{from} -. fallback .-> {to}");
                }
            }
        }
        text
    }

    /// Draws the steps and rules, with separate nodes for the input and the answer.
    fn draw_flow(&self, text: &mut String, places: &HashMap<&str, String>) {
        let _ = writeln!(text, "  input([\"input\"])\n  output([\"answer\"])");
        let point = |name: &str| {
            places.get(name).cloned().or_else(|| ["input", "output"].contains(&name).then(|| name.to_owned()))
        };
        for step in &self.steps {
            let arrow = match &step.condition {
                Some(condition) => format!("-->|\"{}\"|", label(condition)),
                None => "-->".to_owned(),
            };
            for (from, to) in step.from.iter().flat_map(|from| step.to.iter().map(move |to| (from, to))) {
                if let (Some(from), Some(to)) = (point(from), point(to)) {
                    let _ = writeln!(text, "  {from} {arrow} {to}");
                }
            }
        }
        if self.answer == "prompt" {
            for from in self.runs.iter().filter_map(|name| point(name)) {
                let _ = writeln!(text, "  {from} --> n0");
            }
            let _ = writeln!(text, "  n0 --> output");
        }
        let first = self.runs.first().and_then(|name| point(name)).unwrap_or_else(|| "input".to_owned());
        for rule in &self.rules {
            let next = rule.next.as_deref().and_then(point);
            let _ = writeln!(
                text,
                "  {first} -->|\"{}\"| {}",
                label(&rule.condition),
                next.as_deref().unwrap_or("output")
            );
            if let Some(next) = next {
                let _ = writeln!(text, "  {next} --> output");
            }
        }
    }
}

/// Escapes a text for a quoted label: a quote in it would end the label.
fn label(text: &str) -> String {
    text.replace('"', "'").replace(['\n', '|'], " ")
}
