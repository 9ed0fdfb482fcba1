//! The listener that sends an answer in chunks. It receives stages, parts and text, and decides itself which of them
//! become chunks. One call per piece of text, so that the events within a piece need no dynamic dispatch.

use cognitive_contract::Module;
use cognitive_contract::manifest::Mode;
use cognitive_contract::ports::Stage;
use cognitive_contract::trace::{PartEvent, PartState};

use super::field_deltas::FieldDeltas;
use crate::early_stop::EarlyStop;
use crate::reply::{JsonEvent, JsonListener, ReplyScanner};

/// Listens to a run and sends chunks.
pub(crate) trait ChunkListener: Send {
    /// Returns whether chunks are sent at all.
    fn streams(&self) -> bool;

    /// Receives the module. A module that offers no streams is answered whole.
    fn on_module(&mut self, module: &Module);

    /// A call starts.
    fn begin_call(&mut self);

    /// A stage starts.
    fn stage(&mut self, stage: Stage);

    /// Receives the state of a part of a composition.
    fn part(&mut self, part: PartEvent<'_>);

    /// A piece of the model's text was added to the scanner. The early stop, if any, receives the same events.
    fn scan(&mut self, scanner: &mut ReplyScanner, early_stop: Option<&mut EarlyStop>);
}

impl ChunkListener for FieldDeltas<'_> {
    fn streams(&self) -> bool {
        FieldDeltas::streams(self)
    }

    fn on_module(&mut self, module: &Module) {
        self.configure(module);
        let sender = self.sender();
        sender.configure(module);
        if module.manifest.response.mode == Mode::Sync {
            sender.silence();
        }
    }

    fn begin_call(&mut self) {
        FieldDeltas::begin_call(self);
    }

    fn stage(&mut self, stage: Stage) {
        let sender = self.sender();
        match stage {
            // A failure before the first call is a single error chunk.
            Stage::Call => {
                sender.open();
                sender.progress(10, stage.as_str());
            }
            Stage::Tools => sender.progress(10, stage.as_str()),
            Stage::Check => sender.progress(90, stage.as_str()),
            // The answer already exists; only its last chunk follows.
            Stage::Kept | Stage::Composed => sender.open(),
            _ => {}
        }
    }

    /// Sends the reader of a stream the progress of the parts of a composition.
    fn part(&mut self, part: PartEvent<'_>) {
        if part.state == PartState::Speaks {
            return;
        }
        let sender = self.sender();
        sender.open();
        let share = part.done.saturating_mul(70) / part.of.max(1);
        let percent = u8::try_from(share).unwrap_or(u8::MAX).min(70) + 10;
        sender.part(percent, &format!("{} {}", part.path, part.state.word()));
    }

    fn scan(&mut self, scanner: &mut ReplyScanner, early_stop: Option<&mut EarlyStop>) {
        scanner.scan(&mut ScanListeners { early_stop, deltas: self });
        self.end_piece();
    }
}

/// Feeds the early stop and the stream from one scanner.
struct ScanListeners<'a, 'o> {
    early_stop: Option<&'a mut EarlyStop>,
    deltas: &'a mut FieldDeltas<'o>,
}

impl JsonListener for ScanListeners<'_, '_> {
    fn event(&mut self, event: JsonEvent<'_>, at: usize) {
        if let Some(early_stop) = &mut self.early_stop {
            early_stop.event(event, at);
        }
        self.deltas.event(event, at);
    }
}
