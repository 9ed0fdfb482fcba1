//! Tests of the tools that a toolbox accepts and offers.

use serde_json::json;

use super::*;
use crate::format::Format;
use crate::manifest::Manifest;

struct Named(&'static str, Value, Vec<ToolClass>);

impl Tool for Named {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.0, "A tool.", self.1.clone()).with_needs(&self.2)
    }

    fn call<'a>(&'a self, _: &'a Value) -> PortFuture<'a, Result<Value, ToolError>> {
        Box::pin(async { Ok(Value::Null) })
    }
}

fn named(name: &'static str) -> Named {
    Named(name, json!({ "type": "object" }), Vec::new())
}

fn offered(tools: &ToolBox, manifest: Value) -> Vec<String> {
    let manifest = Manifest::from_value(&manifest, Format::V22).unwrap();
    let law = ToolLaw { policies: &manifest.policies, lists: vec![&manifest.tools] };
    tools.offered_tools(&law).iter().map(|spec| spec.name.clone()).collect()
}

#[test]
fn names_are_those_that_every_service_takes() {
    for name in ["current_time", "_x", "a-b-2"] {
        assert!(ToolBox::default().with(named(name)).is_ok(), "{name}");
    }
    for name in ["", "2x", "a b", "größe", "a.b", "-a"] {
        let error = ToolBox::default().with(named(name)).unwrap_err();
        assert_eq!(error, ToolBoxError::Name(name.to_owned()));
    }
    let long: &'static str = "a".repeat(65).leak();
    assert!(ToolBox::default().with(named(long)).is_err());
}

#[test]
fn a_name_stands_for_one_tool() {
    let twice = ToolBox::default().with(named("a")).unwrap().with(named("a"));
    assert_eq!(twice.unwrap_err(), ToolBoxError::Twice("a".to_owned()));
}

#[test]
fn parameters_are_a_schema_of_an_object() {
    for parameters in [
        json!({}),
        json!({ "type": "string" }),
        json!({ "type": "object", "properties": { "a": { "type": "nothing" } } }),
        json!({ "type": "object", "properties": { "a": { "$ref": "https://example.com/a.json" } } }),
    ] {
        let error = ToolBox::default().with(Named("a", parameters.clone(), Vec::new())).unwrap_err();
        assert!(matches!(error, ToolBoxError::Parameters { .. }), "{parameters}: {error}");
    }
}

#[test]
fn arguments_are_judged_by_that_schema() {
    let parameters = json!({ "type": "object", "required": ["n"], "additionalProperties": false,
                             "properties": { "n": { "$ref": "#/definitions/n" } },
                             "definitions": { "n": { "type": "integer" } } });
    let tools = ToolBox::default().with(Named("a", parameters, Vec::new())).unwrap();
    assert_eq!(tools.objection("a", &json!({ "n": 1 })), None);
    for wrong in [json!({}), json!({ "n": "1" }), json!({ "n": 1, "m": 1 }), json!([]), json!(null)] {
        assert!(tools.objection("a", &wrong).is_some(), "{wrong}");
    }
}

#[test]
fn a_tool_that_is_trusted_is_judged_as_strictly() {
    let parameters = json!({ "type": "object", "required": ["n"] });
    let tools = ToolBox::default().with_trusted(Named("a", parameters, Vec::new()));
    assert!(tools.objection("a", &json!({})).is_some());
    assert_eq!(tools.objection("a", &json!({ "n": 1 })), None);
    let broken = ToolBox::default().with_trusted(Named("a", json!({ "type": "nothing" }), Vec::new()));
    assert!(broken.objection("a", &json!({})).is_some(), "what cannot be judged is not called");
}

// POL-003, POL-006: only permitted tools are offered, and a tool's declared classes count.
#[test]
fn pol_003_006_only_what_the_law_allows_is_offered() {
    let reach = Named("reach", json!({ "type": "object" }), vec![ToolClass::Network]);
    let tools = ToolBox::default().with(named("add")).unwrap().with(reach).unwrap();
    assert!(offered(&tools, json!({})).is_empty(), "deny is the default");
    assert_eq!(offered(&tools, json!({ "tools": { "allowed": ["add", "reach"] } })), ["add"]);
    let network = json!({ "tools": { "allowed": ["add", "reach"] }, "policies": { "network": "allow" } });
    assert_eq!(offered(&tools, network), ["add", "reach"]);
    assert_eq!(offered(&tools, json!({ "tools": { "policy": "allow_by_default" } })), ["add"]);
    let none = json!({ "tools": { "policy": "allow_by_default" }, "policies": { "tools_allowed": false } });
    assert!(offered(&tools, none).is_empty());
}

#[test]
fn the_books_take_no_more_of_a_name_than_a_name() {
    let name = |text: &str| ToolUse::new(text, ToolOutcome::Unknown, Duration::ZERO).name;
    assert_eq!(name("functions.shell:0"), "functions.shell:0");
    assert_eq!(name("shell my secret input"), "shell");
    assert_eq!(name(&"x".repeat(1000)).len(), 64);
}
