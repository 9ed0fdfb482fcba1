//! The keywords of the dialects: those that restrict values, and those that only some dialects have.

use serde_json::{Map, Value};

use super::super::walk::{self, MemberNames, PointerStep};
use super::super::{SchemaFiles, SchemaProblem};
use super::Dialect;

/// Keywords that restrict values or apply other schemas, except references.
const RULES: [&str; 42] = [
    "$dynamicRef",
    "$recursiveRef",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "if",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "required",
    "then",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];

/// Returns whether a keyword restricts values or applies other schemas. `$ref` is not among them.
pub(super) fn is_rule(keyword: &str) -> bool {
    RULES.contains(&keyword)
}

/// Returns whether a schema has such a keyword. A hostile schema may have very many others.
pub(super) fn has_rules(schema: &Map<String, Value>) -> bool {
    RULES.iter().any(|keyword| schema.contains_key(*keyword))
}

/// Returns whether a keyword restricts values in other dialects but not in this one.
pub(in crate::validate) fn foreign(dialect: Dialect, keyword: &str) -> bool {
    match keyword {
        "dependentRequired"
        | "dependentSchemas"
        | "minContains"
        | "maxContains"
        | "unevaluatedItems"
        | "unevaluatedProperties" => dialect == Dialect::Draft07,
        "prefixItems" | "$dynamicRef" => dialect != Dialect::Draft202012,
        "$recursiveRef" => dialect != Dialect::Draft201909,
        "additionalItems" => dialect == Dialect::Draft202012,
        _ => false,
    }
}

/// Keywords that restrict values in another dialect than the one in force, and so have no effect where they are.
#[must_use]
pub fn foreign_keywords(files: &SchemaFiles) -> Vec<SchemaProblem> {
    let mut found = Vec::new();
    for (file, root) in files {
        let dialect = Dialect::for_file(files, file);
        Search { file, found: &mut found, steps: Vec::new() }.search_below(
            root,
            MemberNames::Keywords,
            dialect,
        );
    }
    found
}

struct Search<'s, 'a> {
    file: &'a str,
    found: &'s mut Vec<SchemaProblem>,
    steps: Vec<PointerStep<'a>>,
}

impl<'a> Search<'_, 'a> {
    fn search_below(&mut self, node: &'a Value, names: MemberNames, dialect: Dialect) {
        match node {
            Value::Object(members) => {
                let is_schema = names == MemberNames::Keywords;
                let dialect = if is_schema { dialect.nested_dialect(members) } else { dialect };
                for (name, child) in members {
                    self.steps.push(PointerStep::Name(name));
                    if is_schema && foreign(dialect, name) {
                        let at = walk::pointer(self.steps.iter().copied());
                        let problem = SchemaProblem::new(self.file, at, no_effect(dialect, name));
                        self.found.push(problem.hint(hint(dialect, name)));
                    }
                    // The keywords of extensions hold what their owners like.
                    let is_own = is_schema && name.starts_with("x-");
                    if let Some(names) = names.names_below(name).filter(|_| !is_own) {
                        self.search_below(child, names, dialect);
                    }
                    self.steps.pop();
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.steps.push(PointerStep::Index(index));
                    self.search_below(item, MemberNames::Keywords, dialect);
                    self.steps.pop();
                }
            }
            _ => {}
        }
    }
}

fn no_effect(dialect: Dialect, keyword: &str) -> String {
    format!("`{keyword}` has no effect: {} does not have this keyword", dialect.name())
}

fn hint(dialect: Dialect, keyword: &str) -> &'static str {
    match (keyword, dialect) {
        ("additionalItems", _) => "Use `items` for the items after `prefixItems`",
        ("$recursiveRef", Dialect::Draft202012) => "Use `$dynamicRef`",
        ("$recursiveRef", _) => "Set `$schema` to `https://json-schema.org/draft/2019-09/schema`",
        _ => "Set `$schema` to `https://json-schema.org/draft/2020-12/schema`",
    }
}
