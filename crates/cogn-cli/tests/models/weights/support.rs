//! A temporary cache, scripted tools, and a hub with scripted replies. Judges nothing.

use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread::JoinHandle;

use cognitive_setup::weights::{
    DEFAULT_PATIENCE, KnownPackage, KnownWeights, PullError, PullProgress, PullSources, PulledWeights,
    WeightsFolder, pull,
};
use tempfile::TempDir;

/// The contents of the test weights.
pub(crate) const WEIGHTS: &str = "GGUF and the weights";

/// Their entry in the table of known weights.
pub(crate) const KNOWN: KnownWeights = KnownWeights {
    name: "tiny",
    length: WEIGHTS.len() as u64,
    sha256: "9e9674ec3a3880ab48b749414352d0db696415486f79aa2813e5bad642d2d890",
    aliases: &["t"],
    licence: "none",
    context: 8,
    loaded: 1_000,
    per_token: 1,
    package: Some(KnownPackage { name: "tiny-weights==1", member: "tiny/weights.gguf" }),
    on_hub: "tiny/resolve/1/weights.gguf",
};

/// A script that finds its target and records the call.
const OPENING: &str = r#"#!/bin/sh
PATH=/usr/bin:/bin
echo "$(basename "$0") $*" >> "$(dirname "$0")/called"
while [ $# -gt 0 ]; do [ "$1" = --target ] && target=$2; shift; done
"#;
/// Unpacks a package with the right file.
pub(crate) const BRINGS: &str =
    "mkdir -p \"$target/tiny\"\nprintf 'GGUF and the weights' > \"$target/tiny/weights.gguf\"\n";
/// Unpacks a package with a wrong file of the same length.
pub(crate) const BRINGS_ANOTHER: &str =
    "mkdir -p \"$target/tiny\"\nprintf 'GGUF and the WEIGHTS' > \"$target/tiny/weights.gguf\"\n";
/// Unpacks a package without the file.
pub(crate) const BRINGS_NOTHING: &str = "mkdir -p \"$target/tiny\"\n";
/// Fails to reach its index.
pub(crate) const FAILS: &str = "echo 'WARNING: slow' >&2; echo 'ERROR: no index in reach' >&2; exit 1\n";
/// Acts as a placeholder for a program that is not installed.
pub(crate) const IS_A_SHIM: &str = "echo 'command not found' >&2; exit 127\n";

/// A folder for a cache and one for tools.
pub(crate) struct World {
    pub(crate) dir: TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["cache", "tools", "home"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        Self { dir }
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.dir.path().join("cache")
    }

    pub(crate) fn place(&self) -> WeightsFolder {
        WeightsFolder::in_cache(&KNOWN, &self.cache())
    }

    pub(crate) fn tools(&self) -> PathBuf {
        self.dir.path().join("tools")
    }

    /// Installs a tool. A shell writes it: a child process of another test could inherit a handle opened here, and the
    /// system refuses to run a file that is open for writing.
    pub(crate) fn tool(&self, name: &str, does: &str) -> &Self {
        let mut shell = Command::new("/bin/sh")
            .args(["-c", "cat > \"$1\" && chmod 755 \"$1\"", "sh"])
            .arg(self.tools().join(name))
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        shell.stdin.take().unwrap().write_all(format!("{OPENING}{does}").as_bytes()).unwrap();
        assert!(shell.wait().unwrap().success());
        self
    }

    /// Returns the calls of the tools, one line each.
    pub(crate) fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.tools().join("called")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Writes a leftover of an earlier pull into the cache.
    pub(crate) fn leave(&self, path: &Path, text: &str) -> &Self {
        fs::create_dir_all(self.place().folder()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// Returns the names in the folder of models, without the permanent ones.
    pub(crate) fn left(&self) -> Vec<String> {
        let entries = fs::read_dir(self.place().folder()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name != "tiny.gguf.lock").collect();
        names.sort();
        names
    }

    /// Pulls from these tools and this hub.
    pub(crate) fn pull(&self, hub: &str) -> (Result<PulledWeights, PullError>, Vec<String>) {
        self.pull_as(&KNOWN, hub)
    }

    pub(crate) fn pull_as(
        &self,
        known: &KnownWeights,
        hub: &str,
    ) -> (Result<PulledWeights, PullError>, Vec<String>) {
        let notes = Notes::default();
        let result = pull(known, &self.place(), &self.sources(hub), &notes);
        (result, notes.0.into_inner().unwrap())
    }

    pub(crate) fn sources(&self, hub: &str) -> PullSources {
        PullSources {
            path: Some(OsString::from(self.tools())),
            hub: hub.to_owned(),
            patience: DEFAULT_PATIENCE,
        }
    }
}

/// Collects every note.
#[derive(Default)]
pub(crate) struct Notes(pub(crate) Mutex<Vec<String>>);

impl PullProgress for Notes {
    fn note(&self, line: &str) {
        self.0.lock().unwrap().push(line.to_owned());
    }

    fn begin(&self, _: &str, _: Option<u64>) {}

    fn at(&self, _: u64) {}

    fn end(&self) {}
}

/// A hub that answers each connection with the next reply, and records the requests.
pub(crate) struct Hub {
    pub(crate) url: String,
    thread: JoinHandle<Vec<String>>,
}

impl Hub {
    /// Starts the hub. Each reply has a head without its final empty line, and the body that is really sent.
    pub(crate) fn start(replies: Vec<(&'static str, String)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let thread = std::thread::spawn(move || {
            let mut asked = Vec::new();
            for (head, body) in replies {
                let (mut stream, _) = listener.accept().unwrap();
                asked.push(read_head(&mut stream));
                let answer = format!("HTTP/1.1 {head}\r\nconnection: close\r\n\r\n{body}");
                stream.write_all(answer.as_bytes()).unwrap();
            }
            asked
        });
        Self { url, thread }
    }

    /// Returns the requests after the last reply.
    pub(crate) fn asked(self) -> Vec<String> {
        self.thread.join().unwrap()
    }
}

/// Reads the head of a request, in lowercase.
pub(crate) fn read_head(stream: &mut TcpStream) -> String {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap().to_lowercase()
}

/// Returns an address without a listener.
pub(crate) fn nowhere() -> String {
    // A privileged port that has been unused for decades.
    "http://127.0.0.1:1".to_owned()
}
