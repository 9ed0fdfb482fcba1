//! Downloads over HTTP: only missing bytes are requested, wrong content is refused, and interrupted downloads resume.

use std::io;
use std::sync::Arc;

use cognitive_net::{Download, DownloadError, FileSink};

use crate::support::{Act, NoPause, Reply, Server, Then, run};

const FILE: &str = "0123456789";

/// Stores bytes in memory, up to a limit that simulates a full disk.
struct Kept {
    bytes: Vec<u8>,
    room: usize,
}

impl Kept {
    fn with(bytes: &str) -> Self {
        Self { bytes: bytes.as_bytes().to_vec(), room: usize::MAX }
    }
}

impl FileSink for Kept {
    fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn restart(&mut self) -> io::Result<()> {
        self.bytes.clear();
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.bytes.len() + bytes.len() > self.room {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "no space left"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }
}

struct Outcome {
    result: Result<(), DownloadError>,
    kept: String,
    /// The range of each request.
    asked: Vec<Option<String>>,
    waits: Vec<u128>,
}

/// Downloads the file into a sink that holds `kept` already.
fn fetch(script: Vec<Act>, kept: Kept) -> Outcome {
    run(async {
        let server = Server::start(script).await;
        let (mut kept, pause) = (kept, Arc::new(NoPause::default()));
        let download =
            Download::new(format!("{}/file", server.url), FILE.len() as u64).with_pause(pause.clone());
        let result = download.fetch(&mut kept).await;
        let asked = server.seen().into_iter().map(|request| {
            request.headers.lines().find_map(|line| line.strip_prefix("range: ")).map(str::to_owned)
        });
        let kept = String::from_utf8(kept.bytes).unwrap();
        Outcome { result, kept, asked: asked.collect(), waits: pause.waits() }
    })
}

fn whole(body: &str) -> Reply {
    Reply::new("200 OK", "content-type: application/octet-stream", body)
}

fn part(body: &str, range: &str) -> Reply {
    Reply::new("206 Partial Content", &format!("content-range: bytes {range}"), body)
}

#[test]
fn a_file_arrives_whole() {
    let outcome = fetch(vec![whole(FILE).cut(3).act()], Kept::with(""));
    outcome.result.unwrap();
    assert_eq!((outcome.kept.as_str(), outcome.asked), (FILE, vec![None]));
}

#[test]
fn what_is_there_already_is_not_asked_for_again() {
    let outcome = fetch(vec![part("456789", "4-9/10").act()], Kept::with("0123"));
    outcome.result.unwrap();
    assert_eq!((outcome.kept.as_str(), outcome.asked), (FILE, vec![Some("bytes=4-".to_owned())]));
    let nothing = fetch(vec![], Kept::with(FILE));
    nothing.result.unwrap();
    assert!(nothing.asked.is_empty(), "a file that is whole needs no server");
}

#[test]
fn a_cut_connection_goes_on_where_it_stopped() {
    let script = vec![
        whole("012").then(Then::Reset).act(),
        part("345", "3-9/10").then(Then::Reset).act(),
        part("6789", "6-9/*").act(),
    ];
    let outcome = fetch(script, Kept::with(""));
    outcome.result.unwrap();
    assert_eq!(outcome.kept, FILE);
    assert_eq!(outcome.asked[1..], [Some("bytes=3-".to_owned()), Some("bytes=6-".to_owned())]);
}

#[test]
fn a_server_without_parts_sends_everything_again() {
    let script = vec![whole("01234").then(Then::Reset).act(), whole(FILE).act()];
    let outcome = fetch(script, Kept::with(""));
    outcome.result.unwrap();
    assert_eq!(outcome.kept, FILE, "nothing is there twice");
}

#[test]
fn a_part_that_was_not_asked_for_is_thrown_away() {
    for odd in [
        part("89", "8-9/10").act(),
        part("456789", "rubbish").act(),
        Reply::new("416 Range", "content-range: bytes */3", "").act(),
    ] {
        let outcome = fetch(vec![odd, whole(FILE).act()], Kept::with("0123"));
        outcome.result.unwrap();
        assert_eq!((outcome.kept.as_str(), outcome.asked.last().unwrap()), (FILE, &None));
    }
}

#[test]
fn a_file_of_another_length_is_refused() {
    let longer = Act::Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 98\r\nconnection: close\r\n\r\n0123");
    for (script, kept) in
        [(longer, ""), (whole("0123456789abc").act(), ""), (part("456789abc", "4-12/13").act(), "0123")]
    {
        let outcome = fetch(vec![script], Kept::with(kept));
        let error = outcome.result.unwrap_err();
        assert!(matches!(error, DownloadError::Length(..)), "{error}");
    }
}

#[test]
fn what_will_not_change_is_not_tried_again_and_what_may_pass_is_tried_twice() {
    let missing = fetch(vec![Reply::new("404 Not Found", "", "").act()], Kept::with(""));
    assert_eq!(missing.result.unwrap_err().to_string(), "127.0.0.1 answered 404");
    assert!(missing.waits.is_empty());
    let busy = || Reply::new("503 Busy", "", "").act();
    let outcome = fetch(vec![busy(), busy(), whole(FILE).act()], Kept::with(""));
    outcome.result.unwrap();
    assert_eq!(outcome.waits, [500, 1_000]);
    let outcome = fetch(vec![busy(), busy(), busy()], Kept::with(""));
    assert_eq!(outcome.result.unwrap_err().to_string(), "127.0.0.1 answered 503");
    let cut = || whole("01234").then(Then::Reset).act();
    let outcome = fetch(vec![cut(), cut(), cut(), cut()], Kept::with(""));
    assert!(matches!(outcome.result.unwrap_err(), DownloadError::Lost(_)));
    assert_eq!(outcome.asked.len(), 3, "a server that always stops at the same place is given up");
}

#[test]
fn a_redirect_leads_to_another_place_and_keeps_the_range() {
    run(async {
        let copy = Server::start(vec![part("456789", "4-9/10").act()]).await;
        let location = format!("location: {}/elsewhere", copy.url);
        let first = Server::start(vec![Reply::new("302 Found", &location, "").act()]).await;
        let mut kept = Kept::with("0123");
        Download::new(format!("{}/file", first.url), 10).fetch(&mut kept).await.unwrap();
        assert_eq!(kept.bytes, FILE.as_bytes());
        assert!(copy.seen()[0].headers.contains("range: bytes=4-"));
    });
}

#[test]
fn a_circle_of_redirects_ends() {
    run(async {
        let round = || Reply::new("302 Found", "location: /file", "").act();
        let server = Server::start((0..20).map(|_| round()).collect()).await;
        let mut kept = Kept::with("");
        let download = Download::new(format!("{}/file", server.url), 10);
        let error = download.fetch(&mut kept).await.unwrap_err().to_string();
        assert!(error.ends_with("it was redirected too often"), "{error}");
    });
}

#[test]
fn a_full_disk_ends_it_and_leaves_what_was_there() {
    let kept = Kept { bytes: Vec::new(), room: 7 };
    let outcome = fetch(vec![whole(FILE).cut(2).act()], kept);
    let error = outcome.result.unwrap_err();
    assert_eq!(error.to_string(), "the file cannot be written: no space left");
    assert_eq!((outcome.kept.as_str(), outcome.waits.len()), ("012345", 0));
}

#[test]
fn an_address_has_to_be_one_and_somebody_has_to_be_there() {
    run(async {
        for address in ["", "file:///etc/passwd", "example"] {
            let error = Download::new(address, 10).fetch(&mut Kept::with("")).await.unwrap_err();
            assert!(matches!(error, DownloadError::Address), "{address}: {error}");
        }
        // A privileged port that has been unused for decades.
        let error = Download::new("http://127.0.0.1:1/file", 10)
            .fetch(&mut Kept::with(""))
            .await
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("127.0.0.1 cannot be reached: "), "{error}");
    });
}
