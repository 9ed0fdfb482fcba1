//! Finds the tags of a model's thinking: `<think>` and `<thinking>`, in any case. Looks at tags only: the caller must
//! know whether a tag is part of a string.

/// The kind of a tag, of either name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThinkingTag {
    /// Thinking starts.
    Open,
    /// Thinking ends.
    Close,
}

/// Every tag as it is written, in lower case.
const TAGS: [(&str, ThinkingTag); 4] = [
    ("<think>", ThinkingTag::Open),
    ("</think>", ThinkingTag::Close),
    ("<thinking>", ThinkingTag::Open),
    ("</thinking>", ThinkingTag::Close),
];

/// The match at an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TagMatch {
    /// A tag, up to this offset.
    Tag(ThinkingTag, usize),
    /// The text ends within a possible tag.
    Partial,
    /// No tag.
    None,
}

/// Returns the tag at an offset.
pub(super) fn tag_at(text: &str, at: usize) -> TagMatch {
    let rest = text.as_bytes().get(at..).unwrap_or_default();
    let begins = |name: &str| {
        let length = name.len().min(rest.len());
        let start = rest.get(..length).zip(name.as_bytes().get(..length));
        start.is_some_and(|(start, name)| start.eq_ignore_ascii_case(name))
    };
    let mut outcome = TagMatch::None;
    for (name, tag) in TAGS.iter().filter(|(name, _)| begins(name)) {
        if name.len() <= rest.len() {
            return TagMatch::Tag(*tag, at + name.len());
        }
        outcome = TagMatch::Partial;
    }
    outcome
}

/// Returns the next tag at or after an offset, and the offset after it. The error is the offset at which to continue
/// once more text has arrived.
pub(super) fn next_tag(text: &str, from: usize) -> Result<(ThinkingTag, usize), usize> {
    let mut at = from;
    loop {
        let rest = text.as_bytes().get(at..).unwrap_or_default();
        let Some(found) = rest.iter().position(|byte| *byte == b'<') else { return Err(text.len()) };
        at += found;
        match tag_at(text, at) {
            TagMatch::Tag(tag, end) => return Ok((tag, end)),
            TagMatch::Partial => return Err(at),
            TagMatch::None => at += 1,
        }
    }
}

/// Returns the offset after the next closing tag at or after an offset, with the same error.
pub(super) fn next_close(text: &str, from: usize) -> Result<usize, usize> {
    let mut at = from;
    loop {
        match next_tag(text, at)? {
            (ThinkingTag::Close, end) => return Ok(end),
            (ThinkingTag::Open, end) => at = end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_have_two_names_in_any_case_and_no_others() {
        assert_eq!(tag_at("<Think>", 0), TagMatch::Tag(ThinkingTag::Open, 7));
        assert_eq!(tag_at("x</thinking>", 1), TagMatch::Tag(ThinkingTag::Close, 12));
        for text in ["<thin>", "<thinker>", "think>", "<tool>"] {
            assert_eq!(tag_at(text, 0), TagMatch::None, "{text}");
        }
        assert_eq!(tag_at("<think", 0), TagMatch::Partial);
    }

    #[test]
    fn tags_are_found_however_they_are_split() {
        let text = "a <thin<Think>b<x></THINKING>";
        for size in 1..=text.len() {
            let (mut found, mut from) = (Vec::new(), 0);
            for end in (1..=text.len()).filter(|end| end % size == 0 || *end == text.len()) {
                from = loop {
                    match next_tag(&text[..end], from) {
                        Ok((tag, behind)) => {
                            found.push(tag);
                            from = behind;
                        }
                        Err(later) => break later,
                    }
                };
            }
            assert_eq!(found, [ThinkingTag::Open, ThinkingTag::Close], "{size}");
        }
    }
}
