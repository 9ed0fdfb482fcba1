//! The port for state shared by several servers of one service: rate limits, streams, logins, and messages between
//! servers. Without it each server has only its own state. A server that cannot reach the shared state continues with
//! its own: no response waits for it.

use std::time::Duration;

use axum::body::Bytes;
use cognitive_contract::ports::PortFuture;

/// State shared by servers. Every call except [`SharedState::hear`] returns within moments, even if the store does
/// not respond. The error says why a call failed.
pub trait SharedState: Send + Sync {
    /// Counts a run of a client. One run uses up `interval`; at most `burst` may be used up at once. The inner error
    /// is the time to wait.
    fn take_run<'a>(
        &'a self,
        client: &'a str,
        interval: Duration,
        burst: Duration,
    ) -> PortFuture<'a, Result<Result<(), Duration>, String>>;

    /// Refunds a run that was counted but did not take place.
    fn refund<'a>(&'a self, client: &'a str, interval: Duration) -> PortFuture<'a, Result<(), String>>;

    /// Registers a stream that this server sends.
    fn open_stream<'a>(
        &'a self,
        stream: &'a SharedStream,
        keep: Duration,
    ) -> PortFuture<'a, Result<(), String>>;

    /// Appends chunks that the stream has sent.
    fn append<'a>(
        &'a self,
        id: &'a str,
        chunks: Vec<Bytes>,
        keep: Duration,
    ) -> PortFuture<'a, Result<(), String>>;

    /// Appends the last chunk to a stream whose server died, unless it no longer has `length` chunks. Returns whether
    /// it was appended.
    fn close_orphan<'a>(
        &'a self,
        id: &'a str,
        length: usize,
        chunk: Bytes,
    ) -> PortFuture<'a, Result<bool, String>>;

    /// Removes a stream, which then cannot be resumed at another server.
    fn forget_stream<'a>(&'a self, id: &'a str) -> PortFuture<'a, Result<(), String>>;

    /// Returns a stream of any server, if it has not expired.
    fn stream<'a>(&'a self, id: &'a str) -> PortFuture<'a, Result<Option<SharedStream>, String>>;

    /// Returns the chunks of a stream from position `from`.
    fn read<'a>(&'a self, id: &'a str, from: usize) -> PortFuture<'a, Result<SharedPart, String>>;

    /// Asks the server of a stream to cancel it. Returns `false` if this owner has no such stream. If its server
    /// died, returns `true` although no server receives the message.
    fn cancel_stream<'a>(&'a self, id: &'a str, owner: &'a str) -> PortFuture<'a, Result<bool, String>>;

    /// Stores a login: a hash that requires the browser's secret, and its holder.
    fn keep_login<'a>(
        &'a self,
        hash: &'a str,
        holder: &'a str,
        keep: Duration,
    ) -> PortFuture<'a, Result<(), String>>;

    /// Returns the holder of a login, if it is still valid.
    fn login<'a>(&'a self, hash: &'a str) -> PortFuture<'a, Result<Option<String>, String>>;

    /// Ends a login at all servers.
    fn end_login<'a>(&'a self, hash: &'a str) -> PortFuture<'a, Result<(), String>>;

    /// Notifies all other servers of a changed module.
    fn tell_of_modules(&self) -> PortFuture<'_, Result<(), String>>;

    /// Waits for the next message of another server, however long that takes. The error says why none can be
    /// received; missed messages are delivered by the next call.
    fn hear(&self) -> PortFuture<'_, Result<ServerWord, String>>;
}

/// A message between servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerWord {
    /// The client of this stream cancelled it.
    CancelStream(String),
    /// A module has changed, in a folder that this server may share.
    ModulesChanged,
}

/// A stream that can be resumed at other servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedStream {
    /// The session id.
    pub id: String,
    /// The client that owns the stream; only it may resume.
    pub owner: String,
    /// The module.
    pub module: String,
}

/// A part of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SharedPart {
    /// Chunks as they were sent.
    pub chunks: Vec<Bytes>,
    /// True if the server of the stream is still alive.
    pub is_served: bool,
    /// True if the last chunk was written on behalf of a server that died.
    pub was_cut_off: bool,
}
