//! What several servers of one service share, as a port: how much each client has asked for, what their streams have sent, who is
//! logged in, and what one server has to tell another.
//! Without it each server knows its own alone. A server that cannot reach it goes on with what it knows itself: nobody's answer
//! waits for it.

use std::time::Duration;

use axum::body::Bytes;
use cognitive_contract::ports::PortFuture;

/// What servers share. Every call ends within moments, also when nobody answers; the error says why nothing came of it.
pub trait SharedState: Send + Sync {
    /// Takes note of a run of a client, one of which uses up `interval`; no more of them at once than fit into `burst`. The inner
    /// error says how long to wait.
    fn take_run<'a>(
        &'a self,
        client: &'a str,
        interval: Duration,
        burst: Duration,
    ) -> PortFuture<'a, Result<Result<(), Duration>, String>>;

    /// Takes back a run that turned out to be none.
    fn give_back<'a>(&'a self, client: &'a str, interval: Duration) -> PortFuture<'a, Result<(), String>>;

    /// Makes a stream known that this server sends.
    fn open_stream<'a>(
        &'a self,
        stream: &'a SharedStream,
        keep: Duration,
    ) -> PortFuture<'a, Result<(), String>>;

    /// Adds what it sent.
    fn append<'a>(
        &'a self,
        id: &'a str,
        chunks: Vec<Bytes>,
        keep: Duration,
    ) -> PortFuture<'a, Result<(), String>>;

    /// Adds the last word to a stream whose server is no more, unless somebody else has added something since it had `length`
    /// chunks. Says whether it was added.
    fn close_orphan<'a>(
        &'a self,
        id: &'a str,
        length: usize,
        chunk: Bytes,
    ) -> PortFuture<'a, Result<bool, String>>;

    /// Forgets a stream: it cannot be taken up at another server.
    fn forget_stream<'a>(&'a self, id: &'a str) -> PortFuture<'a, Result<(), String>>;

    /// A stream that some server sent or sends, if it is still known.
    fn stream<'a>(&'a self, id: &'a str) -> PortFuture<'a, Result<Option<SharedStream>, String>>;

    /// What it has sent from a place on.
    fn read<'a>(&'a self, id: &'a str, from: usize) -> PortFuture<'a, Result<SharedPart, String>>;

    /// Tells the server that sends a stream to end it. `false` if this owner has no such stream; one whose server is no more has
    /// nobody to be told, and is none the less known.
    fn cancel_stream<'a>(&'a self, id: &'a str, owner: &'a str) -> PortFuture<'a, Result<bool, String>>;

    /// Keeps a login: a hash that only the browser's secret gives, and whose it is.
    fn keep_login<'a>(
        &'a self,
        hash: &'a str,
        holder: &'a str,
        keep: Duration,
    ) -> PortFuture<'a, Result<(), String>>;

    /// Whose a login is, if it is still one.
    fn login<'a>(&'a self, hash: &'a str) -> PortFuture<'a, Result<Option<String>, String>>;

    /// Ends a login at all servers.
    fn end_login<'a>(&'a self, hash: &'a str) -> PortFuture<'a, Result<(), String>>;

    /// Tells all other servers that somebody has changed a module.
    fn tell_of_modules(&self) -> PortFuture<'_, Result<(), String>>;

    /// Waits for the next thing that another server has to tell this one, however long that takes. The error says why nothing can be
    /// heard; what was said meanwhile is heard the next time.
    fn hear(&self) -> PortFuture<'_, Result<ServerWord, String>>;
}

/// What one server tells another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerWord {
    /// The client of this stream wants no more of it.
    CancelStream(String),
    /// Somebody has changed a module, in a folder that this server may share.
    ModulesChanged,
}

/// A stream that others may take up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedStream {
    /// Its name.
    pub id: String,
    /// Whose it is: nobody else may take it up.
    pub owner: String,
    /// The module.
    pub module: String,
}

/// A part of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SharedPart {
    /// Chunks as they went out.
    pub chunks: Vec<Bytes>,
    /// Whether the server that sends it still lives.
    pub is_served: bool,
    /// Whether its last word was said for a server that died.
    pub was_cut_off: bool,
}
