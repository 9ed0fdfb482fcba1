//! The four tools for servers with many modules (API-007): find, describe, run and validate a module. Their answers
//! are short, because a model reads them.

use std::sync::Arc;

use cognitive_contract::manifest::Tier;
use cognitive_contract::policy::{self, Caller};
use cognitive_contract::{ErrorCode, Failure, Module};
use cognitive_runtime::Host;
use cognitive_schema::tool_schemas;
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use crate::backend::McpBackend;
use crate::module_tool::{description, object};

/// A tool for servers with many modules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SearchTool {
    List,
    Info,
    Run,
    Validate,
}

/// The default length of a list. The list goes into the conversation and costs tokens.
const DEFAULT_LISTED: usize = 20;
/// The largest length that a client may request.
const MAX_LISTED: u64 = 200;

impl SearchTool {
    /// All tools, in the order in which a client uses them.
    pub(crate) const ALL: [Self; 4] = [Self::List, Self::Info, Self::Run, Self::Validate];

    /// Returns the tool with this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::List => "cognitive_list",
            Self::Info => "cognitive_info",
            Self::Run => "cognitive_run",
            Self::Validate => "cognitive_validate",
        }
    }

    /// Describes the tool for a model.
    pub(crate) fn tool(self) -> Tool {
        let name = self.name();
        let named = json!({ "type": "string", "description": "Name of the module" });
        let of_module =
            || json!({ "type": "object", "required": ["module"], "properties": { "module": named } });
        match self {
            Self::List => reading(
                name,
                "Find modules: AI tasks with a contract. Gives name and responsibility of those that fit.",
                json!({ "type": "object", "properties": {
                    "query": { "type": "string", "description": "Words to look for; all modules without it" },
                    "limit": { "type": "integer", "minimum": 1, "maximum": MAX_LISTED },
                } }),
            ),
            Self::Info => {
                reading(name, "What a module takes and gives, as JSON Schemas, and what it is not for.", of_module())
            }
            Self::Run => Tool::new(
                name,
                "Run a module. Answers with an envelope: read `meta` (confidence, risk, explain) first, then `data`.",
                object(json!({ "type": "object", "required": ["module"], "properties": {
                    "module": named,
                    "input": { "type": "object", "description": "What `cognitive_info` says under `input`" },
                    "args": { "type": "string", "description": "Free text instead of `input`" },
                } })),
            )
            .with_raw_output_schema(object(cognitive_schema::envelope_outline())),
            Self::Validate => {
                reading(name, "Check the files of a module and list what is wrong with them.", of_module())
            }
        }
    }
}

fn reading(name: &'static str, what: &'static str, input: Value) -> Tool {
    let annotations = ToolAnnotations::new().read_only(true).open_world(false);
    Tool::new(name, what, object(input)).with_annotations(annotations)
}

/// The list entry of a module that agents may run.
#[derive(Debug)]
pub(crate) struct ListedModule {
    name: String,
    /// Name and responsibility in lower case, which queries are matched against.
    words: String,
    line: Value,
}

impl ListedModule {
    /// Reads a module; `None` if it is broken or agents may not run it.
    pub(crate) fn read(host: &Host, name: &str) -> Option<Self> {
        let module = host.modules.glance(name).ok()?;
        let manifest = &module.manifest;
        if policy::invocation_refusal(manifest, Caller::Agent).is_some() {
            return None;
        }
        let words = format!("{name} {}", manifest.responsibility).to_lowercase();
        let line = json!({ "name": name, "tier": manifest.tier, "responsibility": manifest.responsibility });
        Some(Self { name: name.to_lowercase(), words, line })
    }
}

/// Answers `cognitive_list`. All words of the query must occur in the name or responsibility. Modules whose name
/// contains all of them come first.
pub(crate) fn list(modules: &[ListedModule], arguments: &Map<String, Value>) -> Value {
    let query = arguments.get("query").and_then(Value::as_str).unwrap_or_default().to_lowercase();
    let limit = arguments
        .get("limit")
        .and_then(Value::as_u64)
        .map_or(DEFAULT_LISTED, |most| usize::try_from(most.clamp(1, MAX_LISTED)).unwrap_or(DEFAULT_LISTED));
    let holds = |text: &str| query.split_whitespace().all(|word| text.contains(word));
    let mut found: Vec<&ListedModule> = modules.iter().filter(|each| holds(&each.words)).collect();
    found.sort_by_key(|each| !holds(&each.name));
    let shown: Vec<&Value> = found.iter().take(limit).map(|each| &each.line).collect();
    json!({ "modules": shown, "total": found.len() })
}

/// Answers `cognitive_info`.
pub(crate) fn info(backend: &dyn McpBackend, name: &str) -> Result<Value, Failure> {
    let module = find_offered(backend, name)?;
    let schemas = tool_schemas(&module.contract, &module.envelope_rules());
    Ok(json!({
        "name": name,
        "version": module.manifest.version,
        "tier": Tier::word(module.manifest.tier),
        "responsibility": description(&module),
        "policies": module.manifest.policies,
        "input": schemas.input,
        "output": schemas.output,
    }))
}

/// Finds a module that the client may see. Paths are refused: a client must not reach other folders.
pub(crate) fn find_offered(backend: &dyn McpBackend, name: &str) -> Result<Arc<Module>, Failure> {
    if !cognitive_contract::text::is_plain_name(name) || !backend.offers(name) {
        let name = cognitive_contract::text::cut(name, 128);
        return Err(Failure::new(ErrorCode::ModuleNotFound, format!("module not found: `{name}`"))
            .suggest("`cognitive_list` lists the modules"));
    }
    backend.host().modules.module(name)
}
