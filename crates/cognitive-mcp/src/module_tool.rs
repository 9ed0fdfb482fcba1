//! Describes one module as a tool: its name, purpose, schemas and side effects. Validates nothing; only the contract
//! does.

use std::sync::Arc;

use cognitive_contract::Module;
use cognitive_contract::manifest::{Allow, Policies};
use cognitive_schema::tool_schemas;
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value};

/// Returns the tool of a module. Its schemas have the form that every client supports: an object at the root, without
/// a choice or reference there.
pub(crate) fn tool(name: &str, module: &Module) -> Tool {
    let schemas = tool_schemas(&module.contract, &module.envelope_rules());
    Tool::new(name.to_owned(), description(module), object(schemas.input))
        .with_raw_output_schema(object(schemas.output))
        .with_annotations(annotations(&module.manifest.policies))
}

/// Returns the description for the client's model: the task, and its exclusions.
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

/// Derives annotations from the policies of the module. A module without side effects and file writes is read-only. A
/// module without network access is not open-world: it calls only its model.
fn annotations(policies: &Policies) -> ToolAnnotations {
    let denied = |policy: Allow| policy == Allow::Deny;
    let only_reads = denied(policies.side_effects) && denied(policies.filesystem_write);
    let annotations = ToolAnnotations::new().read_only(only_reads).open_world(!denied(policies.network));
    if only_reads { annotations } else { annotations.destructive(!denied(policies.filesystem_write)) }
}

/// Converts a schema to the protocol's type. Our schemas are objects.
pub(crate) fn object(schema: Value) -> Arc<Map<String, Value>> {
    match schema {
        Value::Object(members) => Arc::new(members),
        _ => Arc::default(),
    }
}
