//! A model service on this machine that answers as many rows as a test allows and holds the others, so that a batch is stopped at a
//! row and not at a time.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

use cognitive_testkit::PATIENCE;
use serde_json::json;

#[derive(Default)]
struct Counts {
    /// The number of requests that are answered before the next one is held.
    allowed: usize,
    answered: usize,
    /// Requests that wait, those of clients that are gone not included.
    held: usize,
}

#[derive(Clone)]
pub(crate) struct HeldService {
    pub(crate) url: String,
    counts: Arc<(Mutex<Counts>, Condvar)>,
}

impl HeldService {
    /// A service that gives this answer to every row, and holds all of them until it is told how many it may answer.
    pub(crate) fn start(reply: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let service = Self { url, counts: Arc::default() };
        let choice = json!({ "index": 0, "delta": { "content": reply }, "finish_reason": "stop" });
        let body = format!("data: {}\n\ndata: [DONE]\n\n", json!({ "model": "stub", "choices": [choice] }));
        let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n";
        let answer = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
        let own = service.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (own, answer) = (own.clone(), answer.clone());
                std::thread::spawn(move || own.serve(stream.unwrap(), &answer));
            }
        });
        service
    }

    /// Answers so many requests in all, those before included; the next ones are held.
    pub(crate) fn allow(&self, requests: usize) {
        self.counts.0.lock().unwrap().allowed = requests;
        self.counts.1.notify_all();
    }

    /// Waits until exactly so many requests are held.
    pub(crate) fn until_held(&self, requests: usize) {
        let counts = self.counts.0.lock().unwrap();
        let waited = self.counts.1.wait_timeout_while(counts, PATIENCE, |counts| counts.held != requests);
        assert_eq!(waited.unwrap().0.held, requests, "requests that are held");
    }

    fn serve(&self, mut stream: TcpStream, answer: &str) {
        if read_request(&mut stream).is_none() {
            return;
        }
        let (counts, changed) = &*self.counts;
        let mut now = counts.lock().unwrap();
        now.held += 1;
        changed.notify_all();
        // The client of a request that is held may go: then another thread hears of it, because this one waits.
        let watch = stream.try_clone().unwrap();
        let gone = Arc::new(Mutex::new(false));
        let (own, seen) = (self.clone(), Arc::clone(&gone));
        std::thread::spawn(move || {
            let mut watch = watch;
            while watch.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
            let _counts = own.counts.0.lock().unwrap();
            *seen.lock().unwrap() = true;
            own.counts.1.notify_all();
        });
        let is_held = |counts: &mut Counts| counts.answered >= counts.allowed && !*gone.lock().unwrap();
        now = changed.wait_while(now, is_held).unwrap();
        now.held -= 1;
        if !*gone.lock().unwrap() {
            now.answered += 1;
        }
        changed.notify_all();
        drop(now);
        let _ = stream.write_all(answer.as_bytes());
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
}

/// Reads one request, head and body; `None` if the client disconnected before its end.
fn read_request(stream: &mut TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line).ok()? > 2 {
        length = line
            .to_lowercase()
            .strip_prefix("content-length: ")
            .map_or(length, |text| text.trim().parse().unwrap());
        line.clear();
    }
    reader.read_exact(&mut vec![0; length]).ok()
}
