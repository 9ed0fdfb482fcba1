//! What a module is made of, for people: every module that it can lead to, in which version, and what runs when.
//! Judges like a run and asks no model.

use std::collections::HashMap;
use std::fmt::Write;

use cognitive_contract::compose::graph::ModuleNode;
use cognitive_contract::compose::plan::AnswerSource;
use cognitive_contract::ports::ModuleSource;
use cognitive_contract::{Failure, Module};
use serde::Serialize;

use super::resolve::sound;

/// A composition at a glance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Overview {
    /// The module.
    pub module: String,
    /// How its parts run.
    pub pattern: &'static str,
    /// Its parts that run by themselves, in order.
    pub runs: Vec<String>,
    /// Who gives the answer: `parts`, `chosen part` or `prompt`.
    pub answer: &'static str,
    /// The time for all of it.
    pub timeout_ms: u64,
    /// The depth of the deepest module.
    pub depth: u64,
    /// How many model calls a run makes for certain, if nothing fails.
    pub calls: u64,
    /// Every module that is there, the module itself first.
    pub modules: Vec<OverviewMember>,
}

/// One module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OverviewMember {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it needs.
    pub needs: Vec<OverviewEdge>,
}

/// What one module needs of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OverviewEdge {
    /// The other module.
    pub name: String,
    /// Its version; `None` if it is not installed, or not in a matching version.
    pub version: Option<String>,
    /// Whether the one can do without the other.
    pub optional: bool,
    /// What stands in for it.
    pub fallback: Option<String>,
}

/// Looks at a module and at all that it leads to; the error is why it could not run.
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
        modules: found.iter().map(|(name, node)| member(name, node, &versions)).collect(),
    })
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
    /// The graph as Mermaid: what is needed, what is optional (dotted), and what stands in.
    #[must_use]
    pub fn mermaid(&self) -> String {
        let mut text = "graph TD\n".to_owned();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for member in &self.modules {
            let place = places.len();
            places.insert(&member.name, place);
            // Quotes would end the label.
            let label = format!("{} {}", member.name, member.version).replace('"', "'");
            let _ = writeln!(text, "  n{place}[\"{label}\"]");
        }
        for (from, member) in self.modules.iter().enumerate() {
            for edge in &member.needs {
                let arrow = if edge.optional { "-.->" } else { "-->" };
                let found = edge.version.as_ref().and_then(|_| places.get(edge.name.as_str()));
                if let Some(to) = found {
                    let _ = writeln!(text, "  n{from} {arrow} n{to}");
                }
                if let Some(to) = edge.fallback.as_deref().and_then(|name| places.get(name)) {
                    let _ = writeln!(text, "  n{from} -. fallback .-> n{to}");
                }
            }
        }
        text
    }
}
