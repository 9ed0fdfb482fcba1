//! Remedies for YAML mistakes: a reason for authors, the position in the line, and a hint. Looks at the line that the
//! parser names, and before it only for an open bracket. An unknown mistake keeps the parser's words.

use crate::finding::printable;

/// The longest part of a line that a remedy repeats.
const SHOWN: usize = 60;

/// A mistake, explained for authors.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Remedy {
    /// The reason; `None` keeps the parser's words.
    pub(super) message: Option<String>,
    /// The hint.
    pub(super) hint: String,
    /// The exact byte offset, if it is known better than by the parser.
    pub(super) at: Option<usize>,
}

impl Remedy {
    fn new(message: &str, hint: impl Into<String>, at: Option<usize>) -> Self {
        Self { message: Some(message.to_owned()), hint: hint.into(), at }
    }

    fn hint_only(hint: &str) -> Self {
        Self { message: None, hint: hint.to_owned(), at: None }
    }
}

/// Returns the remedy for a parser error at a position.
pub(super) fn remedy(reason: &str, text: &str, at: usize) -> Option<Remedy> {
    let start = text.get(..at)?.rfind('\n').map_or(0, |end| end + 1);
    if reason.starts_with("tabs disallowed") || reason.ends_with("found a tab") {
        let tab = text.get(start..)?.find('\t').map(|tab| start + tab);
        let hint = "Indent with spaces, two for each level";
        return Some(Remedy::new("a tab in the indentation; YAML allows only spaces", hint, tab));
    }
    let line = text.get(start..)?.lines().next()?;
    let found = line_remedy(reason, line)?;
    Some(Remedy { at: found.at.map(|at| start + at), ..found })
}

/// Finds a bracket before the position that is still open when the next key of the manifest begins.
pub(super) fn unclosed_bracket(text: &str, at: usize) -> Option<Remedy> {
    let mut openings = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if start > at {
            break;
        }
        let value = line.find(": ").map_or(0, |colon| colon + 2);
        if line.get(value..).is_some_and(|value| value.starts_with(['[', '{'])) {
            openings.push(start + value);
        }
        start += line.len();
    }
    openings.into_iter().rev().find_map(|place| open_bracket(text, place))
}

fn open_bracket(text: &str, place: usize) -> Option<Remedy> {
    let rest = text.get(place..)?;
    let (first, closing) = if rest.starts_with('[') { ('[', ']') } else { ('{', '}') };
    // A key at the left edge starts a new entry, even if a bracket is open.
    let is_key =
        |line: &str| line.starts_with(|letter: char| letter.is_ascii_lowercase()) && line.contains(':');
    let inside: usize = rest
        .split_inclusive('\n')
        .enumerate()
        .take_while(|(at, line)| *at == 0 || !is_key(line))
        .map(|(_, line)| line.len())
        .sum();
    let inside = rest.get(..inside)?;
    (inside.matches(first).count() > inside.matches(closing).count()).then(|| Remedy {
        message: Some(format!("this `{first}` is not closed")),
        hint: format!("Close it with `{closing}`"),
        at: Some(place),
    })
}

fn line_remedy(reason: &str, line: &str) -> Option<Remedy> {
    if ["<<<<<<<", "=======", ">>>>>>>"].iter().any(|mark| line.starts_with(mark)) {
        return Some(Remedy::new(
            "a merge conflict is not resolved",
            "Keep one side, and remove the marks",
            None,
        ));
    }
    if reason.starts_with("mapping values are not allowed") {
        return Some(second_colon(line));
    }
    if reason.contains("did not find expected key") {
        let hint = "Align the line with the line above that it belongs to";
        return Some(Remedy::new(
            "the indentation of this line matches no line above",
            hint,
            Some(indentation(line)),
        ));
    }
    if reason.starts_with("simple key expected") {
        return Some(no_colon(line));
    }
    if reason.starts_with("duplicate mapping key") {
        return Some(Remedy::hint_only("Keep one of the two"));
    }
    if reason.contains("multiline quoted scalar") {
        let hint = "Close the text with its opening quote";
        return Some(Remedy::new("a quote above this line is not closed", hint, None));
    }
    unquoted_value(reason, line)
}

/// A colon and a space within a value, or a line with too much indentation.
fn second_colon(line: &str) -> Remedy {
    let first = line.find(": ");
    let second = first.and_then(|first| Some(first + 2 + line.get(first + 2..)?.find(": ")?));
    match (second, in_quotes(line)) {
        (Some(second), Some(quoted)) => {
            let hint = format!("Put it between quotes: {quoted}");
            Remedy::new("a text with a colon and a space in it needs quotes", hint, Some(second))
        }
        _ => {
            let hint = "Indent it like the line above, or move the lines above below a key";
            Remedy::new(
                "this line is indented further than the one that it belongs to",
                hint,
                Some(indentation(line)),
            )
        }
    }
}

/// A line without key and value.
fn no_colon(line: &str) -> Remedy {
    let message = "expected a key and a value, as in `key: value`";
    let at = Some(indentation(line));
    if let Some(place) = line.find('\u{a0}') {
        return Remedy::new(
            "this is a no-break space, which is not a space in YAML",
            "Type an ordinary space",
            Some(place),
        );
    }
    if let Some((key, value)) = line.split_once('=') {
        let hint = format!("Write `{}: {}`", excerpt(key), excerpt(value));
        return Remedy::new(message, hint, line.find('='));
    }
    if let Some((key, value)) = line.split_once(':') {
        let hint = format!("Add a space after the colon: `{}: {}`", excerpt(key), excerpt(value));
        return Remedy::new(message, hint, line.find(':'));
    }
    Remedy::new(message, "Write `key: value`, or indent the line if it continues the text above", at)
}

/// A value that begins with a YAML indicator, or text after a closing quote.
fn unquoted_value(reason: &str, line: &str) -> Option<Remedy> {
    let (key, value) = line.split_once(": ")?;
    let at = Some(key.len() + 2);
    let quoted = in_quotes(line);
    if reason.starts_with("invalid trailing content after single-quoted") {
        let hint = "Write an apostrophe within single quotes twice, or use double quotes";
        return Some(Remedy::new("the text continues after its closing quote", hint, at));
    }
    if reason.starts_with("invalid trailing content") {
        let hint = "Put the whole text between quotes, and a `\\` before each quote in it";
        return Some(Remedy::new("the text continues after its closing quote", hint, at));
    }
    let first = value.trim_start().chars().next()?;
    let about_a_sign =
        ["unexpected character", "while scanning an anchor", "alias references", "expected string"];
    if !"@`%*&!{".contains(first) || !about_a_sign.iter().any(|words| reason.starts_with(words)) {
        return None;
    }
    let message = format!("a text that begins with `{first}` needs quotes");
    Some(Remedy { message: Some(message), hint: format!("Put it between quotes: {}", quoted?), at })
}

/// The line with its value in a kind of quotes that the value does not contain.
fn in_quotes(line: &str) -> Option<String> {
    let (key, value) = line.split_once(": ")?;
    let value = value.trim();
    let quote = ['"', '\''].into_iter().find(|quote| !value.contains(*quote) && !value.contains('\\'))?;
    Some(format!("`{}: {quote}{}{quote}`", excerpt(key), excerpt(value)))
}

fn excerpt(text: &str) -> String {
    printable(text.trim(), SHOWN)
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use crate::yaml::parse;

    /// Returns the line, the column, the message and the hint of a mistake.
    fn mistake(text: &str) -> (usize, usize, String, String) {
        let error = parse(text).unwrap_err();
        let before = &text[..error.offset.unwrap()];
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let place = (before.matches('\n').count() + 1, before[start..].chars().count() + 1);
        (place.0, place.1, error.message, error.hint.unwrap_or_default())
    }

    #[test]
    fn every_usual_mistake_has_its_place_and_a_remedy() {
        for (text, place, words, remedy) in [
            ("a: 1\nb:\n\tc: 2\n", (3, 1), "a tab in the indentation", "spaces"),
            ("a:\n  b: 1\n\t c: 2\n", (3, 1), "a tab in the indentation", "spaces"),
            ("a: Sort: then say\n", (1, 8), "a colon and a space", "`a: \"Sort: then say\"`"),
            ("a:\n  b: true\n   c: 3\n", (3, 4), "indented further", "like the line above"),
            ("a:\n  b: true\n c: 3\n", (3, 2), "matches no line above", "Align the line"),
            ("a: 1\nb = 2\n", (2, 3), "expected a key and a value", "`b: 2`"),
            ("a: 1\nb:2\n", (2, 2), "expected a key and a value", "Add a space after the colon: `b: 2`"),
            ("a: 1\njust words\n", (2, 1), "expected a key and a value", "key: value"),
            ("a: 1\nb:\u{a0}2\n", (2, 3), "no-break space", "ordinary space"),
            ("a: @home\n", (1, 4), "begins with `@`", "`a: \"@home\"`"),
            ("a: *very* good\n", (1, 4), "begins with `*`", "`a: \"*very* good\"`"),
            ("a: `x` it\n", (1, 4), "begins with ``", "quotes"),
            ("a: 'It's done'\n", (1, 4), "after its closing quote", "twice"),
            ("a: \"x\" and y\n", (1, 4), "after its closing quote", "whole text"),
            ("a: 1\na: 2\n", (2, 1), "duplicate mapping key: a", "Keep one"),
            ("a: [x\nb: 1\n", (1, 4), "this `[` is not closed", "`]`"),
            ("a: [x\nb: {c: 1}\n", (1, 4), "this `[` is not closed", "`]`"),
            ("a: {c: 1\nb: [1]\n", (1, 4), "this `{` is not closed", "`}`"),
            ("a: [\n  x,\n  y: z: 1\n]\n", (3, 1), "did not find expected", ""),
            ("a: 1\n<<<<<<< HEAD\n", (2, 1), "merge conflict", "Keep one side"),
            ("a: \"x\nb: 1\n", (2, 1), "a quote above", "Close"),
        ] {
            let (line, column, message, hint) = mistake(text);
            assert!(message.contains(words) && hint.contains(remedy), "{text:?}: {message} | {hint}");
            assert_eq!((line, column), place, "{text:?}: {message}");
        }
    }
}
