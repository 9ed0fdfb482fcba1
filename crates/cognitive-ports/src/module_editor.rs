//! Module files for viewing, trying drafts and editing: the ports [`ModuleEditor`] and [`CaseBook`], and the
//! limits of a draft. Opens no file itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use cognitive_contract::failure::Failure;
use cognitive_contract::manifest::{Allow, AllowedTools, Manifest, Tier, ToolPolicy};
use cognitive_contract::module::Module;
use cognitive_contract::recorded_reply::RecordedReply;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Files that replace those of a module, by path in its folder; `None` removes a file.
pub type ChangedFiles = BTreeMap<String, Option<String>>;

/// A callback between the validation of a change and its write. An error prevents the write.
pub type BeforeChange<'a> = &'a dyn Fn() -> Result<(), Failure>;

/// A snapshot of a module's folder.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ModuleFiles {
    /// True if the folder may be changed.
    pub editable: bool,
    /// The hash of the folder; changes with every file.
    pub hash: String,
    /// All files, sorted by path.
    pub files: Vec<ModuleFile>,
    /// The findings of validation, each with its place.
    pub findings: Vec<ModuleFinding>,
}

/// A finding of validation about a module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ModuleFinding {
    /// `error`, or `warning` if the module is valid nevertheless.
    pub severity: String,
    /// The file in the folder of the module.
    pub file: String,
    /// The line, if the finding has a place in the file.
    pub line: Option<usize>,
    /// The column.
    pub column: Option<usize>,
    /// The rule.
    pub rule: String,
    /// The finding, for people.
    pub message: String,
    /// The remedy, if there is one.
    pub hint: Option<String>,
}

/// A file of a module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct ModuleFile {
    /// The path in the folder, with `/` as separator.
    pub path: String,
    /// The text; `None` for a binary file, or one too long for editing.
    pub text: Option<String>,
    /// The size.
    pub bytes: u64,
}

/// The result of a change to a folder.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SavedModule {
    /// The new hash.
    pub hash: String,
    /// The findings of validation after the change.
    pub findings: Vec<ModuleFinding>,
}

/// An available version of a module: the current one, one that it shadows, or an earlier one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ModuleVersion {
    /// The id for requests.
    pub id: String,
    /// The version in its manifest, if there is one.
    pub version: Option<String>,
    /// The origin: `project`, `user`, `extra`, `bundled`, or `git`.
    pub origin: String,
    /// True if this version runs by default.
    pub is_current: bool,
    /// Its date, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Its description, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
}

/// Access to the files of modules. Refuses paths and links that leave a folder. Every method may block on disk
/// access.
pub trait ModuleEditor: Send + Sync {
    /// Returns whether any folder may be changed.
    fn edits(&self) -> bool;

    /// Returns the folder of a module.
    fn files(&self, module: &str) -> Result<ModuleFiles, Failure>;

    /// Returns the findings of validation with these files in place.
    fn check(&self, module: &str, files: &ChangedFiles) -> Result<Vec<ModuleFinding>, Failure>;

    /// Loads the module with these files in place. Its version is marked as a draft.
    fn draft(&self, module: &str, files: &ChangedFiles) -> Result<Arc<Module>, Failure>;

    /// Returns all available versions of a module, the current one first.
    fn versions(&self, module: &str) -> Result<Vec<ModuleVersion>, Failure>;

    /// Loads one version by id. Like a draft, it may have no more rights than the current one.
    fn version(&self, module: &str, id: &str) -> Result<Arc<Module>, Failure>;

    /// Creates a module from the shortest template, in the first searched folder that may be changed. (E4007 if there is
    /// none)
    fn create(&self, module: &str, tier: Tier, before: BeforeChange<'_>) -> Result<SavedModule, Failure>;

    /// Writes the files, all or none. `hash` is the hash of the folder that the change is based on; if the
    /// folder has changed since, nothing is written. (E4007 if the folder is not editable)
    fn save(
        &self,
        module: &str,
        hash: &str,
        files: &ChangedFiles,
        before: BeforeChange<'_>,
    ) -> Result<SavedModule, Failure>;
}

/// An input of a module with the expectations on its answer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ModuleCase {
    /// Its name within the set.
    pub id: String,
    /// `tests`, or the file that contains it.
    pub set: String,
    /// The input.
    pub input: Value,
    /// The expectations, in their own language.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect: Option<Value>,
}

/// The kind of case that an answer is stored as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseKind {
    /// A golden test: input, expectation, and the recorded reply.
    Golden,
    /// A worked example that the model reads.
    Example,
    /// A line of labelled cases for evaluations.
    Labelled,
}

/// An answer to be stored as a case.
#[derive(Debug, Clone, PartialEq)]
pub struct NewCase {
    /// The kind of case.
    pub kind: CaseKind,
    /// The name.
    pub name: String,
    /// The input.
    pub input: Value,
    /// The answer.
    pub envelope: Value,
    /// The exact text of the model for each called module. Derived from the envelope if it was not recorded.
    pub replies: Option<BTreeMap<String, RecordedReply>>,
}

/// The result of comparing an answer with its expectations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct CaseVerdict {
    /// True if all expectations hold.
    pub right: bool,
    /// The places where they do not.
    pub wrong: Vec<WrongPlace>,
}

/// A mismatch between an envelope and its expectation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct WrongPlace {
    /// The place, as written in the expectation.
    pub place: String,
    /// The expected value.
    pub expected: String,
    /// The actual value.
    pub got: String,
}

/// The result of storing a case.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct KeptCase {
    /// The changed files.
    pub paths: Vec<String>,
    /// The new hash of the folder.
    pub hash: String,
    /// The findings of validation after the change.
    pub findings: Vec<ModuleFinding>,
    /// True if a test was stored with the model's exact text.
    pub recorded: bool,
}

/// Access to the cases of modules: golden tests and labelled cases.
pub trait CaseBook: Send + Sync {
    /// Returns all cases of a module. Omits unreadable ones, which validation reports.
    fn cases(&self, module: &str) -> Result<Vec<ModuleCase>, Failure>;

    /// Judges several answers to one case of a set, each independently. (E1004 if the case does not exist or
    /// has no expectations)
    fn judge(
        &self,
        module: &str,
        set: &str,
        id: &str,
        envelopes: &[Value],
    ) -> Result<Vec<CaseVerdict>, Failure>;

    /// Stores an answer as a case, if the folder may be changed.
    fn keep(&self, module: &str, case: &NewCase, before: BeforeChange<'_>) -> Result<KeptCase, Failure>;
}

/// Returns the manifest member by which a draft has more rights than the installed module; `None` if there is
/// none. The author of a draft may be untrusted, so the installed module limits its rights.
#[must_use]
pub fn widened_right(installed: &Manifest, draft: &Manifest) -> Option<String> {
    if installed.name != draft.name {
        // The operator's rules refer to modules by name.
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

/// Returns whether one list allows a tool that the other does not.
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
    use cognitive_contract::format::Format;

    fn widens(installed: Value, draft: Value) -> Option<String> {
        let manifest = |mut written: Value| {
            written["name"] = written.get("name").cloned().unwrap_or_else(|| json!("m"));
            Manifest::from_value(&written, Format::V22).unwrap()
        };
        widened_right(&manifest(installed), &manifest(draft))
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
