//! Templates of other tools, read as a list of marks and said again in words. Evaluates nothing, loads nothing, and calls nothing:
//! a template is text here.
//!
//! [`jinja`] and [`braces`] find the marks, [`rephrase`](mod@rephrase) writes them down for a model that gets the input as data.

pub(crate) mod braces;
pub(crate) mod expression;
pub(crate) mod jinja;
pub(crate) mod rephrase;
pub(crate) mod turns;

use cognitive_contract::Failure;

use crate::source::{bare, quote, refuse};

/// The most marks of one template.
const MAX_MARKS: usize = 20_000;
/// The longest tag whose quoted texts are respected.
const MAX_TAG: usize = 20_000;

/// What stands at one place of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TemplateTag {
    /// Text that is sent as it is.
    Text(String),
    /// A value, by its expression.
    Value(String),
    /// What follows is there if this holds.
    If(String),
    /// What follows is there if this does not hold.
    Unless(String),
    /// The next branch of an `If`.
    ElseIf(String),
    /// The last branch.
    Else,
    /// What follows is there once for each entry of a list. Without a name the entry is the scope.
    Each {
        /// The name of an entry.
        item: Option<String>,
        /// The list.
        list: String,
    },
    /// Names that follow belong to this value.
    With(String),
    /// A section of Mustache: a condition, a loop or a scope, as the value decides.
    Section(String),
    /// The end of what was begun last.
    End,
    /// What follows is said by this role.
    Role(String),
    /// The end of a role that encloses its text.
    RoleEnd,
    /// A picture, sound or document, by the expression of its address.
    Media(String),
    /// The conversation so far.
    History,
    /// A description of the answer's form.
    OutputFormat,
    /// Another template.
    Include(String),
    /// A note for authors.
    Comment,
    /// Anything else that an engine would do.
    Statement,
}

/// A tag, as it was written and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TemplateMark {
    /// What it is.
    pub(crate) tag: TemplateTag,
    /// The text of the template.
    pub(crate) written: String,
    /// Its line, from 1.
    pub(crate) line: usize,
}

/// The marks of a template as they are found.
struct MarkList<'t> {
    text: &'t str,
    file: &'t str,
    marks: Vec<TemplateMark>,
    /// How far lines were counted, and how many.
    counted: (usize, usize),
    /// Whether space at the start of the next text goes.
    trims_next: bool,
}

impl<'t> MarkList<'t> {
    fn new(text: &'t str, file: &'t str, first_line: usize) -> Self {
        Self { text, file, marks: Vec::new(), counted: (0, first_line), trims_next: false }
    }

    fn line_at(&mut self, at: usize) -> usize {
        let (from, lines) = self.counted;
        if let Some(between) = self.text.get(from..at) {
            self.counted = (at, lines + between.matches('\n').count());
        }
        self.counted.1
    }

    fn text(&mut self, from: usize, to: usize) -> Result<(), Failure> {
        let text = self.text.get(from..to).unwrap_or_default();
        let text = if std::mem::take(&mut self.trims_next) { text.trim_start() } else { text };
        if text.is_empty() {
            return Ok(());
        }
        self.push(TemplateTag::Text(text.to_owned()), from, to)
    }

    fn push(&mut self, tag: TemplateTag, from: usize, to: usize) -> Result<(), Failure> {
        if self.marks.len() == MAX_MARKS {
            let message = format!("the template of {} has more than {MAX_MARKS} tags", quote(self.file));
            return Err(refuse(message, "Make it simpler"));
        }
        let line = self.line_at(from);
        let written = self.text.get(from..to).unwrap_or_default().to_owned();
        self.marks.push(TemplateMark { tag, written, line });
        Ok(())
    }

    /// A tag that begins with a hyphen or tilde takes the space before it away.
    fn trim_last(&mut self) {
        if let Some(TemplateMark { tag: TemplateTag::Text(text), .. }) = self.marks.last_mut() {
            text.truncate(text.trim_end().len());
        }
    }

    fn endless(&mut self, at: usize) -> Failure {
        let line = self.line_at(at);
        refuse(format!("{}:{line} begins a tag that has no end", bare(self.file)), "Close the tag")
    }
}

/// Where `close` stands outside of quoted texts, seen from `from`.
fn find_outside_quotes(text: &str, from: usize, close: &str) -> Option<usize> {
    let mut quote = None;
    let mut skipped = false;
    for (offset, letter) in text.get(from..)?.char_indices().take(MAX_TAG) {
        if std::mem::take(&mut skipped) {
            continue;
        }
        match quote {
            Some(open) => {
                skipped = letter == '\\';
                quote = Some(open).filter(|open| *open != letter);
            }
            None if text.get(from + offset..)?.starts_with(close) => return Some(from + offset),
            None if matches!(letter, '"' | '\'') => quote = Some(letter),
            None => {}
        }
    }
    // An apostrophe in prose between two braces opens no quoted text.
    text.get(from..)?.find(close).map(|offset| from + offset)
}
