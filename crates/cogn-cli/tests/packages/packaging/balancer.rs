//! The load balancer of `packaging/compose` in a real nginx: a browser sticks to one server, programs use all of them,
//! a stopped server is skipped, a started run is never retried on another server, and chunks are not buffered.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use cognitive_testkit::{Act, FakeModel, SilentAddress, Then, piece, port_to_name};
use tempfile::TempDir;

use super::nginx::{Started, no_curl, no_nginx, serve, start_nginx};
use super::{good, read};

/// nginx with the shipped configuration, in front of these three addresses.
struct Balancer {
    base: String,
    _folder: TempDir,
    _nginx: Started,
}

impl Balancer {
    fn before(addresses: [&str; 3]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listen = format!("127.0.0.1:{}", port_to_name());
        let mut site =
            read("packaging/compose/balancer.conf").replace("listen 8080", &format!("listen {listen}"));
        for (index, address) in addresses.iter().enumerate() {
            // Names with `resolve` need a name server.
            site = site.replace(&format!("cogn-{}:8000 resolve", index + 1), address);
        }
        assert!(!site.contains(":8000"), "{site}");
        let nginx = start_nginx(folder.path(), &site);
        Self { base: format!("http://{listen}"), _folder: folder, _nginx: nginx }
    }

    fn curl(&self, path: &str, words: &[&str]) -> Command {
        let mut curl = Command::new("curl");
        curl.args(["-sN", "--noproxy", "*"]).args(words).arg(format!("{}{path}", self.base));
        curl
    }
}

/// A server that answers with its number, or disconnects after reading a request. Counts its requests.
struct Numbered {
    address: String,
    asked: Arc<AtomicUsize>,
}

impl Numbered {
    fn start(answer: Option<&'static str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, asked) = (listener.local_addr().unwrap().to_string(), Arc::new(AtomicUsize::new(0)));
        let count = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let count = Arc::clone(&count);
                thread::spawn(move || answer_all(&stream.unwrap(), answer, &count));
            }
        });
        Self { address, asked }
    }
}

/// Answers requests; bodies are not read.
fn answer_all(mut stream: &TcpStream, answer: Option<&str>, count: &AtomicUsize) {
    for line in BufReader::new(stream).lines() {
        if !line.is_ok_and(|line| line.is_empty()) {
            continue;
        }
        count.fetch_add(1, Ordering::SeqCst);
        let Some(answer) = answer else { return };
        let _ = write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{answer}");
    }
}

#[test]
fn a_browser_stays_with_its_server_and_programs_go_to_all() {
    if no_nginx() || no_curl() {
        return;
    }
    let servers = [Some("1"), Some("2"), Some("3")].map(Numbered::start);
    let balancer = Balancer::before(servers.each_ref().map(|server| server.address.as_str()));
    let programs: BTreeSet<String> = (0..60).map(|_| good(&mut balancer.curl("/health", &[]))).collect();
    assert_eq!(programs.len(), 3, "{programs:?}");
    for _ in 0..8 {
        let first = good(&mut balancer.curl("/", &["-i", "-H", "accept: text/html"]));
        let cookie = first.lines().find_map(|line| line.strip_prefix("Set-Cookie: ")).unwrap();
        let place = cookie.split(';').next().unwrap().to_owned();
        let number = first.chars().last().unwrap().to_string();
        for _ in 0..4 {
            let again = ["-i", "-H", "accept: text/html", "-H", &format!("cookie: {place}")];
            let answer = good(&mut balancer.curl("/v1/session", &again));
            assert!(answer.ends_with(&number) && !answer.contains("Set-Cookie"), "{answer}");
        }
    }
    let program = good(&mut balancer.curl("/health", &["-i", "-H", "accept: application/json"]));
    assert!(!program.contains("Set-Cookie"), "{program}");
}

#[test]
fn a_server_that_is_gone_is_passed_over_and_a_run_is_not_begun_twice() {
    if no_nginx() || no_curl() {
        return;
    }
    let silent = SilentAddress::take();
    let gone = silent.address().to_string();
    let (good_one, hangs_up) = (Numbered::start(Some("1")), Numbered::start(None));
    let balancer = Balancer::before([&good_one.address, &gone, &gone]);
    for _ in 0..20 {
        assert_eq!(good(&mut balancer.curl("/api/run/x", &["-d", "{}"])), "1");
    }
    // It fails while it handles the request: the client gets an error, and no other server is tried.
    let balancer = Balancer::before([&good_one.address, &hangs_up.address, &good_one.address]);
    let before = good_one.asked.load(Ordering::SeqCst);
    let answers = (0..60).map(|_| {
        good(&mut balancer.curl("/api/run/x", &["-o", "/dev/null", "-w", "%{http_code}", "-d", "{}"]))
    });
    let answered: Vec<String> = answers.collect();
    let refused = answered.iter().filter(|status| *status == "502").count();
    assert!(refused > 0 && refused == hangs_up.asked.load(Ordering::SeqCst), "{answered:?}");
    assert_eq!(good_one.asked.load(Ordering::SeqCst) - before, 60 - refused);
}

#[test]
fn a_chunk_passes_the_balancer_while_the_model_is_still_at_work() {
    if no_nginx() || no_curl() {
        return;
    }
    let key = "0123456789abcdef";
    let homes = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let beginning = piece(r#"{"ok": true, "data": {"rationale": "It begins, and "#, None);
    let model = FakeModel::script(vec![Act::stream(beginning).then(Then::Silence)]);
    let servers = homes.each_ref().map(|home| serve(home.path(), &model, Some(key)));
    let balancer = Balancer::before(servers.each_ref().map(|(_, address)| address.as_str()));
    let authorization = format!("authorization: Bearer {key}");
    let words =
        ["-H", "content-type: application/json", "-H", "accept: text/event-stream", "-H", &authorization];
    let mut curl = balancer.curl("/api/run/summarizer", &words);
    curl.args(["-d", r#"{"text": "Snow fell all night."}"#]).stdout(Stdio::piped());
    let mut stream = Started::new(curl.spawn().unwrap());
    let lines = BufReader::new(stream.child.stdout.take().unwrap()).lines();
    let delta = lines.map(Result::unwrap).find(|line| line.contains("It begins"));
    assert!(delta.is_some_and(|line| line.starts_with("data: ")), "the model has said it, and waits");
}
