//! Thinking of a model before its answer, between tags: not part of the answer. An unclosed tag means thinking to the
//! end, or is only mentioned in prose.

use super::{GrammarState, ReplyGrammar};
use crate::reply::event::{JsonListener, ReplyFinding};
use crate::reply::json::ReplyInput;
use crate::reply::tags::{self, TagMatch, ThinkingTag};

impl ReplyGrammar {
    pub(super) fn tag(&mut self, input: ReplyInput<'_>, listener: &mut impl JsonListener) -> bool {
        match tags::tag_at(input.text, self.at) {
            TagMatch::Partial if !input.ended => return false,
            TagMatch::Tag(ThinkingTag::Close, end) => self.void(end, listener),
            TagMatch::Tag(ThinkingTag::Open, _) if self.no_more_closing => {
                self.handle_unclosed(input.text, self.at, listener);
            }
            TagMatch::Tag(ThinkingTag::Open, end) => {
                self.state = GrammarState::Thinking { from: self.at, depth: 1, last_close: None };
                self.at = end;
            }
            TagMatch::Partial | TagMatch::None => self.return_to_prose(self.at, listener),
        }
        true
    }

    pub(super) fn think(&mut self, text: &str, listener: &mut impl JsonListener) -> bool {
        let GrammarState::Thinking { from, depth, last_close } = &mut self.state else { return true };
        match tags::next_tag(text, self.at) {
            Err(later) => {
                self.at = later;
                return false;
            }
            Ok((ThinkingTag::Open, end)) => {
                *depth += 1;
                self.at = end;
            }
            Ok((ThinkingTag::Close, end)) => {
                *depth -= 1;
                *last_close = Some(end);
                self.at = end;
                if *depth == 0 {
                    let from = *from;
                    self.end_thinking(from, end, listener);
                }
            }
        }
        true
    }

    pub(super) fn end_thinking(&mut self, from: usize, end: usize, listener: &mut impl JsonListener) {
        listener.finding(ReplyFinding::Thinking(from));
        self.state = GrammarState::Prose;
        self.at = end;
        self.behind = end;
    }

    /// Handles an unclosed tag: a model that never reached its answer. In the middle of a line the tag is only
    /// mentioned.
    pub(super) fn handle_unclosed(&mut self, text: &str, from: usize, listener: &mut impl JsonListener) {
        self.no_more_closing = true;
        if !self.starts_line(text, from) {
            return self.return_to_prose(from, listener);
        }
        listener.finding(ReplyFinding::Thinking(from));
        listener.finding(ReplyFinding::StillThinking);
        self.state = GrammarState::Prose;
        self.at = text.len();
    }
}
