//! A run whose answer is sent in chunks. The run is the same as any other: the chunks come from its listener, and the
//! last one is its envelope. Reads no clock: heartbeats and timeouts belong to the surface, which sends
//! [`Chunk::Heartbeat`] itself and cancels the run.

pub(crate) mod chunk_listener;
pub(crate) mod chunk_sender;
pub(crate) mod field_deltas;
pub(crate) mod listeners;
pub(crate) mod partial;
mod seen_names;

use cognitive_contract::manifest::ChunkType;
use std::future::pending;
use std::pin::pin;

use cognitive_contract::ports::{EventSink, NullSink};
use cognitive_contract::stream::{Chunk, SessionId};
use cognitive_contract::{Envelope, ErrorCode, Failure, Outcome};

use self::chunk_sender::ChunkSender;
use self::field_deltas::FieldDeltas;
use crate::compose::lineage::Lineage;
use crate::host::{Host, RunRequest};
use crate::run::run_below;
use crate::stream::listeners::RunListeners;

/// The form in which an answer was delivered.
#[derive(Debug, Clone, PartialEq)]
pub enum Delivery {
    /// As chunks; the last one has the same content as this envelope.
    Streamed(Envelope),
    /// Whole, because the module offers no streams or the host has switched them off. No chunk was sent, and
    /// `meta.warnings` reports it (CAP-010).
    Whole(Envelope),
}

impl Delivery {
    /// The answer, in either form.
    #[must_use]
    pub fn envelope(&self) -> &Envelope {
        match self {
            Self::Streamed(envelope) | Self::Whole(envelope) => envelope,
        }
    }

    /// Takes the answer, in either form.
    #[must_use]
    pub fn into_envelope(self) -> Envelope {
        match self {
            Self::Streamed(envelope) | Self::Whole(envelope) => envelope,
        }
    }
}

/// Runs a module and passes every chunk to `send` as it is ready.
pub async fn stream(host: &Host, request: RunRequest, send: impl FnMut(Chunk) + Send) -> Delivery {
    Stream::new(send).run(host, request).await
}

/// The failure for a caller that accepts only a stream. (CAP-013)
pub fn not_streamed() -> Failure {
    Failure::new(
        ErrorCode::StreamingNotSupported,
        "the answer cannot be streamed, and `require_streaming` is set",
    )
    .suggest("Run a module that streams, or leave out `require_streaming`")
}

/// Returns a session id for a stream, of 128 random bits from the system (STREAM-002).
#[must_use]
pub fn session_id() -> SessionId {
    // Two UUIDs, one of them rotated, because six bits of each are fixed.
    let (one, other) = (uuid::Uuid::new_v4().as_u128(), uuid::Uuid::new_v4().as_u128());
    SessionId::from_random(one ^ other.rotate_left(64))
}

/// One stream.
pub struct Stream<'o> {
    deltas: FieldDeltas<'o>,
}

impl<'o> Stream<'o> {
    /// A stream with a new session id.
    #[must_use]
    pub fn new(send: impl FnMut(Chunk) + Send + 'o) -> Self {
        Self::with_session(session_id(), send)
    }

    /// A stream with the given session id.
    #[must_use]
    pub fn with_session(session: SessionId, send: impl FnMut(Chunk) + Send + 'o) -> Self {
        Self { deltas: FieldDeltas::new(ChunkSender::new(session, Box::new(send))) }
    }

    /// Overrides the module's choice of deltas or snapshots by the client's.
    #[must_use]
    pub fn with_chunk_type(mut self, wanted: ChunkType) -> Self {
        self.deltas.want(wanted);
        self
    }

    /// The session id of the stream.
    #[must_use]
    pub fn session_id(&mut self) -> &SessionId {
        self.deltas.sender().session_id()
    }

    /// Runs a module. Sends exactly one terminal chunk, unless the answer is delivered whole.
    pub async fn run(&mut self, host: &Host, request: RunRequest) -> Delivery {
        self.run_until(host, request, &mut NullSink, pending()).await
    }

    /// Does the same for a surface that listens, and that may have to cancel the run: when `stop` resolves, the call
    /// is dropped. The last chunk has the reason and the data so far.
    pub async fn run_until(
        &mut self,
        host: &Host,
        mut request: RunRequest,
        sink: &mut dyn EventSink,
        stop: impl Future<Output = Failure>,
    ) -> Delivery {
        if !host.capabilities.streaming {
            self.deltas.sender().silence();
        }
        let (mut lineage, mut listeners) =
            (Lineage::default(), RunListeners::new(sink, Some(&mut self.deltas)));
        let envelope = run_below(host, &mut request, &mut lineage, &mut listeners, pin!(stop)).await;
        if self.deltas.streams() {
            self.finish(envelope.clone());
            Delivery::Streamed(envelope)
        } else {
            Delivery::Whole(envelope)
        }
    }

    /// Ends a stream whose run never started. Returns the envelope that was sent.
    pub fn fail(&mut self, failure: Failure) -> Envelope {
        let envelope = failure.into_envelope();
        self.finish(envelope.clone());
        envelope
    }

    fn finish(&mut self, envelope: Envelope) {
        // A reader fills missing partial data with the chunks it got. Data that the run withheld must not be
        // restored.
        if matches!(envelope.outcome(), Outcome::Failure { partial_data: None, .. }) {
            self.deltas.retract();
        }
        self.deltas.sender().finish(envelope);
    }
}
