//! The output of the reply reader: JSON events of the value that is being read, the liberties that were taken with
//! it, and findings about the text around it. Events come in the order of the text, and a string's pieces are
//! decoded.

use super::liberty::LibertyRule;

/// An event within an object.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum JsonEvent<'a> {
    /// An object starts that could be the answer; its [`Open`](Self::Open) follows.
    Begin(Lead),
    /// An object or a list opens.
    Open(Bracket),
    /// The name of a member; its value follows.
    Name {
        /// The name, decoded.
        name: &'a str,
        /// The offset at which it starts.
        start: usize,
    },
    /// A text starts.
    TextStart,
    /// The next piece of the current text.
    Text(&'a str),
    /// The current text is complete.
    TextEnd,
    /// A number starts.
    NumberStart,
    /// The current number is complete, as it was written.
    Number(&'a str),
    /// `true` or `false`.
    Bool(bool),
    /// `null`.
    Null,
    /// The innermost object or list is complete.
    Close,
    /// No text before this offset is the answer: it was thinking.
    Void,
}

/// The kind of a bracket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bracket {
    /// `{`
    #[default]
    Object,
    /// `[`
    List,
}

/// The text before an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lead {
    /// True if only blanks, thinking and the mark of a fence come before it.
    pub clean: bool,
}

/// The reason why a value could not be read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakCause {
    /// A byte that is not allowed at its offset.
    Syntax,
    /// The text ends too early.
    End,
    /// Nested deeper than an answer may be.
    TooDeep,
}

/// A text that was meant to be an object but is not one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrokenValue {
    /// The offset at which it opens.
    pub open: usize,
    /// The offset of the error.
    pub at: usize,
    /// The kind of error.
    pub cause: BreakCause,
    /// True if this was meant to be JSON: it has a first name and a colon, and a brace in prose has neither. False
    /// only at the end of the text.
    pub begun: bool,
    /// True if the outermost object has a member `ok` or `meta`, as an envelope has.
    pub enveloped: bool,
    /// True if a tag in it marks it as thinking, so it is no candidate.
    pub is_thought: bool,
}

/// A finding in the text outside of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyFinding<'t> {
    /// A brace that may open an object. It discards the events and liberties of an earlier one.
    Start,
    /// A complete object.
    Object {
        /// The offset at which it opens.
        open: usize,
        /// The offset after it.
        end: usize,
        /// The offset at which the fence around it opens.
        fence: Option<usize>,
        /// True if a name and a colon come directly before it, so that it is a part of a broken value.
        follows_name: bool,
    },
    /// A complete list.
    List {
        /// The offset at which it opens.
        open: usize,
        /// True if it contains an object that has members.
        begun: bool,
    },
    /// A broken value.
    Broken(BrokenValue),
    /// Any other text.
    Prose(usize),
    /// Thinking that was skipped.
    Thinking(usize),
    /// The text ends within thinking.
    StillThinking,
    /// The content of a fence that contains no object.
    UnusedFence(&'t str),
    /// Everything so far was thinking; the reply starts at this offset.
    Void(usize),
}

/// Listens to the reader.
pub trait JsonListener {
    /// Receives the next event; `at` is the offset after it in the reply.
    fn event(&mut self, event: JsonEvent<'_>, at: usize);

    /// Receives a liberty that was taken with the current object; `what` describes it.
    fn liberty(&mut self, _rule: LibertyRule, _at: usize, _what: &'static str) {}

    /// Receives the next finding.
    fn finding(&mut self, _finding: ReplyFinding<'_>) {}
}

/// A listener that ignores everything.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ignore;

impl JsonListener for Ignore {
    fn event(&mut self, _: JsonEvent<'_>, _: usize) {}
}
