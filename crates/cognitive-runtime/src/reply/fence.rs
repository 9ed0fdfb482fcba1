//! Code fences: the state of an open fence in running text, and the only form that `exec` accepts (D-09): a closed
//! fence on separate lines with nothing around it. Knows nothing of JSON.

/// The shortest fence.
pub(super) const MIN_MARKS: usize = 3;

/// A fence around the current offset.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenFence {
    /// The offset at which it opens.
    pub(super) at: usize,
    /// Its mark, and the number of repetitions.
    pub(super) mark: (u8, usize),
    /// The offset of its content, after the word for the language.
    pub(super) body: usize,
    /// Set if an object was found or broken in it.
    pub(super) used: bool,
    pub(super) line: FenceLine,
}

/// The position of the text relative to the opening line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FenceLine {
    /// On the line that opens it.
    Opening,
    /// Only blanks since that line.
    Fresh,
    /// Further on.
    Past,
}

impl OpenFence {
    pub(super) fn new(at: usize, mark: (u8, usize)) -> Self {
        Self { at, mark, body: at + mark.1, used: false, line: FenceLine::Opening }
    }
}

impl FenceLine {
    /// Returns the position after some more text.
    pub(super) fn after_text(self, run: &str) -> Self {
        let rest = match self {
            Self::Opening => match run.split_once('\n') {
                Some((_, rest)) => rest,
                None => return self,
            },
            Self::Fresh => run,
            Self::Past => return self,
        };
        if rest.chars().all(super::grammar::is_blank) { Self::Fresh } else { Self::Past }
    }
}

/// Returns the length in bytes of the word after an opening fence, such as `json`.
pub(super) fn language(rest: &str) -> usize {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'+' | b'-' | b'.');
    rest.bytes().take_while(is_word).count()
}

/// Returns the fence with which a line opens: its mark and the number of repetitions.
pub(super) fn mark(line: &str) -> Option<(u8, usize)> {
    let line = line.trim_start().as_bytes();
    let mark = *line.first().filter(|byte| matches!(byte, b'`' | b'~'))?;
    let length = line.iter().take_while(|byte| **byte == mark).count();
    (length >= MIN_MARKS).then_some((mark, length))
}

/// Returns whether a line closes a fence: only the mark, at least as long as the opening one.
pub(super) fn closes(line: &str, fence: (u8, usize)) -> bool {
    let line = line.trim().as_bytes();
    line.len() >= fence.1 && line.iter().all(|byte| *byte == fence.0)
}

/// The first fence of a text, and its surroundings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnlyFence {
    /// The text has no fence that is opened and closed.
    Missing,
    /// The text has only the fence. Start and end of its content.
    Alone(usize, usize),
    /// The text has something else at this offset.
    Accompanied(usize),
}

/// Looks for a fence with only white space around it.
pub(super) fn sole_fence(text: &str) -> OnlyFence {
    let mut lines = TextLines { text, at: 0 };
    let Some((opening, fence)) = lines.find_map(|line| Some((line, mark(line.2)?))) else {
        return OnlyFence::Missing;
    };
    let Some(closing) = lines.find(|line| closes(line.2, fence)) else { return OnlyFence::Missing };
    let beside = |from: usize, to: usize| {
        let part = text.get(from..to).unwrap_or_default();
        let first = part.find(|c: char| !super::grammar::is_blank(c))?;
        Some(from + first)
    };
    match beside(0, opening.0).or_else(|| beside(closing.1, text.len())) {
        Some(at) => OnlyFence::Accompanied(at),
        None => OnlyFence::Alone(opening.1, closing.0),
    }
}

/// The lines of a text, with their start and end offsets.
struct TextLines<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for TextLines<'a> {
    type Item = (usize, usize, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let line = self.text.get(self.at..)?.split_inclusive('\n').next()?;
        let start = self.at;
        self.at += line.len();
        Some((start, self.at, line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(text: &str) -> Option<&str> {
        match sole_fence(text) {
            OnlyFence::Alone(from, to) => text.get(from..to).map(str::trim),
            _ => None,
        }
    }

    #[test]
    fn pipe_004_a_fence_opens_and_closes_on_lines_of_their_own() {
        assert_eq!(content("```json\n{}\n```"), Some("{}"));
        assert_eq!(content(" \r\n  ```JSON\r\n  {}\r\n  ```\r\n"), Some("{}"));
        assert_eq!(content("````\n```\n{}\n```\n````"), Some("```\n{}\n```"));
        assert_eq!(content("~~~\n[]\n~~~"), Some("[]"));
        for text in ["{\"a\": \"```\\n{}\\n```\"}", "```json\n{}", "x ```{}```", "``\n{}\n``", ""] {
            assert_eq!(sole_fence(text), OnlyFence::Missing, "{text}");
        }
    }

    #[test]
    fn d_09_nothing_may_stand_beside_it() {
        assert_eq!(sole_fence("a\n```\n{}\n```"), OnlyFence::Accompanied(0));
        assert_eq!(sole_fence("```\n{}\n```\n so"), OnlyFence::Accompanied(12));
        assert_eq!(sole_fence("```\n{}\n```\n```\n{}\n```"), OnlyFence::Accompanied(11));
        assert_eq!(sole_fence("<think>\n</think>\n```\n{}\n```"), OnlyFence::Accompanied(0));
    }
}
