//! What the reader of replies tells: JSON events of the value that is being read, the liberties that were taken with it, and
//! findings about the text around it. Events come in the order of the text, and a string's pieces are decoded.

use super::liberty::LibertyRule;

/// Something that happened within an object.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum JsonEvent<'a> {
    /// An object begins that could be the answer; its [`Open`](Self::Open) follows.
    Begin(Lead),
    /// An object or a list opens.
    Open(Bracket),
    /// A member is named; its value follows.
    Name {
        /// The name, decoded.
        name: &'a str,
        /// The offset at which it starts.
        start: usize,
    },
    /// A text begins.
    TextStart,
    /// The next piece of the present text.
    Text(&'a str),
    /// The present text is complete.
    TextEnd,
    /// A number begins.
    NumberStart,
    /// The present number is complete, as it was written.
    Number(&'a str),
    /// `true` or `false`.
    Bool(bool),
    /// `null`.
    Null,
    /// The innermost object or list is complete.
    Close,
    /// Nothing before this offset is the answer: it was thinking.
    Void,
}

/// What opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bracket {
    /// `{`
    #[default]
    Object,
    /// `[`
    List,
}

/// How an object was led up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lead {
    /// Nothing but blanks, thinking and the mark of a fence comes before it.
    pub clean: bool,
}

/// Why a value could not be read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakCause {
    /// A byte that is not allowed at its offset.
    Syntax,
    /// The text ends too early.
    End,
    /// Nested deeper than an answer may be.
    TooDeep,
}

/// Something that was meant to be an object and is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrokenValue {
    /// Where it opens.
    pub open: usize,
    /// Where it went wrong.
    pub at: usize,
    /// What was wrong.
    pub cause: BreakCause,
    /// Whether this was meant to be JSON: a first name and its colon were there. A brace in prose has neither. False only
    /// where the text ends.
    pub begun: bool,
    /// Whether the outermost object has a member `ok` or `meta`, as an envelope has.
    pub enveloped: bool,
    /// Whether a tag in it says that it was thinking, and thus no candidate.
    pub is_thought: bool,
}

/// What was found in the text, besides what is within an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyFinding<'t> {
    /// A brace that may open an object. The events and liberties of an earlier one do not count any more.
    Start,
    /// A complete object.
    Object {
        /// Where it opens.
        open: usize,
        /// The offset behind it.
        end: usize,
        /// Where the fence opens around it.
        fence: Option<usize>,
        /// Whether a name and a colon come right before it, so that it is a part of something broken.
        follows_name: bool,
    },
    /// A complete list.
    List {
        /// Where it opens.
        open: usize,
        /// Whether there is an object in it that has members.
        begun: bool,
    },
    /// Something that broke.
    Broken(BrokenValue),
    /// Text that is none of all this.
    Prose(usize),
    /// Thinking that was left out.
    Thinking(usize),
    /// The text ends within thinking.
    StillThinking,
    /// The content of a fence in which there is no object.
    UnusedFence(&'t str),
    /// Everything so far was thinking; the reply starts at this offset.
    Void(usize),
}

/// Listens to the reader.
pub trait JsonListener {
    /// The next event; `at` is the offset behind it in the reply.
    fn event(&mut self, event: JsonEvent<'_>, at: usize);

    /// A liberty was taken at an offset with the object that is being read; `what` says it in words.
    fn liberty(&mut self, _rule: LibertyRule, _at: usize, _what: &'static str) {}

    /// The next finding.
    fn finding(&mut self, _finding: ReplyFinding<'_>) {}
}

/// Listens to nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ignore;

impl JsonListener for Ignore {
    fn event(&mut self, _: JsonEvent<'_>, _: usize) {}
}
