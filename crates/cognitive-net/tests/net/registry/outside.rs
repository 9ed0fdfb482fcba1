//! The environment of the process: trusted certificates and proxies. Both come from variables, so each test starts
//! this binary again with its own variables, and `as_a_child` runs the requests there.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::{env, thread};

use cognitive_net::Secret;
use cognitive_net::registry::{Credentials, FileFetcher, OciClient};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};

use crate::registry::stub::{ann, digest, error_of, reason, run};

const JOB: &str = "COGNITIVE_NET_TEST_JOB";
const PLACE: &str = "COGNITIVE_NET_TEST_PLACE";
/// A certificate for 127.0.0.1, and its key.
const SELF_SIGNED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/net/registry/self-signed.pem");
/// The variables for proxies and certificates.
const VARIABLES: [&str; 10] = [
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// A threaded server, with or without TLS, that answers by the request line and records all requests.
struct Threaded {
    host: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Threaded {
    fn start(tls: bool, answer: impl Fn(&str, &str) -> String + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (own, kept, config) = (host.clone(), Arc::clone(&seen), tls.then(certified));
        thread::spawn(move || {
            while let Ok((mut tcp, _)) = listener.accept() {
                let talk = |stream: &mut dyn Duplex| -> std::io::Result<()> {
                    let (mut head, mut byte) = (String::new(), [0]);
                    while !head.ends_with("\r\n\r\n") && stream.read(&mut byte)? == 1 {
                        head.push(char::from(byte[0]));
                    }
                    kept.lock().unwrap().push(head.clone());
                    let line = head.lines().next().unwrap_or_default();
                    stream.write_all(answer(line, &own).as_bytes())?;
                    stream.flush()
                };
                // A client that does not trust the certificate disconnects.
                let _ = match &config {
                    Some(config) => {
                        let mut tls = ServerConnection::new(Arc::clone(config)).unwrap();
                        let talked = talk(&mut rustls::Stream::new(&mut tls, &mut tcp));
                        tls.send_close_notify();
                        talked.and_then(|()| tls.write_tls(&mut tcp).map(drop))
                    }
                    None => talk(&mut tcp),
                };
            }
        });
        Self { host, seen }
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

trait Duplex: Read + Write {}
impl<T: Read + Write> Duplex for T {}

fn certified() -> Arc<ServerConfig> {
    let chain: Vec<_> = CertificateDer::pem_file_iter(SELF_SIGNED).unwrap().map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(SELF_SIGNED).unwrap();
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    Arc::new(builder.with_single_cert(chain, key).unwrap())
}

fn answer(status: u16, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} x\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Runs a job in a process with exactly these variables of their kind.
fn child(job: &str, place: &str, variables: &[(&str, &str)]) {
    let mut command = Command::new(env::current_exe().unwrap());
    for name in VARIABLES {
        command.env_remove(name);
    }
    command
        .args(["--exact", "registry::outside::as_a_child", "--test-threads=1"])
        .env(JOB, job)
        .env(PLACE, place);
    let output = command.envs(variables.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// Does nothing, unless this process was started as a child.
#[test]
fn as_a_child() {
    let (Ok(job), Ok(place)) = (env::var(JOB), env::var(PLACE)) else { return };
    run(async {
        match job.as_str() {
            "trusting" => over_tls(&place).await,
            "doubting" => doubting(&place).await,
            "proxied" => proxied().await,
            "misled" => misled().await,
            other => panic!("{other}"),
        }
    });
}

// TLS, and redirects that would leave it.
#[test]
fn a_registry_behind_tls_is_not_left_for_an_open_connection() {
    let open = Threaded::start(false, |_, _| answer(200, "", "{}"));
    let open_host = open.host.clone();
    let registry = Threaded::start(true, move |line, own| {
        let elsewhere = |status| answer(status, &format!("location: http://{open_host}/x\r\n"), "");
        match line.split(' ').nth(1).unwrap_or_default() {
            "/v2/a/manifests/good" => answer(200, "", "{}"),
            "/v2/a/manifests/token" => {
                answer(401, &format!("www-authenticate: Bearer realm=\"http://{own}/token\"\r\n"), "")
            }
            path if path.ends_with("/uploads/") => elsewhere(202),
            _ if line.starts_with("HEAD") => answer(404, "", ""),
            _ => elsewhere(307),
        }
    });
    child("trusting", &format!("{} {}", registry.host, open.host), &[("SSL_CERT_FILE", SELF_SIGNED)]);
    assert!(open.seen().is_empty(), "{:?}", open.seen());
    assert!(registry.seen()[0].starts_with("GET /v2/a/manifests/good "));
    assert!(!registry.seen().iter().any(|asked| asked.contains("authorization")));
    let before = registry.seen().len();
    child("doubting", &registry.host, &[]);
    assert!(registry.seen()[before..].iter().all(String::is_empty), "nothing was asked");
}

async fn over_tls(place: &str) {
    let (host, open) = place.split_once(' ').unwrap();
    let client = OciClient::new(&format!("https://{host}"), Some(ann()), false).unwrap();
    assert_eq!(client.manifest("a", "good").await.unwrap().bytes, b"{}");
    // Not even a trusted origin is reached by leaving TLS.
    let client = client.with_trusted_origin(&format!("http://{open}")).unwrap();
    let blocked = ("E4007".to_owned(), "blocked_scheme".to_owned());
    assert_eq!(reason(client.manifest("a", "elsewhere").await), blocked);
    assert_eq!(reason(client.blob("a", &digest(b"{}"), 2).await), blocked);
    assert_eq!(reason(client.put_blob("a", b"{}").await), blocked);
    assert_eq!(reason(client.manifest("a", "token").await), blocked);
}

async fn doubting(host: &str) {
    let client = OciClient::new(&format!("https://{host}"), Some(ann()), false).unwrap();
    let error = error_of(client.manifest("a", "good").await);
    assert_eq!(error["details"]["reason"], "tls");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("its certificate is not signed by an authority that this machine trusts"),
        "{message}"
    );
    assert!(error["suggestion"].as_str().unwrap().contains("`SSL_CERT_FILE`"), "{error}");
}

// SEC-001: a proxy resolves names, and the URL itself is still checked.
#[test]
fn sec_001_a_proxy_is_used_and_not_asked_for_what_is_inside() {
    let inside =
        ["http://127.0.0.1:1/x", "https://169.254.169.254/x", "https://10.0.0.1/x", "https://localhost/x"];
    let proxy = Threaded::start(false, move |line, _| {
        let place = line.split(' ').nth(1).unwrap_or_default();
        match place.rsplit_once("/manifests/inside-") {
            Some((_, number)) => {
                answer(307, &format!("location: {}\r\n", inside[number.parse::<usize>().unwrap()]), "")
            }
            None => answer(200, "", "{}"),
        }
    });
    child("proxied", "", &[("HTTP_PROXY", &format!("http://{}", proxy.host)), ("HTTPS_PROXY", &proxy.host)]);
    let seen = proxy.seen();
    let lines: Vec<&str> = seen.iter().filter_map(|asked| asked.lines().next()).collect();
    let asked =
        |number: usize| format!("GET http://registry.example/v2/a/manifests/inside-{number} HTTP/1.1");
    let expected: Vec<String> = ["GET http://registry.example/v2/a/manifests/1.0 HTTP/1.1".to_owned()]
        .into_iter()
        .chain((0..4).map(asked))
        .chain(["GET http://files.example/x HTTP/1.1".to_owned()])
        .collect();
    assert_eq!(lines, expected);
}

async fn proxied() {
    let client = OciClient::new("registry.example", None, true).unwrap();
    assert_eq!(client.manifest("a", "1.0").await.unwrap().bytes, b"{}");
    for number in 0..4 {
        let (code, _) = reason(client.manifest("a", &format!("inside-{number}")).await);
        assert_eq!(code, "E4007", "{number}");
    }
    let files = FileFetcher::new(&["http://files.example".to_owned()]).unwrap();
    assert_eq!(files.get("http://files.example/x", 10).await.unwrap(), b"{}");
}

// A variable that names no proxy must not bypass the configured proxy.
#[test]
fn a_proxy_that_is_none_is_an_error() {
    child("misled", "", &[("HTTP_PROXY", "::::")]);
}

async fn misled() {
    let login = Credentials::basic("ann", Secret::new("pa55word").unwrap());
    let client = OciClient::new("registry.example", Some(login), true).unwrap();
    let failure = client.manifest("a", "1.0").await.unwrap_err();
    assert!(failure.message().contains("`HTTP_PROXY` is not the address of a proxy"), "{failure}");
}
