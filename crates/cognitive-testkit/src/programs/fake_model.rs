//! A model service on loopback that answers as a test decides, in the wire format of chat completions, whole or streamed. It
//! records every request before it answers. Judges nothing; other faults of services are in the tests of providers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use serde_json::{Value, json};

/// A request as the service received it.
#[derive(Debug, Clone, PartialEq)]
pub struct FakeRequest {
    /// The path, such as `/v1/chat/completions`.
    pub path: String,
    /// The body; null if it is not JSON.
    pub body: Value,
}

/// The reaction of the service to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FakeReply {
    /// The text of the model.
    Text(String),
    /// Nothing, until the client disconnects.
    Silence,
    /// The beginning of the text of the model, as a stream, and then nothing until the client disconnects.
    Begun(String),
    /// An error with this status.
    Status(u16),
}

type Answer = dyn Fn(usize, &FakeRequest) -> FakeReply + Send + Sync;

#[derive(Default)]
struct RequestLog {
    requests: Mutex<Vec<FakeRequest>>,
    changed: Condvar,
}

/// The service. Its threads end with the process of the test.
#[derive(Clone)]
pub struct FakeModel {
    address: String,
    received: Arc<RequestLog>,
}

impl FakeModel {
    /// A service that answers each request with the result of this function, which gets its number, from 0.
    ///
    /// # Panics
    /// If no port of loopback is free.
    #[expect(clippy::expect_used, reason = "in a test, a panic is the report")]
    #[must_use]
    pub fn start(answer: impl Fn(usize, &FakeRequest) -> FakeReply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port to listen at");
        let address = listener.local_addr().expect("the address of a listener").to_string();
        let received = Arc::<RequestLog>::default();
        let (kept, answer) = (Arc::clone(&received), Arc::<Answer>::from(Box::new(answer) as Box<Answer>));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
                // A client that disconnects ends its conversation.
                std::thread::spawn(move || drop(converse(&stream, &kept, &*answer)));
            }
        });
        Self { address, received }
    }

    /// A service that always answers with this value, as text.
    #[must_use]
    pub fn saying(answer: &Value) -> Self {
        let text = answer.to_string();
        Self::start(move |_, _| FakeReply::Text(text.clone()))
    }

    /// The base address for a client of chat completions.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<FakeRequest> {
        self.received.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Forgets the requests so far.
    pub fn forget(&self) {
        self.received.requests.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Waits until so many requests have arrived.
    pub fn wait_for(&self, count: usize) {
        let mut requests = self.received.requests.lock().unwrap_or_else(PoisonError::into_inner);
        while requests.len() < count {
            requests = self.received.changed.wait(requests).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn converse(stream: &TcpStream, received: &RequestLog, answer: &Answer) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    while let Some(request) = read(&mut reader)? {
        let number = {
            let mut requests = received.requests.lock().unwrap_or_else(PoisonError::into_inner);
            requests.push(request.clone());
            requests.len() - 1
        };
        received.changed.notify_all();
        match answer(number, &request) {
            FakeReply::Silence => while reader.read(&mut [0; 64])? > 0 {},
            FakeReply::Begun(text) => {
                let head = "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
                let events = events(&text);
                let begun = events.split("data: ").nth(1).unwrap_or_default();
                (&mut &*stream).write_all(format!("{head}data: {begun}").as_bytes())?;
                while reader.read(&mut [0; 64])? > 0 {}
            }
            FakeReply::Status(status) => {
                let error = json!({ "error": { "message": "refused by the test", "type": "test" } });
                write_whole(stream, status, "application/json", &error.to_string())?;
            }
            FakeReply::Text(text) if request.body.get("stream") == Some(&Value::Bool(true)) => {
                write_whole(stream, 200, "text/event-stream", &events(&text))?;
            }
            FakeReply::Text(text) => {
                write_whole(stream, 200, "application/json", &completion(&text).to_string())?;
            }
        }
    }
    Ok(())
}

fn read(reader: &mut BufReader<&TcpStream>) -> std::io::Result<Option<FakeRequest>> {
    let mut first = String::new();
    if reader.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    Ok(Some(FakeRequest { path, body: serde_json::from_slice(&body).unwrap_or_default() }))
}

fn write_whole(mut stream: &TcpStream, status: u16, media_type: &str, body: &str) -> std::io::Result<()> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status} X\r\ncontent-type: {media_type}\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(format!("{head}{body}").as_bytes())?;
    stream.flush()
}

fn usage() -> Value {
    json!({ "prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18 })
}

fn completion(text: &str) -> Value {
    let message = json!({ "role": "assistant", "content": text });
    json!({
        "id": "r-1",
        "model": "fake-1",
        "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }],
        "usage": usage(),
    })
}

fn events(text: &str) -> String {
    let event = |delta: Value, finish: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        format!("data: {}\n\n", json!({ "id": "r-1", "model": "fake-1", "choices": [choice] }))
    };
    let last = json!({ "id": "r-1", "model": "fake-1", "choices": [], "usage": usage() });
    let end = format!("data: {last}\n\ndata: [DONE]\n\n");
    event(json!({ "content": text }), Value::Null) + &event(json!({}), json!("stop")) + &end
}
