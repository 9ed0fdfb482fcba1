//! A local web server with fixed answers, including invalid ones. Ends with the test.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// The response of each path, byte for byte.
pub(crate) type Answers = BTreeMap<String, Vec<u8>>;

/// The server.
pub(crate) struct WebServer {
    /// For example `http://127.0.0.1:41234`.
    pub(crate) url: String,
    answers: Arc<Mutex<Answers>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl WebServer {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (answers, asked) = (Arc::new(Mutex::new(Answers::new())), Arc::new(Mutex::new(Vec::new())));
        let (known, log) = (Arc::clone(&answers), Arc::clone(&asked));
        // The thread ends with the process, and nothing depends on its cleanup.
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (known, log) = (Arc::clone(&known), Arc::clone(&log));
                thread::spawn(move || answer(stream, &known, &log));
            }
        });
        Self { url, answers, asked }
    }

    /// Answers a path with 200 and these bytes.
    pub(crate) fn serve(&self, path: &str, bytes: &[u8]) {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", bytes.len());
        self.serve_raw(path, [head.as_bytes(), bytes].concat());
    }

    /// Answers a path with these raw bytes.
    pub(crate) fn serve_raw(&self, path: &str, answer: Vec<u8>) {
        self.answers.lock().unwrap().insert(path.to_owned(), answer);
    }

    /// Redirects a path to another address.
    pub(crate) fn redirect(&self, path: &str, to: &str) {
        let answer =
            format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        self.serve_raw(path, answer.into_bytes());
    }

    /// Serves a folder recursively.
    pub(crate) fn serve_folder(&self, folder: &std::path::Path, below: &str) {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let path = format!("{below}/{}", entry.file_name().unwrap().to_string_lossy());
            if entry.is_dir() {
                self.serve_folder(&entry, &path);
            } else {
                self.serve(&path, &std::fs::read(&entry).unwrap());
            }
        }
    }

    /// Returns the requested paths.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn answer(mut stream: TcpStream, known: &Mutex<Answers>, log: &Mutex<Vec<String>>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    let Some(first) = lines.next() else { return };
    while lines.next().is_some_and(|line| !line.is_empty()) {}
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    log.lock().unwrap().push(path.clone());
    let found = known.lock().unwrap().get(&path).cloned();
    let nothing = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec();
    // The client may disconnect early.
    let _unheard = stream.write_all(&found.unwrap_or(nothing));
}
