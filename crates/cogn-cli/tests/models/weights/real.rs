//! A real file of half a gigabyte: from a local hub that disconnects once, through the hash check, to an answer under
//! its name. Skipped if the file is missing.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use serde_json::Value;

use super::support::{World, read_head};

const NAME: &str = "qwen2.5-coder-0.5b-instruct-q4_k_m";
const SHA256: &str = "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32";

/// The end of a connection of the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sends {
    /// Sends everything that was requested.
    All,
    /// Sends this number of bytes and stops.
    Only(u64),
    /// Sends everything, with a wrong last byte.
    AllButOne,
}

/// Starts a hub that has one file. Returns the requests.
fn hub(file: PathBuf, connections: Vec<Sends>) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serve = move || {
        let answer = |sends: Sends| {
            let (mut stream, _) = listener.accept().unwrap();
            let head = read_head(&mut stream);
            send(&mut stream, &file, &head, sends).unwrap();
            head
        };
        connections.into_iter().map(answer).collect()
    };
    (url, std::thread::spawn(serve))
}

fn send(stream: &mut TcpStream, file: &Path, head: &str, sends: Sends) -> io::Result<()> {
    let mut file = File::open(file)?;
    let length = file.metadata()?.len();
    let range = head.lines().find_map(|line| line.strip_prefix("range: bytes="));
    let from: u64 = range.map_or(0, |range| range.trim_end_matches('-').parse().unwrap());
    file.seek(SeekFrom::Start(from))?;
    let status = match range {
        Some(_) => format!("206 Partial Content\r\ncontent-range: bytes {from}-{}/{length}", length - 1),
        None => "200 OK".to_owned(),
    };
    let rest = length - from;
    write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {rest}\r\nconnection: close\r\n\r\n")?;
    let whole = match sends {
        Sends::All => rest,
        Sends::Only(bytes) => bytes,
        Sends::AllButOne => rest - 1,
    };
    io::copy(&mut file.take(whole), stream)?;
    if sends == Sends::AllButOne { stream.write_all(b"?") } else { Ok(()) }
}

fn left(world: &World) -> Vec<String> {
    let entries = fs::read_dir(world.cache().join("cogn/models")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| !name.contains(".lock")).collect()
}

#[cfg(feature = "local")]
#[test]
fn a_large_model_is_fetched_over_a_broken_connection_and_answers_by_its_name() {
    let Some(file) = cognitive_testkit::qwen() else { return };
    let world = World::new();
    let (url, asked) = hub(file, vec![Sends::Only(123_456_789), Sends::All]);
    let pulled = world.run(&["model", "pull", "qwen-0.5b", "--json"], &[("HF_ENDPOINT", &url)]);
    assert_eq!(pulled.code, 0, "{}", pulled.err);
    assert!(asked.join().unwrap()[1].contains("range: bytes=123456789-"));
    let row: Value = serde_json::from_str(&pulled.out).unwrap();
    assert_eq!((&row["verified"], &row["sha256"]), (&true.into(), &SHA256.into()), "{row}");
    // From here on no network is needed.
    let offline = [("COGN_OFFLINE", "1")];
    let words = ["run", "text-classifier", "--set", "text=What a wonderful day!", "--receipt"];
    for model in ["qwen-0.5b", "embedded/qwen2.5-coder-0.5b-instruct-q4_k_m"] {
        let answer = world.run(&[&words[..], &["--model", model]].concat(), &offline);
        let answer: Value = serde_json::from_str(&answer.out).unwrap();
        assert_eq!(
            (&answer["ok"], &answer["data"]["sentiment"]),
            (&true.into(), &"positive".into()),
            "{answer}"
        );
        assert_eq!(answer["meta"]["model"], format!("embedded/{NAME}"));
        assert_eq!(answer["meta"]["provenance"]["sha256"]["weights"], SHA256);
    }
    assert_eq!(world.run(&["model", "verify", "qwen-0.5b"], &[]).code, 0);
    assert_eq!(world.run(&["model", "rm", "qwen-0.5b"], &[]).code, 0);
    assert_eq!(left(&world), Vec::<String>::new());
}

#[test]
fn one_other_byte_in_half_a_gigabyte_is_another_file_and_nothing_is_kept() {
    let Some(file) = cognitive_testkit::qwen() else { return };
    let world = World::new();
    let (url, asked) = hub(file, vec![Sends::AllButOne]);
    let pulled = world.run(&["model", "pull", "qwen-0.5b"], &[("HF_ENDPOINT", &url)]);
    assert_eq!(pulled.code, 1);
    assert!(pulled.err.contains("not the expected file: its sha256 is "), "{}", pulled.err);
    assert_eq!(left(&world), Vec::<String>::new());
    asked.join().unwrap();
}
