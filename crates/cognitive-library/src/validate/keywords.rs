//! Keywords of schemas that no draft of JSON Schema has. They have no effect, so a misspelt rule is never applied.
//! Keywords that start with `x-` are the author's own; those of `x-decide` are known. The draft itself is checked
//! elsewhere.

use cognitive_schema::{DATA_KEYWORDS, SCHEMA_FILE};
use serde_json::{Map, Value};

use super::CheckedModule;
use super::nearest_name::did_you_mean;
use crate::finding::{Finding, FindingLocation, Findings, quote};
use crate::json::{JsonPathStep, pointer_of};

/// The keywords of Draft-04 to 2020-12 that are not in the lists below.
const KEYWORDS: &str = "$schema $id id $ref $anchor $dynamicRef $dynamicAnchor $recursiveRef $recursiveAnchor $comment type \
    multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern items additionalItems \
    prefixItems unevaluatedItems maxItems minItems uniqueItems contains maxContains minContains maxProperties minProperties \
    required additionalProperties unevaluatedProperties propertyNames if then else allOf anyOf oneOf not format \
    contentEncoding contentMediaType contentSchema title description deprecated readOnly writeOnly";
/// Keywords whose members have names of the author's choice.
const NAME_MAPS: [&str; 8] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "dependentRequired",
    "$vocabulary",
];
/// The sections of `schema.json`.
const SECTIONS: [&str; 5] = ["input", "data", "output", "meta", "error"];
const DECIDE: &str = "x-decide";
/// The keys of `x-decide`, and those of each way to weigh a candidate.
const DECIDE_KEYS: [&str; 8] = ["about", "alone", "ask", "by", "else", "order", "told", "with"];
const WAY_KEYS: [&str; 3] = ["ask", "given", "say"];

/// Reports the unknown keywords of every schema file.
pub(super) fn check(subject: &CheckedModule<'_>, found: &mut Findings) {
    for (file, root) in subject.schemas {
        let Value::Object(members) = root else { continue };
        let mut visit = KeywordVisit { file, path: Vec::new(), found };
        for (name, child) in members {
            let is_section = file == SCHEMA_FILE && SECTIONS.contains(&name.as_str());
            if is_section || is_known(name) || is_referenced(subject, name) {
                visit.keyword(name, child);
            } else if let Some(hint) = did_you_mean(name, SECTIONS.into_iter().chain(known_keywords())) {
                // Files of a contract may have notes at their root. Only a near miss of a known name is a mistake.
                visit.tell(name, "unknown section, ignored", Some(hint));
            }
        }
    }
}

/// Returns whether `io` or a `$ref` may lead to this member of a root.
fn is_referenced(subject: &CheckedModule<'_>, name: &str) -> bool {
    let pointer = format!("#/{name}");
    let values = subject.schemas.values().chain(subject.written.get("io"));
    values.into_iter().any(|value| value.to_string().contains(&pointer))
}

fn known_keywords() -> impl Iterator<Item = &'static str> {
    KEYWORDS.split_whitespace().chain(NAME_MAPS).chain(DATA_KEYWORDS)
}

fn is_known(name: &str) -> bool {
    name.starts_with("x-") || known_keywords().any(|known| known == name)
}

struct KeywordVisit<'v, 'f> {
    file: &'v str,
    path: Vec<JsonPathStep<'v>>,
    found: &'f mut Findings,
}

impl<'v> KeywordVisit<'v, '_> {
    /// Visits the schemas below a keyword, or below a section.
    fn keyword(&mut self, name: &'v str, value: &'v Value) {
        match value {
            Value::Object(decide) if name == DECIDE => self.visit_member(name, |visit| visit.decide(decide)),
            _ if DATA_KEYWORDS.contains(&name) || name.starts_with("x-") => {}
            Value::Object(named) if NAME_MAPS.contains(&name) => self.visit_member(name, |visit| {
                for (name, schema) in named {
                    visit.visit_member(name, |visit| visit.schema(schema));
                }
            }),
            _ => self.visit_member(name, |visit| visit.schema(value)),
        }
    }

    fn schema(&mut self, schema: &'v Value) {
        match schema {
            Value::Object(members) => {
                for (name, value) in members {
                    if is_known(name) {
                        self.keyword(name, value);
                    } else {
                        self.tell(name, "unknown keyword, ignored", did_you_mean(name, known_keywords()));
                    }
                }
            }
            Value::Array(schemas) => {
                for (at, schema) in schemas.iter().enumerate() {
                    self.path.push(JsonPathStep::Item(at));
                    self.schema(schema);
                    self.path.pop();
                }
            }
            _ => {}
        }
    }

    fn decide(&mut self, decide: &'v Map<String, Value>) {
        self.keys(decide, &DECIDE_KEYS);
        for (name, value) in decide {
            let ways: &[Value] = match (name.as_str(), value) {
                ("by", Value::Array(ways)) => ways,
                ("else", way) => std::slice::from_ref(way),
                _ => continue,
            };
            for (at, way) in ways.iter().enumerate().filter_map(|(at, way)| Some((at, way.as_object()?))) {
                self.visit_member(name, |visit| {
                    if name == "by" {
                        visit.path.push(JsonPathStep::Item(at));
                    }
                    visit.keys(way, &WAY_KEYS);
                    if name == "by" {
                        visit.path.pop();
                    }
                });
            }
        }
    }

    fn keys(&mut self, members: &'v Map<String, Value>, known: &[&'static str]) {
        for name in members.keys().filter(|name| !known.contains(&name.as_str())) {
            self.tell(name, "unknown key, ignored", did_you_mean(name, known.iter().copied()));
        }
    }

    fn visit_member(&mut self, name: &'v str, visit: impl FnOnce(&mut Self)) {
        self.path.push(JsonPathStep::Member(name.into()));
        visit(self);
        self.path.pop();
    }

    fn tell(&mut self, name: &'v str, what: &str, hint: Option<String>) {
        self.path.push(JsonPathStep::Member(name.into()));
        let at = FindingLocation::Key(pointer_of(&self.path).into());
        self.path.pop();
        let message = format!("{what}: {}", quote(name));
        let finding = Finding::warning(self.file, at, "schema/unknown-keyword", message);
        let hint = hint.or_else(|| Some("Begin the name of a note of your own with `x-`".to_owned()));
        self.found.push(Finding { hint, ..finding });
    }
}
