//! Attempts to reach internal addresses by URL, against listeners that record connections. Only the guard can stop
//! them: `http` and the port of the listeners are allowed.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use cognitive_contract::failure::Failure;
use cognitive_contract::media::UrlFetch;
use cognitive_contract::ports::PortFuture;
use cognitive_net::fetch::{Fetcher, Lookup, Policy, check_url};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{Reply, Server, run};

/// A resolver with fixed addresses that records its queries.
#[derive(Default)]
pub(crate) struct Names {
    known: Mutex<HashMap<String, Vec<IpAddr>>>,
    pub(crate) asked: Mutex<Vec<String>>,
}

impl Names {
    pub(crate) fn set(&self, name: &str, addresses: &[impl AsRef<str>]) {
        let addresses = addresses.iter().map(|address| address.as_ref().parse().unwrap()).collect();
        self.known.lock().unwrap().insert(name.to_owned(), addresses);
    }

    fn addresses(&self, name: &str) -> Vec<IpAddr> {
        let known = self.known.lock().unwrap();
        known.get(name).or_else(|| known.get("*")).cloned().unwrap_or_default()
    }
}

impl Lookup for Names {
    fn lookup(&self, host: String) -> PortFuture<'static, io::Result<Vec<IpAddr>>> {
        let found = self.addresses(&host);
        self.asked.lock().unwrap().push(host);
        Box::pin(async { Ok(found) })
    }
}

/// Returns the error of a failure, as a caller sees it.
pub(crate) fn error_of(failure: Failure) -> Value {
    serde_json::to_value(failure.into_envelope()).unwrap()["error"].take()
}

/// Listens on every IPv4 address of this machine, including 127.0.0.0/8, and on `::1`, all on one port.
struct Trap {
    port: u16,
    v6: bool,
    caught: Arc<AtomicUsize>,
}

impl Trap {
    async fn set() -> Self {
        let v4 = TcpListener::bind("0.0.0.0:0").await.unwrap();
        let port = v4.local_addr().unwrap().port();
        // Without IPv6 on this machine, there is no IPv6 listener to reach.
        let v6 = TcpListener::bind(("::1", port)).await.ok();
        let (caught, has_v6) = (Arc::new(AtomicUsize::new(0)), v6.is_some());
        for listener in [Some(v4), v6].into_iter().flatten() {
            let caught = Arc::clone(&caught);
            tokio::spawn(async move {
                while let Ok((mut stream, _)) = listener.accept().await {
                    caught.fetch_add(1, Ordering::SeqCst);
                    tokio::spawn(async move {
                        let _ = stream.read(&mut [0; 4096]).await;
                        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\ninside").await;
                    });
                }
            });
        }
        Self { port, v6: has_v6, caught }
    }

    /// Returns the number of connections. Connections are accepted in order, so the test's own final connections show
    /// that none is pending.
    async fn caught(&self) -> usize {
        let hosts: &[&str] = if self.v6 { &["127.0.0.1", "::1"] } else { &["127.0.0.1"] };
        for host in hosts {
            let mut own = TcpStream::connect((*host, self.port)).await.unwrap();
            own.write_all(b"x").await.unwrap();
            own.read_exact(&mut [0; 1]).await.unwrap();
        }
        self.caught.load(Ordering::SeqCst) - hosts.len()
    }

    fn policy(&self) -> Policy {
        Policy::default().with_http().with_ports([self.port])
    }

    fn url(&self, template: &str) -> String {
        template.replace("PORT", &self.port.to_string())
    }
}

/// A list of `ssrf.txt`. Characters that an editor would not show are words there.
fn listed(list: &str) -> Vec<String> {
    let lines = include_str!("ssrf.txt").lines().skip_while(|line| !line.starts_with(&format!("# {list}: ")));
    let marks = [
        ("<TAB>", "\t"),
        ("<LF>", "\n"),
        ("<NUL>", "\0"),
        ("<SHY>", "\u{ad}"),
        ("<SP>", " "),
        ("<EMPTY>", ""),
    ];
    let plain =
        |line: &str| marks.iter().fold(line.to_owned(), |line, (mark, text)| line.replace(mark, text));
    lines.skip(1).take_while(|line| !line.is_empty()).map(plain).collect()
}

/// Returns the reason why a URL was not fetched.
async fn refused(fetcher: &Fetcher, url: &str) -> String {
    let outcome = fetcher.fetch(url, 1_000).await;
    let error = error_of(outcome.err().unwrap_or_else(|| panic!("{url:?} was fetched")));
    assert_eq!(error["code"], "E1012", "{url:?}");
    error["details"]["reason"].as_str().unwrap().to_owned()
}

/// Returns whether a rule refused the URL, as opposed to a failed attempt.
fn is_rule(reason: &str) -> bool {
    matches!(reason, "blocked_address" | "blocked_scheme" | "blocked_port" | "invalid_url")
}

// SEC-001, SEC-011: none of them gets a connection.
#[test]
fn sec_001_nothing_inside_is_reached_however_it_is_spelled() {
    run(async {
        let trap = Trap::set().await;
        let literals = listed("literals").into_iter().map(|host| format!("{host} 127.0.0.1"));
        let answers = literals.chain(listed("answers")).map(|line| {
            let mut words = line.split(' ').map(str::to_owned);
            (format!("http://{}:PORT/x.png", words.next().unwrap()), words.collect::<Vec<_>>())
        });
        let spellings = listed("spellings").into_iter().map(|url| (url, vec!["127.0.0.1".to_owned()]));
        let all: Vec<(String, Vec<String>)> = answers.chain(spellings).collect();
        assert!(all.len() >= 150, "{}", all.len());
        let names = Arc::new(Names::default());
        let fetcher = Fetcher::new(trap.policy()).with_lookup(Arc::clone(&names) as Arc<dyn Lookup>);
        for (template, answers) in all {
            names.set("*", &answers);
            let reason = refused(&fetcher, &trap.url(&template)).await;
            assert!(is_rule(&reason), "{template:?} {answers:?}: {reason}");
        }
        assert_eq!(trap.caught().await, 0);
    });
}

// The control: only the guard stops these requests.
#[test]
fn sec_001_the_same_listeners_are_reached_by_an_operator_who_trusts_them() {
    run(async {
        let trap = Trap::set().await;
        let names = Arc::new(Names::default());
        names.set("media.example", &["127.9.9.9"]);
        for origin in ["http://127.0.0.1:PORT", "http://127.1.2.3:PORT", "http://media.example:PORT"] {
            let policy = Policy::default().with_trusted_origin(&trap.url(origin)).unwrap();
            let fetcher = Fetcher::new(policy).with_lookup(Arc::clone(&names) as Arc<dyn Lookup>);
            let loaded = fetcher.fetch(&trap.url(&format!("{origin}/x.png")), 1_000).await.unwrap();
            assert_eq!(loaded.bytes, "inside");
        }
        assert_eq!(trap.caught().await, 3);
    });
}

// SEC-011: every redirect is checked like a new URL.
#[test]
fn sec_011_no_redirect_leads_inside() {
    run(async {
        let trap = Trap::set().await;
        let names = Arc::new(Names::default());
        names.set("media.example", &["127.0.0.1"]);
        names.set("intern.example", &["127.0.0.1"]);
        names.set("mixed.example", &["93.184.216.34", "127.0.0.1"]);
        // Directly, and after two harmless redirects.
        let places = listed("places");
        let chains: Vec<Vec<&str>> =
            places.iter().flat_map(|place| [vec![place.as_str()], vec!["/next", "/next", place]]).collect();
        let statuses = ["301 m", "302 f", "303 s", "307 t", "308 p"].into_iter().cycle();
        let places = chains.iter().flatten().zip(statuses);
        let script = places
            .map(|(place, status)| Reply::new(status, &format!("location: {}", trap.url(place)), "").act());
        let server = Server::start(script.collect()).await;
        let origin = server.url.replace("127.0.0.1", "media.example");
        let policy = trap.policy().with_trusted_origin(&origin).unwrap();
        let fetcher = Fetcher::new(policy).with_lookup(names);
        for chain in &chains {
            let before = server.seen().len();
            let reason = refused(&fetcher, &format!("{origin}/a")).await;
            assert!(is_rule(&reason), "{chain:?}: {reason}");
            assert_eq!(server.seen().len() - before, chain.len(), "{chain:?}");
        }
        assert_eq!(trap.caught().await, 0);
    });
}

// SEC-011: a name that resolved to a public address earlier, but not when it is dialled.
#[test]
fn sec_011_rebinding_does_not_help() {
    run(async {
        let trap = Trap::set().await;
        let names = Arc::new(Names::default());
        let url = trap.url("http://rebind.example:PORT/x.png");
        names.set("rebind.example", &["93.184.216.34"]);
        assert!(check_url(&url, |host| names.addresses(host), &trap.policy()).is_ok());
        names.set("rebind.example", &["127.0.0.1"]);
        let fetcher = Fetcher::new(trap.policy()).with_lookup(Arc::clone(&names) as Arc<dyn Lookup>);
        let error = error_of(fetcher.fetch(&url, 1_000).await.unwrap_err());
        assert_eq!(error["details"]["reason"], "blocked_address");
        // There was no second lookup whose answer could have been dialled.
        assert_eq!(*names.asked.lock().unwrap(), ["rebind.example"]);
        assert_eq!(trap.caught().await, 0);
    });
}
