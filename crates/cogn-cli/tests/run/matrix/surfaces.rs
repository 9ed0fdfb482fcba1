//! The surfaces of the program. Each runs one module once and returns the envelope.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use cognitive_testkit::{Home, ProcessOutput, TestServer};
use serde_json::{Value, json};

use super::clients;

/// A way to run a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surface {
    Run,
    RunStream,
    TestLive,
    Eval,
    Batch,
    ServeSync,
    ServeEvents,
    ServeLines,
    ServeSocket,
    McpStdio,
    McpHttp,
    Library,
    Python,
    TypeScript,
}

/// The surfaces of programs. They have requests and files, and no flags of their own.
pub(crate) const CLIENTS: [Surface; 3] = [Surface::Library, Surface::Python, Surface::TypeScript];

impl Surface {
    pub(crate) const ALL: [Self; 11] = [
        Self::Run,
        Self::RunStream,
        Self::TestLive,
        Self::Eval,
        Self::Batch,
        Self::ServeSync,
        Self::ServeEvents,
        Self::ServeLines,
        Self::ServeSocket,
        Self::McpStdio,
        Self::McpHttp,
    ];

    /// Runs the module with an input, `_options` of the request where the surface has requests, and flags.
    pub(crate) fn envelope(self, home: &Home, ask: &Ask<'_>) -> Value {
        match self {
            Self::Run => command_line(home, ask, &["run", ask.module], &[]),
            Self::RunStream => command_line(home, ask, &["run", ask.module, "--stream"], &[]),
            Self::TestLive => golden(home, ask),
            Self::Eval => evaluated(home, ask),
            Self::Batch => batch(home, ask),
            Self::ServeSync => served(home, ask, "application/json"),
            Self::ServeEvents => served(home, ask, "text/event-stream"),
            Self::ServeLines => served(home, ask, "application/x-ndjson"),
            Self::ServeSocket => socket(home, ask),
            Self::McpStdio => agent(home, ask),
            Self::McpHttp => agent_over_http(home, ask),
            Self::Library => clients::library(home, ask),
            Self::Python => clients::python(home, ask),
            Self::TypeScript => clients::typescript(home, ask),
        }
    }

    /// Returns whether a request of the surface has options.
    pub(crate) fn has_requests(self) -> bool {
        matches!(self, Self::ServeSync | Self::ServeEvents | Self::ServeLines | Self::ServeSocket)
            || CLIENTS.contains(&self)
    }

    /// Returns whether the surface keeps answers between runs. Measurements and batches always ask the model.
    pub(crate) fn has_cache(self) -> bool {
        !matches!(self, Self::TestLive | Self::Eval | Self::Batch)
    }

    /// Returns whether the surface cannot run on this machine. The test has been reported as skipped.
    pub(crate) fn is_missing(self, envelope: &Value) -> bool {
        CLIENTS.contains(&self) && envelope.is_null()
    }
}

/// One run.
pub(crate) struct Ask<'a> {
    pub(crate) module: &'a str,
    pub(crate) input: Value,
    pub(crate) environment: &'a [(&'a str, &'a str)],
    pub(crate) flags: &'a [&'a str],
    /// `_options` of a request.
    pub(crate) options: Value,
}

impl Ask<'_> {
    fn body(&self) -> Value {
        let mut body = self.input.clone();
        if !self.options.is_null() {
            body["_options"] = self.options.clone();
        }
        body
    }
}

/// The envelope in what a process or a server wrote: whole, or in the last chunk of a stream.
fn envelope_in(text: &str) -> Value {
    let lines = text.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
    let values: Vec<Value> = lines.filter_map(|line| serde_json::from_str(line).ok()).collect();
    let last = values.iter().rev().find_map(|value| {
        let is_envelope = value.get("ok").is_some() && value.get("meta").is_some();
        let inside = value.get("envelope").or_else(|| value.get("response")).cloned();
        if is_envelope { Some(value.clone()) } else { inside.filter(|inside| inside.get("ok").is_some()) }
    });
    last.unwrap_or_else(|| panic!("no envelope: {text}"))
}

fn command_line(home: &Home, ask: &Ask<'_>, command: &[&str], more: &[&str]) -> Value {
    let input = ask.input.to_string();
    let args = [command, &["--input", &input], more, ask.flags].concat();
    let output = home.run(&args, ask.environment, "");
    assert!(!output.out.trim().is_empty(), "{output:?}");
    envelope_in(&output.out)
}

fn golden(home: &Home, ask: &Ask<'_>) -> Value {
    let case = format!("cognitive/modules/{}/tests/one", ask.module);
    home.write(&format!("{case}.input.json"), ask.input.to_string());
    // No answer is expected to hold this, so that the report has the envelope.
    home.write(&format!("{case}.expected.json"), r#"{"none": 1}"#);
    let args = [&["test", ask.module, "--live", "--json"][..], ask.flags].concat();
    let output = home.run(&args, ask.environment, "");
    let report: Value = serde_json::from_str(&output.out).unwrap_or_else(|_| panic!("{output:?}"));
    let case = &report["modules"][0]["cases"][0];
    case.get("envelope").cloned().unwrap_or_else(|| panic!("{report}"))
}

fn evaluated(home: &Home, ask: &Ask<'_>) -> Value {
    home.write("cases.jsonl", format!("{}\n", json!({ "input": ask.input, "expect": { "ok": true } })));
    let args = [&["eval", ask.module, "--cases", "cases.jsonl", "-o", "eval.jsonl"][..], ask.flags].concat();
    let output = home.run(&args, ask.environment, "");
    let written = std::fs::read_to_string(home.path("eval.jsonl")).unwrap_or_else(|_| panic!("{output:?}"));
    envelope_in(&written)
}

fn batch(home: &Home, ask: &Ask<'_>) -> Value {
    home.write("rows.jsonl", format!("{}\n", ask.input));
    let args =
        [&["batch", ask.module, "rows.jsonl", "-o", "answers.jsonl", "--restart"][..], ask.flags].concat();
    let output = home.run(&args, ask.environment, "");
    let written =
        std::fs::read_to_string(home.path("answers.jsonl")).unwrap_or_else(|_| panic!("{output:?}"));
    // A batch stops before its first row if its provider cannot answer, and says why.
    if written.is_empty() { Value::String(output.out) } else { envelope_in(&written) }
}

pub(crate) fn server(home: &Home, ask: &Ask<'_>) -> TestServer {
    TestServer::start(home, ask.flags, ask.environment)
}

fn served(home: &Home, ask: &Ask<'_>, accept: &str) -> Value {
    let path = format!("POST /api/run/{}", ask.module);
    let (_, body) = server(home, ask).ask(&path, &[("accept", accept)], ask.body().to_string());
    envelope_in(&body)
}

fn socket(home: &Home, ask: &Ask<'_>) -> Value {
    let server = server(home, ask);
    let mut message = json!({ "type": "run", "id": "1", "module": ask.module, "input": ask.input });
    if !ask.options.is_null() {
        message["options"] = ask.options.clone();
    }
    let mut socket = std::net::TcpStream::connect(&server.address).unwrap();
    let head = format!(
        "GET /ws HTTP/1.1\r\nhost: {}\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n",
        server.address
    );
    socket.write_all(head.as_bytes()).unwrap();
    let text = message.to_string();
    let length = u16::try_from(text.len()).unwrap();
    // A masked text frame; a mask of zeros leaves the bytes as they are.
    let mut frame = vec![0x81, 0xfe];
    frame.extend(length.to_be_bytes());
    frame.extend([0; 4]);
    frame.extend(text.as_bytes());
    socket.write_all(&frame).unwrap();
    let mut reader = BufReader::new(socket);
    let mut line = String::new();
    while reader.read_line(&mut line).unwrap() > 2 {
        line.clear();
    }
    loop {
        let message = frame_from(&mut reader);
        let value: Value = serde_json::from_str(&message).unwrap_or_default();
        let chunk = value.get("chunk").unwrap_or(&value);
        let kind = chunk.get("type").and_then(Value::as_str).unwrap_or_default();
        // The first message says that the run has started.
        if matches!(kind, "final" | "error") || chunk.get("data").is_some() || chunk.get("error").is_some() {
            let mut envelope = chunk.clone();
            envelope["ok"] = Value::Bool(chunk.get("error").is_none());
            return envelope;
        }
    }
}

/// One unmasked frame of the server.
fn frame_from(reader: &mut impl std::io::Read) -> String {
    let mut head = [0; 2];
    reader.read_exact(&mut head).unwrap();
    let length = match head[1] & 0x7f {
        126 => {
            let mut more = [0; 2];
            reader.read_exact(&mut more).unwrap();
            usize::from(u16::from_be_bytes(more))
        }
        127 => {
            let mut more = [0; 8];
            reader.read_exact(&mut more).unwrap();
            usize::try_from(u64::from_be_bytes(more)).unwrap()
        }
        short => usize::from(short),
    };
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    String::from_utf8(body).unwrap_or_default()
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;

fn tool_call(ask: &Ask<'_>) -> String {
    let params = json!({ "name": ask.module, "arguments": ask.input });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string()
}

fn agent(home: &Home, ask: &Ask<'_>) -> Value {
    let args = [&["mcp", "--tools", ask.module][..], ask.flags].concat();
    let mut command = home.command(&args, ask.environment);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut input, mut lines) =
        (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()).lines());
    // A process that ends at once reads nothing, and says why.
    let _ = writeln!(input, "{INITIALIZE}");
    let hello = lines.next();
    assert!(hello.is_some(), "{:?}", ProcessOutput::from(child.wait_with_output().unwrap()));
    writeln!(input, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#).unwrap();
    writeln!(input, "{}", tool_call(ask)).unwrap();
    let answer = lines
        .map(Result::unwrap)
        .find(|line| serde_json::from_str::<Value>(line).is_ok_and(|value| value["id"] == json!(1)));
    drop(input);
    child.wait().unwrap();
    let answer: Value = serde_json::from_str(&answer.unwrap()).unwrap();
    result_of(&answer)
}

fn agent_over_http(home: &Home, ask: &Ask<'_>) -> Value {
    let args = [&["--tools", ask.module][..], ask.flags].concat();
    let server = TestServer::start(home, &args, ask.environment);
    let headers = [("accept", "application/json, text/event-stream"), ("mcp-protocol-version", "2025-06-18")];
    let mut connection = std::net::TcpStream::connect(&server.address).unwrap();
    let length = INITIALIZE.len();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {length}\r\n\r\n{INITIALIZE}",
        server.address
    );
    connection.write_all(head.as_bytes()).unwrap();
    let mut lines = BufReader::new(connection).lines().map_while(Result::ok);
    let session = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("mcp-session-id").then(|| value.trim().to_owned())
    });
    let session = session.unwrap();
    let headers = [&headers[..], &[("mcp-session-id", session.as_str())]].concat();
    let told = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let _ = server.ask("POST /mcp", &headers, told);
    let (_, body) = server.ask("POST /mcp", &headers, tool_call(ask));
    let answers = body.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
    let answer = answers
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find(|value| value["id"] == json!(1));
    result_of(&answer.unwrap_or_else(|| panic!("{body}")))
}

/// The envelope in the result of a tool.
fn result_of(answer: &Value) -> Value {
    let result = &answer["result"];
    let structured = result.get("structuredContent").cloned();
    let text = || serde_json::from_str(result["content"][0]["text"].as_str()?).ok();
    structured.or_else(text).unwrap_or_else(|| panic!("{answer}"))
}
