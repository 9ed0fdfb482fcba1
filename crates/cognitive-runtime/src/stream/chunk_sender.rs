//! The output of one stream: the writer that numbers chunks, and the function that sends them. A stream that was
//! degraded to a whole answer sends nothing here.

use cognitive_contract::stream::{Chunk, ChunkWriter, SessionId};
use cognitive_contract::{Confidence, Envelope, Meta, Module, Risk};
use serde_json::{Map, Value};

/// A callback for chunks.
pub(crate) type SendChunk<'o> = Box<dyn FnMut(Chunk) + Send + 'o>;

/// Sends the chunks of one stream.
pub(crate) struct ChunkSender<'o> {
    writer: ChunkWriter,
    send: SendChunk<'o>,
    /// Set if the answer is delivered whole, and not through here.
    silent: bool,
    percent: u8,
}

impl<'o> ChunkSender<'o> {
    pub(crate) fn new(session: SessionId, send: SendChunk<'o>) -> Self {
        Self { writer: ChunkWriter::new(session, 0), send, silent: false, percent: 0 }
    }

    pub(crate) fn session_id(&self) -> &SessionId {
        self.writer.session_id()
    }

    /// Applies the module's buffer size, before anything was written.
    pub(crate) fn configure(&mut self, module: &Module) {
        self.writer =
            ChunkWriter::new(self.writer.session_id().clone(), module.manifest.response.buffer_size);
    }

    /// Sends nothing from now on.
    pub(crate) fn silence(&mut self) {
        self.silent = true;
    }

    pub(crate) fn is_silent(&self) -> bool {
        self.silent
    }

    fn send(&mut self, chunks: impl IntoIterator<Item = Chunk>) {
        for chunk in chunks {
            (self.send)(chunk);
        }
    }

    /// Opens the session. The risk of the answer is not known yet, and unknown risk counts as medium.
    pub(crate) fn open(&mut self) {
        if !self.silent {
            let chunk = self.writer.open(&Meta::new(Confidence::ZERO, Risk::Medium, "Started"));
            self.send(chunk);
        }
    }

    pub(crate) fn text(&mut self, field: &str, text: &str) {
        if !self.silent {
            let chunks = self.writer.text(field, text);
            self.send(chunks);
        }
    }

    pub(crate) fn snapshot(&mut self, data: Map<String, Value>) {
        if !self.silent {
            let chunks = self.writer.snapshot(data);
            self.send(chunks);
        }
    }

    /// Sends the model's own meta members, once they are complete. Drops all others.
    pub(crate) fn meta(&mut self, members: &Map<String, Value>) {
        let own = ["confidence", "risk", "explain"];
        let own: Map<String, Value> =
            own.iter().filter_map(|name| Some(((*name).to_owned(), members.get(*name)?.clone()))).collect();
        if !self.silent {
            let chunk = self.writer.meta(own);
            self.send(chunk);
        }
    }

    /// Sends the progress. It never goes back, even if the model is asked again.
    pub(crate) fn progress(&mut self, percent: u8, stage: &str) {
        self.work(percent, stage, None);
    }

    /// Sends the progress of a composition, and the state of one part.
    pub(crate) fn part(&mut self, percent: u8, message: &str) {
        self.work(percent, "part", Some(message));
    }

    fn work(&mut self, percent: u8, stage: &str, message: Option<&str>) {
        self.percent = self.percent.max(percent);
        if !self.silent {
            let chunks = self.writer.progress(self.percent, Some(stage), message);
            self.send(chunks);
        }
    }

    /// Sends the terminal chunk.
    pub(crate) fn finish(&mut self, envelope: Envelope) {
        if !self.silent {
            let chunks = self.writer.finish(envelope);
            self.send(chunks);
        }
    }
}
