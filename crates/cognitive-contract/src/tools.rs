//! Tools that a model may call while it works on an answer: what a tool is, the box that a host hands in, and what a
//! dialogue with tools consists of. Whether a module may use a tool is the law of [`policy`](crate::policy); nothing
//! here runs one.

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

/// The word in `preferred_capabilities` and among a provider's capabilities for a model that can call tools.
pub const FUNCTION_CALLING: &str = "function_calling";

/// How many calls of one turn are made. Whoever hands over a turn with more hands over one more, which stands for all the
/// others, and counts these in [`ModelEnd::more_calls`](crate::ports::ModelEnd::more_calls).
pub const MAX_CALLS: usize = 16;

/// The longest name that every service takes.
const MAX_NAME_LENGTH: usize = 64;

/// Something that a model may call. What it returns is data to the model, never instructions to this runtime.
///
/// Dropping the future of [`call`](Tool::call) cancels the call. It is polled on the thread of the run, so a tool that
/// has to block does so on a thread of its own.
pub trait Tool: Send + Sync {
    /// What a model and the policies are told of it. The same every time.
    fn spec(&self) -> ToolSpec;

    /// Does it. The arguments satisfy the schema of the tool.
    fn call<'a>(&'a self, arguments: &'a Value) -> PortFuture<'a, Result<Value, ToolError>>;
}

/// What is known of a tool before it is called.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolSpec {
    /// Letters, digits, `_` and `-`, at most 64; begins with a letter or `_`.
    pub name: String,
    /// What it does and when it is of use, for the model.
    pub description: String,
    /// The JSON Schema of its arguments, an object.
    pub parameters: Value,
    /// What it touches. A module whose policies deny one of these is not offered the tool. (POL-006)
    pub needs: Vec<ToolClass>,
    /// How long one call may take.
    pub timeout: Duration,
}

impl ToolSpec {
    /// A tool that touches nothing and takes no longer than ten seconds.
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

    /// Says how long one call may take.
    #[must_use]
    pub fn within(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Says what it touches.
    #[must_use]
    pub fn needing(mut self, needs: &[ToolClass]) -> Self {
        self.needs = needs.to_vec();
        self
    }
}

/// Why a tool did not do it. The model reads the text, so that it can do better or do without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError(String);

impl ToolError {
    /// A reason that a model may read: no secrets.
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

/// A tool that cannot be put into a box.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolBoxError {
    /// Not every service would take the name.
    Name(String),
    /// There is one of this name already.
    Twice(String),
    /// The schema of its arguments does not compile, or is not one of an object.
    Parameters {
        /// The tool.
        name: String,
        /// What is wrong.
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

/// The tools of a host, by name. Cheap to clone. Being in the box offers a tool to nobody: a module has to ask for it,
/// and its policies have to let it.
#[derive(Clone, Default)]
pub struct ToolBox {
    tools: BTreeMap<String, Arc<Kept>>,
}

struct Kept {
    tool: Arc<dyn Tool>,
    spec: Arc<ToolSpec>,
    /// Compiled at the latest when the tool is first called.
    arguments: OnceLock<Option<Section>>,
}

impl Kept {
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
    /// Puts a tool in.
    pub fn with(mut self, tool: impl Tool + 'static) -> Result<Self, ToolBoxError> {
        self.add(Arc::new(tool))?;
        Ok(self)
    }

    /// The same for a tool that is shared, or a box that stays where it is.
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

    /// Puts in a tool that is known to fit, because a test puts it in by [`with`](Self::with). Nothing is compiled before
    /// it is first called, so that a program that never does pays nothing.
    #[must_use]
    pub fn trusting(mut self, tool: impl Tool + 'static) -> Self {
        let spec = tool.spec();
        self.keep(Arc::new(tool), spec, OnceLock::new());
        self
    }

    fn keep(&mut self, tool: Arc<dyn Tool>, spec: ToolSpec, arguments: OnceLock<Option<Section>>) {
        let name = spec.name.clone();
        self.tools.insert(name, Arc::new(Kept { tool, spec: Arc::new(spec), arguments }));
    }

    /// The tools that the law allows, in the order of their names.
    #[must_use]
    pub fn offered(&self, law: &ToolLaw<'_>) -> Vec<Arc<ToolSpec>> {
        let specs = self.tools.values().map(|kept| &kept.spec);
        specs.filter(|spec| law.refusal(asked(spec)).is_none()).map(Arc::clone).collect()
    }

    /// What is known of a tool.
    #[must_use]
    pub fn spec(&self, name: &str) -> Option<&ToolSpec> {
        self.tools.get(name).map(|kept| kept.spec.as_ref())
    }

    /// All of them, in the order of their names.
    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.tools.values().map(|kept| kept.spec.as_ref())
    }

    /// The tool itself.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&dyn Tool> {
        self.tools.get(name).map(|kept| kept.tool.as_ref())
    }

    /// What is wrong with the arguments of a call, in words for the model; `None` if nothing is.
    #[must_use]
    pub fn objection(&self, name: &str, arguments: &Value) -> Option<String> {
        let Some(section) = self.tools.get(name)?.arguments() else {
            return Some("nobody can say what they should be".to_owned());
        };
        let violations = Violation::find(section, arguments, Side::Input);
        (!violations.is_empty()).then(|| summarise(&violations.iter().collect::<Vec<_>>()))
    }
}

/// A tool in the words of the law.
#[must_use]
pub fn asked(spec: &ToolSpec) -> Asked<'_> {
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
        return Err(bad("`type` has to be `object`".to_owned()));
    }
    Section::alone(&spec.parameters).map_err(|problems| {
        bad(problems.into_iter().map(|problem| problem.message).collect::<Vec<_>>().join("; "))
    })
}

/// A call that a model asks for. All of it is what the model wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// How the service tells calls of one turn apart; may be empty.
    pub id: String,
    /// The tool that is meant.
    pub name: String,
    /// The arguments as JSON text, or what the model took for it.
    pub arguments: String,
    /// Whether the model wrote more than is read of a call. Then there are no arguments, and nothing is called.
    pub too_long: bool,
}

impl ToolCall {
    /// A call that is there as the model wrote it.
    #[must_use]
    pub fn new(id: &str, name: &str, arguments: &str) -> Self {
        let [id, name, arguments] = [id, name, arguments].map(str::to_owned);
        Self { id, name, arguments, too_long: false }
    }
}

/// What a model is told of a call: a result, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolReply {
    /// JSON text.
    pub content: String,
    /// Whether it is a result.
    pub ok: bool,
}

/// One turn in which a model asked for tools, and what it was told.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolRound {
    /// The turn in the service's own words, to be sent back as it was; null where a service has none of its own.
    pub turn: Value,
    /// Each call with its reply, in the order of the calls.
    pub calls: Vec<(ToolCall, ToolReply)>,
}

/// A call in the books: which tool, how it went, how long it took. No arguments and no results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ToolUse {
    /// The name as the model wrote it, cut where no name goes on.
    pub name: String,
    /// How it went.
    pub outcome: ToolOutcome,
    /// How long it took.
    #[serde(rename = "elapsed_ms", serialize_with = "crate::usage::as_milliseconds")]
    pub elapsed: Duration,
    /// How many calls the entry stands for: one, except for those of a turn that were one too many.
    #[serde(skip_serializing_if = "is_one")]
    pub calls: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_one(count: &u64) -> bool {
    *count == 1
}

impl ToolUse {
    /// An entry. The name may be anything that a model wrote.
    #[must_use]
    pub fn new(name: &str, outcome: ToolOutcome, elapsed: Duration) -> Self {
        let fits = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.' | ':');
        let name = name.chars().take_while(fits).take(MAX_NAME_LENGTH).collect();
        Self { name, outcome, elapsed, calls: 1 }
    }

    /// The same for so many calls.
    #[must_use]
    pub fn standing_for(mut self, calls: u64) -> Self {
        self.calls = calls;
        self
    }
}

/// How a call of a tool went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolOutcome {
    /// There is a result.
    Ok,
    /// The tool said that it could not.
    Failed,
    /// The module may not use it. (POL-004)
    Denied,
    /// There is no such tool here.
    Unknown,
    /// The arguments do not satisfy the tool's schema.
    InvalidArguments,
    /// It took too long.
    TimedOut,
    /// The result is longer than a model is told.
    TooLarge,
    /// There were too many calls in one turn.
    TooMany,
}

#[cfg(test)]
mod tests;
