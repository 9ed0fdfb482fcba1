//! Reads templates of other tools as a list of marks, and rewrites them in words. Evaluates, loads and calls nothing: a
//! template is only text here.
//!
//! [`jinja`] and [`braces`] find the marks, [`rephrase`](mod@rephrase) rewrites them for a model that gets the input as
//! data.

pub(crate) mod braces;
pub(crate) mod expression;
pub(crate) mod jinja;
pub(crate) mod rephrase;
pub(crate) mod turns;

use cognitive_contract::Failure;

use crate::source::{literal_text, quote, refuse};

/// The maximum number of marks in one template. Each tag becomes a part of the prompt, and no real template has a
/// hundredth of them.
const MAX_MARKS: usize = 20_000;
/// The maximum length of a tag in which quoted strings are recognised. Without it, each unclosed tag would be
/// searched to the end of the file.
const MAX_TAG: usize = 20_000;

/// One element of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TemplateTag {
    /// Plain text.
    Text(String),
    /// A value, with its expression.
    Value(String),
    /// The start of a block that applies if the condition holds.
    If(String),
    /// The start of a block that applies if the condition does not hold.
    Unless(String),
    /// The next branch of an `If`.
    ElseIf(String),
    /// The last branch.
    Else,
    /// The start of a block that repeats for each entry of a list. Without a name, the entry is the scope.
    Each {
        /// The name of an entry.
        item: Option<String>,
        /// The list.
        list: String,
    },
    /// The start of a block in which names belong to this value.
    With(String),
    /// A Mustache section: a condition, a loop or a scope, depending on the value.
    Section(String),
    /// The end of the innermost block.
    End,
    /// The start of text by this role.
    Role(String),
    /// The end of a role that encloses its text.
    RoleEnd,
    /// An image, sound or document, with the expression of its address.
    Media(String),
    /// The conversation history.
    History,
    /// A description of the output format.
    OutputFormat,
    /// Another template.
    Include(String),
    /// A comment for authors.
    Comment,
    /// Any other statement of the engine.
    Statement,
}

/// A tag with its source text and line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TemplateMark {
    /// The parsed tag.
    pub(crate) tag: TemplateTag,
    /// The source text of the tag.
    pub(crate) written: String,
    /// Its line, from 1.
    pub(crate) line: usize,
}

/// Collects the marks of a template.
struct MarkList<'t> {
    text: &'t str,
    file: &'t str,
    marks: Vec<TemplateMark>,
    /// The position up to which lines were counted, and their number.
    counted: (usize, usize),
    /// True if whitespace at the start of the next text is removed.
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
            return Err(refuse(message, "Simplify it"));
        }
        let line = self.line_at(from);
        let written = self.text.get(from..to).unwrap_or_default().to_owned();
        self.marks.push(TemplateMark { tag, written, line });
        Ok(())
    }

    /// Removes whitespace before a tag that starts with a hyphen or tilde.
    fn trim_last(&mut self) {
        if let Some(TemplateMark { tag: TemplateTag::Text(text), .. }) = self.marks.last_mut() {
            text.truncate(text.trim_end().len());
        }
    }

    fn endless(&mut self, at: usize) -> Failure {
        let line = self.line_at(at);
        refuse(format!("{}:{line} begins an unterminated tag", literal_text(self.file)), "Close the tag")
    }
}

/// The position of `close` outside quoted strings, starting at `from`.
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
    // An apostrophe in prose between two braces starts no quoted string.
    text.get(from..)?.find(close).map(|offset| from + offset)
}
