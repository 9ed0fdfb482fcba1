//! One raw response of a service: its head, its body, and the end of the connection. A broken service is made of these.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;

/// The pause of a slow service between two events.
const MOMENT: Duration = Duration::from_millis(5);

/// A response as it goes over the connection, which is closed behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Act {
    /// The status line and the headers; without them nothing is sent.
    head: Option<String>,
    body: Vec<u8>,
    is_slow: bool,
    pub(super) then: Then,
}

/// The action after the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// The response is complete.
    End,
    /// Closes the connection, although more was announced.
    Close,
    /// Resets the connection.
    Reset,
    /// Sends nothing, until the client disconnects.
    Silence,
    /// Repeats the body, until the client disconnects.
    Repeat,
}

impl Act {
    /// A complete response. Each header ends with `\r\n`.
    #[must_use]
    pub fn reply(status: u16, headers: &str, body: impl Into<Vec<u8>>) -> Self {
        let head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\n{headers}");
        Self { head: Some(head), body: body.into(), is_slow: false, then: Then::End }
    }

    /// A complete response with JSON.
    #[must_use]
    pub fn json(status: u16, body: &serde_json::Value) -> Self {
        Self::reply(status, "content-type: application/json\r\n", body.to_string())
    }

    /// A response as an event stream.
    #[must_use]
    pub fn stream(body: impl Into<Vec<u8>>) -> Self {
        Self::reply(200, "content-type: text/event-stream\r\n", body)
    }

    /// An error in the format of chat completions.
    #[must_use]
    pub fn error(status: u16, code: &str, message: &str) -> Self {
        Self::json(status, &json!({ "error": { "message": message, "type": code, "code": code } }))
    }

    /// No response at all.
    #[must_use]
    pub fn no_response(then: Then) -> Self {
        Self { head: None, body: Vec::new(), is_slow: false, then }
    }

    /// The same response with another end.
    #[must_use]
    pub fn then(self, then: Then) -> Self {
        Self { then, ..self }
    }

    /// The same response, event by event with a pause behind each.
    #[must_use]
    pub fn with_pauses(self) -> Self {
        Self { is_slow: true, ..self }
    }

    /// Sends the response. Returns whether the client left a service that had more to say.
    pub(super) fn send<S: Read + Write>(&self, stream: &mut S, tcp: &TcpStream) -> std::io::Result<bool> {
        if let Some(head) = &self.head {
            // An endless body has no length; a truncated one announces more.
            let more = if self.then == Then::End { 0 } else { 1_000_000_000 };
            write!(stream, "{head}content-length: {}\r\n\r\n", self.body.len() + more)?;
            self.send_body(stream, tcp)?;
        }
        match self.then {
            Then::End | Then::Close | Then::Reset => Ok(false),
            Then::Silence => Ok(until_the_client_leaves(stream)),
            Then::Repeat => loop {
                stream.write_all(&self.body)?;
            },
        }
    }

    fn send_body<S: Read + Write>(&self, stream: &mut S, tcp: &TcpStream) -> std::io::Result<()> {
        if !self.is_slow {
            stream.write_all(&self.body)?;
            return stream.flush();
        }
        tcp.set_nodelay(true)?;
        tcp.set_read_timeout(Some(MOMENT))?;
        for line in self.body.split_inclusive(|byte| *byte == b'\n') {
            stream.write_all(line)?;
            // No data is expected; the end of the stream means that the client has disconnected.
            if line == b"\n" && matches!(tcp.peek(&mut [0]), Ok(0)) {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Reads until the client disconnects, also by a reset.
pub(super) fn until_the_client_leaves(stream: &mut impl Read) -> bool {
    while stream.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
    true
}
