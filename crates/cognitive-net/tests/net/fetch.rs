//! Media by URL, from a server that the operator trusts: sizes, types, redirects and faults. Blocked addresses are
//! tested in `ssrf`.

use std::sync::Arc;

use cognitive_contract::media::{LoadedMedia, UrlFetch};
use cognitive_net::fetch::{Fetcher, Lookup, Policy};
use serde_json::Value;
use tokio::net::TcpListener;

use crate::ssrf::{Names, error_of};
use crate::support::{Act, Reply, Server, Then, run, run_without_waiting};

/// Creates a fetcher that trusts `media.example`, the name of the server.
fn fetcher(server: &Server) -> (Fetcher, String, Arc<Names>) {
    let origin = server.url.replace("127.0.0.1", "media.example");
    let names = Arc::new(Names::default());
    names.set("media.example", &["127.0.0.1"]);
    let policy = Policy::default().with_trusted_origin(&origin).unwrap();
    (Fetcher::new(policy).with_lookup(Arc::clone(&names) as Arc<dyn Lookup>), origin, names)
}

/// Fetches from a server with this script.
async fn fetch_from(script: Vec<Act>, largest: u64) -> (Result<LoadedMedia, Value>, Server) {
    let server = Server::start(script).await;
    let (fetcher, origin, _) = fetcher(&server);
    let outcome = fetcher.fetch(&format!("{origin}/a.png"), largest).await;
    (outcome.map_err(error_of), server)
}

fn fetch(script: Vec<Act>, largest: u64) -> Result<LoadedMedia, Value> {
    run(async { fetch_from(script, largest).await.0 })
}

fn png(body: &str) -> Reply {
    Reply::new("200 OK", "content-type: image/png", body)
}

fn reason(fetched: Result<LoadedMedia, Value>) -> String {
    let error = fetched.unwrap_err();
    assert_eq!(error["code"], "E1012", "{error}");
    error["details"]["reason"].as_str().unwrap().to_owned()
}

// MEDIA-007: the bytes, and the media type that the server names.
#[test]
fn media_007_bytes_and_their_type() {
    let loaded = fetch(vec![png("0123456789").cut(3).act()], 10).unwrap();
    assert_eq!((&loaded.bytes[..], loaded.media_type.as_deref()), (&b"0123456789"[..], Some("image/png")));
    let untyped = fetch(vec![Act::Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")], 10).unwrap();
    assert_eq!((&untyped.bytes[..], untyped.media_type), (&b"ok"[..], None));
}

// S-31: a request has no cookie, credentials, referrer or range.
#[test]
fn a_request_carries_nothing() {
    run(async {
        let cookie = "set-cookie: session=1; Path=/\nlocation: /b.png#part";
        let script = vec![Reply::new("302 Found", cookie, "").act(), png("x").act()];
        let (fetched, server) = fetch_from(script, 10).await;
        fetched.unwrap();
        let seen = server.seen();
        assert_eq!(seen[1].line, "GET /b.png HTTP/1.1");
        for request in seen {
            assert!(request.headers.contains("accept-encoding: identity"), "{}", request.headers);
            for name in ["cookie", "authorization", "referer", "proxy", "range"] {
                assert!(!request.headers.contains(name), "{}", request.headers);
            }
        }
    });
}

// MEDIA-007: credentials in the URL are used for its origin only.
#[test]
fn media_007_credentials_of_the_url_are_used_and_stay_there() {
    run(async {
        let other = Server::start(vec![png("x").act()]).await;
        let location = format!("location: {}/b", other.url.replace("127.0.0.1", "other.example"));
        let first = Server::start(vec![
            Reply::new("302 Found", "location: /a2", "").act(),
            Reply::new("302 Found", &location, "").act(),
        ]);
        let first = first.await;
        let (at, elsewhere) =
            (first.url.replace("127.0.0.1", "media.example"), &location["location: ".len()..]);
        let names = Arc::new(Names::default());
        names.set("*", &["127.0.0.1"]);
        let elsewhere = elsewhere.trim_end_matches("/b");
        let policy =
            Policy::default().with_trusted_origin(&at).unwrap().with_trusted_origin(elsewhere).unwrap();
        let fetcher = Fetcher::new(policy).with_lookup(names);
        let url = at.replace("http://", "http://me:pa55word@");
        fetcher.fetch(&format!("{url}/a?token=t0ken"), 10).await.unwrap();
        let [a, a2] = &first.seen()[..] else { panic!("two requests") };
        assert!(a.headers.contains("authorization: basic bwu6cge1nxdvcmq="), "{}", a.headers);
        assert!(a2.headers.contains("authorization: basic"), "the same place");
        let b = &other.seen()[0];
        assert!(!b.headers.contains("authorization") && !b.headers.contains("t0ken"), "{}", b.headers);
    });
}

// S-31: three redirects are followed and a fourth is not; each resolves the name again.
#[test]
fn three_redirects_and_no_more() {
    run(async {
        let on = || Reply::new("302 Found", "location: /next", "").act();
        let server = Server::start(vec![on(), on(), on(), png("x").act()]).await;
        let (fetcher, origin, names) = fetcher(&server);
        assert_eq!(fetcher.fetch(&origin, 10).await.unwrap().bytes, "x");
        assert_eq!(names.asked.lock().unwrap().len(), 4);
    });
    let on = || Reply::new("302 Found", "location: /next", "").act();
    assert_eq!(reason(fetch(vec![on(), on(), on(), on(), png("x").act()], 10)), "too_many_redirects");
}

// MEDIA-009: answers that are not the media item.
#[test]
fn media_009_answers_that_are_no_medium() {
    for (status, number) in [("404 Not Found", 404), ("500 Oops", 500), ("401 No", 401), ("206 Partial", 206)]
    {
        let error = fetch(vec![Reply::new(status, "", "sorry").act()], 10).unwrap_err();
        assert_eq!((&error["code"], &error["details"]["reason"]), (&"E1012".into(), &"http_status".into()));
        assert_eq!(error["details"]["status"], number);
    }
    assert_eq!(reason(fetch(vec![Reply::new("302 Found", "", "").act()], 10)), "http_status");
    assert_eq!(reason(fetch(vec![png("x").header("content-encoding: gzip").act()], 10)), "encoding");
    assert!(fetch(vec![png("x").header("content-encoding: identity").act()], 10).is_ok());
    assert_eq!(reason(fetch(vec![Act::Reset], 10)), "interrupted");
    assert_eq!(reason(fetch(vec![Act::Raw(b"nonsense\r\n\r\n")], 10)), "interrupted");
}

// MEDIA-009: an unreachable server.
#[test]
fn media_009_nobody_answers() {
    run(async {
        let server = Server::start(Vec::new()).await;
        let (fetcher, origin, names) = fetcher(&server);
        names.set("media.example", &[""; 0]);
        assert_eq!(reason(fetcher.fetch(&origin, 10).await.map_err(error_of)), "dns");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let policy = Policy::default().with_trusted_origin(&origin).unwrap();
        assert_eq!(reason(Fetcher::new(policy).fetch(&origin, 10).await.map_err(error_of)), "refused");
        assert_eq!(server.connections(), 0);
    });
}

// SEC-002: the announced length is checked before the body.
#[test]
fn sec_002_an_announced_length_is_enough() {
    let answer = b"HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: 11\r\n\r\n";
    let error = fetch(vec![Act::Raw(answer)], 10).unwrap_err();
    assert_eq!(error["code"], "E1011", "{error}");
}

// SEC-002, MEDIA-004: a body of exactly the limit passes, one byte more does not.
#[test]
fn sec_002_a_body_is_cut_off_at_the_limit() {
    assert_eq!(fetch(vec![png("0123456789").act()], 10).unwrap().bytes.len(), 10);
    assert_eq!(fetch(vec![png("0123456789x").cut(1).act()], 10).unwrap_err()["code"], "E1011");
}

// SEC-002: an endless body is aborted at the limit, and its connection is closed.
#[test]
fn sec_002_an_endless_body_is_left() {
    run(async {
        let (fetched, server) =
            fetch_from(vec![png(&"x".repeat(1_000)).then(Then::Repeat).act()], 100_000).await;
        assert_eq!(fetched.unwrap_err()["code"], "E1011");
        assert_eq!(server.connections(), 1);
    });
}

#[test]
fn lengths_that_do_not_hold() {
    let short = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nonly";
    assert_eq!(reason(fetch(vec![Act::Raw(short)], 10)), "interrupted");
    let long = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nonly this";
    assert_eq!(fetch(vec![Act::Raw(long)], 10).unwrap().bytes, "only");
    assert_eq!(reason(fetch(vec![png("half").then(Then::Reset).act()], 10)), "interrupted");
    let empty = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(fetch(vec![Act::Raw(empty)], 10).unwrap().bytes, "");
}

// S-04: fifteen seconds for the whole fetch, on a paused clock.
#[test]
fn s_04_silence_ends_in_time() {
    for script in [vec![Act::Stall], vec![png("half").then(Then::Stall).act()]] {
        let fetched = run_without_waiting(async { fetch_from(script, 10).await.0 });
        assert_eq!(reason(fetched), "timeout");
    }
}

// ERR-015: a URL may contain a password or a signature; no error repeats it.
#[test]
fn err_015_failures_repeat_nothing_of_the_url_but_its_host() {
    run(async {
        let server = Server::start(vec![Reply::new("404 Gone", "", "").act(), Act::Reset]).await;
        let (fetcher, origin, _) = fetcher(&server);
        let url = origin.replace("http://", "http://me:pa55word@") + "/s3cret?sig=s1gned";
        for _ in 0..2 {
            let error = error_of(fetcher.fetch(&url, 10).await.unwrap_err()).to_string();
            assert!(error.contains("media.example"), "{error}");
            for secret in ["pa55word", "s3cret", "s1gned"] {
                assert!(!error.contains(secret), "{error}");
            }
        }
    });
}
