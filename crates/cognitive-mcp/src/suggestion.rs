//! Rewords the suggestions of errors for agents. The runtime has wordings for command line users and HTTP clients
//! only, so HTTP operations are replaced with the equivalent tools. Neither adds nor removes suggestions.

use cognitive_contract::Failure;
use serde_json::Value;

/// The tools of a client, which determine the wording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolWording {
    /// The four tools that find and run modules.
    Search,
    /// One tool for each module.
    Modules,
}

/// The prefix of an operation in a suggestion.
const OPERATION: &str = "`GET ";

/// Converts a failure that occurred outside a run, for an agent.
pub(crate) fn for_agent(failure: Failure, wording: ToolWording) -> Value {
    let envelope = failure.for_remote_caller().into_envelope();
    let mut envelope = serde_json::to_value(&envelope).unwrap_or_default();
    reword(&mut envelope, wording);
    envelope
}

/// Rewords the suggestion of an envelope.
pub(crate) fn reword(envelope: &mut Value, wording: ToolWording) {
    if let Some(Value::String(suggestion)) = envelope.pointer_mut("/error/suggestion")
        && suggestion.contains(OPERATION)
    {
        *suggestion = reword_text(suggestion, wording);
    }
}

/// Replaces each operation that has an equivalent tool.
fn reword_text(suggestion: &str, wording: ToolWording) -> String {
    let mut text = String::with_capacity(suggestion.len());
    let mut rest = suggestion;
    while let Some((before, operation)) = rest.split_once(OPERATION) {
        let Some((path, after)) = operation.split_once('`') else { break };
        text.push_str(before);
        match equivalent_tool(path, wording) {
            Some(words) => text.push_str(words),
            None => text.extend([OPERATION, path, "`"]),
        }
        rest = after;
    }
    text.push_str(rest);
    text
}

/// Returns the tool that corresponds to an HTTP operation.
fn equivalent_tool(path: &str, wording: ToolWording) -> Option<&'static str> {
    Some(match (path, wording) {
        ("/api/modules", ToolWording::Search) => "`cognitive_list`",
        ("/api/modules", ToolWording::Modules) => "`tools/list`",
        // No tool reports it, since it depends on the operator's model.
        ("/capabilities", _) => "the server operator",
        (path, wording) if path.starts_with("/api/modules/") => match wording {
            ToolWording::Search => "`cognitive_info`",
            ToolWording::Modules => "The `inputSchema` of this tool",
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use cognitive_contract::ErrorCode;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_agent_is_told_tools_and_neither_operations_nor_commands() {
        let said = |hint: &str, wording| {
            let failure = Failure::new(ErrorCode::InvalidInput, "m").suggest("Run `cogn x`");
            for_agent(failure.suggest_remotely(hint), wording)["error"]["suggestion"].clone()
        };
        let takes = "`GET /api/modules/alpha` shows the module's input";
        assert_eq!(said(takes, ToolWording::Search), "`cognitive_info` shows the module's input");
        let schema = "The `inputSchema` of this tool shows the module's input";
        assert_eq!(said(takes, ToolWording::Modules), schema);
        let near = "Did you mean `beta`? `GET /api/modules` lists all modules";
        assert_eq!(
            said(near, ToolWording::Search),
            "Did you mean `beta`? `cognitive_list` lists all modules"
        );
        for left_alone in ["Send less", "`GET /other` helps", "an open `GET /api/modules"] {
            assert_eq!(said(left_alone, ToolWording::Search), left_alone);
        }
        let command = for_agent(
            Failure::new(ErrorCode::InternalError, "m").suggest("Run `cogn doctor`"),
            ToolWording::Search,
        );
        assert_eq!(command["error"]["suggestion"], "Contact the server operator");
        let mut answer = json!({ "ok": true, "data": { "suggestion": "`GET /api/modules`" } });
        let before = answer.clone();
        reword(&mut answer, ToolWording::Search);
        assert_eq!(answer, before, "what a model wrote as an answer stays");
    }

    /// Fails if a suggestion names a new operation that has no wording for agents.
    #[test]
    fn every_operation_that_the_runtime_suggests_has_words_for_agents() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut seen = 0;
        let mut folders = vec![
            crates.join("cognitive-contract/src"),
            crates.join("cognitive-library/src"),
            crates.join("cognitive-runtime/src"),
        ];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let source = std::fs::read_to_string(&path).unwrap();
                for hint in source.split("suggest_remotely(").skip(1) {
                    let hint = hint.split_once(')').unwrap().0;
                    if hint.contains(OPERATION) {
                        let told = reword_text(hint, ToolWording::Modules);
                        assert!(!told.contains(OPERATION), "{}: {hint}", path.display());
                        seen += 1;
                    }
                }
            }
        }
        assert!(seen >= 4, "only {seen} suggestions with operations were found");
    }
}
