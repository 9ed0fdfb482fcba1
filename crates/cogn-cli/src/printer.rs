//! The only place that writes to the terminal. Data goes to stdout, everything else to stderr.
//! Colour is decided here once: a terminal gets it, a pipe does not, `NO_COLOR` switches it off.
//! What stdout does not take is never passed over: the first trouble is kept, and the command ends with it.

use std::borrow::Cow;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::OnceLock;

use anstyle::{AnsiColor, Style};
use cognitive_contract::text::acts_on_terminal as acts;

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
    /// 141: whoever read stdout went away. The same number as of a program that the system ends for this.
    Unheard,
    /// 128 and a number: a signal of this number ended it.
    Signalled(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Good => Self::SUCCESS,
            Exit::Bad => Self::from(1),
            Exit::Usage => Self::from(2),
            Exit::Cancelled => Self::from(130),
            Exit::Unheard => Self::from(141),
            Exit::Signalled(number) => Self::from(number.saturating_add(128)),
        }
    }
}

/// Why stdout takes nothing more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StdoutLoss {
    /// Whoever read it went away (`cogn list | head -1`). That is their right; nothing is said about it.
    Reader,
    /// It cannot be written to; says why.
    Broken(String),
}

/// A process has one stdout. Once something is missing in it, nothing more is written: a gap would look like a whole.
static LOST: OnceLock<StdoutLoss> = OnceLock::new();

/// Writes lines.
#[derive(Debug, Default)]
pub struct Printer;

impl Printer {
    /// A line of data.
    pub fn out(&self, line: impl AsRef<str>) {
        send(|out| writeln!(out, "{}", harmless(line.as_ref())));
    }

    /// A line for people: progress, notices, errors.
    pub fn err(&self, line: impl AsRef<str>) {
        let _nobody_is_left_to_tell = writeln!(anstream::stderr().lock(), "{}", harmless(line.as_ref()));
    }

    /// JSON as data, indented.
    pub fn json(&self, value: &impl serde::Serialize) {
        let text =
            serde_json::to_string_pretty(value).unwrap_or_else(|error| format!("{{\"error\": \"{error}\"}}"));
        self.json_text(&text);
    }

    /// JSON text as data. Characters that could act on a terminal are written as escapes, which mean the same.
    pub fn json_text(&self, text: &str) {
        send(|out| writeln!(out, "{}", escaped(text)));
    }

    /// The same on stderr, where stdout takes nothing.
    pub fn json_text_err(&self, text: &str) {
        let _nobody_is_left_to_tell = writeln!(anstream::stderr().lock(), "{}", escaped(text));
    }

    /// One line of JSON, sent at once: somebody reads along.
    pub fn line(&self, text: &str) {
        send(|out| writeln!(out, "{}", escaped(text)).and_then(|()| out.flush()));
    }

    /// A piece of text for people, shown at once. A piece may be anything, so that it can bring no colours either.
    pub fn piece(&self, text: &str) {
        let shown = plain(text);
        send(|out| write!(out, "{shown}").and_then(|()| out.flush()));
    }

    /// Help and versions, in the form that the parser of the command line gives them.
    pub fn usage(&self, message: &clap::Error) {
        if message.use_stderr() {
            let _nobody_is_left_to_tell = message.print();
        } else if let Err(error) = message.print() {
            lose(&error);
        }
    }

    /// Why stdout takes nothing more; `None` while all is well.
    #[must_use]
    pub fn lost(&self) -> Option<&'static StdoutLoss> {
        LOST.get()
    }

    /// Takes note that nobody reads stdout any more.
    pub fn reader_left(&self) {
        LOST.get_or_init(|| StdoutLoss::Reader);
    }

    /// The end of every command: what was written is on its way, or the exit code says that it is not.
    pub fn close(&self, exit: Exit) -> Exit {
        send(|out| out.flush());
        match self.lost() {
            None => exit,
            Some(StdoutLoss::Reader) => Exit::Unheard,
            Some(StdoutLoss::Broken(why)) => {
                self.error(&format!("cannot write to stdout: {why}"), None);
                if exit == Exit::Good { Exit::Bad } else { exit }
            }
        }
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

/// Writes to stdout, unless something is missing there already.
fn send(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
    if LOST.get().is_some() {
        return;
    }
    if let Err(error) = write(&mut anstream::stdout().lock()) {
        lose(&error);
    }
}

fn lose(error: &io::Error) {
    LOST.get_or_init(|| match error.kind() {
        io::ErrorKind::BrokenPipe => StdoutLoss::Reader,
        _ => StdoutLoss::Broken(error.to_string()),
    });
}

/// A text of strangers without anything that acts on a terminal, colours included. Line breaks and tabs stay.
#[must_use]
pub fn plain(text: &str) -> String {
    let shown =
        |letter: char| if acts(letter) && letter != '\n' && letter != '\t' { '\u{fffd}' } else { letter };
    text.chars().map(shown).collect()
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
