//! Limits for single keywords: the number of branches, options and patterns, and the size of what the validator copies.
//! Looks at each schema alone; other checks count the combined work of several schemas.

use serde_json::{Map, Value};

use super::graph::{PerSchema, SchemaGraph, SchemaRefusal, SchemaWay};
use super::patterns::{self, Effort, Weight};

/// Branches of one `anyOf` or `oneOf`. The validator visits each again if none matches. The longest real ones are lists
/// of named constants, such as countries.
const MAX_BRANCHES: usize = 500;

/// Options of one `enum`: a value that is not a string is compared with each.
const MAX_OPTIONS: usize = 2_000;

/// Patterns in one module. Each becomes a separate automaton in every section.
const MAX_PATTERNS: usize = 500;

/// States of all these automata together. A state takes about fifty bytes.
const MAX_STATES: u64 = 50_000;

/// Patterns in one `patternProperties`. Every member name is matched against each.
const MAX_NAME_PATTERNS: usize = 32;

/// The size of the schema that one `not` excludes. The validator copies it into every finding.
const MAX_EXCLUSION_SIZE: usize = 500;

/// The size of everything that the validator copies or rereads: the targets of references and the schemas that `not`
/// excludes. Otherwise nested schemas that are each referenced would be copied once for every level.
const MAX_COPIED: usize = 1_000_000;

/// Checks every schema, and returns the highest cost of its patterns.
pub(super) fn check(graph: &SchemaGraph<'_>) -> Result<Effort, SchemaRefusal> {
    let mut check = KeywordCheck::default();
    for (id, schema) in graph.schemas() {
        check.keywords(schema).map_err(|message| SchemaRefusal::new(id, message))?;
    }
    check.targets(graph)?;
    Ok(check.effort)
}

#[derive(Default)]
struct KeywordCheck {
    effort: Effort,
    patterns: usize,
    states: u64,
    copied: usize,
}

impl KeywordCheck {
    fn keywords(&mut self, schema: &Map<String, Value>) -> Result<(), String> {
        for (keyword, value) in schema {
            match (keyword.as_str(), value) {
                ("anyOf" | "oneOf", Value::Array(branches)) if branches.len() > MAX_BRANCHES => {
                    return Err(format!("`{keyword}` has more than {MAX_BRANCHES} branches"));
                }
                ("enum", Value::Array(options)) if options.len() > MAX_OPTIONS => {
                    return Err(format!("`enum` has more than {MAX_OPTIONS} options"));
                }
                ("pattern", Value::String(pattern)) => {
                    self.pattern(pattern)?;
                }
                ("patternProperties", Value::Object(map)) => self.name_patterns(map)?,
                ("not", excluded) => self.exclusion(excluded)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn pattern(&mut self, pattern: &str) -> Result<Weight, String> {
        let weight = patterns::weigh(pattern)?;
        self.effort = self.effort.max(weight.effort);
        self.patterns += 1;
        self.states = self.states.saturating_add(weight.states);
        if self.patterns > MAX_PATTERNS {
            return Err(format!("the module has more than {MAX_PATTERNS} patterns"));
        }
        if self.states > MAX_STATES {
            return Err("the repetitions in the patterns of the module are too large; limit the \
                        length with `maxLength` instead"
                .to_owned());
        }
        Ok(weight)
    }

    fn name_patterns(&mut self, map: &Map<String, Value>) -> Result<(), String> {
        if map.len() > MAX_NAME_PATTERNS {
            return Err(format!("`patternProperties` has more than {MAX_NAME_PATTERNS} patterns"));
        }
        for pattern in map.keys() {
            // A text that is too long for a pattern is reported as such. A member name cannot be.
            if self.pattern(pattern)?.longest_text.is_some() {
                return Err("a pattern for member names is too costly".to_owned());
            }
        }
        Ok(())
    }

    fn exclusion(&mut self, excluded: &Value) -> Result<(), String> {
        let size = size(excluded, MAX_EXCLUSION_SIZE);
        if size > MAX_EXCLUSION_SIZE {
            return Err(format!("`not` has more than {MAX_EXCLUSION_SIZE} values"));
        }
        self.copied += size;
        Ok(())
    }

    fn targets(&mut self, graph: &SchemaGraph<'_>) -> Result<(), SchemaRefusal> {
        let mut is_counted = PerSchema::new(graph);
        for edge in
            (0..graph.len()).flat_map(|id| graph.edges(id)).filter(|edge| edge.way == SchemaWay::Reference)
        {
            if is_counted.at(edge.to) {
                continue;
            }
            is_counted.set(edge.to, true);
            self.copied += graph.schema(edge.to).map_or(0, |schema| size(schema, MAX_COPIED));
            if self.copied > MAX_COPIED {
                return Err(SchemaRefusal::new(
                    edge.to,
                    "too many references point into each other's targets",
                ));
            }
        }
        Ok(())
    }
}

/// The number of values, where long texts count as several. Stops counting soon after `enough`.
fn size(value: &Value, enough: usize) -> usize {
    let add = |sum: usize, more: usize, inner: &Value| match sum {
        sum if sum > enough => sum,
        sum => sum + more + size(inner, enough - sum),
    };
    let text = |text: &str| text.len() / 64;
    match value {
        Value::String(string) => 1 + text(string),
        Value::Array(items) => items.iter().fold(1, |sum, item| add(sum, 0, item)),
        Value::Object(members) => members.iter().fold(1, |sum, (name, member)| add(sum, text(name), member)),
        _ => 1,
    }
}
