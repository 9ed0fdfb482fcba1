//! `cogn serve` in a test: started on a free port, asked over plain sockets, killed when it is dropped.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use serde_json::Value;

use super::Home;

/// A running server.
pub struct Served {
    child: Child,
    /// `127.0.0.1:PORT`.
    pub address: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[expect(clippy::expect_used, clippy::panic, reason = "in a test, a panic is the report")]
impl Served {
    /// Starts a server with these arguments behind `serve`.
    ///
    /// # Panics
    /// If it does not listen.
    #[must_use]
    pub fn start(home: &Home, args: &[&str], environment: &[(&str, &str)]) -> Self {
        let args = [&["serve", "--port", "0", "--quiet"][..], args].concat();
        let mut command = home.command(&args, environment);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the server");
        let mut said = String::new();
        let mut lines = BufReader::new(child.stderr.take().expect("its standard error"));
        // Warnings come before the address.
        while !said.contains("http://127") {
            let before = said.len();
            let _ = lines.read_line(&mut said);
            if said.len() == before {
                let _ = child.kill();
                let _ = child.wait();
                panic!("the server does not listen: {said}");
            }
        }
        // A full pipe would hold up the server.
        std::thread::spawn(move || drop(std::io::copy(&mut lines, &mut std::io::sink())));
        let address = said.rsplit("http://").next().and_then(|rest| rest.split([' ', ',', '\n', '/']).next());
        Self { child, address: address.unwrap_or_default().to_owned() }
    }

    /// Status and body of an answer.
    ///
    /// # Panics
    /// If the server does not answer.
    #[must_use]
    pub fn ask(&self, first_line: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let mut connection = TcpStream::connect(&self.address).expect("a connection to the server");
        let mut head = format!("{first_line} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", self.address);
        for (name, value) in headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        let length = body.len();
        let head = format!("{head}content-type: application/json\r\ncontent-length: {length}\r\n\r\n");
        connection.write_all(format!("{head}{body}").as_bytes()).expect("a request that is sent");
        let mut answer = String::new();
        connection.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer}"));
        let status = head.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0);
        let is_chunked = head.to_lowercase().contains("transfer-encoding: chunked");
        (status, if is_chunked { unchunked(body) } else { body.to_owned() })
    }

    /// Posts JSON and reads JSON.
    ///
    /// # Panics
    /// If the answer is not JSON.
    #[must_use]
    pub fn post(&self, path: &str, body: &Value) -> Value {
        let (_, answer) = self.ask(&format!("POST {path}"), &[], &body.to_string());
        serde_json::from_str(&answer).unwrap_or_else(|_| panic!("no JSON: {answer}"))
    }
}

/// The body of a chunked answer.
fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        let Some(piece) = rest.get(..size).filter(|piece| !piece.is_empty()) else { break };
        whole.push_str(piece);
        body = rest.get(size..).unwrap_or_default().trim_start_matches("\r\n");
    }
    whole
}
