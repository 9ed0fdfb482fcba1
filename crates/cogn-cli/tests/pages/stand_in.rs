//! A stub of a hosted model in the OpenAI wire format. It answers each bundled module with the recorded reply of its
//! first successful golden test, and the modules of the pages with the replies in `replies/`.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

/// The prompt that identifies a module, and the reply.
struct Known {
    prompt: String,
    reply: String,
}

pub(crate) struct StandIn {
    port: u16,
}

impl StandIn {
    pub(crate) fn start(root: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let known = Arc::new(of_pages().into_iter().chain(of_modules(root)).collect::<Vec<_>>());
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let known = Arc::clone(&known);
                // A client may disconnect early.
                std::thread::spawn(move || answer(connection, &known).unwrap_or_default());
            }
        });
        Self { port }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }
}

/// Reads the replies of the pages, such as `{"prompt": "You sort support tickets.", "reply": {…}}`.
fn of_pages() -> Vec<Known> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pages/replies");
    let files = fs::read_dir(folder).unwrap().map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
    let read = |text: String| {
        let value: Value = serde_json::from_str(&text).unwrap();
        Known { prompt: value["prompt"].as_str().unwrap().to_owned(), reply: value["reply"].to_string() }
    };
    files.map(read).collect()
}

fn of_modules(root: &Path) -> Vec<Known> {
    let folders = fs::read_dir(root.join("modules")).unwrap().map(|entry| entry.unwrap().path());
    folders.filter_map(|folder| of_module(&folder)).collect()
}

fn of_module(folder: &Path) -> Option<Known> {
    let prompt = fs::read_to_string(folder.join("prompt.md")).ok()?;
    let name = folder.file_name()?.to_string_lossy().into_owned();
    let mut replies: Vec<_> =
        fs::read_dir(folder.join("tests")).ok()?.map(|entry| entry.unwrap().path()).collect();
    replies.sort();
    // The reply of a composition's part has its own file: `case.part.reply.txt`.
    let own = |path: &&std::path::PathBuf| {
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        file.strip_suffix(".reply.txt").is_some_and(|case| !case.contains('.') || case.ends_with(&name))
    };
    let texts = replies.iter().filter(own).map(|path| fs::read_to_string(path).unwrap());
    let reply = texts.into_iter().find(|text| text.replace(' ', "").contains("\"ok\":true"))?;
    Some(Known { prompt: prompt.lines().next()?.to_owned(), reply })
}

fn answer(mut tcp: TcpStream, known: &[Known]) -> std::io::Result<()> {
    let request = read_request(&mut tcp)?;
    let asked = |each: &&Known| {
        let prompt = Value::from(each.prompt.as_str()).to_string();
        request.contains(prompt.trim_matches('"'))
    };
    let reply = known.iter().find(asked).map_or("no such module", |each| each.reply.as_str());
    let choice = json!({ "index": 0, "delta": { "content": reply }, "finish_reason": "stop" });
    let usage = json!({ "prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18 });
    let chunk = json!({ "model": "stand-in", "choices": [choice] });
    let end = json!({ "model": "stand-in", "choices": [], "usage": usage });
    let body = format!("data: {chunk}\n\ndata: {end}\n\ndata: [DONE]\n\n");
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n";
    write!(tcp, "{head}content-length: {}\r\n\r\n{body}", body.len())
}

fn read_request(tcp: &mut TcpStream) -> std::io::Result<String> {
    let (mut head, mut byte) = (String::new(), [0]);
    while !head.ends_with("\r\n\r\n") {
        tcp.read_exact(&mut byte)?;
        head.push(char::from(byte[0]));
    }
    let lower = head.to_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.trim().parse().unwrap())];
    tcp.read_exact(&mut body)?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}
