//! Code fences as `exec` takes them: on lines of their own, opened and closed, outside of thinking.
//! Takes no liberties with them, and knows nothing of JSON.

use super::thinking::{self, Span, Tag};

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

/// The contents of all fences, each as start and end offset.
pub(super) fn blocks(text: &str) -> Vec<(usize, usize)> {
    let mut blocks = Vec::new();
    let mut open: Option<((u8, usize), usize)> = None;
    let mut hidden_until = 0;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let (start, end) = (at, at + line.len());
        at = end;
        match open {
            _ if start < hidden_until => {}
            Some((fence, from)) => {
                if closes(line, fence) {
                    blocks.push((from, start));
                    open = None;
                }
            }
            None => {
                hidden_until = thought(text, start, end, &mut blocks);
                if hidden_until == 0 {
                    open = mark(line).map(|fence| (fence, end));
                }
            }
        }
    }
    blocks
}

/// Where the thinking ends that a line opens; 0 if it opens none. A closing tag alone says that all before it was
/// thinking.
fn thought(text: &str, start: usize, end: usize, blocks: &mut Vec<(usize, usize)>) -> usize {
    match thinking::next_tag(text.get(..end).unwrap_or(text), start) {
        None => 0,
        Some((Tag::Open, at, _)) => match thinking::span(text, at) {
            Span::Closed(behind) => behind,
            Span::Unclosed => text.len(),
        },
        Some((Tag::Close, _, behind)) => {
            blocks.clear();
            behind
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(text: &str) -> Vec<&str> {
        blocks(text).into_iter().map(|(start, end)| text.get(start..end).unwrap().trim()).collect()
    }

    #[test]
    fn pipe_004_fences_open_and_close_on_lines_of_their_own() {
        assert_eq!(contents("a\n```json\n{}\n```\nb\n~~~\n[]\n~~~"), ["{}", "[]"]);
        assert_eq!(contents("- one\r\n  ```JSON\r\n  {}\r\n  ```\r\n"), ["{}"]);
        assert_eq!(contents("````\n```\n{}\n```\n````"), ["```\n{}\n```"]);
        for text in ["{\"a\": \"```\\n{}\\n```\"}", "```json\n{}", "x ```{}```", "``\n{}\n``"] {
            assert!(contents(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn fences_in_thoughts_do_not_count() {
        assert_eq!(contents("<think>\n```\n1\n```\n</think>\n```\n2\n```"), ["2"]);
        assert_eq!(contents("```\n1\n```\n</think>\n```\n2\n```"), ["2"]);
        assert!(contents("<think>\n```\n1\n```\n").is_empty());
        assert_eq!(contents("```\n{\"a\": \"</think>\"}\n```"), ["{\"a\": \"</think>\"}"]);
    }
}
