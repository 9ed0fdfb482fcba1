//! Broken objects are skipped whole, so that no part of them can become the answer. A closing tag inside one means
//! that everything before the tag was thinking.

use super::{GrammarState, ReplyGrammar};
use crate::reply::event::{BreakCause, BrokenValue, JsonEvent, JsonListener, ReplyFinding};
use crate::reply::json::JsonReader;
use crate::reply::skip::SkipState;
use crate::reply::tags;

impl ReplyGrammar {
    pub(super) fn handle_break(&mut self, cause: BreakCause, listener: &mut impl JsonListener) {
        let JsonReader { open, at, begun, enveloped, token_start, resume, .. } = self.json;
        let is_list = self.json.is_list();
        if begun || (!is_list && (self.strict || cause == BreakCause::End)) {
            let broken = BrokenValue { open, at, cause, begun, enveloped, is_thought: false };
            let mark = self.fence.map(|fence| fence.mark);
            self.state = GrammarState::Skipping(Box::new(SkipState::new(&self.json, broken, mark)));
            return;
        }
        listener.finding(ReplyFinding::Prose(open));
        self.touch();
        self.state = GrammarState::Prose;
        // The list has no object yet, so none can be lost.
        self.at = if is_list { token_start.max(open + 1) } else { resume };
    }

    pub(super) fn skip(&mut self, text: &str, listener: &mut impl JsonListener) -> bool {
        let GrammarState::Skipping(skip) = &mut self.state else { return true };
        let to_the_end = skip.broken.cause == BreakCause::End;
        let end = if to_the_end { None } else { skip.end(text) };
        let reached = end.unwrap_or(text.len());
        self.at = reached;
        let broken = skip.broken;
        // A reply that starts with a brace did not start with thinking, so a tag in it is part of some string.
        if self.start != Some(broken.open) && self.thought.is_none() {
            match tags::next_close(text.get(..reached).unwrap_or_default(), skip.tags_from) {
                Ok(close) => {
                    self.thought = Some((BrokenValue { is_thought: true, ..broken }, close));
                    self.void(close, listener);
                    return true;
                }
                Err(later) => skip.tags_from = later,
            }
        }
        if let Some(end) = end {
            self.lose(broken, end, listener);
        }
        end.is_some()
    }

    /// Ends a broken value.
    pub(super) fn lose(&mut self, broken: BrokenValue, end: usize, listener: &mut impl JsonListener) {
        listener.finding(ReplyFinding::Prose(broken.open));
        listener.finding(ReplyFinding::Broken(broken));
        self.leave(end);
    }

    /// Voids everything up to an offset: it was thinking.
    pub(super) fn void(&mut self, end: usize, listener: &mut impl JsonListener) {
        self.state = GrammarState::Prose;
        self.at = end;
        self.behind = end;
        self.fence = None;
        self.clean = true;
        listener.event(JsonEvent::Void, end);
        listener.finding(ReplyFinding::Void(self.start.unwrap_or_default()));
        if let Some((broken, _)) = self.thought {
            listener.finding(ReplyFinding::Broken(broken));
        }
    }
}
