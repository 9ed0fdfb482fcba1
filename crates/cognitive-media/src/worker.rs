//! A separate process for documents, with limits on memory and time. A document that exceeds them ends only this
//! process: a parser that loops or allocates gigabytes does not affect the server.
//!
//! Protocol: one line of JSON has the request, the document follows until the end of the input, and the answer is one
//! JSON value.

use std::ffi::OsString;
use std::io::{self, BufRead as _, Read, Write};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use bytes::Bytes;
use cognitive_contract::media::MediaType;
use cognitive_contract::{ErrorCode, Failure};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use crate::fault::{broken_file, server_failure, too_much};
use crate::pdf::{PdfContent, PdfQuery, read};
use crate::platform;

/// The memory limit of the process, without mapped files. A parser bug must not end the server for lack of memory.
pub const MEMORY: u64 = 160 << 20;
/// The CPU time limit of the process, in seconds. A hostile document must not occupy a processor.
pub const SECONDS: u64 = 10;
/// The longest answer: a text of the longest length, with every letter escaped.
const MAX_ANSWER_LENGTH: u64 = 64 << 20;

/// The longest request line. A caller that sends no line break must not fill the memory.
const MAX_REQUEST_LENGTH: u64 = 1024;

/// The request: the question, and the length of the document.
#[derive(Serialize, Deserialize)]
struct Request {
    question: PdfQuery,
    bytes: usize,
}

/// The program to start, and the time to wait for it.
#[derive(Debug, Clone)]
pub struct Worker {
    program: PathBuf,
    arguments: Vec<OsString>,
    /// The complete environment of the process.
    variables: Vec<(&'static str, &'static str)>,
    patience: Duration,
}

impl Worker {
    /// Configures a program that calls [`serve`] when it is started with these arguments.
    #[must_use]
    pub fn new(program: PathBuf, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(OsString::from).collect();
        Self { program, arguments, variables: Vec::new(), patience: Duration::from_secs(2 * SECONDS) }
    }

    /// Adds a variable to the environment, which is empty otherwise.
    #[must_use]
    pub fn with_variable(mut self, name: &'static str, value: &'static str) -> Self {
        self.variables.push((name, value));
        self
    }

    /// Sets the total time to wait for an answer.
    #[must_use]
    pub fn patient_for(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sends a question to a new process. Dropping the future kills it.
    pub(crate) async fn ask(&self, document: Bytes, question: PdfQuery) -> Result<PdfContent, Failure> {
        let mut child = self.start()?;
        let answer = tokio::time::timeout(self.patience, talk(&mut child, &document, question)).await;
        let Ok(answer) = answer else {
            // Dropping the child kills it; there is no need to wait for its exit.
            return Err(memory_exhausted());
        };
        let answer =
            answer.map_err(|error| server_failure("cannot pass the document to its process", &error))?;
        match serde_json::from_slice::<PdfContent>(&answer) {
            Ok(found) => found.into_result(),
            Err(_) => Err(end_failure(&mut child).await),
        }
    }

    fn start(&self) -> Result<Child, Failure> {
        Command::new(&self.program)
            .args(&self.arguments)
            // The process needs no variables of the server, which include keys.
            .env_clear()
            .envs(self.variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| {
                server_failure("cannot start the process that reads documents", &error)
                    .suggest("Restart the program; it must be able to find its own file, on Linux in `/proc`")
            })
    }
}

async fn talk(child: &mut Child, document: &Bytes, question: PdfQuery) -> io::Result<Vec<u8>> {
    let (Some(mut to), Some(from)) = (child.stdin.take(), child.stdout.take()) else { return Ok(Vec::new()) };
    let mut line = serde_json::to_vec(&Request { question, bytes: document.len() })?;
    line.push(b'\n');
    let send = async move {
        // A process that ends early closes the pipe. Its answer, or the missing answer, gives the reason.
        let _closed = async {
            to.write_all(&line).await?;
            to.write_all(document).await?;
            to.shutdown().await
        }
        .await;
    };
    let mut answer = Vec::new();
    let mut from = from.take(MAX_ANSWER_LENGTH);
    let receive = from.read_to_end(&mut answer);
    let ((), received) = tokio::join!(send, receive);
    received.map(|_| answer)
}

/// Returns the error for a missing answer.
async fn end_failure(child: &mut Child) -> Failure {
    match child.wait().await {
        // The process handles all other errors, so a missing exit code means that it hit a limit.
        Ok(status) if status.code().is_none() => memory_exhausted(),
        Ok(status) if status.success() => broken_file(MediaType::Pdf, "cannot be read"),
        _ => Failure::new(ErrorCode::InternalError, "the process that reads documents has failed"),
    }
}

fn memory_exhausted() -> Failure {
    let what = format!("takes more than {} MiB of memory or {SECONDS} s to read", MEMORY >> 20);
    too_much(MediaType::Pdf, &what)
}

/// Runs the process: sets its limits, reads a question and a document, answers.
pub fn serve(input: impl Read, mut output: impl Write) -> io::Result<()> {
    platform::confine(SECONDS, MEMORY)?;
    let mut input = io::BufReader::new(input);
    let mut line = Vec::new();
    input.by_ref().take(MAX_REQUEST_LENGTH).read_until(b'\n', &mut line)?;
    let request: Request = serde_json::from_slice(&line)?;
    // A buffer that grows by doubling would take half of the available memory.
    let mut document = Vec::new();
    document.try_reserve_exact(request.bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let most = u64::try_from(request.bytes).unwrap_or(u64::MAX);
    input.take(most).read_to_end(&mut document)?;
    let found = read(&document, request.question);
    serde_json::to_writer(&mut output, &found)?;
    output.flush()
}
