//! Holds back the text of a turn that may not be the answer: text before a tool call must not reach the listeners.
//! Text that starts like an answer passes at once; any other text waits until the turn is known to be the last.

use cognitive_contract::ports::{Event, EventSink};

/// Filters the events between a call and its listeners.
pub(crate) struct HeldText<'a> {
    sink: &'a mut dyn EventSink,
    waiting: String,
    passes: bool,
    /// Set if the listeners have received text of this turn.
    pub(crate) heard: bool,
}

impl<'a> HeldText<'a> {
    /// Creates the filter. Without tools every text passes at once.
    pub(crate) fn new(sink: &'a mut dyn EventSink, has_tools: bool) -> Self {
        Self { sink, waiting: String::new(), passes: !has_tools, heard: false }
    }

    /// Releases the text: the turn was the answer.
    pub(crate) fn release(mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        self.pass(&waiting);
    }

    fn pass(&mut self, text: &str) {
        if !text.is_empty() {
            self.heard = true;
            self.sink.event(Event::Text(text));
        }
    }
}

impl EventSink for HeldText<'_> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Text(text) if self.passes => self.pass(text),
            Event::Text(text) => {
                self.waiting.push_str(text);
                if self.waiting.trim_start().starts_with('{') {
                    self.passes = true;
                    let waiting = std::mem::take(&mut self.waiting);
                    self.pass(&waiting);
                }
            }
            other => self.sink.event(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Ear(Vec<String>);

    impl EventSink for Ear {
        fn event(&mut self, event: Event<'_>) {
            if let Event::Text(text) = event {
                self.0.push(text.to_owned());
            }
        }
    }

    fn heard(has_tools: bool, pieces: &[&str], is_answer: bool) -> Vec<String> {
        let mut ear = Ear::default();
        let mut held = HeldText::new(&mut ear, has_tools);
        for piece in pieces {
            held.event(Event::Text(piece));
        }
        if is_answer {
            held.release();
        }
        ear.0
    }

    #[test]
    fn prose_waits_and_an_answer_does_not() {
        assert_eq!(heard(true, &["\n", " {", "}"], false), ["\n {", "}"]);
        assert_eq!(heard(true, &["Let me ", "look."], false), [""; 0]);
        assert_eq!(heard(true, &["```json\n", "{}"], true), ["```json\n{}"]);
        assert_eq!(heard(false, &["Let me ", "look."], false), ["Let me ", "look."]);
    }
}
