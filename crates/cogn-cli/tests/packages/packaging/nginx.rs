//! `cogn serve` behind a real nginx with the shipped configuration: TLS, host names, unbuffered streams, and WebSocket.

use std::fs;
use std::io::{BufRead as _, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use cognitive_testkit::{Act, FakeModel, Lack, SELF_SIGNED, Then, piece, port_to_name, skip};
use tempfile::TempDir;

use super::{at_home, good, read};

/// The key that clients send to the server.
const KEY: &str = "0123456789abcdef";

/// A process that is killed when this value is dropped. Its stderr stays open until then: nginx would exit without it.
pub(crate) struct Started {
    pub(crate) child: Child,
    _said: Option<Lines<BufReader<ChildStderr>>>,
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A model that starts an answer and stalls, a server that calls it, and nginx in front.
struct Site {
    base: String,
    _home: TempDir,
    _service: FakeModel,
    _server: Started,
    _nginx: Started,
}

impl Started {
    /// Wraps a process without output.
    pub(crate) fn new(child: Child) -> Self {
        Self { child, _said: None }
    }

    /// Starts a program and returns the first line of stderr with this word.
    fn until(command: &mut Command, word: &str) -> (Self, String) {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = lines.by_ref().map(Result::unwrap).find(|line| line.contains(word));
        (Self { child, _said: Some(lines) }, line.unwrap_or_else(|| panic!("no {word}")))
    }
}

pub(crate) fn serve(home: &Path, service: &FakeModel, key: Option<&str>) -> (Started, String) {
    let mut command = at_home(env!("CARGO_BIN_EXE_cogn"), home);
    command.args([
        "serve",
        "--port",
        "0",
        "--quiet",
        "--rate",
        "0",
        "--provider",
        "openai",
        "--model",
        "stub",
    ]);
    command.args(["--base-url", &service.url()]).env("OPENAI_API_KEY", "sk-test");
    if let Some(key) = key {
        command.env("COGNITIVE_API_KEY", key);
    }
    let (server, line) = Started::until(&mut command, "listening");
    let address = line.split("http://").nth(1).unwrap().split(',').next().unwrap().trim().to_owned();
    (server, address)
}

/// Writes the shipped configuration, with addresses and a certificate of this test.
fn configure(folder: &Path, upstream: &str, listen: &str) {
    let shipped = read("packaging/nginx/cogn.conf");
    let site = shipped
        .replace("127.0.0.1:8000", upstream)
        .replace("listen 443", &format!("listen {listen}"))
        .replace("/etc/ssl/cogn/fullchain.pem", SELF_SIGNED)
        .replace("/etc/ssl/cogn/privkey.pem", SELF_SIGNED);
    assert!(!site.contains("/etc/ssl/cogn"), "{site}");
    write_main(folder, &site);
}

/// Writes the main configuration of nginx, around a site.
fn write_main(folder: &Path, site: &str) {
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {}/{kind};\n", folder.display()))
        .concat();
    let main = format!(
        "daemon off;\nmaster_process off;\npid {0}/pid;\nerror_log stderr notice;\nevents {{}}\nhttp {{\naccess_log off;\n{temporary}{site}}}\n",
        folder.display()
    );
    fs::write(folder.join("nginx.conf"), main).unwrap();
}

pub(crate) fn no_nginx() -> bool {
    let missing = Command::new("nginx").arg("-v").stderr(Stdio::null()).status().is_err();
    if missing {
        skip(Lack::Nginx);
    }
    missing
}

/// Starts nginx with a site.
pub(crate) fn start_nginx(folder: &Path, site: &str) -> Started {
    write_main(folder, site);
    started(folder)
}

fn started(folder: &Path) -> Started {
    let mut nginx = Command::new("nginx");
    nginx.arg("-c").arg(folder.join("nginx.conf")).arg("-p").arg(folder);
    Started::until(&mut nginx, "getrlimit").0
}

impl Site {
    fn start(key: Option<&str>) -> Option<Self> {
        if no_nginx() {
            return None;
        }
        let home = tempfile::tempdir().unwrap();
        let beginning = piece(r#"{"ok": true, "data": {"rationale": "It begins, and "#, None);
        let service = FakeModel::script(vec![Act::stream(beginning).then(Then::Silence)]);
        let (server, upstream) = serve(home.path(), &service, key);
        let listen = format!("127.0.0.1:{}", port_to_name());
        configure(home.path(), &upstream, &listen);
        let nginx = started(home.path());
        Some(Self {
            base: format!("https://{listen}"),
            _home: home,
            _service: service,
            _server: server,
            _nginx: nginx,
        })
    }

    /// Prepares a request with the host name of the site. Its certificate is self-signed.
    fn curl(&self, path: &str) -> Command {
        let mut curl = Command::new("curl");
        curl.args(["-skN", "--noproxy", "*", "-H", "host: cogn.example"]).arg(format!("{}{path}", self.base));
        curl
    }
}

pub(crate) fn no_curl() -> bool {
    let missing = Command::new("curl").arg("--version").stdout(Stdio::null()).status().is_err();
    if missing {
        skip(Lack::Curl);
    }
    missing
}

#[test]
fn a_chunk_passes_nginx_while_the_model_is_still_at_work() {
    if no_curl() {
        return;
    }
    let Some(site) = Site::start(Some(KEY)) else { return };
    assert_eq!(good(&mut site.curl("/ready")), r#"{"status":"ready"}"#);
    let mut curl = site.curl("/api/run/summarizer");
    curl.args(["-H", "content-type: application/json", "-H", "accept: text/event-stream"]);
    curl.args(["-H", &format!("authorization: Bearer {KEY}"), "-d", r#"{"text": "Snow fell all night."}"#]);
    let mut stream = Started::new(curl.stdout(Stdio::piped()).spawn().unwrap());
    let lines = BufReader::new(stream.child.stdout.take().unwrap()).lines();
    let delta = lines.map(Result::unwrap).find(|line| line.contains("It begins"));
    assert!(delta.is_some_and(|line| line.starts_with("data: ")), "the model has said it, and waits");
}

#[test]
fn a_websocket_passes_nginx() {
    if no_curl() {
        return;
    }
    let Some(site) = Site::start(Some(KEY)) else { return };
    let mut curl = site.curl("/ws");
    curl.args(["--http1.1", "-i", "-H", &format!("authorization: Bearer {KEY}")]);
    curl.args(["-H", "connection: Upgrade", "-H", "upgrade: websocket", "-H", "sec-websocket-version: 13"]);
    curl.args(["-H", "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=="]);
    let mut socket = Started::new(curl.stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(socket.child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "HTTP/1.1 101 Switching Protocols");
}

// The documentation states that a server without keys answers only under the names of this machine.
#[test]
fn a_site_without_keys_is_refused_with_a_reason() {
    if no_curl() {
        return;
    }
    let Some(site) = Site::start(None) else { return };
    let refused = good(site.curl("/api/modules").args(["-w", "\n%{http_code}"]));
    assert!(refused.ends_with("\n403") && refused.contains("E4007"), "{refused}");
}
