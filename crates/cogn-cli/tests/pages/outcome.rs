//! Compares the output of a command with a page. `…` and `[..]` match anything within a line; a line of only `…`
//! matches any number of lines.

use regex::Regex;

/// Returns whether the output matches.
pub(crate) fn is_as_shown(shown: &[String], printed: &[&str]) -> bool {
    match shown {
        [] => printed.iter().all(|line| line.trim().is_empty()),
        [any, rest @ ..] if any.trim() == "…" => {
            (0..=printed.len()).any(|skipped| is_as_shown(rest, &printed[skipped..]))
        }
        [line, rest @ ..] => match printed {
            [first, others @ ..] => line_matches(line, first) && is_as_shown(rest, others),
            [] => shown.iter().all(String::is_empty),
        },
    }
}

fn line_matches(shown: &str, printed: &str) -> bool {
    let pieces = shown.split("[..]").flat_map(|piece| piece.split('…')).map(regex::escape);
    let expression = format!("^{}$", pieces.collect::<Vec<_>>().join(".*"));
    Regex::new(&expression).unwrap().is_match(printed.trim_end())
}

#[test]
fn dots_stand_for_what_varies() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let is = |shown: &str, printed: &str| is_as_shown(&lines(shown), &printed.lines().collect::<Vec<_>>());
    assert!(is("a …c\n…\nz", "a bc\nx\ny\nz"));
    assert!(is("a [..]", "a bc\n"));
    assert!(is("…\n3 passed", "3 passed"));
    assert!(!is("a", "a\nb"));
    assert!(!is("a\nb", "a"));
    assert!(!is("a (b)", "a xbx"));
}
