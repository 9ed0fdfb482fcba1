//! The listener that sends an answer out in pieces, as the other listeners of a run see it: it is told of stages, parts and
//! text, and decides itself what of it becomes a chunk. One call per piece of text, so that the events within a piece need
//! no dynamic dispatch.

use cognitive_contract::Module;
use cognitive_contract::manifest::Mode;
use cognitive_contract::ports::Stage;
use cognitive_contract::trace::{PartEvent, PartState};

use super::field_deltas::FieldDeltas;
use crate::early_stop::EarlyStop;
use crate::reply::{JsonEvent, JsonListener, ReplyScanner};

/// Hears a run and sends chunks.
pub(crate) trait ChunkListener: Send {
    /// Whether chunks go out at all.
    fn streams(&self) -> bool;

    /// The module is known. One that offers no streams is answered whole.
    fn loaded(&mut self, module: &Module);

    /// A call begins.
    fn begin_call(&mut self);

    /// A stage begins.
    fn stage(&mut self, stage: Stage);

    /// Something happened to a part of a composition.
    fn part(&mut self, part: PartEvent<'_>);

    /// A piece of the model's text has come to the scanner. The early stop, if there is one, hears the same events.
    fn scan(&mut self, scanner: &mut ReplyScanner, early_stop: Option<&mut EarlyStop>);
}

impl ChunkListener for FieldDeltas<'_> {
    fn streams(&self) -> bool {
        FieldDeltas::streams(self)
    }

    fn loaded(&mut self, module: &Module) {
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
            // Before the first call a failure is one error chunk and nothing else.
            Stage::Call => {
                sender.open();
                sender.progress(10, stage.as_str());
            }
            Stage::Tools => sender.progress(10, stage.as_str()),
            Stage::Check => sender.progress(90, stage.as_str()),
            // The answer is there already; what follows is its last chunk.
            Stage::Kept | Stage::Composed => sender.open(),
            _ => {}
        }
    }

    /// A reader of a stream is told how far the parts of a composition are.
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
