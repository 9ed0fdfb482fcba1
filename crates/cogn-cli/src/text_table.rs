//! Tables for every command: columns fit the width, numbers align right, and one prose column is wrapped at blanks. If
//! the width is too small, less important columns are omitted; in a pipe nothing is cut.
//! Prints nothing, and does not know the meaning of the columns.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::printer::{FAINT, HEAD, colour_length};

/// The minimum width of a prose column; below it another column is omitted.
const MIN_PROSE: usize = 24;
/// The minimum width of any column. A narrower one would break almost every word.
const MIN_COLUMN: usize = 8;
/// The number of blanks between two columns.
const DEFAULT_GAP: usize = 2;

/// A table under construction.
#[derive(Debug, Clone, Default)]
pub(crate) struct TextTable {
    columns: Vec<TableColumn>,
    rows: Vec<Vec<String>>,
    indent: usize,
    gap: usize,
    /// The column that is wrapped if it is too wide.
    prose: Option<usize>,
    /// The columns to omit first, in this order.
    lesser: Vec<usize>,
    has_heads: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct TableColumn {
    to_the_right: bool,
    /// The minimum width of the column.
    least: usize,
}

impl TextTable {
    /// Creates a table with a row of headings. The last column is prose.
    pub(crate) fn new<const N: usize>(heads: [&str; N]) -> Self {
        let head = |head: &str| if head.is_empty() { String::new() } else { format!("{HEAD}{head}{HEAD:#}") };
        let mut table = Self::without_headings(N);
        table.has_heads = true;
        table.rows.push(heads.map(head).to_vec());
        table
    }

    /// Creates a table without headings.
    pub(crate) fn without_headings(columns: usize) -> Self {
        Self {
            columns: vec![TableColumn::default(); columns],
            prose: columns.checked_sub(1),
            gap: DEFAULT_GAP,
            ..Self::default()
        }
    }

    /// Creates a table of names and values.
    pub(crate) fn facts<'a>(facts: impl IntoIterator<Item = (&'a str, String)>) -> Self {
        let mut table = Self::without_headings(2);
        for (name, value) in facts {
            table.push(vec![format!("{FAINT}{name}{FAINT:#}"), value]);
        }
        table
    }

    /// Creates a list of remarks, each after a dash.
    pub(crate) fn bullets(remarks: impl IntoIterator<Item = String>) -> Self {
        let rows = remarks.into_iter().map(|remark| vec!["-".to_owned(), remark]);
        Self::without_headings(2).narrow().with(rows)
    }

    /// Sets the gap between columns to one blank.
    pub(crate) fn narrow(mut self) -> Self {
        self.gap = 1;
        self
    }

    /// Aligns these columns to the right, for numbers.
    pub(crate) fn right(mut self, columns: &[usize]) -> Self {
        for column in columns {
            if let Some(column) = self.columns.get_mut(*column) {
                column.to_the_right = true;
            }
        }
        self
    }

    /// Returns the table with a minimum width for a column, so that the layout does not follow its values.
    pub(crate) fn at_least(mut self, column: usize, width: usize) -> Self {
        if let Some(column) = self.columns.get_mut(column) {
            column.least = width;
        }
        self
    }

    /// Returns the table with this column as the one that wraps its text.
    pub(crate) fn prose(mut self, column: usize) -> Self {
        self.prose = Some(column);
        self
    }

    /// Sets the columns that may be omitted, the least important first.
    pub(crate) fn optional_columns(mut self, columns: &[usize]) -> Self {
        self.lesser = columns.to_vec();
        self
    }

    /// Indents the table.
    pub(crate) fn indent(mut self, by: usize) -> Self {
        self.indent = by;
        self
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Adds rows.
    pub(crate) fn with(mut self, rows: impl IntoIterator<Item = Vec<String>>) -> Self {
        self.rows.extend(rows);
        self
    }

    /// Returns whether there is no row except the headings.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.len() <= usize::from(self.has_heads)
    }

    /// Formats the lines, within this width if possible.
    pub(crate) fn lines(&self, width: Option<usize>) -> Vec<String> {
        let layout = self.layout(width);
        self.rows.iter().flat_map(|row| self.row_lines(row, &layout)).collect()
    }

    /// Returns the visible columns with their widths.
    fn layout(&self, width: Option<usize>) -> Vec<(usize, usize)> {
        let natural = |column: usize| {
            let lines = self.rows.iter().filter_map(|row| row.get(column)).flat_map(|cell| cell.lines());
            let least = self.columns.get(column).map_or(0, |column| column.least);
            lines.map(visible).max().unwrap_or(0).max(least)
        };
        let mut shown: Vec<(usize, usize)> =
            (0..self.columns.len()).map(|column| (column, natural(column))).collect();
        let Some(limit) = width.map(|width| width.saturating_sub(self.indent)) else { return shown };
        let mut lesser = self.lesser.iter();
        loop {
            let over = self.total(&shown).saturating_sub(limit);
            let prose =
                shown.iter().find(|(column, _)| Some(*column) == self.prose).map_or(0, |(_, wide)| *wide);
            if over == 0 || prose >= over + MIN_PROSE.min(prose) {
                break;
            }
            let Some(out) = lesser.next() else { break };
            shown.retain(|(column, _)| column != out);
        }
        self.shrink(&mut shown, limit);
        shown
    }

    /// Shrinks the prose column by the excess, and then the widest other columns.
    fn shrink(&self, shown: &mut [(usize, usize)], limit: usize) {
        let over = |shown: &[(usize, usize)]| self.total(shown).saturating_sub(limit);
        let much = over(shown);
        if let Some((_, wide)) = shown.iter_mut().find(|(column, _)| Some(*column) == self.prose) {
            *wide = wide.saturating_sub(much).max(MIN_PROSE.min(*wide));
        }
        // Words stay whole while there is room for them.
        let words: Vec<usize> = shown.iter().map(|(column, _)| self.widest_piece(*column)).collect();
        for least in [words, vec![0; shown.len()]] {
            while over(shown) > 0 {
                let may_shrink = |(place, (_, wide)): &(usize, &mut (usize, usize))| {
                    *wide > MIN_COLUMN.max(least.get(*place).copied().unwrap_or(0))
                };
                let widest =
                    shown.iter_mut().enumerate().filter(may_shrink).max_by_key(|(_, (_, wide))| *wide);
                let Some((_, (_, wide))) = widest else { break };
                *wide -= 1;
            }
        }
    }

    /// Returns the width of the longest text in a column without a blank or a break point.
    fn widest_piece(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| widest_piece(&anstream::adapter::strip_str(cell).to_string())).max().unwrap_or(0)
    }

    /// Returns the total width of the columns.
    fn total(&self, shown: &[(usize, usize)]) -> usize {
        let gaps = shown.len().saturating_sub(1) * self.gap;
        shown.iter().map(|(_, wide)| wide).sum::<usize>() + gaps
    }

    fn row_lines(&self, row: &[String], layout: &[(usize, usize)]) -> Vec<String> {
        let none = String::new();
        let cells: Vec<Vec<String>> = layout
            .iter()
            .map(|(column, wide)| wrap(row.get(*column).unwrap_or(&none), (*wide).max(1)))
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        (0..height).map(|line| self.one_line(&cells, layout, line)).collect()
    }

    fn one_line(&self, cells: &[Vec<String>], layout: &[(usize, usize)], line: usize) -> String {
        let mut text = " ".repeat(self.indent);
        for (place, (lines, (column, wide))) in cells.iter().zip(layout).enumerate() {
            let part = lines.get(line).map_or("", String::as_str);
            let pad = " ".repeat(wide.saturating_sub(visible(part)));
            let to_the_right = self.columns.get(*column).is_some_and(|column| column.to_the_right);
            if place > 0 {
                text.push_str(&" ".repeat(self.gap));
            }
            let (before, after) = if to_the_right { (pad.as_str(), "") } else { ("", pad.as_str()) };
            text.push_str(before);
            text.push_str(part);
            text.push_str(after);
        }
        text.trim_end().to_owned()
    }
}

/// Returns the width of a text in terminal columns; colours have no width.
pub(crate) fn visible(text: &str) -> usize {
    anstream::adapter::strip_str(text).to_string().width()
}

/// Wraps a text to this width, at blanks if possible. Colours continue after the break.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    text.split('\n').flat_map(|line| LineBreaker::new(width).break_lines(line)).collect()
}

/// A word that is too long is broken after these characters.
const JOINTS: [char; 4] = ['/', ',', '=', '&'];
/// Used if there is no better break point.
const SEAMS: [char; 2] = ['-', '_'];

/// Returns the start of the last piece of a word that is too long: after a joint, else at a dot, else after a seam.
fn last_joint(word: &str) -> Option<usize> {
    let behind = |letters: &[char]| word.rfind(letters).map(|at| at + 1);
    let is_inside = |at: &usize| *at > 0 && *at < word.len();
    // A piece of one or two letters does not deserve a line.
    let is_worth_it = |at: &usize| *at > 2 && *at < word.len();
    let joint = behind(&JOINTS).filter(is_worth_it).or_else(|| word.rfind('.').filter(is_worth_it));
    joint.or_else(|| behind(&SEAMS).filter(is_inside))
}

fn widest_piece(text: &str) -> usize {
    let mut widest = 0;
    for word in text.split_whitespace() {
        let mut rest = word;
        // A joint at the end belongs to the piece.
        while let Some(at) = last_joint(rest.trim_end_matches(JOINTS).trim_end_matches(SEAMS)) {
            let (before, piece) = rest.split_at(at);
            widest = widest.max(piece.width());
            rest = before;
        }
        widest = widest.max(rest.width());
    }
    widest
}

/// Breaks one line of a text into several.
struct LineBreaker {
    width: usize,
    done: Vec<String>,
    line: String,
    line_width: usize,
    blanks: usize,
    word: String,
    word_width: usize,
}

impl LineBreaker {
    fn new(width: usize) -> Self {
        Self {
            width,
            done: Vec::new(),
            line: String::new(),
            line_width: 0,
            blanks: 0,
            word: String::new(),
            word_width: 0,
        }
    }

    fn break_lines(mut self, text: &str) -> Vec<String> {
        let mut rest = text;
        while let Some(letter) = rest.chars().next() {
            let colour = colour_length(rest);
            let taken = if colour > 0 { colour } else { letter.len_utf8() };
            let (piece, after) = rest.split_at(taken);
            rest = after;
            if colour > 0 {
                self.word.push_str(piece);
            } else if letter == ' ' {
                self.end_word();
                self.blanks += 1;
            } else {
                self.letter(letter);
            }
        }
        self.end_word();
        self.done.push(self.line);
        self.done
    }

    fn letter(&mut self, letter: char) {
        let wide = letter.width().unwrap_or(0);
        if self.word_width > 0 && self.word_width + wide > self.width {
            self.break_word();
        }
        self.word.push(letter);
        self.word_width += wide;
    }

    /// Breaks a word that is wider than a line at one of its joints, if it has any.
    fn break_word(&mut self) {
        let kept = last_joint(&self.word).map_or_else(String::new, |joint| self.word.split_off(joint));
        self.word_width = visible(&self.word);
        self.end_word();
        self.end_line();
        self.word_width = visible(&kept);
        self.word = kept;
    }

    fn end_word(&mut self) {
        if self.word_width > 0 {
            if self.line_width > 0 && self.line_width + self.blanks + self.word_width > self.width {
                self.end_line();
            } else if self.line_width > 0 || self.done.is_empty() {
                self.line.push_str(&" ".repeat(self.blanks));
                self.line_width += self.blanks;
            }
            self.blanks = 0;
        }
        self.line.push_str(&self.word);
        self.line_width += self.word_width;
        self.word.clear();
        self.word_width = 0;
    }

    fn end_line(&mut self) {
        let colour = open_colour(&self.line);
        if !colour.is_empty() {
            self.line.push_str("\u{1b}[0m");
        }
        self.done.push(std::mem::replace(&mut self.line, colour));
        self.line_width = 0;
        self.blanks = 0;
    }
}

/// Returns the colours that are still active at the end of a text.
fn open_colour(text: &str) -> String {
    let mut open = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        rest = rest.get(at..).unwrap_or_default();
        let length = colour_length(rest).max(1);
        let (colour, after) = rest.split_at(length);
        if colour == "\u{1b}[0m" {
            open.clear();
        } else {
            open.push_str(colour);
        }
        rest = after;
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printer::BAD;

    fn plain(lines: &[String]) -> Vec<String> {
        lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect()
    }

    fn sample() -> TextTable {
        TextTable::new(["NAME", "RUNS", "FROM", "WHAT"]).right(&[1]).optional_columns(&[2]).with([
            vec![
                "one".to_owned(),
                "7".to_owned(),
                "bundled".to_owned(),
                "says what it is for in words".to_owned(),
            ],
            vec!["another".to_owned(), "1234".to_owned(), "project".to_owned(), "short".to_owned()],
        ])
    }

    #[test]
    fn numbers_stand_to_the_right_and_a_pipe_gets_whole_lines() {
        assert_eq!(
            plain(&sample().lines(None)),
            [
                "NAME     RUNS  FROM     WHAT",
                "one         7  bundled  says what it is for in words",
                "another  1234  project  short",
            ]
        );
    }

    #[test]
    fn prose_is_broken_at_blanks_and_lesser_columns_make_room_for_it() {
        assert_eq!(
            plain(&sample().lines(Some(48))),
            [
                "NAME     RUNS  FROM     WHAT",
                "one         7  bundled  says what it is for in",
                "                        words",
                "another  1234  project  short",
            ]
        );
        let narrow = plain(&sample().lines(Some(40)));
        assert_eq!(narrow.first().map(String::as_str), Some("NAME     RUNS  WHAT"));
        for width in 20..90 {
            for line in sample().lines(Some(width)) {
                assert!(visible(&line) <= width.max(28), "{width}: {line}");
            }
        }
    }

    // An empty prose column has no width to give.
    #[test]
    fn lesser_columns_go_also_where_there_is_no_prose() {
        let bar = "█".repeat(20);
        let row = ["a-long-name", &bar, "0.94", ""].map(str::to_owned).to_vec();
        let table = TextTable::new(["NAME", "WHEN", "CONFIDENCE", ""]).optional_columns(&[2]).with([row]);
        assert_eq!(
            plain(&table.lines(Some(40))),
            ["NAME         WHEN".to_owned(), format!("a-long-name  {bar}")]
        );
    }

    #[test]
    fn a_word_is_broken_only_where_no_column_can_give_room() {
        let row = ["/properties/data/properties/rationale", "additionalProperties", "only what is described"];
        let table = TextTable::without_headings(3).with([row.map(str::to_owned).to_vec()]);
        let lines = table.lines(Some(50));
        assert!(lines.iter().any(|line| line.contains("  additionalProperties  ")), "{lines:#?}");
        assert!(lines.iter().all(|line| visible(line) <= 50), "{lines:#?}");
    }

    #[test]
    fn a_colour_ends_with_its_line_and_goes_on_in_the_next() {
        let lines = wrap(&format!("{BAD}one two{BAD:#} three"), 4);
        assert_eq!(plain(&lines), ["one", "two", "thre", "e"]);
        assert_eq!(lines.first().unwrap(), &format!("{BAD}one{BAD:#}"));
        assert_eq!(lines.get(1).unwrap(), &format!("{BAD}two{BAD:#}"));
    }

    #[test]
    fn wide_letters_count_twice_and_long_paths_break_at_their_joints() {
        assert_eq!(visible("日本"), 4);
        assert_eq!(wrap("/some/long/path.txt", 12), ["/some/long/", "path.txt"]);
        assert_eq!(wrap("$.code-simplifier.data.changes", 25), ["$.code-simplifier.data", ".changes"]);
        assert_eq!(wrap("$.code-simplifier", 10), ["$.code-", "simplifier"]);
        assert_eq!(wrap("  kept", 10), ["  kept"]);
        assert_eq!(wrap("", 10), [""]);
    }
}
