//! One module as a tool: its name, what it is for, what goes in and out, and what it may do to the world. Describes only; the
//! contract alone judges.

use std::sync::Arc;

use cognitive_contract::Module;
use cognitive_contract::manifest::{Allow, Policies};
use cognitive_schema::tool_schemas;
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value};

/// The tool. The schemas are in the form that every client reads: an object at the root, no choice and no reference there.
pub(crate) fn tool(name: &str, module: &Module) -> Tool {
    let schemas = tool_schemas(&module.contract, &module.envelope_rules());
    Tool::new(name.to_owned(), description(module), object(schemas.input))
        .with_raw_output_schema(object(schemas.output))
        .with_annotations(annotations(&module.manifest.policies))
}

/// What the model of the client reads: the task, and what it is not for.
pub(crate) fn description(module: &Module) -> String {
    let manifest = &module.manifest;
    let mut text = manifest.responsibility.trim().to_owned();
    if !manifest.excludes.is_empty() {
        text.push_str(" Not for: ");
        text.push_str(&manifest.excludes.join("; "));
        text.push('.');
    }
    text
}

/// What the policies of the module promise. A module that may change nothing only reads; one that may not reach the network
/// asks nobody but its model.
fn annotations(policies: &Policies) -> ToolAnnotations {
    let denied = |policy: Allow| policy == Allow::Deny;
    let only_reads = denied(policies.side_effects) && denied(policies.filesystem_write);
    let annotations = ToolAnnotations::new().read_only(only_reads).open_world(!denied(policies.network));
    if only_reads { annotations } else { annotations.destructive(!denied(policies.filesystem_write)) }
}

/// A schema as the protocol's type for one. Ours are objects.
pub(crate) fn object(schema: Value) -> Arc<Map<String, Value>> {
    match schema {
        Value::Object(members) => Arc::new(members),
        _ => Arc::default(),
    }
}
