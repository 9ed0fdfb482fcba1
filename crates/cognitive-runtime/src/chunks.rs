//! A run as an async iterator of chunks, for programs that pull: `while let Some(chunk) =
//! chunks.next().await`. (STREAM-024)
//! The run is the same as any other. It only progresses while the next chunk is polled, and is cancelled when
//! this is dropped.

use std::collections::VecDeque;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use cognitive_contract::lock::Lock;
use cognitive_contract::ports::PortFuture;
use cognitive_contract::stream::{Chunk, ChunkWriter, SessionId};

use crate::host::{Host, RunRequest};
use crate::stream::{Delivery, Stream};

/// The chunks of one run. The last one is terminal. If the module does not stream, it is the only one.
pub struct Chunks<'h> {
    run: Option<PortFuture<'h, Delivery>>,
    ready: ReadyChunks,
    session: SessionId,
}

/// Chunks that the reader has not taken yet.
#[derive(Clone, Default)]
struct ReadyChunks(Arc<Lock<VecDeque<Chunk>>>);

impl ReadyChunks {}

/// Runs a module and yields every chunk as it is ready. The host is borrowed or shared: a stream that
/// outlives its caller shares it.
#[must_use]
pub fn chunks<'h>(host: impl Deref<Target = Host> + Send + Sync + 'h, request: RunRequest) -> Chunks<'h> {
    let ready = ReadyChunks::default();
    let sent = ready.clone();
    let mut stream = Stream::new(move |chunk| sent.0.lock().push_back(chunk));
    let session = stream.session_id().clone();
    Chunks { run: Some(Box::pin(async move { stream.run(&host, request).await })), ready, session }
}

impl Chunks<'_> {
    /// The session id of the stream.
    #[must_use]
    pub fn session_id(&self) -> &SessionId {
        &self.session
    }
}

impl futures_util::Stream for Chunks<'_> {
    type Item = Chunk;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Chunk>> {
        loop {
            let next = self.ready.0.lock().pop_front();
            if next.is_some() {
                return Poll::Ready(next);
            }
            let Some(run) = &mut self.run else { return Poll::Ready(None) };
            let polled = run.as_mut().poll(context);
            let Poll::Ready(delivery) = polled else {
                let next = self.ready.0.lock().pop_front();
                return if next.is_some() { Poll::Ready(next) } else { Poll::Pending };
            };
            self.run = None;
            // This channel carries only chunks, so a whole answer becomes one chunk.
            if let Delivery::Whole(envelope) = delivery {
                let whole = ChunkWriter::new(self.session.clone(), 0).finish(envelope);
                self.ready.0.lock().extend(whole);
            }
        }
    }
}
