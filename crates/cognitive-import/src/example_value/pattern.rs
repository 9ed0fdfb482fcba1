//! Generates a short plain text that matches a pattern of JSON Schema. Gives nothing for patterns that the regex parser
//! does not support.

use regex_syntax::hir::{Class, Hir, HirKind};

/// The maximum length of the text. A short pattern with nested counts could require gigabytes.
const MAX_TEXT: usize = 4_000;
/// The maximum nesting of groups. Deeper ones would overflow the stack.
const MAX_DEPTH: usize = 60;

/// A text that matches the pattern, if one can be derived from it.
pub(super) fn text_for(pattern: &str) -> Option<String> {
    let parsed = regex_syntax::ParserBuilder::new()
        .nest_limit(MAX_DEPTH.try_into().ok()?)
        .build()
        .parse(pattern)
        .ok()?;
    let mut text = String::new();
    write(&parsed, 0, &mut text)?;
    Some(text)
}

fn write(part: &Hir, depth: usize, text: &mut String) -> Option<()> {
    if depth > 2 * MAX_DEPTH || text.len() > MAX_TEXT {
        return None;
    }
    match part.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(std::str::from_utf8(&literal.0).ok()?),
        HirKind::Class(Class::Unicode(class)) => {
            let ranges = class.ranges();
            let plain =
                |wanted: char| ranges.iter().any(|range| range.start() <= wanted && wanted <= range.end());
            let usual = ['a', 'A', '1', ' ', '-'].into_iter().find(|wanted| plain(*wanted));
            text.push(usual.or_else(|| ranges.first().map(regex_syntax::hir::ClassUnicodeRange::start))?);
        }
        HirKind::Class(Class::Bytes(_)) => return None,
        HirKind::Repetition(repetition) => {
            // One repetition of an optional part reads better than none.
            let least = repetition.min.max(u32::from(repetition.max != Some(0)));
            for _ in 0..least {
                write(&repetition.sub, depth + 1, text)?;
            }
        }
        HirKind::Capture(capture) => write(&capture.sub, depth + 1, text)?,
        HirKind::Concat(parts) => {
            for part in parts {
                write(part, depth + 1, text)?;
            }
        }
        HirKind::Alternation(parts) => write(parts.first()?, depth + 1, text)?,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_made_that_matches() {
        assert_eq!(text_for("^[A-Z]{3}-[0-9]{2}(x|y)?$").unwrap(), "AAA-11x");
        assert_eq!(text_for("^\\d{4}-\\d{2}$").unwrap(), "1111-11");
        assert_eq!(text_for("(?=x)"), None);
        assert_eq!(text_for(&"(a{1000}){1000}".repeat(3)), None);
    }
}
