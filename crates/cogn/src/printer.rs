//! The only place that writes to the terminal. Data goes to stdout, everything else to stderr.
//! Colour is decided here once: a terminal gets it, a pipe does not, `NO_COLOR` switches it off.

use std::borrow::Cow;
use std::io::{self, Write};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};

/// Errors and `error:`.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// Warnings.
pub const DOUBT: Style = AnsiColor::Yellow.on_default().bold();
/// Successes.
pub const GOOD: Style = AnsiColor::Green.on_default().bold();
/// Hints and names.
pub const NOTE: Style = AnsiColor::Cyan.on_default();
/// Headings.
pub const HEAD: Style = Style::new().bold();
/// What matters less.
pub const FAINT: Style = Style::new().dimmed();

/// How a command ended.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: it worked, and the verdict is good.
    Good,
    /// 1: it worked, and the verdict is bad; or it failed.
    Bad,
    /// 2: the command was not understood.
    Usage,
    /// 130: the user pressed Ctrl-C.
    Cancelled,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Good => Self::SUCCESS,
            Exit::Bad => Self::from(1),
            Exit::Usage => Self::from(2),
            Exit::Cancelled => Self::from(130),
        }
    }
}

/// Writes lines. A reader that went away (`cogn list | head -1`) is no error.
#[derive(Debug, Default)]
pub struct Printer;

impl Printer {
    /// A line of data.
    pub fn out(&self, line: impl AsRef<str>) {
        let _gone_reader_is_fine = writeln!(anstream::stdout().lock(), "{}", harmless(line.as_ref()));
    }

    /// A line for people: progress, notices, errors.
    pub fn err(&self, line: impl AsRef<str>) {
        let _gone_reader_is_fine = writeln!(anstream::stderr().lock(), "{}", harmless(line.as_ref()));
    }

    /// JSON as data, indented.
    pub fn json(&self, value: &impl serde::Serialize) {
        let text =
            serde_json::to_string_pretty(value).unwrap_or_else(|error| format!("{{\"error\": \"{error}\"}}"));
        self.json_text(&text);
    }

    /// JSON text as data. Characters that could act on a terminal are written as escapes, which mean the same.
    pub fn json_text(&self, text: &str) {
        let _gone_reader_is_fine = writeln!(anstream::stdout().lock(), "{}", escaped(text));
    }

    /// One line of JSON, sent at once: somebody reads along.
    pub fn line(&self, text: &str) {
        let mut out = anstream::stdout().lock();
        let _gone_reader_is_fine = writeln!(out, "{}", escaped(text)).and_then(|()| out.flush());
    }

    /// A piece of text for people, shown at once. A piece may be anything, so that it can bring no colours either.
    pub fn piece(&self, text: &str) {
        let shown: String =
            text.chars().map(|c| if acts(c) && c != '\n' && c != '\t' { '\u{fffd}' } else { c }).collect();
        let mut out = anstream::stdout().lock();
        let _gone_reader_is_fine = write!(out, "{shown}").and_then(|()| out.flush());
    }

    /// What went wrong and what to do about it.
    pub fn error(&self, message: &str, hint: Option<&str>) {
        self.err(format!("{BAD}error{BAD:#}: {message}"));
        if let Some(hint) = hint {
            self.err(format!("{NOTE}hint{NOTE:#}: {hint}"));
        }
    }

    /// Something worth knowing.
    pub fn warning(&self, message: &str) {
        self.err(format!("{DOUBT}warning{DOUBT:#}: {message}"));
    }

    /// Whether a person is likely to read stderr.
    #[must_use]
    pub fn for_people(&self) -> bool {
        io::IsTerminal::is_terminal(&io::stderr())
    }
}

/// Whether a character can do more to a terminal than be shown: controls, and marks that reverse the reading order.
fn acts(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A line in which the only escape sequences are colours: text of strangers cannot move the cursor or set a title.
fn harmless(line: &str) -> Cow<'_, str> {
    if !line.contains(acts) {
        return Cow::Borrowed(line);
    }
    let mut safe = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(letter) = rest.chars().next() {
        let colour = colour_length(rest);
        if let Some(sequence) = rest.get(..colour).filter(|sequence| !sequence.is_empty()) {
            safe.push_str(sequence);
            rest = rest.get(colour..).unwrap_or_default();
            continue;
        }
        match letter {
            '\n' | '\t' => safe.push(letter),
            letter if acts(letter) => safe.push('\u{fffd}'),
            letter => safe.push(letter),
        }
        rest = rest.get(letter.len_utf8()..).unwrap_or_default();
    }
    Cow::Owned(safe)
}

/// How long the colour sequence at the start of a text is; 0 if there is none.
fn colour_length(text: &str) -> usize {
    let Some(body) = text.strip_prefix("\u{1b}[") else { return 0 };
    let digits = body.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b';').count();
    if body.as_bytes().get(digits) == Some(&b'm') { 2 + digits + 1 } else { 0 }
}

/// JSON text with every acting character as `\uXXXX`. They occur only inside strings, where the escape means the same.
fn escaped(text: &str) -> Cow<'_, str> {
    let acting = |letter: char| acts(letter) && !matches!(letter, '\n' | '\r' | '\t');
    if !text.contains(acting) {
        return Cow::Borrowed(text);
    }
    let write = |letter: char| {
        if acting(letter) { format!("\\u{:04x}", u32::from(letter)) } else { letter.to_string() }
    };
    Cow::Owned(text.chars().map(write).collect())
}

/// Columns side by side; the last one is not padded. Widths are in characters.
#[must_use]
pub fn table(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| visible(cell)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let last = row.len().saturating_sub(1);
        let cells = row.iter().zip(&widths).enumerate().map(|(index, (cell, width))| {
            let pad = if index == last { 0 } else { width.saturating_sub(visible(cell)) + 2 };
            format!("{cell}{}", " ".repeat(pad))
        });
        cells.collect::<String>().trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// Characters that take up room: escape sequences do not.
fn visible(text: &str) -> usize {
    anstream::adapter::strip_str(text).to_string().chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_cannot_act_on_the_terminal() {
        let colour = format!("{BAD}error{BAD:#}");
        assert_eq!(harmless(&colour), colour);
        let attack = "a\u{1b}]0;title\u{7}b\u{1b}[2Jc\u{9b}d\u{202e}e\u{8}";
        assert!(!harmless(attack).contains(acts), "{:?}", harmless(attack));
    }

    #[test]
    fn escapes_in_json_mean_the_same() {
        let value = serde_json::json!({ "a": "\u{9b}\u{202e}\u{7f}é" });
        let text = escaped(&value.to_string()).into_owned();
        assert!(!text.contains(acts));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
