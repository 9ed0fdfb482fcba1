//! The files of modules, for whoever looks at them, tries them in another form or changes them: the ports [`ModuleWorkshop`] and
//! [`CaseBook`], and what a draft may not do. Opens no file itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;
use crate::manifest::{Allow, AllowedTools, Manifest, ToolPolicy};
use crate::module::Module;

/// Files that take the place of those of a module, by their paths in its folder; `None` takes one away.
pub type ChangedFiles = BTreeMap<String, Option<String>>;

/// Asked once, when a change is known to be right and right before it is made: an error keeps it from being made.
pub type BeforeChange<'a> = &'a dyn Fn() -> Result<(), Failure>;

/// The folder of a module at one moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModuleFiles {
    /// Whether it may be changed.
    pub editable: bool,
    /// Another one whenever a file changes.
    pub hash: String,
    /// All files, in order.
    pub files: Vec<ModuleFile>,
    /// What validation has to say, each with its place.
    pub findings: Vec<Value>,
}

/// A file of a module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModuleFile {
    /// Its path in the folder, with `/` between.
    pub path: String,
    /// Its text; nothing for what is no text, or too long to be edited.
    pub text: Option<String>,
    /// How long it is.
    pub bytes: u64,
}

/// A folder after it was changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SavedModule {
    /// Its new hash.
    pub hash: String,
    /// What validation has to say of it.
    pub findings: Vec<Value>,
}

/// A form of a module that can be found: the one that runs, one that it stands in front of, or one of the past.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModuleVersion {
    /// What it is asked for by.
    pub id: String,
    /// What its manifest says, if it says anything.
    pub version: Option<String>,
    /// Where it is: `project`, `user`, `extra`, `bundled`, or `git`.
    pub origin: String,
    /// Whether it is the one that runs when nobody asks for another.
    pub is_current: bool,
    /// When it came to be, and what was said of it then, where anybody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The same in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
}

/// Someone who knows the files of modules. Paths that lead out of a folder are refused, links too. Everything here may take
/// as long as a disk does.
pub trait ModuleWorkshop: Send + Sync {
    /// Whether any folder may be changed.
    fn edits(&self) -> bool;

    /// The folder of a module.
    fn files(&self, module: &str) -> Result<ModuleFiles, Failure>;

    /// What validation would say of it with these files in place.
    fn check(&self, module: &str, files: &ChangedFiles) -> Result<Vec<Value>, Failure>;

    /// The module with these files in place, ready to run. Its version says that it is a draft.
    fn draft(&self, module: &str, files: &ChangedFiles) -> Result<Arc<Module>, Failure>;

    /// Every form of a module that can be found, the one that runs first.
    fn versions(&self, module: &str) -> Result<Vec<ModuleVersion>, Failure>;

    /// One of them by its id, ready to run. Like a draft, it may do no more than the one that runs.
    fn version(&self, module: &str, id: &str) -> Result<Arc<Module>, Failure>;

    /// Puts the files in their places, all of them or none. `hash` is that of the folder that the change was made for; if it
    /// is no longer that, nothing is changed. (E4007 where nobody may.)
    fn save(
        &self,
        module: &str,
        hash: &str,
        files: &ChangedFiles,
        before: BeforeChange<'_>,
    ) -> Result<SavedModule, Failure>;
}

/// An input of a module, with what is expected of its answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModuleCase {
    /// What it is called in its set.
    pub id: String,
    /// `tests`, or the file that it stands in.
    pub set: String,
    /// What goes in.
    pub input: Value,
    /// What is expected, in the language of expectations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect: Option<Value>,
}

/// What an answer is kept as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseKind {
    /// A golden test: input, expectation, and the reply that was recorded.
    Golden,
    /// A worked example that the model reads.
    Example,
    /// A line of labelled cases, for evaluations.
    Labelled,
}

/// An answer that is to be kept.
#[derive(Debug, Clone, PartialEq)]
pub struct NewCase {
    /// As what.
    pub kind: CaseKind,
    /// Under which name.
    pub name: String,
    /// What was sent.
    pub input: Value,
    /// What was answered.
    pub envelope: Value,
    /// What the model wrote, letter by letter, for each module that it was asked for; made of the envelope where nobody
    /// recorded it.
    pub replies: Option<BTreeMap<String, String>>,
}

/// How an answer compares with what is expected of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CaseVerdict {
    /// Whether everything is as expected.
    pub right: bool,
    /// Where it is not.
    pub wrong: Vec<WrongPlace>,
}

/// A place of an envelope at which something else was expected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WrongPlace {
    /// The place, as the expectation writes it.
    pub place: String,
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub got: String,
}

/// What was written for a case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KeptCase {
    /// The files that changed.
    pub paths: Vec<String>,
    /// The hash of the folder now.
    pub hash: String,
    /// What validation has to say of it now.
    pub findings: Vec<Value>,
    /// Whether a test was kept with what the model wrote, letter by letter.
    pub recorded: bool,
}

/// Someone who knows the cases of modules: golden tests and labelled cases.
pub trait CaseBook: Send + Sync {
    /// All cases of a module. One that cannot be read is left out: validation says why.
    fn cases(&self, module: &str) -> Result<Vec<ModuleCase>, Failure>;

    /// Judges answers to a case of a set, each by itself. (E1004 where there is no such case, or it expects nothing)
    fn judge(
        &self,
        module: &str,
        set: &str,
        id: &str,
        envelopes: &[Value],
    ) -> Result<Vec<CaseVerdict>, Failure>;

    /// Keeps an answer as a case, where the folder may be changed.
    fn keep(&self, module: &str, case: &NewCase, before: BeforeChange<'_>) -> Result<KeptCase, Failure>;
}

/// What a draft would be allowed that the module is not, if anything: the member of its manifest. A draft is a text of somebody
/// who may try things; what the operator has installed bounds what it may do.
#[must_use]
pub fn widened(installed: &Manifest, draft: &Manifest) -> Option<String> {
    if installed.name != draft.name {
        // Rules of the operator go by names.
        return Some("name".to_owned());
    }
    let (had, wants) = (&installed.policies, &draft.policies);
    let more = |had: Allow, wants: Allow| had == Allow::Deny && wants != Allow::Deny;
    let policies = [
        ("network", had.network, wants.network),
        ("filesystem_write", had.filesystem_write, wants.filesystem_write),
        ("side_effects", had.side_effects, wants.side_effects),
        ("code_execution", had.code_execution, wants.code_execution),
    ];
    let named = policies.into_iter().find(|(_, had, wants)| more(*had, *wants)).map(|(name, ..)| name);
    let other = || {
        let denied = had.other.iter().filter(|(_, allow)| **allow == Allow::Deny);
        denied
            .map(|(name, _)| name.as_str())
            .find(|name| wants.other.get(*name).is_none_or(|allow| *allow != Allow::Deny))
    };
    if let Some(name) = named.or_else(other) {
        return Some(format!("policies.{name}"));
    }
    if (wants.tools && !had.tools) || more_tools(&installed.tools, &draft.tools) {
        return Some("tools".to_owned());
    }
    let (had, wants) = (installed.invocation, draft.invocation);
    let invoked =
        (wants.user_invocable && !had.user_invocable) || (wants.agent_invocable && !had.agent_invocable);
    invoked.then(|| "invocation".to_owned())
}

/// Whether one list lets a tool be used that the other does not.
fn more_tools(had: &AllowedTools, wants: &AllowedTools) -> bool {
    let allows = |tools: &AllowedTools, name: &String| {
        !tools.denied.contains(name)
            && (tools.policy == ToolPolicy::AllowByDefault || tools.allowed.contains(name))
    };
    let by_default = |tools: &AllowedTools| tools.policy == ToolPolicy::AllowByDefault;
    let named = || [&had.allowed, &had.denied, &wants.allowed, &wants.denied].into_iter().flatten();
    (by_default(wants) && !by_default(had)) || named().any(|name| allows(wants, name) && !allows(had, name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::format::Format;

    fn widens(installed: Value, draft: Value) -> Option<String> {
        let manifest = |mut written: Value| {
            written["name"] = written.get("name").cloned().unwrap_or_else(|| json!("m"));
            Manifest::from_value(&written, Format::V22).unwrap()
        };
        widened(&manifest(installed), &manifest(draft))
    }

    #[test]
    fn a_draft_may_forbid_more_and_never_less() {
        let denied = json!({ "policies": { "network": "deny", "side_effects": "deny" } });
        let allowed = json!({ "policies": { "network": "allow", "side_effects": "deny" } });
        assert_eq!(widens(denied.clone(), allowed.clone()).as_deref(), Some("policies.network"));
        assert_eq!(widens(allowed, denied.clone()), None);
        assert_eq!(widens(denied.clone(), denied), None);
        let own = |word: &str| json!({ "policies": { "mail": word } });
        assert_eq!(widens(own("deny"), json!({})).as_deref(), Some("policies.mail"));
        assert_eq!(widens(own("allow"), own("deny")), None);
    }

    #[test]
    fn a_draft_lists_no_tool_that_the_module_does_not() {
        let tools = |tools: Value| json!({ "tools": tools });
        for (had, wants, expected) in [
            (json!({}), json!({ "allowed": ["a"] }), true),
            (json!({ "allowed": ["a"] }), json!({ "allowed": ["a"] }), false),
            (json!({ "allowed": ["a"] }), json!({ "policy": "allow_by_default" }), true),
            (json!({ "policy": "allow_by_default" }), json!({ "allowed": ["a"] }), false),
            (json!({ "policy": "allow_by_default", "denied": ["a"] }), json!({ "allowed": ["a"] }), true),
            (
                json!({ "policy": "allow_by_default", "denied": ["a"] }),
                json!({ "policy": "allow_by_default" }),
                true,
            ),
        ] {
            assert_eq!(widens(tools(had.clone()), tools(wants.clone())).is_some(), expected, "{had} {wants}");
        }
        let none = json!({ "policies": { "tools_allowed": false } });
        assert_eq!(widens(none, json!({})).as_deref(), Some("tools"));
    }

    #[test]
    fn a_draft_keeps_its_name_and_who_may_run_it() {
        assert_eq!(widens(json!({}), json!({ "name": "other" })).as_deref(), Some("name"));
        let hidden = json!({ "invocation": { "user_invocable": false } });
        assert_eq!(widens(hidden, json!({})).as_deref(), Some("invocation"));
    }
}
