//! The only place that writes to the terminal. Data goes to stdout, everything else to stderr.
//! Colour is decided here once: a terminal gets it, a pipe does not, `NO_COLOR` switches it off.

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
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Good => Self::SUCCESS,
            Exit::Bad => Self::from(1),
            Exit::Usage => Self::from(2),
        }
    }
}

/// Writes lines. A reader that went away (`cogn list | head -1`) is no error.
#[derive(Debug, Default)]
pub struct Printer;

impl Printer {
    /// A line of data.
    pub fn out(&self, line: impl AsRef<str>) {
        let _gone_reader_is_fine = writeln!(anstream::stdout().lock(), "{}", line.as_ref());
    }

    /// A line for people: progress, notices, errors.
    pub fn err(&self, line: impl AsRef<str>) {
        let _gone_reader_is_fine = writeln!(anstream::stderr().lock(), "{}", line.as_ref());
    }

    /// JSON as data, pretty in a terminal.
    pub fn json(&self, value: &impl serde::Serialize) {
        let text =
            serde_json::to_string_pretty(value).unwrap_or_else(|error| format!("{{\"error\": \"{error}\"}}"));
        self.out(text);
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
