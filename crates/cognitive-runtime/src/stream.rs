//! A run whose answer goes out in pieces. The same run as any other: the chunks are what its listener heard, and the last
//! of them is its envelope. Reads no clock: heartbeats and time limits belong to the surface, which sends
//! [`Chunk::Heartbeat`] itself and says when a run has to stop.

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

/// How an answer was handed over.
#[derive(Debug, Clone, PartialEq)]
pub enum Delivery {
    /// As chunks; the last of them says the same as this envelope.
    Streamed(Envelope),
    /// Whole, because the module offers no streams or the host has switched them off. No chunk was sent, and `meta.warnings` says
    /// so (CAP-010).
    Whole(Envelope),
}

impl Delivery {
    /// The answer, however it was handed over.
    #[must_use]
    pub fn envelope(&self) -> &Envelope {
        match self {
            Self::Streamed(envelope) | Self::Whole(envelope) => envelope,
        }
    }

    /// The answer itself.
    #[must_use]
    pub fn into_envelope(self) -> Envelope {
        match self {
            Self::Streamed(envelope) | Self::Whole(envelope) => envelope,
        }
    }
}

/// Runs a module and hands every chunk to `send` as it is due.
pub async fn stream(host: &Host, request: RunRequest, send: impl FnMut(Chunk) + Send) -> Delivery {
    Stream::new(send).run(host, request).await
}

/// The answer to somebody who wants a stream or nothing. (CAP-013)
pub fn not_streamed() -> Failure {
    Failure::new(
        ErrorCode::StreamingNotSupported,
        "the answer cannot be streamed, and `require_streaming` is set",
    )
    .suggest("Run a module that streams, or leave out `require_streaming`")
}

/// A name for a stream, of 128 random bits of the system (STREAM-002).
#[must_use]
pub fn session_id() -> SessionId {
    // Two of them, turned against each other, because six bits of each are fixed.
    let (one, other) = (uuid::Uuid::new_v4().as_u128(), uuid::Uuid::new_v4().as_u128());
    SessionId::from_random(one ^ other.rotate_left(64))
}

/// One stream.
pub struct Stream<'o> {
    deltas: FieldDeltas<'o>,
}

impl<'o> Stream<'o> {
    /// A stream with a name of its own.
    #[must_use]
    pub fn new(send: impl FnMut(Chunk) + Send + 'o) -> Self {
        Self::named(session_id(), send)
    }

    /// A stream with a given name.
    #[must_use]
    pub fn named(session: SessionId, send: impl FnMut(Chunk) + Send + 'o) -> Self {
        Self { deltas: FieldDeltas::new(ChunkSender::new(session, Box::new(send))) }
    }

    /// The same with deltas or snapshots as the client asks for them, whatever the module says.
    #[must_use]
    pub fn with_chunk_type(mut self, wanted: ChunkType) -> Self {
        self.deltas.want(wanted);
        self
    }

    /// The name of the stream.
    #[must_use]
    pub fn session_id(&mut self) -> &SessionId {
        self.deltas.sender().session_id()
    }

    /// Runs a module. Exactly one terminal chunk is sent, unless the answer comes whole.
    pub async fn run(&mut self, host: &Host, request: RunRequest) -> Delivery {
        self.run_until(host, request, &mut NullSink, pending()).await
    }

    /// The same for a surface that listens, and that may have to end the run before its time: when `stop` resolves, the
    /// call is dropped, and the last chunk says why and holds what there is of the data.
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

    /// Ends a stream whose run never began. Gives the envelope that was sent.
    pub fn fail(&mut self, failure: Failure) -> Envelope {
        let envelope = failure.into_envelope();
        self.finish(envelope.clone());
        envelope
    }

    fn finish(&mut self, envelope: Envelope) {
        // A reader fills missing partial data with the pieces it got; what the run did not hand over must not come back.
        if matches!(envelope.outcome(), Outcome::Failure { partial_data: None, .. }) {
            self.deltas.take_back();
        }
        self.deltas.sender().finish(envelope);
    }
}
