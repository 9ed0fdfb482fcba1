//! Splits a Rust file into doc comments, string literals and the rest. Knows tests, which are not measured. Refuses
//! nothing: code that does not compile is split somehow.

/// The parts of a file, with line numbers.
#[derive(Default)]
pub(crate) struct Source {
    /// The lines of doc comments, without their marks.
    pub docs: Vec<(usize, String)>,
    /// The lines of other comments, without their marks.
    pub comments: Vec<(usize, String)>,
    /// The values of string literals.
    pub strings: Vec<(usize, String)>,
    /// The code without comments and literals. It has as many lines as the file.
    pub code: String,
}

/// Returns the file up to its unit tests, which are at the end.
pub(crate) fn shipped_part(text: &str) -> &str {
    let tests = test_modules(text).find(|(_, item)| item.ends_with('{'));
    tests.map_or(text, |(at, _)| text.get(..at).unwrap_or_default())
}

/// The names of the modules in other files that only tests have.
pub(super) fn test_files(text: &str) -> impl Iterator<Item = &str> {
    test_modules(text).filter_map(|(_, item)| item.strip_suffix(';')?.rsplit(' ').next())
}

/// The modules behind `cfg(test)`: the place of the attribute and the line of the module.
fn test_modules(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let attributes = text.match_indices("#[cfg(").filter(|(at, _)| {
        let rest = text.get(*at..).unwrap_or_default();
        ["#[cfg(test", "#[cfg(all(test", "#[cfg(any(test"].iter().any(|start| rest.starts_with(start))
    });
    attributes.filter_map(|(at, _)| {
        let lines = text.get(at..)?.lines().map(str::trim);
        let item = lines.skip_while(|line| line.starts_with("#[")).find(|line| !line.is_empty())?;
        let is_module = item.starts_with("mod ") || item.contains(") mod ") || item.starts_with("pub mod ");
        is_module.then_some((at, item))
    })
}

/// Splits a file.
pub(crate) fn split(text: &str) -> Source {
    let mut source = Source::default();
    let (mut rest, mut line) = (text, 1);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '/' if rest.starts_with("//") => {
                let comment = rest.lines().next().unwrap_or_default();
                match doc(comment) {
                    Some(doc) => source.docs.push((line, doc.to_owned())),
                    None => source.comments.push((line, comment.trim_start_matches('/').trim().to_owned())),
                }
                comment.len()
            }
            '/' if rest.starts_with("/*") => block_comment(rest),
            '"' => {
                let (value, length) = string(rest);
                source.strings.push((line, value));
                length
            }
            '\'' => character(rest),
            'r' if !source.code.ends_with(is_name) || ends_with_prefix(&source.code) => {
                match raw_string(rest) {
                    Some((value, length)) => {
                        source.strings.push((line, value.to_owned()));
                        length
                    }
                    None => 0,
                }
            }
            _ => 0,
        };
        let taken = if length == 0 { first.len_utf8() } else { length };
        let part = rest.get(..taken).unwrap_or(rest);
        if length == 0 {
            source.code.push(first);
        } else {
            source.code.extend(part.chars().filter(|each| *each == '\n'));
        }
        line += part.matches('\n').count();
        rest = rest.get(taken..).unwrap_or_default();
    }
    source
}

fn is_name(each: char) -> bool {
    each.is_alphanumeric() || each == '_'
}

/// Returns whether the code ends with the `b` of `br"…"` or the `c` of `cr"…"`.
fn ends_with_prefix(code: &str) -> bool {
    code.strip_suffix(['b', 'c']).is_some_and(|before| !before.ends_with(is_name))
}

/// Returns the text of a doc comment.
fn doc(comment: &str) -> Option<&str> {
    let outer = comment.strip_prefix("///").filter(|text| !text.starts_with('/'));
    outer.or_else(|| comment.strip_prefix("//!")).map(str::trim)
}

/// The length of a comment between `/*` and `*/`, which may contain others.
fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// The value and the length of a literal in double quotes.
fn string(text: &str) -> (String, usize) {
    let mut value = String::new();
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, each)) = characters.next() {
        match each {
            '"' => return (value, at + 1),
            '\\' => match characters.next() {
                // The line goes on behind the indentation of the next one.
                Some((_, '\n')) => while characters.next_if(|(_, each)| each.is_whitespace()).is_some() {},
                Some((_, 'n')) => value.push('\n'),
                Some((_, 'r' | 't')) => value.push(' '),
                Some((_, other)) => value.push(other),
                None => break,
            },
            _ => value.push(each),
        }
    }
    (value, text.len())
}

/// The value and the length of a raw literal, from its `r` on.
fn raw_string(text: &str) -> Option<(&str, usize)> {
    let marks = text.strip_prefix('r')?;
    let inner = marks.trim_start_matches('#');
    let hashes = marks.len() - inner.len();
    let value = inner.strip_prefix('"')?;
    let (value, _) = value.split_once(&format!("\"{}", "#".repeat(hashes)))?;
    Some((value, value.len() + 2 * hashes + 3))
}

/// The length of a character literal, or zero for a lifetime.
fn character(text: &str) -> usize {
    let mut characters = text.char_indices().skip(1);
    match (characters.next(), characters.next()) {
        (Some((_, '\\')), Some(_)) => {
            characters.find(|(_, each)| *each == '\'').map_or(text.len(), |(at, _)| at + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(text: &str) -> Vec<String> {
        split(text).strings.into_iter().map(|(_, value)| value).collect()
    }

    #[test]
    fn doc_comments_are_not_in_strings_or_other_comments() {
        let text = "//! About.\n/// One.\n//// no\n// no\n/* /// no /* */ /// no */\nlet a = \"/// no\";\n    /// Two.\n";
        assert_eq!(
            split(text).docs,
            [(1, "About.".to_owned()), (2, "One.".to_owned()), (7, "Two.".to_owned())]
        );
    }

    #[test]
    fn literals_have_their_values() {
        assert_eq!(
            strings(r##"a("b \"c\" \\", r"d\", r#"e "f" g"#, br"h", b"i", format!("{x}"))"##),
            ["b \"c\" \\", "d\\", "e \"f\" g", "h", "i", "{x}"]
        );
        assert_eq!(strings("\"one \\\n      two\" \"three\nfour\""), ["one two", "three\nfour"]);
    }

    #[test]
    fn lifetimes_and_quotes_as_characters_open_no_literal() {
        let text =
            "fn a<'a>(b: &'a str, c: char) { c == '\"' || c == '\\'' || c == '\\u{22}'; \"d\" } // \"e\"";
        assert_eq!(strings(text), ["d"]);
        assert_eq!(strings("let r#type = over\"a\";"), ["a"]);
    }

    #[test]
    fn code_keeps_its_lines() {
        let text = "fn a() {} // b\n/*\n*/ \"c\nd\"\nstruct E;\n";
        let source = split(text);
        assert_eq!(source.code, "fn a() {} \n\n \n\nstruct E;\n");
        assert_eq!(source.strings, [(3, "c\nd".to_owned())]);
    }

    #[test]
    fn tests_are_known() {
        let text = "#[cfg(test)]\nmod a;\n#[cfg(not(test))]\nmod b;\n#[cfg(any(test, fuzzing))]\n\
                    pub(crate) mod c;\n#[cfg(test)]\nfn d() {}\n#[cfg(all(test, unix))]\n#[expect(x)]\nmod e {\n}\n";
        assert_eq!(test_files(text).collect::<Vec<_>>(), ["a", "c"]);
        assert!(shipped_part(text).ends_with("fn d() {}\n"));
    }
}
