//! Sessions that wait for the next run. A module's instructions and examples are the same every time, so what was read
//! of them last time is not computed again. Keeps few: each holds some ten megabytes.

use std::sync::Arc;

use crate::chat::ChatPrompt;
use crate::model::{LanguageModel, ModelState};

/// How many sessions wait; the one that was not used for longest goes first.
const MAX_SESSIONS: usize = 4;

/// Sessions that nobody uses at the moment, the latest last.
#[derive(Default)]
pub(crate) struct IdleSessions {
    idle: Vec<Box<dyn ModelState>>,
}

impl IdleSessions {
    /// A session that has read as much of the prompt as any, and nothing else.
    pub(crate) fn take(
        &mut self,
        prompt: &ChatPrompt,
        weights: &Arc<dyn LanguageModel>,
        threads: usize,
    ) -> Box<dyn ModelState> {
        let lengths = self.idle.iter().map(|session| common(session.tokens(), &prompt.tokens));
        let best = lengths.enumerate().max_by_key(|(_, length)| *length);
        // A few common words at the start are no reason to spoil another module's session.
        let fitting = best.filter(|(_, length)| *length > prompt.fixed / 2).map(|(index, _)| index);
        let oldest = (self.idle.len() >= MAX_SESSIONS).then_some(0);
        let mut session = match fitting.or(oldest) {
            Some(index) => self.idle.remove(index),
            None => Arc::clone(weights).session(threads),
        };
        // The last token is always read again, because its logits are wanted.
        let keep = common(session.tokens(), &prompt.tokens).min(prompt.tokens.len().saturating_sub(1));
        session.truncate(keep);
        session
    }

    /// Takes a session back.
    pub(crate) fn give_back(&mut self, session: Box<dyn ModelState>) {
        if self.idle.len() >= MAX_SESSIONS {
            self.idle.remove(0);
        }
        self.idle.push(session);
    }
}

fn common(read: &[u32], prompt: &[u32]) -> usize {
    read.iter().zip(prompt).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::Toy;

    fn prompt(text: &str, fixed: usize) -> ChatPrompt {
        ChatPrompt { tokens: text.bytes().map(u32::from).collect(), fixed }
    }

    fn read(
        sessions: &mut IdleSessions,
        weights: &Arc<dyn LanguageModel>,
        text: &str,
        fixed: usize,
    ) -> usize {
        let prompt = prompt(text, fixed);
        let mut session = sessions.take(&prompt, weights, 1);
        let known = session.tokens().len();
        session.feed(&prompt.tokens[known..], &|| false).unwrap();
        assert_eq!(session.tokens(), prompt.tokens);
        sessions.give_back(session);
        known
    }

    #[test]
    fn the_fixed_part_is_read_once_and_modules_do_not_disturb_each_other() {
        let weights: Arc<dyn LanguageModel> = Arc::new(Toy::default());
        let mut sessions = IdleSessions::default();
        assert_eq!(read(&mut sessions, &weights, "module one: first", 12), 0);
        assert_eq!(read(&mut sessions, &weights, "another module: x", 16), 0);
        assert_eq!(read(&mut sessions, &weights, "module one: second", 12), 12);
        assert_eq!(read(&mut sessions, &weights, "another module: y", 16), 16);
        assert_eq!(
            read(&mut sessions, &weights, "another module: y", 16),
            16,
            "the last token is read again"
        );
    }

    #[test]
    fn only_a_few_sessions_are_kept() {
        let weights: Arc<dyn LanguageModel> = Arc::new(Toy::default());
        let mut sessions = IdleSessions::default();
        for module in ["a", "b", "c", "d", "e", "f"] {
            assert_eq!(read(&mut sessions, &weights, &module.repeat(20), 20), 0);
            assert!(sessions.idle.len() <= MAX_SESSIONS);
        }
        assert_eq!(read(&mut sessions, &weights, &"f".repeat(20), 20), 19);
    }
}
