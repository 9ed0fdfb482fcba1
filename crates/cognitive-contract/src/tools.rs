//! Tools that a model may call while it works on an answer: the tool trait, the host's tool box, and the turns
//! of a tool dialogue.
//! Does not decide which tools a module may use, see [`policy`](crate::policy), and runs none.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cognitive_schema::Section;
use serde::Serialize;
use serde_json::Value;

use crate::policy::{OfferedTool as Asked, ToolClass, ToolLaw};
use crate::port_future::PortFuture;
use crate::violation::{Side, Violation, summarise};

/// The capability name for models that can call tools, in `preferred_capabilities` and in a provider's
/// capabilities.
pub const FUNCTION_CALLING: &str = "function_calling";

/// The maximum number of calls that run in one turn. If a turn has more, the provider passes on one more, which
/// represents all the excess calls. It counts the others in
/// [`ModelEnd::more_calls`](crate::ports::ModelEnd::more_calls). A model could request any number, and each call
/// costs time.
pub const MAX_CALLS: usize = 16;

/// The maximum name length that every service accepts.
const MAX_NAME_LENGTH: usize = 64;

/// A function that a model may call. Its result is data for the model, never instructions to this runtime.
///
/// Dropping the future of [`call`](Tool::call) cancels the call. The future is polled on the thread of the run,
/// so a blocking tool has to use its own thread.
pub trait Tool: Send + Sync {
    /// Returns the description for models and policies. It must be the same every time.
    fn spec(&self) -> ToolSpec;

    /// Runs the tool. The arguments satisfy the tool's schema.
    fn call<'a>(&'a self, arguments: &'a Value) -> PortFuture<'a, Result<Value, ToolError>>;
}

/// The description of a tool, known before it is called.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolSpec {
    /// Letters, digits, `_` and `-`, at most 64; begins with a letter or `_`.
    pub name: String,
    /// Its purpose and when to use it, for the model.
    pub description: String,
    /// The JSON Schema of its arguments, an object.
    pub parameters: Value,
    /// The resources it accesses. It is not offered to a module whose policies deny one of these. (POL-006)
    pub needs: Vec<ToolClass>,
    /// The timeout of one call.
    pub timeout: Duration,
}

impl ToolSpec {
    /// A tool that accesses no resources, with a timeout of ten seconds.
    #[must_use]
    pub fn new(name: &str, description: &str, parameters: Value) -> Self {
        Self {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters,
            needs: Vec::new(),
            timeout: Duration::from_secs(10),
        }
    }

    /// Sets the timeout of one call.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the resources it accesses.
    #[must_use]
    pub fn with_needs(mut self, needs: &[ToolClass]) -> Self {
        self.needs = needs.to_vec();
        self
    }
}

/// The reason why a tool failed. The model reads the text, so that it can correct the call or continue without
/// it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError(String);

impl ToolError {
    /// A reason for the model; must contain no secrets.
    #[must_use]
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ToolError {}

/// The reason why a tool cannot be added to a box.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolBoxError {
    /// Not every service would accept the name.
    Name(String),
    /// The box already contains a tool of this name.
    Twice(String),
    /// The schema of its arguments does not compile, or does not describe an object.
    Parameters {
        /// The tool.
        name: String,
        /// The problem.
        reason: String,
    },
}

impl fmt::Display for ToolBoxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "invalid tool name: `{name}`"),
            Self::Twice(name) => write!(f, "duplicate tool name: `{name}`"),
            Self::Parameters { name, reason } => {
                write!(f, "the parameters of the tool `{name}` are not the schema of an object: {reason}")
            }
        }
    }
}

impl std::error::Error for ToolBoxError {}

/// The tools of a host, by name. Cheap to clone. The box offers no tool by itself: a module has to request it,
/// and its policies have to allow it.
#[derive(Clone, Default)]
pub struct ToolBox {
    tools: BTreeMap<String, Arc<ToolEntry>>,
}

struct ToolEntry {
    tool: Arc<dyn Tool>,
    spec: Arc<ToolSpec>,
    /// The argument schema, compiled before the first call at the latest.
    arguments: OnceLock<Option<Section>>,
}

impl ToolEntry {
    fn arguments(&self) -> Option<&Section> {
        self.arguments.get_or_init(|| arguments(&self.spec).ok()).as_ref()
    }
}

impl fmt::Debug for ToolBox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.tools.keys()).finish()
    }
}

impl ToolBox {
    /// Adds a tool.
    pub fn with(mut self, tool: impl Tool + 'static) -> Result<Self, ToolBoxError> {
        self.add(Arc::new(tool))?;
        Ok(self)
    }

    /// Adds a shared tool, in place.
    pub fn add(&mut self, tool: Arc<dyn Tool>) -> Result<(), ToolBoxError> {
        let spec = tool.spec();
        if !is_name(&spec.name) {
            return Err(ToolBoxError::Name(spec.name));
        }
        if self.tools.contains_key(&spec.name) {
            return Err(ToolBoxError::Twice(spec.name));
        }
        let arguments = arguments(&spec)?;
        self.keep(tool, spec, OnceLock::from(Some(arguments)));
        Ok(())
    }

    /// Adds a tool without checking it. Only for tools that a test adds by [`with`](Self::with). The schema is
    /// compiled at the first call, so unused tools cost nothing.
    #[must_use]
    pub fn with_trusted(mut self, tool: impl Tool + 'static) -> Self {
        let spec = tool.spec();
        self.keep(Arc::new(tool), spec, OnceLock::new());
        self
    }

    fn keep(&mut self, tool: Arc<dyn Tool>, spec: ToolSpec, arguments: OnceLock<Option<Section>>) {
        let name = spec.name.clone();
        self.tools.insert(name, Arc::new(ToolEntry { tool, spec: Arc::new(spec), arguments }));
    }

    /// Returns the tools that the rules allow, sorted by name.
    #[must_use]
    pub fn offered_tools(&self, law: &ToolLaw<'_>) -> Vec<Arc<ToolSpec>> {
        let specs = self.tools.values().map(|kept| &kept.spec);
        specs.filter(|spec| law.refusal(tool_question(spec)).is_none()).map(Arc::clone).collect()
    }

    /// Returns the description of a tool.
    #[must_use]
    pub fn spec(&self, name: &str) -> Option<&ToolSpec> {
        self.tools.get(name).map(|kept| kept.spec.as_ref())
    }

    /// Returns all descriptions, sorted by name.
    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.tools.values().map(|kept| kept.spec.as_ref())
    }

    /// Returns the tool itself.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&dyn Tool> {
        self.tools.get(name).map(|kept| kept.tool.as_ref())
    }

    /// Returns the violations in the arguments of a call, as text for the model; `None` if there are none.
    #[must_use]
    pub fn objection(&self, name: &str, arguments: &Value) -> Option<String> {
        let Some(section) = self.tools.get(name)?.arguments() else {
            return Some("the tool has no parameter schema".to_owned());
        };
        let violations = Violation::find(section, arguments, Side::Input);
        (!violations.is_empty()).then(|| summarise(&violations.iter().collect::<Vec<_>>()))
    }
}

/// Converts a description into the form that the policy rules check.
#[must_use]
pub fn tool_question(spec: &ToolSpec) -> Asked<'_> {
    Asked { name: &spec.name, classes: &spec.needs }
}

fn is_name(name: &str) -> bool {
    let first = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
    let other = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    name.len() <= MAX_NAME_LENGTH && name.starts_with(first) && name.chars().all(other)
}

fn arguments(spec: &ToolSpec) -> Result<Section, ToolBoxError> {
    let bad = |reason: String| ToolBoxError::Parameters { name: spec.name.clone(), reason };
    if spec.parameters.get("type").and_then(Value::as_str) != Some("object") {
        return Err(bad("`type` must be `object`".to_owned()));
    }
    Section::standalone(&spec.parameters).map_err(|problems| {
        bad(problems.into_iter().map(|problem| problem.message).collect::<Vec<_>>().join("; "))
    })
}

/// A call that a model requested. All fields are the model's own text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolCall {
    /// The id by which the service distinguishes the calls of one turn; may be empty.
    pub id: String,
    /// The name of the requested tool.
    pub name: String,
    /// The arguments as JSON text, possibly invalid.
    pub arguments: String,
    /// True if the call exceeds the length limit. It then has no arguments and is not run.
    pub too_long: bool,
}

impl ToolCall {
    /// A call as the model wrote it.
    #[must_use]
    pub fn new(id: &str, name: &str, arguments: &str) -> Self {
        let [id, name, arguments] = [id, name, arguments].map(str::to_owned);
        Self { id, name, arguments, too_long: false }
    }
}

/// The reply to a call for the model: a result, or the reason why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolReply {
    /// JSON text.
    pub content: String,
    /// True if the content is a result.
    pub ok: bool,
}

impl ToolReply {
    /// A result, or the reason why there is none, as JSON text.
    #[must_use]
    pub fn new(content: impl Into<String>, ok: bool) -> Self {
        Self { content: content.into(), ok }
    }
}

/// One turn in which a model called tools, with the replies.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolRound {
    /// The turn in the service's own format, to be sent back unchanged; null if the service needs none.
    pub turn: Value,
    /// Each call with its reply, in the order of the calls.
    pub calls: Vec<(ToolCall, ToolReply)>,
}

impl ToolRound {
    /// A turn with its replies.
    #[must_use]
    pub fn new(turn: Value, calls: Vec<(ToolCall, ToolReply)>) -> Self {
        Self { turn, calls }
    }
}

/// A record of a call: tool, outcome and duration. No arguments and no results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ToolUse {
    /// The name as the model wrote it, truncated at the first character that a name cannot contain.
    pub name: String,
    /// The outcome.
    pub outcome: ToolOutcome,
    /// The duration.
    #[serde(rename = "elapsed_ms", serialize_with = "crate::usage::as_milliseconds")]
    pub elapsed: Duration,
    /// The number of calls that this record represents: more than one only for excess calls of a turn.
    #[serde(skip_serializing_if = "is_one")]
    pub calls: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_one(count: &u64) -> bool {
    *count == 1
}

impl ToolUse {
    /// A record of one call. The name may be any text of a model.
    #[must_use]
    pub fn new(name: &str, outcome: ToolOutcome, elapsed: Duration) -> Self {
        let fits = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.' | ':');
        let name = name.chars().take_while(fits).take(MAX_NAME_LENGTH).collect();
        Self { name, outcome, elapsed, calls: 1 }
    }

    /// Sets the number of calls that the record represents.
    #[must_use]
    pub fn standing_for(mut self, calls: u64) -> Self {
        self.calls = calls;
        self
    }
}

/// The outcome of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolOutcome {
    /// The tool returned a result.
    Ok,
    /// The tool reported an error.
    Failed,
    /// The module may not use it. (POL-004)
    Denied,
    /// No such tool exists.
    Unknown,
    /// The arguments do not satisfy the tool's schema.
    InvalidArguments,
    /// The call timed out.
    TimedOut,
    /// The result exceeds the size limit for the model.
    TooLarge,
    /// The turn contained too many calls.
    TooMany,
}

#[cfg(test)]
mod tests;
