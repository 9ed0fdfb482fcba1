//! The machine of a user who has cloned a folder: a home with the audit, another folder that must not change, the
//! user's service, and the attacker, with TLS and without. Contains no rules.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;

use cognitive_testkit::{Act, FakeModel, Home, PATIENCE, SELF_SIGNED, TestServer, good_answer, stream_reply};
use serde_json::json;

use super::table::Variant;

/// The key of every service.
pub(crate) const KEY: &str = "sk-proj-REALLY-secret-0123456789";

/// Returns whether a text contains the key, as it is or in base64 as headers encode it.
pub(crate) fn holds_key(text: &str) -> bool {
    let text = text.to_lowercase();
    [KEY.to_lowercase().as_str(), "really-secret", "uksfmwlsznljcmv0"]
        .iter()
        .any(|needle| text.contains(needle))
}

/// The result of a command.
pub(crate) struct Ended {
    /// `None` if it timed out and was killed.
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) said: String,
}

pub(crate) struct World {
    root: Home,
    real: FakeModel,
    thief: FakeModel,
    thief_tls: FakeModel,
}

impl World {
    pub(crate) fn new() -> Self {
        let root = crate::home();
        for folder in ["project", "home/.cognitive"] {
            fs::create_dir_all(root.path(folder)).unwrap();
        }
        root.write("home/.ssh/id", "private").write("out/empty", "");
        let good = good_answer(&json!({ "rationale": "One topic.", "summary": "Short." }));
        let fine = || vec![Act::stream(stream_reply(&good))];
        Self {
            root,
            real: FakeModel::script(fine()),
            thief: FakeModel::script(fine()),
            thief_tls: FakeModel::script_tls(fine(), SELF_SIGNED),
        }
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.root.path("project")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.path("home")
    }

    pub(crate) fn out(&self) -> PathBuf {
        self.root.path("out")
    }

    pub(crate) fn thief(&self) -> &FakeModel {
        &self.thief
    }

    pub(crate) fn real(&self) -> &FakeModel {
        &self.real
    }

    /// Returns all requests to the attacker.
    pub(crate) fn thief_heard(&self) -> Vec<String> {
        [self.thief.raw_requests(), self.thief_tls.raw_requests()].concat()
    }

    pub(crate) fn fill_in(&self, text: &str) -> String {
        let port = |stub: &FakeModel| stub.address.rsplit(':').next().unwrap().to_owned();
        text.replace("{THIEF}", &self.thief.url())
            .replace("{THIEF_PORT}", &port(&self.thief))
            .replace("{THIEF_TLS}", &format!("https://{}/v1", self.thief_tls.address))
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
            gather(&self.root.path(place), &mut found);
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
        for (path, text) in variant.files() {
            self.write(&path, &text);
        }
        if let Some(user) = &variant.user {
            fs::write(self.home().join(".cognitive/config.yaml"), self.fill_in(user)).unwrap();
        }
        variant.prepare(self);
        let args: Vec<String> = variant.args().iter().map(|word| self.fill_in(word)).collect();
        let env: Vec<(String, String)> =
            variant.env().into_iter().map(|(name, value)| (name, self.fill_in(&value))).collect();
        if args[0] == "serve" { self.serve(&args, &env) } else { self.cogn(&args, &env) }
    }

    pub(crate) fn command(&self, args: &[String], env: &[(String, String)]) -> Command {
        let words: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut command = self.root.command(&words, &[]);
        command.current_dir(self.project()).env("HOME", self.home());
        // Requests to other machines end at a port without a listener.
        command.env("HTTPS_PROXY", "http://127.0.0.1:9").env("PATH", "/usr/bin:/bin");
        command.env("SSL_CERT_FILE", SELF_SIGNED);
        let services = "OPENAI ANTHROPIC GEMINI DEEPSEEK DASHSCOPE MOONSHOT MINIMAX MISTRAL GROQ OPENROUTER LLAMACPP VLLM LMSTUDIO LLM";
        for service in services.split(' ') {
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
        match TestServer::try_spawn(&mut self.command(args, env)) {
            Ok(server) => {
                let body = r#"{"text": "A private sentence."}"#;
                let (_, answer) = server.ask("POST /api/run/summarizer", &[], body);
                Ended { code: Some(0), out: String::new(), said: server.said.clone() + &answer }
            }
            Err(ended) => Ended { code: ended.code, out: String::new(), said: ended.err },
        }
    }
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
