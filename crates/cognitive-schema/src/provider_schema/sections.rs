//! The sections of a contract in plain form, for descriptions of a module such as `OpenAPI`.
//! Covers only the data that a caller sends and receives. Rules that plain keywords cannot express are left out; only
//! the contract validates. Writes no envelope around the sections.

use serde_json::{Map, Value};

use super::Losses;
use super::dialect::{Recursion, UnsupportedRules};
use super::envelope::{self, EnvelopeRules};
use super::normal::{CustomBranch, SchemaNormaliser};
use crate::validate::Contract;

/// The data that a caller of a module sends and receives. References lead only to `defs`.
#[derive(Debug, Clone, PartialEq)]
pub struct PlainSections {
    /// The input.
    pub input: Value,
    /// The payload of a successful result.
    pub data: Value,
    /// The part of `meta` that the model writes; the runtime adds more.
    pub meta: Value,
    /// Context for later runs, if the module emits any.
    pub emitted_context: Option<Value>,
    /// The recursive types by name, targets of `#/$defs/NAME`.
    pub defs: Map<String, Value>,
}

/// The sections of a contract, each without `$ref` (except to recursive types), `allOf`, and rules next to a choice.
#[must_use]
pub fn plain_sections(contract: &Contract, rules: &EnvelopeRules<'_>) -> PlainSections {
    let mut losses = Losses::default();
    let form = (Recursion::Defs, UnsupportedRules::LeftOut);
    let mut normal = SchemaNormaliser::new(contract.root(), rules.unknown_tag, form, &mut losses);
    let input = normal.section(contract.input(), "/properties/input");
    normal.custom = if rules.strict_enums { CustomBranch::Removed } else { CustomBranch::Kept };
    let data = envelope::data(contract, rules, &mut normal);
    let emitted_context = envelope::emitted_context(contract, rules, &mut normal);
    let meta = envelope::meta(contract, rules, &mut normal);
    let defs = normal.defs();
    PlainSections { input, data, meta, emitted_context, defs }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::provider_schema::tests::rules;
    use crate::validate::{Layout, SCHEMA_FILE, SchemaFiles};

    #[test]
    fn sections_need_no_other_place_than_the_defs() {
        let schema = json!({
            "input": { "type": "object", "required": ["tree"], "properties": {
                "tree": { "$ref": "#/$defs/tree" },
                "item": { "description": "One", "allOf": [{ "$ref": "#/$defs/item" }] },
            } },
            "data": { "type": "object", "properties": { "rationale": { "type": "string" } } },
            "$defs": {
                "tree": { "type": "object", "properties": {
                    "below": { "type": "array", "items": { "$ref": "#/$defs/tree" } } } },
                "item": { "type": "object", "required": ["kind"], "oneOf": [
                    { "required": ["url"], "properties": { "kind": { "const": "url" }, "url": { "type": "string" } } },
                    { "required": ["text"], "properties": { "kind": { "const": "text" }, "text": { "type": "string" } } },
                ] },
            },
        });
        let files = SchemaFiles::from([(SCHEMA_FILE.to_owned(), schema)]);
        let contract = Contract::compile(&files, &Layout::default()).unwrap();
        let rules = rules(&json!({}));
        let sections = plain_sections(&contract, &rules);
        let below = sections.input.pointer("/properties/tree/properties/below/items");
        assert_eq!(below, Some(&json!({ "$ref": "#/$defs/tree" })));
        assert!(sections.defs.contains_key("tree"));
        // The rules next to a choice appear in each of its branches.
        let branches = sections.input.pointer("/properties/item/oneOf").unwrap();
        for branch in branches.as_array().unwrap() {
            assert_eq!(branch["type"], "object", "{branch}");
            assert!(branch["required"].as_array().unwrap().contains(&json!("kind")), "{branch}");
        }
        assert_eq!(sections.data["required"], json!(["rationale"]));
        assert_eq!(sections.meta["properties"]["risk"]["enum"], json!(["none", "low", "medium", "high"]));
        assert_eq!(sections.emitted_context, None);
    }
}
