//! Reads and writes WebSocket frames (RFC 6455) on the server side: text messages of one or several frames, with
//! control frames between them. A message reserves memory as its bytes arrive, and has a size limit and a deadline.
//! After delivery the reader holds no memory of it. Refuses extensions and invalid frames.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout_at};

use crate::intake::STEP;
use crate::memory_budget::{MemoryBudget, MemoryClaim};

/// The read buffer, in bytes. Every connection has one, so that thousands of them stay small.
const PIECE: usize = 16 << 10;
/// The longest payload of a control frame (RFC 6455, 5.5).
const MAX_CONTROL_LENGTH: usize = 125;

const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xa;
const FINAL: u8 = 0x80;

/// A message or control frame from the client.
#[derive(Debug)]
pub(crate) enum ClientFrame {
    /// A whole message of valid UTF-8, and its memory reservation.
    Text(Vec<u8>, MemoryClaim),
    Binary,
    Ping(Vec<u8>),
    Pong,
    /// A close frame; its payload holds the code and reason, which have been validated.
    Close(Vec<u8>),
}

/// The reason why nothing more can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BrokenFrame {
    /// The frame violates the protocol.
    Frame,
    NoUtf8,
    TooBig,
    /// The memory budget for large requests is exhausted.
    NoRoom,
    /// A message did not arrive completely before its deadline.
    Late,
    /// The connection is closed.
    Gone,
}

/// The header of a frame.
#[derive(Debug, Clone, Copy)]
struct FrameHead {
    is_final: bool,
    kind: u8,
    length: usize,
    mask: [u8; 4],
    /// The length of the header itself, in bytes.
    size: usize,
}

/// A message that has partly arrived.
#[derive(Debug)]
struct PartialMessage {
    is_text: bool,
    bytes: Vec<u8>,
    claim: MemoryClaim,
    until: Instant,
}

/// The frame being read: its header, and the number of payload bytes received.
#[derive(Debug)]
struct PartialFrame {
    head: FrameHead,
    there: usize,
    /// The payload of a control frame. Payload of a message is appended to the message directly.
    payload: Vec<u8>,
}

/// The reading side of a socket.
#[derive(Debug)]
pub(crate) struct FrameReader<R> {
    io: R,
    buffer: Vec<u8>,
    current: Option<PartialFrame>,
    message: Option<PartialMessage>,
    limit: usize,
    room: MemoryBudget,
    patience: Duration,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// Creates a reader for messages of at most `limit` bytes, each within `patience`.
    pub(crate) fn new(io: R, limit: usize, room: MemoryBudget, patience: Duration) -> Self {
        let buffer = Vec::with_capacity(PIECE);
        Self { io, buffer, current: None, message: None, limit, room, patience }
    }

    /// Returns the next message or control frame. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<ClientFrame, BrokenFrame> {
        loop {
            if let Some(received) = self.step()? {
                return Ok(received);
            }
            let reading = self.io.read_buf(&mut self.buffer);
            let read = match self.message.as_ref().map(|message| message.until) {
                Some(until) => timeout_at(until, reading).await.map_err(|_| BrokenFrame::Late)?,
                None => reading.await,
            };
            if read.map_err(|_| BrokenFrame::Gone)? == 0 {
                return Err(BrokenFrame::Gone);
            }
        }
    }

    /// Consumes the buffer until a message or control frame is complete or more bytes are needed.
    fn step(&mut self) -> Result<Option<ClientFrame>, BrokenFrame> {
        if self.message.as_ref().is_some_and(|message| message.until <= Instant::now()) {
            return Err(BrokenFrame::Late);
        }
        loop {
            if self.current.is_none() {
                let Some(head) = FrameHead::parse(&self.buffer)? else { return Ok(None) };
                self.buffer.drain(..head.size);
                self.admit(&head)?;
                self.current = Some(PartialFrame { head, there: 0, payload: Vec::new() });
            }
            if !self.take_payload()? {
                return Ok(None);
            }
            if let Some(current) = self.current.take()
                && let Some(received) = self.finish_frame(current)?
            {
                return Ok(Some(received));
            }
        }
    }

    /// Checks that a frame is allowed here, and begins or continues its message.
    fn admit(&mut self, head: &FrameHead) -> Result<(), BrokenFrame> {
        match (head.kind, &self.message) {
            (CLOSE | PING | PONG, _) => {
                let fits = head.is_final && head.length <= MAX_CONTROL_LENGTH;
                return if fits { Ok(()) } else { Err(BrokenFrame::Frame) };
            }
            (CONTINUATION, Some(_)) => {}
            (TEXT | BINARY, None) => {
                self.message = Some(PartialMessage {
                    is_text: head.kind == TEXT,
                    bytes: Vec::new(),
                    claim: self.room.claim(),
                    until: Instant::now() + self.patience,
                });
            }
            _ => return Err(BrokenFrame::Frame),
        }
        let so_far = self.message.as_ref().map_or(0, |message| message.bytes.len());
        if so_far.saturating_add(head.length) > self.limit { Err(BrokenFrame::TooBig) } else { Ok(()) }
    }

    /// Moves the buffered payload to its message or frame. Returns whether the payload is complete.
    fn take_payload(&mut self) -> Result<bool, BrokenFrame> {
        let Some(current) = &mut self.current else { return Ok(false) };
        let count = (current.head.length - current.there).min(self.buffer.len());
        let bytes = match &mut self.message {
            Some(message) if !current.head.is_control() => {
                message.make_room(count, current.head.length - current.there)?;
                &mut message.bytes
            }
            _ => &mut current.payload,
        };
        let start = bytes.len();
        bytes.extend(self.buffer.drain(..count));
        unmask(bytes.get_mut(start..).unwrap_or_default(), current.head.mask, current.there);
        current.there += count;
        Ok(current.there == current.head.length)
    }

    /// Returns the message or control frame that this frame completes, if any.
    fn finish_frame(&mut self, frame: PartialFrame) -> Result<Option<ClientFrame>, BrokenFrame> {
        match frame.head.kind {
            PING => return Ok(Some(ClientFrame::Ping(frame.payload))),
            PONG => return Ok(Some(ClientFrame::Pong)),
            CLOSE => return close_payload(frame.payload).map(|payload| Some(ClientFrame::Close(payload))),
            _ => {}
        }
        let Some(message) = self.message.take_if(|_| frame.head.is_final) else { return Ok(None) };
        if !message.is_text {
            return Ok(Some(ClientFrame::Binary));
        }
        std::str::from_utf8(&message.bytes).map_err(|_| BrokenFrame::NoUtf8)?;
        Ok(Some(ClientFrame::Text(message.bytes, message.claim)))
    }
}

impl PartialMessage {
    /// Reserves memory for `more` bytes of a frame with `rest` bytes to come. Reserves some in advance to avoid
    /// frequent reallocation, but never all that the frame announces.
    fn make_room(&mut self, more: usize, rest: usize) -> Result<(), BrokenFrame> {
        let needed = self.bytes.len() + more;
        if needed <= self.bytes.capacity() {
            return Ok(());
        }
        let larger = (STEP * self.bytes.capacity()).min(self.bytes.len() + rest).max(needed);
        self.claim.grow(larger - self.bytes.capacity()).map_err(|_| BrokenFrame::NoRoom)?;
        self.bytes.try_reserve_exact(larger - self.bytes.len()).map_err(|_| BrokenFrame::NoRoom)
    }
}

impl FrameHead {
    /// Parses the header at the start of the bytes; `None` if it is incomplete.
    fn parse(bytes: &[u8]) -> Result<Option<Self>, BrokenFrame> {
        let [first, second, rest @ ..] = bytes else { return Ok(None) };
        let known = matches!(first & 0x0f, CONTINUATION | TEXT | BINARY | CLOSE | PING | PONG);
        // Reserved bits belong to extensions, which are not supported. Clients must mask all frames.
        if first & 0x70 != 0 || !known || second & FINAL == 0 {
            return Err(BrokenFrame::Frame);
        }
        let (length, rest) = match (second & 0x7f, rest.split_first_chunk(), rest.split_first_chunk()) {
            (126, Some((length, rest)), _) => (u64::from(u16::from_be_bytes(*length)), rest),
            (127, _, Some((length, rest))) => (u64::from_be_bytes(*length), rest),
            (126 | 127, ..) => return Ok(None),
            (short, ..) => (u64::from(short), rest),
        };
        let Some((mask, rest)) = rest.split_first_chunk() else { return Ok(None) };
        Ok(Some(Self {
            is_final: first & FINAL != 0,
            kind: first & 0x0f,
            length: usize::try_from(length).unwrap_or(usize::MAX),
            mask: *mask,
            size: bytes.len() - rest.len(),
        }))
    }

    fn is_control(&self) -> bool {
        self.kind >= CLOSE
    }
}

/// Unmasks bytes that start at offset `place` of their frame.
fn unmask(bytes: &mut [u8], mut mask: [u8; 4], place: usize) {
    if mask == [0; 4] {
        return;
    }
    mask.rotate_left(place % 4);
    for four in bytes.chunks_mut(4) {
        four.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
    }
}

/// Validates the payload of a client's close frame.
fn close_payload(payload: Vec<u8>) -> Result<Vec<u8>, BrokenFrame> {
    let [high, low, reason @ ..] = payload.as_slice() else {
        return if payload.is_empty() { Ok(payload) } else { Err(BrokenFrame::Frame) };
    };
    let code = u16::from_be_bytes([*high, *low]);
    if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
        return Err(BrokenFrame::Frame);
    }
    std::str::from_utf8(reason).map_err(|_| BrokenFrame::NoUtf8)?;
    Ok(payload)
}

/// An outgoing frame.
#[derive(Debug)]
pub(crate) enum ServerFrame {
    Text(Vec<u8>),
    Ping,
    Pong(Vec<u8>),
    Close(Vec<u8>),
}

impl ServerFrame {
    /// Creates a close frame with a code and a reason.
    pub(crate) fn close_frame(code: u16, reason: &str) -> Self {
        Self::Close([&code.to_be_bytes()[..], reason.as_bytes()].concat())
    }
}

/// Writes one complete frame and flushes it.
pub(crate) async fn write(io: &mut (impl AsyncWrite + Unpin), saying: ServerFrame) -> io::Result<()> {
    let (kind, payload) = match saying {
        ServerFrame::Text(text) => (TEXT, text),
        ServerFrame::Ping => (PING, Vec::new()),
        ServerFrame::Pong(payload) => (PONG, payload),
        ServerFrame::Close(payload) => (CLOSE, payload),
    };
    let mut frame = Vec::with_capacity(payload.len() + 10);
    frame.push(FINAL | kind);
    match payload.len() {
        short @ 0..=125 => frame.push(u8::try_from(short).unwrap_or_default()),
        length => match u16::try_from(length) {
            Ok(length) => {
                frame.push(126);
                frame.extend(length.to_be_bytes());
            }
            Err(_) => {
                frame.push(127);
                frame.extend((length as u64).to_be_bytes());
            }
        },
    }
    frame.extend(payload);
    io.write_all(&frame).await?;
    io.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    /// Builds a masked frame.
    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![first];
        match payload.len() {
            short @ 0..=125 => bytes.push(FINAL | u8::try_from(short).unwrap()),
            long @ 126..=0xffff => {
                bytes.push(0xfe);
                bytes.extend(u16::try_from(long).unwrap().to_be_bytes());
            }
            long => {
                bytes.push(0xff);
                bytes.extend((long as u64).to_be_bytes());
            }
        }
        let mask = [1, 2, 3, 4];
        bytes.extend(mask);
        bytes.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        bytes
    }

    fn reader(bytes: &[u8], limit: usize) -> FrameReader<&[u8]> {
        FrameReader::new(bytes, limit, MemoryBudget::new(1 << 20), MINUTE)
    }

    #[tokio::test]
    async fn a_message_is_the_same_in_however_many_frames_and_pieces_it_comes() {
        let text = "grüße ".repeat(20_000).into_bytes();
        let mut bytes = frame(TEXT, &text[..7]);
        bytes.extend(frame(FINAL | PING, b"?"));
        for (number, part) in text[7..].chunks(50_000).enumerate() {
            let last = (number + 1) * 50_000 >= text.len() - 7;
            bytes.extend(frame(if last { FINAL } else { 0 }, part));
        }
        bytes.extend(frame(FINAL | TEXT, b"next"));
        for piece in [1, 3, 1_000, 1 << 20] {
            let (client, server) = tokio::io::duplex(piece);
            let (_, mut client) = tokio::io::split(client);
            let mut reader = FrameReader::new(server, 1 << 20, MemoryBudget::new(1 << 20), MINUTE);
            let sending = async { client.write_all(&bytes).await.unwrap() };
            let hearing = async {
                assert!(matches!(reader.next().await, Ok(ClientFrame::Ping(payload)) if payload == b"?"));
                assert!(matches!(reader.next().await, Ok(ClientFrame::Text(whole, _)) if whole == text));
                assert!(matches!(reader.next().await, Ok(ClientFrame::Text(next, _)) if next == b"next"));
            };
            tokio::join!(sending, hearing);
        }
    }

    // H2: an unfinished message counts by its received bytes, not by its announced length. A client that exceeds the
    // budget is refused.
    #[tokio::test]
    async fn an_unfinished_message_takes_room_by_what_arrived() {
        let room = MemoryBudget::new(2 << 20);
        let (mut client, server) = tokio::io::duplex(1 << 20);
        let mut announced = vec![FINAL | TEXT, 0xff];
        announced.extend((100_u64 << 20).to_be_bytes());
        announced.extend([0; 4]);
        let mut reader = FrameReader::new(server, 200 << 20, room.clone(), MINUTE);
        client.write_all(&announced).await.unwrap();
        client.write_all(&[b'x'; 10]).await.unwrap();
        assert!(tokio::time::timeout(Duration::from_millis(1), reader.next()).await.is_err());
        assert!(room.claim().grow(2 << 20).is_ok(), "an announcement takes nothing");
        let sending = async { while client.write_all(&[b'x'; 10_000]).await.is_ok() {} };
        let hearing = async {
            let outcome = reader.next().await;
            drop(reader);
            outcome
        };
        let ((), outcome) = tokio::join!(sending, hearing);
        assert_eq!(outcome.unwrap_err(), BrokenFrame::NoRoom);
        assert!(room.claim().grow(2 << 20).is_ok(), "all of it came back");
    }

    // H2: a message has a deadline, regardless of control frames in between.
    #[tokio::test(start_paused = true)]
    async fn a_message_that_is_never_whole_is_not_waited_for() {
        let (mut client, server) = tokio::io::duplex(1 << 10);
        let mut reader =
            FrameReader::new(server, 1 << 20, MemoryBudget::new(1 << 20), Duration::from_secs(30));
        let started = Instant::now();
        client.write_all(&frame(TEXT, b"{")).await.unwrap();
        let sending = async {
            while client.write_all(&frame(FINAL | PONG, b"")).await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        let hearing = async {
            let outcome = loop {
                if let Err(reason) = reader.next().await {
                    break reason;
                }
            };
            drop(reader);
            outcome
        };
        let ((), outcome) = tokio::join!(sending, hearing);
        assert_eq!(outcome, BrokenFrame::Late);
        assert!(started.elapsed() < Duration::from_secs(32), "{:?}", started.elapsed());
        // Silence between messages has no deadline.
        let (_client, server) = tokio::io::duplex(1 << 10);
        let mut reader =
            FrameReader::new(server, 1 << 20, MemoryBudget::new(1 << 20), Duration::from_secs(30));
        assert!(tokio::time::timeout(Duration::from_hours(1), reader.next()).await.is_err());
    }

    #[tokio::test]
    async fn what_breaks_the_rules_is_told_apart() {
        let close = |payload: &[u8]| frame(FINAL | CLOSE, payload);
        for (bytes, expected) in [
            (frame(FINAL | TEXT, b"\xff"), BrokenFrame::NoUtf8),
            (frame(FINAL | TEXT, &[b' '; 101]), BrokenFrame::TooBig),
            ([frame(TEXT, &[b' '; 60]), frame(FINAL, &[b' '; 60])].concat(), BrokenFrame::TooBig),
            (frame(0xc1, b""), BrokenFrame::Frame),
            (frame(0x83, b""), BrokenFrame::Frame),
            (frame(FINAL, b""), BrokenFrame::Frame),
            (frame(PING, b""), BrokenFrame::Frame),
            (frame(FINAL | PING, &[0; 126]), BrokenFrame::Frame),
            ([frame(TEXT, b""), frame(FINAL | TEXT, b"")].concat(), BrokenFrame::Frame),
            (vec![0x81, 2, b'{', b'}'], BrokenFrame::Frame),
            (close(b"\x03"), BrokenFrame::Frame),
            (close(&1005_u16.to_be_bytes()), BrokenFrame::Frame),
            (close(b"\x03\xe8\xff"), BrokenFrame::NoUtf8),
            (Vec::new(), BrokenFrame::Gone),
            (frame(FINAL | TEXT, b"abc")[..5].to_vec(), BrokenFrame::Gone),
        ] {
            assert_eq!(reader(&bytes, 100).next().await.unwrap_err(), expected, "{bytes:?}");
        }
        for fine in [&b""[..], b"\x03\xe8bye"] {
            assert!(
                matches!(reader(&close(fine), 100).next().await, Ok(ClientFrame::Close(said)) if said == fine)
            );
        }
        assert!(matches!(reader(&frame(FINAL | BINARY, b"a"), 100).next().await, Ok(ClientFrame::Binary)));
    }

    #[tokio::test]
    async fn a_frame_says_how_long_it_is() {
        for (length, head) in [(0, 2), (125, 2), (126, 4), (65_535, 4), (65_536, 10)] {
            let mut written = Vec::new();
            write(&mut written, ServerFrame::Text(vec![b'x'; length])).await.unwrap();
            assert_eq!((written.len(), written[0]), (length + head, FINAL | TEXT));
        }
        let mut written = Vec::new();
        write(&mut written, ServerFrame::close_frame(1001, "bye")).await.unwrap();
        assert_eq!(written, [FINAL | CLOSE, 5, 3, 233, b'b', b'y', b'e']);
    }
}
