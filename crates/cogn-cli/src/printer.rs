//! The only code that writes to the terminal. Data goes to stdout, everything else to stderr.
//! Colour is decided here once: on for a terminal, off for a pipe or with `NO_COLOR`; `--color` overrides both. The
//! width is `COLUMNS`, else that of the terminal; in a pipe there is no limit and lines stay whole.
//! Failed writes to stdout are never ignored: the first one is stored, and the command ends with it.

use std::borrow::Cow;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use anstyle::{AnsiColor, Style};
use cognitive_contract::text::acts_on_terminal as acts;
use cognitive_setup::{env_vars, wiring};
use terminal_size::terminal_size_of;

use crate::text_table::{TextTable, wrap};

/// The style of errors and `error:`.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// The style of warnings.
pub const DOUBT: Style = AnsiColor::Yellow.on_default().bold();
/// The style of successes.
pub const GOOD: Style = AnsiColor::Green.on_default().bold();
/// The style of hints and names.
pub const NOTE: Style = AnsiColor::Cyan.on_default();
/// The style of headings.
pub const HEAD: Style = Style::new().bold();
/// The style of less important text.
pub const FAINT: Style = Style::new().dimmed();

/// The result of a command.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: success, and the verdict is good.
    Good,
    /// 1: the verdict is bad, or the command failed.
    Bad,
    /// 2: usage error.
    Usage,
    /// 130: the user pressed Ctrl-C.
    Cancelled,
    /// 141: the reader of stdout closed it. The same code as that of a program killed by SIGPIPE.
    Unheard,
    /// 128 plus a number: a signal with this number ended the command.
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

/// The reason why stdout accepts no more output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StdoutLoss {
    /// The reader closed it (`cogn list | head -1`). This is normal, so nothing is reported.
    Reader,
    /// A write failed; holds the reason.
    Broken(String),
}

/// The state of stdout. After the first failed write nothing more is written: output with a gap would look complete.
static LOST: OnceLock<StdoutLoss> = OnceLock::new();

/// The verbosity of this process, set once before any command starts.
static CHATTER: OnceLock<Chatter> = OnceLock::new();

/// Set if stderr is a log: each line is a JSON object with a time and a level, for programs that collect logs.
static IS_LOG: AtomicBool = AtomicBool::new(false);

/// The importance of a line of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LogLevel {
    Info,
    Warning,
    Error,
}

impl LogLevel {
    fn word(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// The verbosity on stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Chatter {
    /// Only errors: no warnings, notices or progress.
    Quiet,
    /// Also warnings and progress.
    #[default]
    Usual,
    /// Also the resolved settings with their origins.
    Verbose,
}

impl Chatter {
    /// Sets the verbosity of this process.
    pub fn decide(self) {
        // There is one command line, so it is set only once.
        let _ = CHATTER.set(self);
    }

    /// Returns the verbosity of this process.
    #[must_use]
    pub fn for_process() -> Self {
        CHATTER.get().copied().unwrap_or_default()
    }
}

/// The range of widths that `COLUMNS` may set.
const COLUMNS: std::ops::RangeInclusive<usize> = 20..=1_000;

/// The writer of all output.
#[derive(Debug, Default)]
pub struct Printer;

impl Printer {
    /// Prints a line of data.
    pub fn print_line(&self, line: impl AsRef<str>) {
        send(|out| writeln!(out, "{}", harmless(line.as_ref())));
    }

    /// Makes stderr a log of JSON lines, or text for people again.
    pub fn log_as_json(&self, is_log: bool) {
        IS_LOG.store(is_log, Ordering::Relaxed);
    }

    /// Returns whether stderr is a log of JSON lines.
    #[must_use]
    pub fn logs_as_json(&self) -> bool {
        IS_LOG.load(Ordering::Relaxed)
    }

    /// Prints a line for users: progress, notices, errors.
    pub fn err(&self, line: impl AsRef<str>) {
        if self.logs_as_json() {
            return log(LogLevel::Info, line.as_ref(), None);
        }
        whole_line(&harmless(line.as_ref()));
    }

    /// Prints a line that is a JSON object already.
    pub fn log_line(&self, line: &str) {
        whole_line(&escape_control(line));
    }

    /// Prints a value as indented JSON data.
    pub fn json(&self, value: &impl serde::Serialize) {
        let text =
            serde_json::to_string_pretty(value).unwrap_or_else(|error| format!("{{\"error\": \"{error}\"}}"));
        self.json_text(&text);
    }

    /// Prints JSON text as data. Terminal control characters are written as equivalent JSON escapes.
    pub fn json_text(&self, text: &str) {
        send(|out| writeln!(out, "{}", escape_control(text)));
    }

    /// Prints JSON text on stderr, for use after stdout has failed.
    pub fn json_text_err(&self, text: &str) {
        whole_line(&escape_control(text));
    }

    /// Prints one line of JSON and flushes it, because a reader follows the output.
    pub fn line(&self, text: &str) {
        send(|out| writeln!(out, "{}", escape_control(text)).and_then(|()| out.flush()));
    }

    /// Prints a piece of text for users and flushes it. It may be untrusted, so colours are stripped too.
    pub fn piece(&self, text: &str) {
        let shown = plain(text);
        send(|out| write!(out, "{shown}").and_then(|()| out.flush()));
    }

    /// Prints help and versions, as the command line parser formats them.
    pub fn usage(&self, message: &clap::Error) {
        if message.use_stderr() {
            let _nobody_is_left_to_tell = message.print();
        } else if let Err(error) = message.print() {
            lose(&error);
        }
    }

    /// Returns why stdout accepts no more output; `None` while it works.
    #[must_use]
    pub fn stdout_loss(&self) -> Option<&'static StdoutLoss> {
        LOST.get()
    }

    /// Records that stdout has no reader any more.
    pub fn note_reader_left(&self) {
        LOST.get_or_init(|| StdoutLoss::Reader);
    }

    /// Ends every command: flushes stdout, and changes the exit code if a write failed.
    pub fn close(&self, exit: Exit) -> Exit {
        send(|out| out.flush());
        match self.stdout_loss() {
            None => exit,
            Some(StdoutLoss::Reader) => Exit::Unheard,
            Some(StdoutLoss::Broken(why)) => {
                self.error(&format!("cannot write to stdout: {why}"), None);
                if exit == Exit::Good { Exit::Bad } else { exit }
            }
        }
    }

    /// Prints an error and its hint.
    pub fn error(&self, message: &str, hint: Option<&str>) {
        if self.logs_as_json() {
            return log(LogLevel::Error, message, hint);
        }
        self.err(format!("{BAD}error{BAD:#}: {message}"));
        if let Some(hint) = hint {
            self.err(format!("{NOTE}hint{NOTE:#}: {hint}"));
        }
    }

    /// Prints a warning, except with `--quiet`.
    pub fn warning(&self, message: &str) {
        if self.logs_as_json() {
            return log(LogLevel::Warning, message, None);
        }
        self.notice(format!("{DOUBT}warning{DOUBT:#}: {message}"));
    }

    /// Prints a warning of a server, even with `--quiet`: an operator who hides requests still needs it.
    pub fn alarm(&self, message: &str) {
        if self.logs_as_json() {
            return log(LogLevel::Warning, message, None);
        }
        self.err(format!("{DOUBT}warning{DOUBT:#}: {message}"));
    }

    /// Prints a line for users, except with `--quiet`.
    pub fn notice(&self, line: impl AsRef<str>) {
        if Chatter::for_process() != Chatter::Quiet {
            self.err(line);
        }
    }

    /// Prints a detail, only with `--verbose`.
    pub fn detail(&self, what: &str, value: impl std::fmt::Display) {
        if Chatter::for_process() == Chatter::Verbose {
            self.err(format!("{FAINT}{what}{FAINT:#} {value}"));
        }
    }

    /// Prints a table as data.
    pub(crate) fn table(&self, table: &TextTable) {
        for line in table.lines(self.width()) {
            self.print_line(line);
        }
    }

    /// Prints a table on stderr.
    pub(crate) fn table_err(&self, table: &TextTable) {
        for line in table.lines(self.width_err()) {
            self.err(line);
        }
    }

    /// Prints prose as data, wrapped at blanks.
    pub(crate) fn prose(&self, text: &str) {
        match self.width() {
            Some(width) => wrap(text, width).into_iter().for_each(|line| self.print_line(line)),
            None => self.print_line(text),
        }
    }

    /// Returns the width of stderr in columns; `None` for no limit.
    #[must_use]
    pub fn width_err(&self) -> Option<usize> {
        width_of(terminal_size_of(io::stderr()))
    }

    /// Returns the width of stdout in columns; `None` for no limit.
    #[must_use]
    pub fn width(&self) -> Option<usize> {
        width_of(terminal_size_of(io::stdout()))
    }

    /// Returns whether stderr is a terminal and `--quiet` is not set.
    #[must_use]
    pub fn for_people(&self) -> bool {
        io::IsTerminal::is_terminal(&io::stderr()) && Chatter::for_process() != Chatter::Quiet
    }

    /// Returns whether stdout is a terminal.
    #[must_use]
    pub fn is_read_by_people(&self) -> bool {
        io::IsTerminal::is_terminal(&io::stdout())
    }
}

/// Returns the width in `COLUMNS`, else that of the terminal.
fn width_of(terminal: Option<(terminal_size::Width, terminal_size::Height)>) -> Option<usize> {
    let said =
        wiring::environment(env_vars::COLUMNS).and_then(|columns| columns.trim().parse::<usize>().ok());
    said.filter(|columns| COLUMNS.contains(columns))
        .or_else(|| terminal.map(|(width, _)| usize::from(width.0)).filter(|width| *width > 0))
}

/// Writes a line with its end to stderr in one call, so that output of other processes cannot split it.
fn whole_line(line: &str) {
    let _nobody_is_left_to_tell = anstream::stderr().lock().write_all(format!("{line}\n").as_bytes());
}

/// Writes a line of a log.
fn log(level: LogLevel, message: &str, hint: Option<&str>) {
    let mut line = serde_json::json!({
        "time": cognitive_store::timestamp(SystemTime::now()),
        "level": level.word(),
        "message": without_colours(message),
    });
    if let (Some(hint), Some(members)) = (hint, line.as_object_mut()) {
        members.insert("hint".to_owned(), without_colours(hint).into());
    }
    whole_line(&escape_control(&line.to_string()));
}

/// Returns a text without the colours that this program adds.
fn without_colours(text: &str) -> String {
    let (mut plain, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(letter) = rest.chars().next() {
        let skipped = colour_length(rest);
        if skipped == 0 {
            plain.push(letter);
        }
        rest = rest.get(skipped.max(letter.len_utf8())..).unwrap_or_default();
    }
    plain
}

/// Writes to stdout, unless an earlier write failed.
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

/// Removes everything from an untrusted text that controls a terminal, including colours. Line breaks and tabs stay.
#[must_use]
pub fn plain(text: &str) -> String {
    let shown =
        |letter: char| if acts(letter) && letter != '\n' && letter != '\t' { '\u{fffd}' } else { letter };
    text.chars().map(shown).collect()
}

/// Removes all escape sequences except colours: untrusted text in the line cannot move the cursor or set a title.
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

/// Returns the length of the colour sequence at the start of a text; 0 if there is none.
pub(crate) fn colour_length(text: &str) -> usize {
    let Some(body) = text.strip_prefix("\u{1b}[") else { return 0 };
    let digits = body.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b';').count();
    if body.as_bytes().get(digits) == Some(&b'm') { 2 + digits + 1 } else { 0 }
}

/// Writes terminal control characters in JSON text as `\uXXXX`. They occur only inside strings, where the escape is
/// equivalent.
fn escape_control(text: &str) -> Cow<'_, str> {
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
    fn a_log_has_no_colours() {
        assert_eq!(without_colours(&format!("{GOOD}listening{GOOD:#} on é")), "listening on é");
        assert_eq!(without_colours("a\u{1b}[2Jb"), "a\u{1b}[2Jb", "escaped where the line is written");
    }

    #[test]
    fn escapes_in_json_mean_the_same() {
        let value = serde_json::json!({ "a": "\u{9b}\u{202e}\u{7f}é" });
        let text = escape_control(&value.to_string()).into_owned();
        assert!(!text.contains(acts));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
