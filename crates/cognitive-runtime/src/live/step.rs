//! What the scanner tells about an answer while it is being written: one step per token, text in pieces.
//! Says nothing about prose. Steps come in the order of the text, and a string's pieces are decoded.

/// Something that happened in the text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step<'a> {
    /// An object begins that could be the answer; its [`Open`](Self::Open) follows.
    Begin(Lead),
    /// An object or a list opens.
    Open(Bracket),
    /// A member is named; its value follows.
    Name(&'a str),
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
    /// Nothing before this place is the answer: it was thinking.
    Void,
}

/// What opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bracket {
    /// `{`
    Object,
    /// `[`
    List,
}

/// How an object was led up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lead {
    /// Nothing but blanks, thinking and the mark of a fence stands before it.
    pub clean: bool,
}

/// Someone who listens to the scanner.
pub trait Heed {
    /// Takes the next step; `at` is the offset behind it in the reply.
    fn step(&mut self, step: Step<'_>, at: usize);
}

/// Listens to nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deaf;

impl Heed for Deaf {
    fn step(&mut self, _: Step<'_>, _: usize) {}
}
