//! The directives of a prompt: `@call:name(arguments)[options]` and `{{name.path}}`. (COMP-060 to COMP-062, PROMPT-009)
//! One pass over `prompt.md` only: input, context and results of calls are never scanned, so nothing in them can become
//! a call. Braces that name no result, as in code, remain text.

use std::ops::Range;
use std::time::Duration;

use serde_json::Value;

use super::cursor::{Cursor, Slip};
use super::path::Path;
use crate::manifest::Tier;

/// The default timeout of a call. Without it, one slow part would use up the time of the whole composition.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// A call of another module.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// The module.
    pub module: String,
    /// The argument.
    pub argument: Argument,
    /// The text between the parentheses; `None` without them.
    pub written: Option<String>,
    /// The options of the call.
    pub options: CallOptions,
    /// The position in the prompt.
    pub span: Range<usize>,
}

/// The argument of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Argument {
    /// The caller's input: `$INPUT`, no parentheses, or empty ones.
    Input,
    /// The user's text: `$ARGUMENTS`.
    Arguments,
    /// A part of the preceding call's envelope or, if it is missing there, of the input. (COMP-066)
    Path(Path),
    /// This text.
    Text(String),
}

/// The options of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallOptions {
    /// True if the next call does not wait for this one.
    pub is_async: bool,
    /// The timeout.
    pub timeout: Duration,
    /// True if the caller can run without it.
    pub optional: bool,
    /// Overrides the module's tier.
    pub tier: Option<Tier>,
}

impl Default for CallOptions {
    fn default() -> Self {
        Self { is_async: false, timeout: DEFAULT_TIMEOUT, optional: false, tier: None }
    }
}

/// A placeholder for a value of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Insert {
    /// The module whose envelope is read.
    pub module: String,
    /// The path to the value within the envelope.
    pub path: Path,
    /// The position in the prompt.
    pub span: Range<usize>,
}

/// A piece of a prompt, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptPiece<'a> {
    /// Literal text.
    Text(&'a str),
    /// A call.
    Call(&'a Call),
    /// A value to insert.
    Insert(&'a Insert),
}

/// The directives of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Directives {
    /// The calls, in order.
    pub calls: Vec<Call>,
    /// The values to insert, in order.
    pub inserts: Vec<Insert>,
    /// Malformed calls, each with its position. They remain text.
    pub slips: Vec<Slip>,
}

/// Parses a prompt.
#[must_use]
pub fn directives(prompt: &str) -> Directives {
    let mut found = Directives::default();
    let mut parentheses = Parentheses::parse(prompt);
    let mut at = 0;
    while let Some(offset) = prompt.get(at..).and_then(|rest| rest.find(['@', '{'])) {
        let start = at + offset;
        at = start + 1;
        if let Some((end, call)) = call(prompt, start, &mut parentheses) {
            at = end;
            match call {
                Ok(call) => found.calls.push(call),
                Err(slip) => found.slips.push(slip),
            }
        } else if let Some(insert) = insert(prompt, start) {
            at = insert.span.end;
            found.inserts.push(insert);
        }
    }
    found
}

impl Directives {
    /// Splits the prompt that was parsed into pieces. Callers must not scan inserted values again.
    #[must_use]
    pub fn pieces<'a>(&'a self, prompt: &'a str) -> Vec<PromptPiece<'a>> {
        let calls = self.calls.iter().map(|call| (&call.span, PromptPiece::Call(call)));
        let inserts = self.inserts.iter().map(|insert| (&insert.span, PromptPiece::Insert(insert)));
        let mut marked: Vec<_> = calls.chain(inserts).collect();
        marked.sort_by_key(|(span, _)| span.start);
        let mut pieces = Vec::new();
        let mut at = 0;
        let text = |from: usize, to: usize, pieces: &mut Vec<PromptPiece<'a>>| {
            pieces.extend(prompt.get(from..to).filter(|text| !text.is_empty()).map(PromptPiece::Text));
        };
        for (span, piece) in marked {
            text(at, span.start, &mut pieces);
            pieces.push(piece);
            at = span.end;
        }
        text(at, prompt.len(), &mut pieces);
        pieces
    }
}

impl Insert {
    /// Returns the text to insert: a text as it is, other values as JSON, `None` if the value is missing.
    #[must_use]
    pub fn text(&self, envelope: &Value) -> Option<String> {
        let value = self.path.find(envelope)?;
        Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    }
}

/// Parses a module name. Names are ASCII, so that a call can appear inside a sentence of any script.
fn name<'a>(cursor: &mut Cursor<'a>) -> Option<&'a str> {
    let name = cursor.take_while(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'));
    name.starts_with(|first: char| first.is_ascii_alphanumeric()).then_some(name)
}

/// Parses a call at `start`, if one begins there. Also returns where to continue: after the call even if it is
/// malformed, so that nothing is scanned twice.
fn call(prompt: &str, start: usize, parentheses: &mut Parentheses) -> Option<(usize, Result<Call, Slip>)> {
    let mut cursor = Cursor::new(prompt, start);
    // `someone@call:x` is an email address.
    let before = prompt.get(..start)?.chars().next_back();
    if !cursor.skip_token("@call:")
        || before.is_some_and(|before| before.is_ascii_alphanumeric() || before == '_')
    {
        return None;
    }
    let module = name(&mut cursor)?;
    let call = call_of(module, start, prompt, &mut cursor, parentheses);
    Some((cursor.at(), call))
}

fn call_of<'a>(
    module: &str,
    start: usize,
    prompt: &'a str,
    cursor: &mut Cursor<'a>,
    parentheses: &mut Parentheses,
) -> Result<Call, Slip> {
    let open = cursor.at();
    let mut written = None;
    if cursor.skip_token("(") {
        let message = "expected a closing `)` on the same line";
        let close = parentheses.closing_position(open).ok_or_else(|| Slip::new(start..open + 1, message))?;
        written = prompt.get(open + 1..close).map(|text| text.trim().to_owned());
        *cursor = Cursor::new(prompt, close + 1);
    }
    let argument = match written.as_deref() {
        None => Argument::Input,
        Some(text) => argument(text).map_err(|slip| Slip::new(start..cursor.at(), slip.message))?,
    };
    let options = if cursor.skip_token("[") { options(cursor)? } else { CallOptions::default() };
    Ok(Call { module: module.to_owned(), argument, written, options, span: start..cursor.at() })
}

fn argument(text: &str) -> Result<Argument, Slip> {
    match text {
        "" | "$INPUT" => Ok(Argument::Input),
        "$ARGUMENTS" => Ok(Argument::Arguments),
        "$" => Path::parse(text).map(Argument::Path),
        _ if text.starts_with("$.") || text.starts_with("$[") => Path::parse(text).map(Argument::Path),
        _ => Ok(Argument::Text(text.to_owned())),
    }
}

/// Parses the text between `[` and `]`.
fn options(cursor: &mut Cursor<'_>) -> Result<CallOptions, Slip> {
    const KNOWN: &str = "`async`, `optional`, `timeout=30s` or `tier=exec|decision|exploration`";
    let mut options = CallOptions::default();
    loop {
        cursor.skip_space();
        let start = cursor.at();
        let is_option =
            |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '=' | '-' | '_' | '.' | ' ');
        let word = cursor.take_while(is_option).trim_end();
        let wrong = || Slip::new(start..start + word.len(), format!("expected {KNOWN}"));
        match word.split_once('=').map_or((word, None), |(name, value)| (name.trim(), Some(value.trim()))) {
            ("async", None) => options.is_async = true,
            ("optional", None) => options.optional = true,
            ("timeout", Some(value)) => options.timeout = seconds(value).ok_or_else(wrong)?,
            ("tier", Some(value)) => options.tier = Some(tier(value).ok_or_else(wrong)?),
            _ => return Err(wrong()),
        }
        if cursor.skip_token("]") {
            return Ok(options);
        }
        if !cursor.skip_token(",") {
            return Err(cursor.expected_error("`,` or `]` on the same line"));
        }
    }
}

fn seconds(text: &str) -> Option<Duration> {
    let digits = text.strip_suffix('s')?;
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse::<u32>().ok())?.map(|count| Duration::from_secs(count.into()))
}

fn tier(word: &str) -> Option<Tier> {
    [Tier::Exec, Tier::Decision, Tier::Exploration].into_iter().find(|tier| tier.word() == word)
}

/// Parses a placeholder at `start`, if one begins there.
fn insert(prompt: &str, start: usize) -> Option<Insert> {
    let mut cursor = Cursor::new(prompt, start);
    if !cursor.skip_token("{{") {
        return None;
    }
    cursor.take_while(|letter| letter == ' ');
    let module = name(&mut cursor)?.to_owned();
    let path = Path::read_steps(&mut cursor).ok()?;
    cursor.take_while(|letter| letter == ' ');
    cursor.skip_token("}}").then(|| Insert { module, path, span: start..cursor.at() })
}

/// Matching parentheses, found in one pass. A pair never spans lines, so that an unclosed one does not swallow the
/// prompt.
struct Parentheses {
    /// The positions of opening and closing parentheses, ordered by the opening one.
    pairs: Vec<(usize, Option<usize>)>,
    /// Pairs before this index have been passed.
    next: usize,
}

impl Parentheses {
    fn parse(text: &str) -> Self {
        let mut pairs: Vec<(usize, Option<usize>)> = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        for (at, byte) in text.bytes().enumerate() {
            match byte {
                b'(' => {
                    open.push(pairs.len());
                    pairs.push((at, None));
                }
                b')' => {
                    if let Some((_, close)) = open.pop().and_then(|index| pairs.get_mut(index)) {
                        *close = Some(at);
                    }
                }
                b'\n' => open.clear(),
                _ => {}
            }
        }
        Self { pairs, next: 0 }
    }

    /// Returns the closing position for the parenthesis at `at`. Positions must be queried from left to right.
    fn closing_position(&mut self, at: usize) -> Option<usize> {
        while self.pairs.get(self.next).is_some_and(|(open, _)| *open < at) {
            self.next += 1;
        }
        self.pairs.get(self.next).filter(|(open, _)| *open == at).and_then(|(_, close)| *close)
    }
}

#[cfg(test)]
mod tests;
