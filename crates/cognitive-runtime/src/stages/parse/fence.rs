//! Code fences as `exec` takes them: on lines of their own, opened and closed, and all that there is (D-09).
//! Takes no liberties with them, and knows nothing of JSON.

/// The shortest fence.
pub(crate) const SHORTEST: usize = 3;

/// The fence with which a line opens: its mark and how often that stands there.
pub(super) fn mark(line: &str) -> Option<(u8, usize)> {
    let line = line.trim_start().as_bytes();
    let mark = *line.first().filter(|byte| matches!(byte, b'`' | b'~'))?;
    let length = line.iter().take_while(|byte| **byte == mark).count();
    (length >= SHORTEST).then_some((mark, length))
}

/// Whether a line closes a fence: nothing but the mark, at least as long as the one that opened it.
pub(super) fn closes(line: &str, fence: (u8, usize)) -> bool {
    let line = line.trim().as_bytes();
    line.len() >= fence.1 && line.iter().all(|byte| *byte == fence.0)
}

/// The first fence of a text, and what stands around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Only {
    /// There is none that is opened and closed.
    Missing,
    /// It is all that there is. Start and end of its content.
    Alone(usize, usize),
    /// Something stands beside it, at this offset.
    Accompanied(usize),
}

/// Looks for a fence with nothing but white space around it.
pub(super) fn only(text: &str) -> Only {
    let mut lines = Lines { text, at: 0 };
    let Some((opening, fence)) = lines.find_map(|line| Some((line, mark(line.2)?))) else {
        return Only::Missing;
    };
    let Some(closing) = lines.find(|line| closes(line.2, fence)) else { return Only::Missing };
    let beside = |from: usize, to: usize| {
        let part = text.get(from..to).unwrap_or_default();
        let first = part.find(|c: char| !c.is_whitespace() && c != super::BYTE_ORDER_MARK)?;
        Some(from + first)
    };
    match beside(0, opening.0).or_else(|| beside(closing.1, text.len())) {
        Some(at) => Only::Accompanied(at),
        None => Only::Alone(opening.1, closing.0),
    }
}

/// Lines with where they start and end.
struct Lines<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Lines<'a> {
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
        match only(text) {
            Only::Alone(from, to) => text.get(from..to).map(str::trim),
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
            assert_eq!(only(text), Only::Missing, "{text}");
        }
    }

    #[test]
    fn d_09_nothing_may_stand_beside_it() {
        assert_eq!(only("a\n```\n{}\n```"), Only::Accompanied(0));
        assert_eq!(only("```\n{}\n```\n so"), Only::Accompanied(12));
        assert_eq!(only("```\n{}\n```\n```\n{}\n```"), Only::Accompanied(11));
        assert_eq!(only("<think>\n</think>\n```\n{}\n```"), Only::Accompanied(0));
    }
}
