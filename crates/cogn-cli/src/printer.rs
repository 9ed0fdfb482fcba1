//! The only place that writes to the terminal. Data goes to stdout, everything else to stderr.
//! Colour is decided here once: a terminal gets it, a pipe does not, `NO_COLOR` switches it off, `--color` decides over all of
//! them. So is the width: `COLUMNS`, else that of the terminal, else none, and lines in a pipe stay whole.
//! What stdout does not take is never passed over: the first trouble is kept, and the command ends with it.

use std::borrow::Cow;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::OnceLock;

use anstyle::{AnsiColor, Style};
use cogn::{env_vars, wiring};
use cognitive_contract::text::acts_on_terminal as acts;
use terminal_size::terminal_size_of;

use crate::text_table::{TextTable, wrap};

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

/// How much a process says besides its results. It is decided once, before any command begins.
static CHATTER: OnceLock<Chatter> = OnceLock::new();

/// How much is said on stderr besides errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Chatter {
    /// Errors alone: no warning, no notice, no progress.
    Quiet,
    /// Warnings and progress as well.
    #[default]
    Usual,
    /// Also what was decided, and by whom.
    Verbose,
}

impl Chatter {
    /// Decides it for this process.
    pub fn decide(self) {
        // There is one command line, so it is never set twice.
        let _ = CHATTER.set(self);
    }

    /// What was decided.
    #[must_use]
    pub fn of_this_process() -> Self {
        CHATTER.get().copied().unwrap_or_default()
    }
}

/// The narrowest and the widest that `COLUMNS` can make the output.
const COLUMNS: std::ops::RangeInclusive<usize> = 20..=1_000;

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
        whole_line(&harmless(line.as_ref()));
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
        whole_line(&escaped(text));
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

    /// Something worth knowing, unless only errors are wanted.
    pub fn warning(&self, message: &str) {
        self.notice(format!("{DOUBT}warning{DOUBT:#}: {message}"));
    }

    /// The same of a server: whoever does not want to see every request has to know of this all the more.
    pub fn alarm(&self, message: &str) {
        self.err(format!("{DOUBT}warning{DOUBT:#}: {message}"));
    }

    /// A line for people that `--quiet` leaves out.
    pub fn notice(&self, line: impl AsRef<str>) {
        if Chatter::of_this_process() != Chatter::Quiet {
            self.err(line);
        }
    }

    /// A line for people who want to know why: `--verbose` shows it.
    pub fn detail(&self, what: &str, value: impl std::fmt::Display) {
        if Chatter::of_this_process() == Chatter::Verbose {
            self.err(format!("{FAINT}{what}{FAINT:#} {value}"));
        }
    }

    /// A table as data.
    pub(crate) fn table(&self, table: &TextTable) {
        for line in table.lines(self.width()) {
            self.out(line);
        }
    }

    /// A table for people, beside the data.
    pub(crate) fn table_err(&self, table: &TextTable) {
        for line in table.lines(self.width_err()) {
            self.err(line);
        }
    }

    /// Prose as data, broken at blanks.
    pub(crate) fn prose(&self, text: &str) {
        match self.width() {
            Some(width) => wrap(text, width).into_iter().for_each(|line| self.out(line)),
            None => self.out(text),
        }
    }

    /// The width of what stderr is shown on.
    #[must_use]
    pub fn width_err(&self) -> Option<usize> {
        width_of(terminal_size_of(io::stderr()))
    }

    /// The width of stdout in columns; `None` where lines may be as long as they are.
    #[must_use]
    pub fn width(&self) -> Option<usize> {
        width_of(terminal_size_of(io::stdout()))
    }

    /// Whether a person is likely to read stderr, and wants to.
    #[must_use]
    pub fn for_people(&self) -> bool {
        io::IsTerminal::is_terminal(&io::stderr()) && Chatter::of_this_process() != Chatter::Quiet
    }

    /// Whether a person is likely to read stdout.
    #[must_use]
    pub fn is_read_by_people(&self) -> bool {
        io::IsTerminal::is_terminal(&io::stdout())
    }
}

/// What `COLUMNS` says, else what the terminal says.
fn width_of(terminal: Option<(terminal_size::Width, terminal_size::Height)>) -> Option<usize> {
    let said =
        wiring::environment(env_vars::COLUMNS).and_then(|columns| columns.trim().parse::<usize>().ok());
    said.filter(|columns| COLUMNS.contains(columns))
        .or_else(|| terminal.map(|(width, _)| usize::from(width.0)).filter(|width| *width > 0))
}

/// Writes a line to stderr with its end in one go: what other processes write to the same place comes before or behind it.
fn whole_line(line: &str) {
    let _nobody_is_left_to_tell = anstream::stderr().lock().write_all(format!("{line}\n").as_bytes());
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
pub(crate) fn colour_length(text: &str) -> usize {
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
