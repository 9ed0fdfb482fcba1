//! Finds what a model thought aloud: `<think>` and `<thinking>`, in any case, nested, or without their other half.
//! Looks at tags only. Whether a tag stands in a string is for the caller to know.

/// A tag of either name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tag {
    /// Thinking begins.
    Open,
    /// Thinking ends.
    Close,
}

/// How far thinking reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Span {
    /// Up to this offset.
    Closed(usize),
    /// No closing tag follows.
    Unclosed,
}

/// Every tag as it is written, in lower case.
pub(crate) const TAGS: [(&str, Tag); 4] = [
    ("<think>", Tag::Open),
    ("</think>", Tag::Close),
    ("<thinking>", Tag::Open),
    ("</thinking>", Tag::Close),
];

/// The tag at an offset, and the offset behind it.
pub(super) fn tag(text: &str, at: usize) -> Option<(Tag, usize)> {
    let rest = text.as_bytes().get(at..)?;
    let matches =
        |name: &str| rest.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()));
    TAGS.iter().find(|(name, _)| matches(name)).map(|(name, tag)| (*tag, at + name.len()))
}

/// The next tag at or behind an offset: what it is, where it starts and ends.
pub(super) fn next_tag(text: &str, from: usize) -> Option<(Tag, usize, usize)> {
    let mut at = from;
    loop {
        at += text.as_bytes().get(at..)?.iter().position(|byte| *byte == b'<')?;
        if let Some((found, end)) = tag(text, at) {
            return Some((found, at, end));
        }
        at += 1;
    }
}

/// The thinking that opens at an offset. Where tags do not pair up, the last closing one ends it: a model that writes
/// about its tags while thinking opens more than it closes.
pub(super) fn span(text: &str, open: usize) -> Span {
    let mut depth = 0_usize;
    let mut span = Span::Unclosed;
    let mut at = open;
    while let Some((found, _, end)) = next_tag(text, at) {
        at = end;
        match found {
            Tag::Open => depth += 1,
            Tag::Close => {
                span = Span::Closed(end);
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    break;
                }
            }
        }
    }
    span
}

/// The offset behind the last closing tag within a range.
pub(super) fn last_close(text: &str, from: usize) -> Option<usize> {
    let mut last = None;
    let mut at = from;
    while let Some((found, _, end)) = next_tag(text, at) {
        at = end;
        if found == Tag::Close {
            last = Some(end);
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_have_two_names_in_any_case_and_no_others() {
        assert_eq!(tag("<Think>", 0), Some((Tag::Open, 7)));
        assert_eq!(tag("x</thinking>", 1), Some((Tag::Close, 12)));
        for text in ["<thin>", "<thinker>", "<think", "think>", "<tool>"] {
            assert_eq!(tag(text, 0), None, "{text}");
        }
    }

    #[test]
    fn thinking_ends_with_its_own_tag_or_with_the_last_one() {
        assert_eq!(span("<think>a<think>b</think>c</think>d</think>", 0), Span::Closed(33));
        assert_eq!(span("<think>not <think> again</think>d", 0), Span::Closed(32));
        assert_eq!(span("<think>a", 0), Span::Unclosed);
        assert_eq!(last_close("a</think>b</THINK>c", 0), Some(18));
    }
}
