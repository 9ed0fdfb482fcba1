//! The server as a process under load: the resources that a hostile client can take, and the startup messages about
//! limits, keys and origins. `growth` measures what large replies and schemas cost. A binary of its own, because other tests that run
//! at the same time would be measured too.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "in a test, a panic is the report")]

mod growth;
#[expect(dead_code, reason = "benchmarks use the rest of it")]
mod process;

use cognitive_testkit::PATIENCE;
use process::{LimitedServer, command, head, hostile, project};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Starts a server without a model.
fn started(limit: &str, args: &[&str]) -> LimitedServer {
    let args: Vec<&str> = args.iter().copied().chain(["--base-url", "http://127.0.0.1:9/v1"]).collect();
    LimitedServer::start(project(), limit, &args)
}

// One body of 39 MiB for a module with media used to allocate gigabytes and keep them.
#[test]
fn a_hostile_body_takes_no_more_than_itself_and_gives_it_back() {
    let server = started("", &[]);
    let (status, _) = server.ask("POST", "/api/run/image-analyzer", br#"{"images": 1}"#);
    assert_eq!(status, 400);
    let start = server.memory("VmRSS");
    for piece in ["{\"\":0},", "0,", "\"\","] {
        let (status, body) = server.ask("POST", "/api/run/image-analyzer", &hostile(piece, 39 << 20));
        assert_eq!(status, 413, "{piece}: {body:.300}");
        assert!(body.contains("E1005"), "{body}");
    }
    let most = server.memory("VmHWM") - start;
    assert!(most < 160 << 20, "{} MB at most", most >> 20);
    let after = server.settled(start + (50 << 20), PATIENCE).saturating_sub(start);
    assert!(after <= 50 << 20, "{} MB stayed", after >> 20);
}

// Connections wait in a queue of the maximum system length. The server is stopped, so that it accepts none.
#[test]
fn a_burst_of_connections_waits_in_the_queue() {
    let longest: usize =
        std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap().trim().parse().unwrap();
    let burst = 400.min(longest - 28);
    let server = started("", &[]);
    assert_eq!(server.ask("GET", "/ready", b"").0, 200);
    let signal = |name: &str| {
        let sent = Command::new("/bin/sh").args(["-c", &format!("kill -{name} {}", server.id())]).status();
        assert!(sent.unwrap().success());
    };
    signal("STOP");
    let address: SocketAddr = server.address.parse().unwrap();
    let connect = |_| TcpStream::connect_timeout(&address, PATIENCE).ok();
    let connected: Vec<_> = (0..burst).map_while(connect).collect();
    signal("CONT");
    assert_eq!(connected.len(), burst, "the next one waits");
}

// With few open files, a client is either served or refused; none waits for others to disconnect.
#[test]
fn connections_fit_the_limit_of_open_files() {
    let server = started("-n 256", &[]);
    assert!(server.said.contains("allows 96 connections at once"), "{}", server.said);
    let idle: Vec<TcpStream> = (0..300).map(|_| server.connect()).collect();
    let mut last = server.connect();
    last.set_read_timeout(Some(PATIENCE)).unwrap();
    // Whether it is answered or closed at once depends on who came first; it hears something either way.
    let _ = last.write_all(head("GET", "/ready", "connection: close\r\n", 0).as_bytes());
    let heard = last.read_to_end(&mut Vec::new());
    assert!(!heard.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock), "it still waits");
    let is_open = |stream: &&TcpStream| {
        stream.set_nonblocking(true).unwrap();
        stream.peek(&mut [0]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    };
    assert!(idle.iter().any(|stream| is_open(&stream)), "it waited until the others had to go");
}

// Origins that could never match, or would allow every sandboxed page, are refused at startup.
#[test]
fn an_origin_that_cannot_be_meant_stops_the_start() {
    for (origin, hint) in [
        ("*", "Name each origin"),
        ("null", "from a distinct origin"),
        ("app.example", "Write `https://app.example`"),
        ("https://app.example/page", "Write `https://app.example`"),
    ] {
        let dir = project();
        let mut refused = command(dir.path(), "", &["--cors", origin]);
        let mut refused = refused.spawn().unwrap();
        let mut said = String::new();
        let mut lines = BufReader::new(refused.stderr.take().unwrap());
        while lines.read_line(&mut said).unwrap() > 0 && !said.contains("listening") {}
        // A server that listens would never exit.
        let _ = refused.kill();
        assert!(said.contains(hint), "{origin}: {said}");
        assert!(!refused.wait().unwrap().success());
    }
    let server = started("", &["--cors", "HTTPS://App.Example/"]);
    let mut stream = server.connect();
    let request = head("GET", "/api/modules", "connection: close\r\norigin: https://app.example\r\n", 0);
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("access-control-allow-origin: https://app.example\r\n"), "{answer:.600}");
}

// S-19: a warning names a key file that other users can read.
#[test]
fn a_file_of_keys_that_others_can_read_is_named() {
    for (mode, warned) in [(0o644, true), (0o640, true), (0o600, false), (0o400, false)] {
        let dir = project();
        let keys = dir.path().join("keys");
        std::fs::write(&keys, "anna 0123456789abcdef\n").unwrap();
        std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(mode)).unwrap();
        let keys = keys.to_str().unwrap().to_owned();
        let server = LimitedServer::start(dir, "", &["--keys", &keys]);
        assert_eq!(
            server.said.contains("other users of this machine can read the keys"),
            warned,
            "{mode:o}: {}",
            server.said
        );
        assert_eq!(server.said.contains(&format!("chmod 600 {keys}")), warned);
    }
}
