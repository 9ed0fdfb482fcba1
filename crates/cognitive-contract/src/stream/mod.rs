//! Streaming of an answer: the chunk types, the writer, the log checker and the assembler.
//!
//! A stream is a list of JSON objects. The first opens a session, deltas and snapshots are numbered from 1, and
//! exactly one last chunk holds the whole answer or an error:
//!
//! ```text
//! {"ok": true, "streaming": true, "session_id": "sess_…", "meta": {"confidence": null, …}}
//! {"chunk": {"seq": 1, "type": "delta", "field": "data.rationale", "delta": "The image "}}
//! {"progress": {"percent": 45}}
//! {"final": true, "meta": {…}, "data": {…}}
//! ```
//!
//! Chunks before the last one are provisional: they may be displayed, and the final chunk overrides them. Readers may
//! therefore tolerate disorder and gaps ([`assemble`]), but producers must follow the rules exactly ([`check_log`]).
//!
//! Contains no transport: only the SSE event names are defined here. Reads no clock and generates no random numbers:
//! callers pass in session ids and checkpoint hashes.
//!
//! ```
//! use cognitive_contract::stream::{Chunk, ChunkWriter, SessionId, assemble, check_log};
//! use cognitive_contract::{Confidence, Envelope, Meta, Risk};
//! use serde_json::{Value, json};
//!
//! let mut writer = ChunkWriter::new(SessionId::from_random(7), 0);
//! let mut chunks: Vec<Chunk> = Vec::new();
//! chunks.extend(writer.open(&Meta::new(Confidence::ZERO, Risk::Low, "Starting")));
//! chunks.extend(writer.text("data.rationale", "Line 3 builds SQL "));
//! let answer = json!({
//!     "ok": true,
//!     "meta": { "confidence": 0.92, "risk": "low", "explain": "One issue found" },
//!     "data": { "rationale": "Line 3 builds SQL from user input." }
//! });
//! chunks.extend(writer.finish(Envelope::from_value(answer.clone()).unwrap()));
//!
//! let wire: Vec<Value> = chunks.iter().map(|chunk| serde_json::to_value(chunk).unwrap()).collect();
//! assert!(check_log(&wire).is_empty());
//! assert_eq!(serde_json::to_value(assemble(wire)).unwrap(), answer);
//! ```

mod chunk;
mod session;
mod wire;

mod writer;

mod check;
mod shape;

mod assemble;
mod data_so_far;
mod path;
mod terminal;

pub use assemble::{Assembler, assemble};
pub use check::check_log;
pub use chunk::{Chunk, ChunkKind};
pub use data_so_far::DataSoFar;
pub use session::{Checkpoint, Recovery, SessionId};
pub use shape::{check_chunk, recognise};
pub use writer::ChunkWriter;
