//! The machine of a user who has cloned a folder: a home with the audit, another folder that must not change, the
//! user's service, and the attacker, with TLS and without. Contains no rules.

use cognitive_testkit::PATIENCE;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use tempfile::TempDir;

use super::stub::{Act, SELF_SIGNED, Stub, good, streamed};

/// The key of every service.
pub(crate) const KEY: &str = "sk-proj-REALLY-secret-0123456789";
/// The input of every run.
pub(crate) const INPUT: &str = "text=A private sentence.";

/// Returns whether a text contains the key, as it is or in base64 as headers encode it.
pub(crate) fn holds_key(text: &str) -> bool {
    let text = text.to_lowercase();
    [KEY.to_lowercase().as_str(), "really-secret", "uksfmwlsznljcmv0"]
        .iter()
        .any(|needle| text.contains(needle))
}

/// The expected result of a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It fails, with a hint on how to trust the file.
    Refused,
    /// It fails for any reason.
    Fails,
    /// It works as if the setting were missing.
    Works,
    /// Both results are fine.
    Either,
}

/// A hostile folder and a command in it. `{THIEF}`, `{THIEF_TLS}`, `{REAL}` and `{OUT}` are placeholders.
#[derive(Debug, Clone)]
pub(crate) struct Variant {
    pub(crate) name: String,
    pub(crate) files: Vec<(String, String)>,
    pub(crate) user: Option<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) args: Vec<String>,
    pub(crate) prepare: Option<fn(&World)>,
    pub(crate) outcome: Outcome,
    pub(crate) says: Option<&'static str>,
}

impl Variant {
    /// Creates a run of a bundled module in a folder with this configuration.
    pub(crate) fn new(name: impl Into<String>, config: impl Into<String>) -> Self {
        let args = ["run", "summarizer", "--set", INPUT].map(str::to_owned).to_vec();
        Self {
            name: name.into(),
            files: vec![("cognitive.yaml".to_owned(), config.into())],
            user: None,
            env: Vec::new(),
            args,
            prepare: None,
            outcome: Outcome::Refused,
            says: None,
        }
    }

    pub(crate) fn args(mut self, line: &str) -> Self {
        self.args = line.split(' ').map(str::to_owned).collect();
        self
    }

    pub(crate) fn file(mut self, path: &str, text: &str) -> Self {
        self.files.retain(|(known, _)| known != path);
        self.files.push((path.to_owned(), text.to_owned()));
        self
    }

    pub(crate) fn without_config(mut self) -> Self {
        self.files.retain(|(known, _)| known != "cognitive.yaml");
        self
    }

    pub(crate) fn user(mut self, config: &str) -> Self {
        self.user = Some(config.to_owned());
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn prepare(mut self, prepare: fn(&World)) -> Self {
        self.prepare = Some(prepare);
        self
    }

    pub(crate) fn outcome(mut self, outcome: Outcome) -> Self {
        self.outcome = outcome;
        self
    }

    pub(crate) fn says(mut self, text: &'static str) -> Self {
        self.says = Some(text);
        self
    }
}

/// The result of a command.
pub(crate) struct Ended {
    /// `None` if it timed out and was killed.
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) said: String,
}

pub(crate) struct World {
    dir: TempDir,
    real: Stub,
    thief: Stub,
    thief_tls: Stub,
}

impl World {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["project", "out", "home/.cognitive", "home/.ssh"] {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        fs::write(dir.path().join("home/.ssh/id"), "private").unwrap();
        fs::write(dir.path().join("out/empty"), "").unwrap();
        let fine = || vec![Act::stream(streamed(&good()))];
        Self {
            dir,
            real: Stub::start(fine()),
            thief: Stub::start(fine()),
            thief_tls: Stub::start_tls(fine()),
        }
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    pub(crate) fn out(&self) -> PathBuf {
        self.dir.path().join("out")
    }

    pub(crate) fn thief(&self) -> &Stub {
        &self.thief
    }

    pub(crate) fn real(&self) -> &Stub {
        &self.real
    }

    /// Returns all requests to the attacker.
    pub(crate) fn thief_heard(&self) -> Vec<String> {
        [self.thief.asked(), self.thief_tls.asked()].concat()
    }

    pub(crate) fn fill_in(&self, text: &str) -> String {
        let port = |stub: &Stub| stub.place.rsplit(':').next().unwrap().to_owned();
        text.replace("{THIEF}", &self.thief.url())
            .replace("{THIEF_PORT}", &port(&self.thief))
            .replace("{THIEF_TLS}", &format!("https://{}/v1", self.thief_tls.place))
            .replace("{REAL}", &self.real.url())
            .replace("{OUT}", self.out().to_str().unwrap())
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.project().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, self.fill_in(text)).unwrap();
    }

    /// Returns everything outside the folder, with its contents; without the audit and the user's own uploads.
    pub(crate) fn outside(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let mut found = BTreeMap::new();
        for place in ["home", "out"] {
            gather(&self.dir.path().join(place), &mut found);
        }
        let books = self.home().join(".cognitive");
        found.retain(|path, _| {
            let inside = path.strip_prefix(&books).ok().and_then(Path::to_str).unwrap_or_default();
            !inside.starts_with("cognitive.db") && !inside.starts_with("uploads")
        });
        // Written by the test itself.
        found.remove(&books.join("config.yaml"));
        found
    }

    /// Writes the folder and runs the command in it.
    pub(crate) fn play(&self, variant: &Variant) -> Ended {
        for (path, text) in &variant.files {
            self.write(path, text);
        }
        if let Some(user) = &variant.user {
            fs::write(self.home().join(".cognitive/config.yaml"), self.fill_in(user)).unwrap();
        }
        if let Some(prepare) = variant.prepare {
            prepare(self);
        }
        let args: Vec<String> = variant.args.iter().map(|word| self.fill_in(word)).collect();
        let env: Vec<(String, String)> =
            variant.env.iter().map(|(name, value)| (name.clone(), self.fill_in(value))).collect();
        if args[0] == "serve" { self.serve(&args, &env) } else { self.cogn(&args, &env) }
    }

    pub(crate) fn command(&self, args: &[String], env: &[(String, String)]) -> Command {
        let mut command = cognitive_testkit::command(env!("CARGO_BIN_EXE_cogn"));
        command.args(args).current_dir(self.project()).env_clear().env("HOME", self.home());
        // Requests to other machines end at a port without a listener.
        command
            .env("COGN_OFFLINE", "1")
            .env("HTTPS_PROXY", "http://127.0.0.1:9")
            .env("PATH", "/usr/bin:/bin");
        command.env("SSL_CERT_FILE", SELF_SIGNED);
        for service in [
            "OPENAI",
            "ANTHROPIC",
            "GEMINI",
            "DEEPSEEK",
            "DASHSCOPE",
            "MOONSHOT",
            "MINIMAX",
            "MISTRAL",
            "GROQ",
            "OPENROUTER",
            "LLAMACPP",
            "VLLM",
            "LMSTUDIO",
            "LLM",
        ] {
            command.env(format!("{service}_API_KEY"), KEY);
        }
        for (name, value) in env {
            // An empty variable counts as unset.
            command.env(name, value);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a command to its end. One that has not ended after [`PATIENCE`] waits for something, and is ended.
    pub(crate) fn cogn(&self, args: &[String], env: &[(String, String)]) -> Ended {
        let mut child = self.command(args, env).spawn().unwrap();
        let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let (done, wait) = channel();
        std::thread::spawn(move || {
            let (mut said, mut more) = (String::new(), String::new());
            let _ = out.read_to_string(&mut said);
            let _ = err.read_to_string(&mut more);
            let _ = done.send((said, more));
        });
        let (out, err) = wait.recv_timeout(PATIENCE).unwrap_or_else(|_| {
            child.kill().unwrap();
            (String::new(), "ended by the test".to_owned())
        });
        let code = child.wait().unwrap().code();
        Ended { code, said: format!("{out}{err}"), out }
    }

    /// Starts a server, makes it run a module, and kills it.
    fn serve(&self, args: &[String], env: &[(String, String)]) -> Ended {
        let mut child = self.command(args, env).spawn().unwrap();
        let mut err = BufReader::new(child.stderr.take().unwrap());
        let (mut said, mut line) = (String::new(), String::new());
        while err.read_line(&mut line).unwrap() > 0 {
            said.push_str(&line);
            let place = line.split("http://").nth(1).filter(|_| line.contains("listening"));
            if let Some(place) = place.and_then(|rest| rest.split(',').next()) {
                said.push_str(&post(place));
                child.kill().unwrap();
                let _ = child.wait();
                return Ended { code: Some(0), out: String::new(), said };
            }
            line.clear();
        }
        let code = child.wait().unwrap().code();
        Ended { code, out: String::new(), said }
    }
}

/// Sends a run request to a server.
fn post(place: &str) -> String {
    let mut tcp = TcpStream::connect(place).unwrap();
    let body = r#"{"text": "A private sentence."}"#;
    let length = body.len();
    let head = format!(
        "POST /api/run/summarizer HTTP/1.1\r\nhost: {place}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    tcp.write_all((head + body).as_bytes()).unwrap();
    let mut answer = String::new();
    let _ = tcp.read_to_string(&mut answer);
    answer
}

fn gather(path: &Path, found: &mut BTreeMap<PathBuf, (u32, Vec<u8>)>) {
    let meta = fs::symlink_metadata(path).unwrap();
    let content = if meta.is_file() { fs::read(path).unwrap() } else { Vec::new() };
    found.insert(path.to_owned(), (meta.permissions().mode(), content));
    if meta.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            gather(&entry.unwrap().path(), found);
        }
    }
}
