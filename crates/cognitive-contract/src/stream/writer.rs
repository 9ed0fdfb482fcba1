//! The only place that numbers chunks. For any sequence of calls, the output is a valid stream so far. The first chunk
//! opens the session, `seq` runs 1, 2, 3 …, and nothing follows the terminal chunk.
//! Sends nothing and never waits: every method returns the chunks that are now due, in order.

use serde_json::{Map, Value};

use super::chunk::Chunk;
use super::session::SessionId;
use crate::envelope::Envelope;
use crate::meta::{self, Confidence, Meta, RiskForm};
use crate::risk_level::Risk;

/// Converts the events of one run to the chunks of one stream.
///
/// Calls after the end return nothing, so a late event cannot break the stream. A call before [`open`](Self::open)
/// opens the session automatically.
#[derive(Debug)]
pub struct ChunkWriter {
    session_id: SessionId,
    state: WriterState,
    last_seq: u64,
    buffer: Buffer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriterState {
    Fresh,
    Open,
    Ended,
}

impl ChunkWriter {
    /// Creates a writer for one stream. Text of a field is buffered up to `buffer_size` UTF-8 bytes; 0 sends every text
    /// immediately.
    #[must_use]
    pub fn new(session_id: SessionId, buffer_size: u64) -> Self {
        let size = usize::try_from(buffer_size).unwrap_or(usize::MAX);
        let buffer = Buffer { size, field: String::new(), text: String::new() };
        Self { session_id, state: WriterState::Fresh, last_seq: 0, buffer }
    }

    /// Returns the session id of the stream.
    #[must_use]
    pub fn session_id(&self) -> &SessionId {
        &self.session_id
    }

    /// Returns the number of the last delta or snapshot; 0 before the first.
    #[must_use]
    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// Returns whether the terminal chunk has been written.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.state == WriterState::Ended
    }

    /// Opens the session with the facts known so far. The confidence of `meta` is not sent, because it is not known
    /// yet. Returns `None` if the session is already open.
    #[must_use]
    pub fn open(&mut self, meta: &Meta) -> Option<Chunk> {
        if self.state != WriterState::Fresh {
            return None;
        }
        self.state = WriterState::Open;
        Some(Chunk::opening(self.session_id.clone(), meta))
    }

    /// Updates `meta` from the model before the answer is complete. Returns `None` if `meta` is invalid, or if the
    /// session is not open.
    #[must_use]
    pub fn meta(&self, meta: Map<String, Value>) -> Option<Chunk> {
        let legal = self.state == WriterState::Open && meta::check(&meta, RiskForm::Words).is_empty();
        legal.then(|| Chunk::Meta { session_id: self.session_id.clone(), meta, resume_from_seq: None })
    }

    /// Appends text to the field at a dotted path such as `data.rationale`. Buffered text of another field is written
    /// first.
    #[must_use]
    pub fn text(&mut self, field: &str, text: &str) -> Vec<Chunk> {
        let Some(mut chunks) = self.begin() else { return Vec::new() };
        if self.buffer.field != field {
            chunks.extend(self.remainder());
            field.clone_into(&mut self.buffer.field);
        }
        for delta in self.buffer.push(text) {
            chunks.push(self.delta(delta));
        }
        chunks
    }

    /// Writes the complete data so far, for modules whose `chunk_type` is `snapshot`.
    #[must_use]
    pub fn snapshot(&mut self, data: Map<String, Value>) -> Vec<Chunk> {
        let Some(mut chunks) = self.begin() else { return Vec::new() };
        chunks.extend(self.remainder());
        let seq = self.next_seq();
        chunks.push(Chunk::Snapshot { seq, data });
        chunks
    }

    /// Writes the progress of the run. Values above 100 percent count as 100.
    #[must_use]
    pub fn progress(&mut self, percent: u8, stage: Option<&str>, message: Option<&str>) -> Vec<Chunk> {
        let Some(mut chunks) = self.begin() else { return Vec::new() };
        chunks.push(Chunk::Progress {
            percent: percent.min(100),
            stage: stage.map(str::to_owned),
            message: message.map(str::to_owned),
        });
        chunks
    }

    /// Writes an empty chunk after a silence. Returns `None` before the first chunk and after the last.
    #[must_use]
    pub fn heartbeat(&self) -> Option<Chunk> {
        (self.state == WriterState::Open).then_some(Chunk::Heartbeat)
    }

    /// Writes the buffered text.
    #[must_use]
    pub fn flush(&mut self) -> Option<Chunk> {
        if self.state == WriterState::Open { self.remainder() } else { None }
    }

    /// Ends the stream: buffered text, then one final chunk for a success or one error chunk for a failure. A failure
    /// before the first chunk yields only the error chunk. The last chunk is always the terminal one.
    #[must_use]
    pub fn finish(&mut self, envelope: Envelope) -> Vec<Chunk> {
        let failed_at_once = self.state == WriterState::Fresh && !envelope.ok();
        let begun = if failed_at_once { Some(Vec::new()) } else { self.begin() };
        let Some(mut chunks) = begun else { return Vec::new() };
        chunks.extend(self.remainder());
        self.state = WriterState::Ended;
        chunks.push(Chunk::terminal(self.session_id.clone(), envelope));
        chunks
    }

    /// Returns the opening chunk if it is still due; `None` after the end.
    fn begin(&mut self) -> Option<Vec<Chunk>> {
        match self.state {
            WriterState::Ended => None,
            WriterState::Open => Some(Vec::new()),
            // The risk is not known yet, and an unknown risk counts as medium everywhere.
            WriterState::Fresh => {
                Some(self.open(&Meta::new(Confidence::ZERO, Risk::Medium, "Started")).into_iter().collect())
            }
        }
    }

    fn remainder(&mut self) -> Option<Chunk> {
        let text = std::mem::take(&mut self.buffer.text);
        (!text.is_empty()).then(|| self.delta(text))
    }

    fn delta(&mut self, delta: String) -> Chunk {
        let seq = self.next_seq();
        Chunk::Delta { seq, field: self.buffer.field.clone(), delta, checkpoint: None }
    }

    fn next_seq(&mut self) -> u64 {
        self.last_seq = self.last_seq.saturating_add(1);
        self.last_seq
    }
}

/// Buffered text of one field.
#[derive(Debug)]
struct Buffer {
    size: usize,
    field: String,
    text: String,
}

impl Buffer {
    /// Adds text and returns the full pieces, each with the fewest characters that make at least `size` bytes. The
    /// result does not depend on how the input was split, and no character is split.
    fn push(&mut self, text: &str) -> Vec<String> {
        if self.size == 0 {
            return if text.is_empty() { Vec::new() } else { vec![text.to_owned()] };
        }
        self.text.push_str(text);
        let mut full = Vec::new();
        let mut rest = self.text.as_str();
        while rest.len() >= self.size
            && let Some((piece, after)) = rest.split_at_checked(rest.ceil_char_boundary(self.size))
        {
            full.push(piece.to_owned());
            rest = after;
        }
        // One copy for all pieces keeps the cost of a long text linear.
        if !full.is_empty() {
            self.text = rest.to_owned();
        }
        full
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::code::ErrorCode;
    use crate::failure::Failure;
    use crate::stream::chunk::ChunkKind;
    use crate::stream::{assemble, check_log};

    fn writer(buffer_size: u64) -> ChunkWriter {
        ChunkWriter::new(SessionId::new("sess_a").unwrap(), buffer_size)
    }

    fn success() -> Envelope {
        let value = json!({ "ok": true, "meta": { "confidence": 1, "risk": "low", "explain": "e" }, "data": { "rationale": "r" } });
        Envelope::from_value(value).unwrap()
    }

    fn failure() -> Envelope {
        Failure::new(ErrorCode::StreamInterrupted, "m").into_envelope()
    }

    fn wire(chunks: &[Chunk]) -> Vec<Value> {
        chunks.iter().map(|chunk| serde_json::to_value(chunk).unwrap()).collect()
    }

    fn kinds(chunks: &[Chunk]) -> Vec<ChunkKind> {
        chunks.iter().map(Chunk::kind).collect()
    }

    /// Returns the deltas as `field=text`, after checking that the log is valid.
    fn deltas(chunks: &[Chunk]) -> Vec<String> {
        assert!(check_log(&wire(chunks)).is_empty());
        let shown = |chunk: &Chunk| match chunk {
            Chunk::Delta { field, delta, .. } => Some(format!("{field}={delta}")),
            _ => None,
        };
        chunks.iter().filter_map(shown).collect()
    }

    #[test]
    fn stream_001_the_session_is_opened_once_and_by_itself_if_need_be() {
        let mut explicit = writer(0);
        let meta = Meta::new(Confidence::ZERO, Risk::Low, "Starting");
        assert!(explicit.open(&meta).is_some());
        assert!(explicit.open(&meta).is_none());
        assert_eq!(kinds(&writer(0).text("data.a", "x")), [ChunkKind::Meta, ChunkKind::Delta]);
        assert_eq!(kinds(&writer(0).progress(250, None, None)), [ChunkKind::Meta, ChunkKind::Progress]);
        assert_eq!(kinds(&writer(0).finish(success())), [ChunkKind::Meta, ChunkKind::Final]);
    }

    #[test]
    fn stream_026_meta_may_be_said_on_the_way_if_it_is_legal() {
        let said = json!({ "confidence": 0.9, "risk": "low", "explain": "e" });
        let said = said.as_object().unwrap();
        let mut writer = writer(0);
        assert!(writer.meta(said.clone()).is_none(), "the session is not open");
        let mut chunks = writer.progress(1, None, None);
        chunks.extend(writer.meta(said.clone()));
        chunks.extend(writer.meta(Map::new()));
        chunks.extend(writer.finish(success()));
        assert_eq!(kinds(&chunks)[2..], [ChunkKind::Meta, ChunkKind::Final]);
        assert!(check_log(&wire(&chunks)).is_empty());
        assert!(writer.meta(said.clone()).is_none(), "the stream is over");
    }

    #[test]
    fn stream_003_seq_starts_at_one_and_adds_one() {
        let mut writer = writer(0);
        let mut chunks = writer.text("data.a", "x");
        chunks.extend(writer.snapshot(Map::new()));
        chunks.extend(writer.progress(10, Some("s"), Some("m")));
        chunks.extend(writer.text("data.a", "y"));
        let log = wire(&chunks);
        let numbers: Vec<&Value> = log.iter().filter_map(|chunk| chunk.pointer("/chunk/seq")).collect();
        assert_eq!(numbers, [1, 2, 3]);
        assert_eq!(writer.last_seq(), 3);
    }

    #[test]
    fn stream_004_nothing_follows_the_one_end() {
        let mut writer = writer(10);
        assert_eq!(writer.text("data.a", "waits").len(), 1);
        let end = writer.finish(success());
        assert_eq!(kinds(&end), [ChunkKind::Delta, ChunkKind::Final]);
        assert!(writer.has_ended());
        assert!(writer.finish(failure()).is_empty());
        assert!(writer.text("data.a", "x").is_empty());
        assert!(writer.snapshot(Map::new()).is_empty());
        assert!(writer.progress(1, None, None).is_empty());
        assert!(writer.open(&Meta::new(Confidence::ZERO, Risk::Low, "e")).is_none());
        assert!(writer.heartbeat().is_none());
        assert!(writer.flush().is_none());
    }

    #[test]
    fn stream_006_a_heartbeat_is_never_first() {
        let mut writer = writer(0);
        assert!(writer.heartbeat().is_none());
        let _ = writer.text("data.a", "x");
        assert_eq!(writer.heartbeat(), Some(Chunk::Heartbeat));
    }

    #[test]
    fn stream_017_a_failure_before_the_first_chunk_is_one_error_chunk() {
        let chunks = writer(0).finish(failure());
        let log = wire(&chunks);
        assert_eq!(log.len(), 1);
        assert!(check_log(&log).is_empty());
        assert_eq!(log[0]["session_id"], "sess_a");
        assert_eq!(log[0]["meta"]["risk"], "high");
    }

    #[test]
    fn stream_016_a_failure_after_deltas_ends_in_an_error_chunk() {
        let mut writer = writer(0);
        let mut chunks = writer.text("data.rationale", "so far");
        chunks.extend(writer.finish(failure()));
        assert_eq!(deltas(&chunks), ["data.rationale=so far"]);
        let envelope = serde_json::to_value(assemble(wire(&chunks))).unwrap();
        assert_eq!(envelope["error"]["code"], "E2010");
        assert_eq!(envelope["partial_data"], json!({ "rationale": "so far" }));
    }

    #[test]
    fn stream_020_25_bytes_through_a_buffer_of_10_are_3_deltas_however_they_arrive() {
        let text = "abcdefghijklmnopqrstuvwxy";
        for size in [1, 3, 10, 25] {
            let mut writer = writer(10);
            let pieces = text.as_bytes().chunks(size).map(|piece| std::str::from_utf8(piece).unwrap());
            let mut chunks: Vec<Chunk> = pieces.flat_map(|piece| writer.text("data.a", piece)).collect();
            chunks.extend(writer.finish(success()));
            assert_eq!(deltas(&chunks), ["data.a=abcdefghij", "data.a=klmnopqrst", "data.a=uvwxy"]);
        }
    }

    #[test]
    fn stream_020_characters_are_never_split() {
        let mut writer = writer(5);
        let mut chunks = writer.text("data.a", "é😀é😀");
        chunks.extend(writer.text("data.a", "ö"));
        chunks.extend(writer.finish(success()));
        assert_eq!(deltas(&chunks), ["data.a=é😀", "data.a=é😀", "data.a=ö"]);
    }

    #[test]
    fn stream_020_waiting_text_comes_before_another_field_and_a_snapshot() {
        let mut writer = writer(10);
        let mut chunks = writer.text("data.a", "one");
        chunks.extend(writer.text("data.b", "two"));
        chunks.extend(writer.snapshot(Map::new()));
        assert_eq!(kinds(&chunks)[1..], [ChunkKind::Delta, ChunkKind::Delta, ChunkKind::Snapshot]);
        let _ = writer.text("data.b", "three");
        assert!(matches!(writer.flush(), Some(Chunk::Delta { delta, .. }) if delta == "three"));
        assert!(writer.flush().is_none());
    }

    // D-03
    #[test]
    fn stream_020_without_a_buffer_every_text_goes_out_at_once() {
        let mut writer = writer(0);
        let mut chunks = writer.text("data.a", "one");
        chunks.extend(writer.text("data.a", ""));
        chunks.extend(writer.text("data.a", "two"));
        chunks.extend(writer.finish(success()));
        assert_eq!(deltas(&chunks), ["data.a=one", "data.a=two"]);
    }
}
