//! The results of one attempt while its answer arrives: text for the sink, counts, and the report at the end.

use cognitive_contract::ports::{Attempt, CallSink, Finish, ModelEnd, Usage};
use tokio::time::Instant;

use crate::complaint::Complaint;
use crate::fault::{Fault, Reporter};
use crate::llm::Reading;
use crate::llm::echo::Echo;
use crate::llm::endings::ending;
use crate::llm::surrogates::Seam;
use crate::llm::terms::Bind;

/// The results of an attempt, which remain if it is aborted.
pub(super) struct Feed<'a> {
    pub(super) sink: &'a mut dyn CallSink,
    pub(super) begun: bool,
    pub(super) status: Option<u16>,
    /// The token counts reported so far.
    pub(super) usage: Option<Usage>,
    /// Set if they were reported before the end of the answer.
    pub(super) counted_midway: bool,
    /// The model name, if reported.
    pub(super) model: Option<String>,
    /// The text so far, stored only if it may have to be sent back.
    pub(super) said: Option<String>,
    /// The number of bytes of text.
    pub(super) length: usize,
    /// Joins pieces after a character was split between them.
    pub(super) seam: Option<Seam>,
    /// Removes the key from the text.
    echo: Echo<'a>,
}

impl<'a> Feed<'a> {
    pub(super) fn new(sink: &'a mut dyn CallSink, said: Option<String>, echo: Echo<'a>) -> Self {
        let (status, usage, model, seam) = (None, None, None, None);
        let counted_midway = false;
        Self { sink, begun: false, status, usage, counted_midway, model, said, length: 0, seam, echo }
    }

    pub(super) fn text(&mut self, text: &str) {
        match &mut self.seam {
            None => self.forward(text),
            Some(seam) => {
                let joined = seam.join(text);
                self.forward(&joined);
            }
        }
    }

    fn forward(&mut self, text: &str) {
        if !text.is_empty() {
            self.begun = true;
            self.length = self.length.saturating_add(text.len());
            let Self { echo, said, sink, .. } = self;
            echo.pass(text, |text| take(text, said.as_mut(), &mut **sink));
        }
    }

    /// Takes the counts and the name of the model.
    pub(super) fn note(&mut self, reading: &Reading) {
        self.counted_midway = reading.final_usage().is_none();
        (self.usage, self.model) = (reading.usage.or(reading.counted_input), reading.model.clone());
    }

    /// Returns the ending that the service reports as an error. Hands on the reply that it withheld.
    pub(super) fn ending(&mut self, complaint: &Complaint, reporter: Reporter<'_>) -> Option<Finish> {
        let finish = ending(complaint, reporter)?;
        if let Some(reply) = complaint.reply.as_deref().filter(|_| !self.begun) {
            self.text(reply);
        }
        Some(finish)
    }

    /// Flushes the filters: no second half of a character and no rest of the key can follow.
    pub(super) fn end_text(&mut self) {
        if let Some(left) = self.seam.take().and_then(|mut seam| seam.end()) {
            self.forward(left);
        }
        let Self { echo, said, sink, .. } = self;
        echo.end(|text| take(text, said.as_mut(), &mut **sink));
    }

    /// Reports an attempt that is over.
    pub(super) fn report(&mut self, bind: Bind, started: Instant, outcome: &Result<ModelEnd, Fault>) {
        let text = outcome.as_ref().map_or_else(|fault| fault.error.to_string(), |_| "ok".to_owned());
        let mut attempt = Attempt::new(bind.decode(), text, started.elapsed());
        attempt.status = self.status;
        if let Err(fault) = outcome {
            attempt.failed = fault.failed.as_deref().cloned();
            (attempt.usage, attempt.model) = (self.usage, self.model.take());
            attempt.counted_midway = self.usage.is_some() && self.counted_midway;
        }
        self.sink.attempt(attempt);
    }
}

fn take(text: &str, said: Option<&mut String>, sink: &mut dyn CallSink) {
    if let Some(said) = said {
        said.push_str(text);
    }
    sink.piece(text);
}
