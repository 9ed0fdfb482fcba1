//! Rules for what a module may trigger: tools by name and class, and who may run it.
//! Applies to the module, not to the runtime itself: its model calls and the caller's media are not checked
//! here.

use crate::code::ErrorCode;
use crate::failure::Failure;
use crate::manifest::{Allow, AllowedTools, Manifest, Policies, ToolPolicy};

/// The resources that a tool accesses. A policy that denies the class denies the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolClass {
    /// Reaches the network.
    Network,
    /// Writes files.
    FilesystemWrite,
    /// Changes something outside.
    SideEffects,
    /// Runs code.
    CodeExecution,
}

impl ToolClass {
    /// Reads the name of a policy.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "network" => Some(Self::Network),
            "filesystem_write" => Some(Self::FilesystemWrite),
            "side_effects" => Some(Self::SideEffects),
            "code_execution" => Some(Self::CodeExecution),
            _ => None,
        }
    }

    /// The classes that well-known tool names belong to.
    #[must_use]
    pub fn for_tool(name: &str) -> &'static [Self] {
        match name {
            "write_file" => &[Self::FilesystemWrite],
            "shell" => &[Self::CodeExecution, Self::SideEffects],
            "code_interpreter" => &[Self::CodeExecution],
            "network" | "http_get" | "fetch" | "web_search" | "browser" => &[Self::Network],
            _ => &[],
        }
    }
}

/// A tool that a model could be offered.
#[derive(Debug, Clone, Copy)]
pub struct OfferedTool<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its classes, in addition to those of its name.
    pub classes: &'a [ToolClass],
}

/// Returns why a module may not use a tool; `None` allows it. A denied tool is neither offered nor executed.
#[must_use]
pub fn tool_refusal(manifest: &Manifest, tool: OfferedTool<'_>) -> Option<Failure> {
    ToolLaw { policies: &manifest.policies, lists: vec![&manifest.tools] }.refusal(tool)
}

/// The rules for the use of tools: those of the module and of all modules that call it. Deny wins. (COMP-090)
#[derive(Debug, Clone)]
pub struct ToolLaw<'a> {
    /// The combined policies of all of them.
    pub policies: &'a Policies,
    /// The tool lists of all of them, the module's own first.
    pub lists: Vec<&'a AllowedTools>,
}

impl ToolLaw<'_> {
    /// Returns why a tool may not be used; `None` allows it.
    #[must_use]
    pub fn refusal(&self, tool: OfferedTool<'_>) -> Option<Failure> {
        let name = tool.name;
        let reason = if self.policies.tools {
            self.list_denial(name).or_else(|| self.class_denial(tool))?
        } else {
            format!("the module allows no tools, the model asked for: `{name}`")
        };
        Some(Failure::new(ErrorCode::PermissionDenied, reason))
    }

    fn list_denial(&self, name: &str) -> Option<String> {
        let listed = |list: &[String]| list.iter().any(|each| each == name);
        self.lists.iter().enumerate().find_map(|(above, tools)| {
            let who = if above == 0 { "the module" } else { "a calling module" };
            if listed(&tools.denied) {
                Some(format!("{who} denies the tool: `{name}`"))
            } else if tools.policy == ToolPolicy::DenyByDefault && !listed(&tools.allowed) {
                Some(format!("{who} does not list the tool: `{name}`"))
            } else {
                None
            }
        })
    }

    fn class_denial(&self, tool: OfferedTool<'_>) -> Option<String> {
        let mut classes = ToolClass::for_tool(tool.name).iter().chain(tool.classes);
        let denied = classes.find(|class| policy(self.policies, **class) == Allow::Deny)?;
        Some(format!("policy denies {} for the tool: `{}`", denied.words(), tool.name))
    }
}

impl ToolClass {
    fn words(self) -> &'static str {
        match self {
            Self::Network => "the network",
            Self::FilesystemWrite => "writing files",
            Self::SideEffects => "side effects",
            Self::CodeExecution => "running code",
        }
    }
}

fn policy(policies: &Policies, class: ToolClass) -> Allow {
    match class {
        ToolClass::Network => policies.network,
        ToolClass::FilesystemWrite => policies.filesystem_write,
        ToolClass::SideEffects => policies.side_effects,
        ToolClass::CodeExecution => policies.code_execution,
    }
}

/// The kind of caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Caller {
    /// A person or program: command line, HTTP, WebSocket, library.
    #[default]
    User,
    /// An agent or another module: MCP, `@call`, composition.
    Agent,
}

/// Returns why a caller may not run a module; `None` allows it.
#[must_use]
pub fn invocation_refusal(manifest: &Manifest, caller: Caller) -> Option<Failure> {
    let (allowed, who) = match caller {
        Caller::User => (manifest.invocation.user_invocable, "users"),
        Caller::Agent => (manifest.invocation.agent_invocable, "agents or other modules"),
    };
    (!allowed).then(|| {
        let message = format!("module `{}` does not allow calls by {who}", manifest.name);
        Failure::new(ErrorCode::PermissionDenied, message)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::format::Format;

    fn allowed(manifest: Value, name: &str) -> bool {
        let manifest = Manifest::from_value(&manifest, Format::V22).unwrap();
        tool_refusal(&manifest, OfferedTool { name, classes: &[] }).is_none()
    }

    #[test]
    fn pol_001_006_a_denied_class_denies_its_tools_even_when_listed() {
        let tools = json!({ "allowed": ["shell", "write_file", "calculator"] });
        for (tool, policies) in [
            ("write_file", json!({ "filesystem_write": "allow" })),
            ("shell", json!({ "code_execution": "allow", "side_effects": "allow" })),
        ] {
            assert!(!allowed(json!({ "tools": tools }), tool));
            assert!(allowed(json!({ "tools": tools, "policies": policies }), tool));
        }
        assert!(allowed(json!({ "tools": tools }), "calculator"));
    }

    #[test]
    fn pol_003_lists_and_their_default() {
        assert!(!allowed(json!({}), "calculator"));
        assert!(allowed(json!({ "tools": { "policy": "allow_by_default" } }), "calculator"));
        assert!(!allowed(
            json!({ "tools": { "policy": "allow_by_default", "denied": ["calculator"] } }),
            "calculator"
        ));
        assert!(!allowed(json!({ "tools": { "allowed": ["a"], "denied": ["a"] } }), "a"));
    }

    #[test]
    fn pol_002_tools_can_be_taken_away_as_a_whole() {
        let manifest =
            json!({ "policies": { "tools_allowed": false }, "tools": { "allowed": ["calculator"] } });
        assert!(!allowed(manifest, "calculator"));
    }

    // COMP-090: a module may not use a tool that one of its callers does not list.
    #[test]
    fn comp_090_pol_003_the_lists_of_callers_count_too() {
        let manifest = |tools: Value| Manifest::from_value(&json!({ "tools": tools }), Format::V22).unwrap();
        let child = manifest(json!({ "allowed": ["calculator"] }));
        for (caller, allowed) in [
            (json!({}), false),
            (json!({ "allowed": ["calculator"] }), true),
            (json!({ "policy": "allow_by_default" }), true),
            (json!({ "policy": "allow_by_default", "denied": ["calculator"] }), false),
        ] {
            let caller = manifest(caller);
            let law = ToolLaw { policies: &child.policies, lists: vec![&child.tools, &caller.tools] };
            let refusal = law.refusal(OfferedTool { name: "calculator", classes: &[] });
            assert_eq!(refusal.is_none(), allowed, "{:?}", caller.tools);
            assert!(refusal.is_none_or(|refusal| refusal.message().starts_with("a calling module")));
        }
    }

    #[test]
    fn pol_004_the_refusal_is_e4007_and_names_the_tool() {
        let manifest = Manifest::from_value(&json!({}), Format::V22).unwrap();
        let failure = tool_refusal(&manifest, OfferedTool { name: "shell", classes: &[] }).unwrap();
        assert_eq!(failure.code(), ErrorCode::PermissionDenied);
        assert!(failure.message().contains("`shell`"));
    }

    #[test]
    fn pol_020_users_and_agents_are_told_apart() {
        let manifest = json!({ "name": "m", "invocation": { "user_invocable": false } });
        let manifest = Manifest::from_value(&manifest, Format::V22).unwrap();
        assert!(invocation_refusal(&manifest, Caller::User).is_some());
        assert!(invocation_refusal(&manifest, Caller::Agent).is_none());
    }
}
