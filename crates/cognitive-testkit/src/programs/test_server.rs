//! `cogn serve` in a test: started on a free port, asked over plain sockets, killed when it is dropped.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "in a test, a panic is the report"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{ChildStderr, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use serde_json::Value;

use super::{Home, ProcessOutput, Running};
use crate::PATIENCE;

/// A running server.
pub struct TestServer {
    child: Running,
    log: ServerLog,
    /// Its standard error up to the address.
    pub said: String,
    /// `127.0.0.1:PORT`.
    pub address: String,
}

/// The standard error of a server behind its address.
enum ServerLog {
    /// A full pipe would hold up the server.
    Read(JoinHandle<()>, Arc<(Mutex<String>, Condvar)>),
    Unread(BufReader<ChildStderr>),
}

impl TestServer {
    /// Starts a server with these arguments behind `serve`.
    #[must_use]
    pub fn start(home: &Home, args: &[&str], environment: &[(&str, &str)]) -> Self {
        let args = [&["serve", "--port", "0", "--quiet"][..], args].concat();
        Self::spawn(&mut home.command(&args, environment))
    }

    /// Starts a command that announces the address of a server.
    #[must_use]
    pub fn spawn(command: &mut Command) -> Self {
        Self::try_spawn(command).unwrap_or_else(|ended| panic!("the server does not listen: {ended:?}"))
    }

    /// The same; the result of the process if it ends without listening.
    ///
    /// # Errors
    /// If no address is announced.
    pub fn try_spawn(command: &mut Command) -> Result<Self, Box<ProcessOutput>> {
        let mut server = Self::spawn_without_reader(command)?;
        if let ServerLog::Unread(mut rest) = server.log {
            let log = Arc::<(Mutex<String>, Condvar)>::default();
            let heard = Arc::clone(&log);
            let read = std::thread::spawn(move || {
                let mut line = Vec::new();
                while rest.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
                    heard
                        .0
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push_str(&String::from_utf8_lossy(&line));
                    heard.1.notify_all();
                    line.clear();
                }
            });
            server.log = ServerLog::Read(read, log);
        }
        Ok(server)
    }

    /// The same, but what the server writes behind its address stays in the pipe.
    ///
    /// # Errors
    /// If no address is announced.
    pub fn spawn_without_reader(command: &mut Command) -> Result<Self, Box<ProcessOutput>> {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the server");
        let mut said = String::new();
        let mut rest = BufReader::new(child.stderr.take().expect("its standard error"));
        // Warnings come before the address.
        let address = loop {
            let before = said.len();
            if !matches!(rest.read_line(&mut said), Ok(1..)) {
                let output = child.wait_with_output().expect("the end of the server");
                return Err(Box::new(ProcessOutput { err: said, ..ProcessOutput::from(output) }));
            }
            let line = said.get(before..).unwrap_or_default();
            let address = line.split_once("http://").filter(|_| line.contains("listening"));
            if let Some((_, rest)) = address {
                break rest.split([' ', ',', '\n', '/', '\u{1b}']).next().unwrap_or_default().to_owned();
            }
        };
        Ok(Self { child: Running(child), address, said, log: ServerLog::Unread(rest) })
    }

    /// `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The id of its process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.0.id()
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        self.child.signal("TERM");
    }

    /// Waits until it has written this text behind its address.
    pub fn wait_for(&self, words: &str) {
        let ServerLog::Read(_, log) = &self.log else { panic!("no thread reads it") };
        let said = log.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = log.1.wait_timeout_while(said, PATIENCE, |said| !said.contains(words));
        let (said, _) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(said.contains(words), "{said}");
    }

    /// Waits until it has written a line with this text. Only for [`TestServer::spawn_without_reader`].
    pub fn wait_for_line(&mut self, words: &str) {
        let ServerLog::Unread(rest) = &mut self.log else { panic!("another thread reads it") };
        let said = rest.lines().map_while(Result::ok).any(|line| line.contains(words));
        assert!(said, "the server has ended and never said {words}");
    }

    /// Sends SIGTERM and waits for its end, which has to be a success. Returns what it wrote behind its address.
    #[must_use]
    pub fn stop(self) -> String {
        self.terminate();
        let (code, said) = self.wait_for_end();
        assert_eq!(code, Some(0), "{said}");
        said
    }

    /// Waits for its end. Returns its exit code and what it wrote behind its address.
    #[must_use]
    pub fn wait_for_end(mut self) -> (Option<i32>, String) {
        let more = match self.log {
            ServerLog::Read(read, log) => {
                let _ = read.join();
                std::mem::take(&mut *log.0.lock().unwrap_or_else(PoisonError::into_inner))
            }
            ServerLog::Unread(mut rest) => {
                let mut more = String::new();
                let _ = rest.read_to_string(&mut more);
                more
            }
        };
        (self.child.0.wait().expect("the end of the server").code(), more)
    }

    /// Sends a request; the response can be read from the returned stream.
    #[must_use]
    pub fn open(
        &self,
        first_line: &str,
        headers: &[(&str, &str)],
        body: impl AsRef<[u8]>,
    ) -> BufReader<TcpStream> {
        let mut connection = TcpStream::connect(&self.address).expect("a connection to the server");
        let mut head = format!("{first_line} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", self.address);
        for (name, value) in headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        if headers.iter().all(|(name, _)| *name != "content-type") {
            head.push_str("content-type: application/json\r\n");
        }
        let body = body.as_ref();
        let head = format!("{head}content-length: {}\r\n\r\n", body.len());
        connection.write_all(&[head.as_bytes(), body].concat()).expect("a request that is sent");
        BufReader::new(connection)
    }

    /// Status and body of an answer.
    #[must_use]
    pub fn ask(&self, first_line: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> (u16, String) {
        let mut answer = String::new();
        self.open(first_line, headers, body).read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer}"));
        let status = head.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0);
        let is_chunked = head.to_lowercase().contains("transfer-encoding: chunked");
        (status, if is_chunked { dechunk(body) } else { body.to_owned() })
    }

    /// Status and JSON of an answer.
    #[must_use]
    pub fn json(&self, first_line: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> (u16, Value) {
        let (status, answer) = self.ask(first_line, headers, body);
        (status, serde_json::from_str(&answer).unwrap_or_else(|_| panic!("no JSON: {answer}")))
    }

    /// Gets JSON.
    #[must_use]
    pub fn get(&self, path: &str) -> Value {
        self.json(&format!("GET {path}"), &[], "").1
    }

    /// Posts JSON and reads JSON.
    #[must_use]
    pub fn post(&self, path: &str, body: &Value) -> Value {
        self.json(&format!("POST {path}"), &[], body.to_string()).1
    }
}

/// The body of a chunked answer.
fn dechunk(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        let Some(piece) = rest.get(..size).filter(|piece| !piece.is_empty()) else { break };
        whole.push_str(piece);
        body = rest.get(size..).unwrap_or_default().trim_start_matches("\r\n");
    }
    whole
}
