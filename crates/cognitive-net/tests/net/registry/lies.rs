//! A registry that sends wrong content: other bytes, too many, too few, or endless. None of it is returned.

use crate::registry::stub::{Answer, Ending, REPOSITORY, Stub, client, digest, error_of, reason, run};

const BYTES: &[u8] = b"the bytes of a layer";

/// Requests a blob of `BYTES` that gets this answer.
async fn blob(answer: Answer) -> ((String, String), usize) {
    let stub = Stub::start(move |_| answer.clone()).await;
    let outcome = client(&stub, None).blob(REPOSITORY, &digest(BYTES), BYTES.len() as u64).await;
    (reason(outcome), stub.seen().len())
}

#[test]
fn a_blob_is_what_was_asked_for_or_nothing() {
    run(async {
        let ok = || Answer::new(200);
        let longer = [BYTES, b"!"].concat();
        for (answer, code, expected, asked) in [
            // The right length with other bytes.
            (ok().body(&b"the bytes of a lawyer"[..BYTES.len()]), "E1020", "digest", 1),
            // Too long: announced, unannounced, endless, and endless with a huge announced length.
            (ok().body(longer.clone()), "E1020", "length", 1),
            (ok().body(longer.clone()).unannounced(), "E1020", "length", 1),
            (ok().body(BYTES).unannounced().then(Ending::Endless), "E1020", "length", 1),
            (ok().body(BYTES).announcing(usize::MAX / 2).then(Ending::Endless), "E1020", "length", 1),
            // Too short, as a complete answer.
            (ok().body(&BYTES[1..]), "E1020", "length", 1),
            (ok().body(&BYTES[1..]).unannounced(), "E1020", "length", 1),
            (ok(), "E1020", "length", 1),
            // Too short because the connection broke: a retry may help.
            (ok().body(&BYTES[1..]).announcing(BYTES.len()), "E4001", "interrupted", 3),
            // Compressed although no compression was requested; partial although the whole was requested.
            (ok().body(BYTES).header("content-encoding", "gzip"), "E4001", "encoding", 1),
            (Answer::new(206).body(BYTES), "E4001", "http_status", 1),
        ] {
            let shown = format!("{answer:?}");
            let ((found_code, found), seen) = blob(answer).await;
            assert_eq!((found_code.as_str(), found.as_str(), seen), (code, expected, asked), "{shown}");
        }
    });
}

#[test]
fn a_length_that_no_memory_holds_is_not_asked_for() {
    run(async {
        let stub = Stub::trap().await;
        let client = client(&stub, None);
        let outcome = client.blob(REPOSITORY, &digest(BYTES), 600 * 1024 * 1024).await;
        assert_eq!(reason(outcome), ("E4001".to_owned(), "too_large".to_owned()));
        assert!(stub.seen().is_empty());
    });
}

const MANIFEST: &str = r#"{"schemaVersion": 2}"#;

#[test]
fn a_manifest_has_the_digest_that_was_asked_for_and_the_one_that_is_claimed() {
    run(async {
        let other = digest(b"something else");
        for (asked, claimed, expected) in [
            (other.as_str(), None, Some("digest")),
            ("1.0.0", Some(other.clone()), Some("digest")),
            (digest(MANIFEST.as_bytes()).as_str(), Some(other.clone()), Some("digest")),
            ("1.0.0", Some(digest(MANIFEST.as_bytes())), None),
            // An algorithm that is not supported here, so the header is ignored.
            ("1.0.0", Some(format!("sha512:{}", "0".repeat(128))), None),
            ("1.0.0", None, None),
        ] {
            let answer =
                Answer::new(200).body(MANIFEST).header("content-type", "application/x; charset=utf-8");
            let answer = match &claimed {
                Some(claimed) => answer.header("docker-content-digest", claimed),
                None => answer,
            };
            let stub = Stub::start(move |_| answer.clone()).await;
            let outcome = client(&stub, None).manifest(REPOSITORY, asked).await;
            match expected {
                Some(expected) => {
                    assert_eq!(
                        reason(outcome),
                        ("E1020".to_owned(), expected.to_owned()),
                        "{asked} {claimed:?}"
                    );
                }
                None => {
                    let manifest = outcome.unwrap();
                    assert_eq!(manifest.digest, digest(MANIFEST.as_bytes()));
                    assert_eq!(manifest.media_type, "application/x");
                    assert_eq!(manifest.bytes, MANIFEST.as_bytes());
                }
            }
        }
    });
}

#[test]
fn a_manifest_without_an_end_is_cut() {
    run(async {
        for answer in [
            Answer::new(200).body(vec![b' '; 64 * 1024]).unannounced().then(Ending::Endless),
            Answer::new(200).body("{").announcing(4 * 1024 * 1024 + 1),
        ] {
            let stub = Stub::start(move |_| answer.clone()).await;
            let error = error_of(client(&stub, None).manifest(REPOSITORY, "1.0.0").await);
            assert_eq!(error["details"]["reason"], "too_large");
            let message = format!(
                "the registry sent more than the allowed 4194304 bytes: `{}/{REPOSITORY}:1.0.0`",
                stub.host
            );
            assert_eq!(error["message"], message);
        }
    });
}

#[test]
fn a_flood_of_headers_is_no_answer() {
    run(async {
        let many: String = "x-many: y\r\n".repeat(20_000);
        let long = format!("x: {}\r\n", "y".repeat(8 * 1024 * 1024));
        for flood in [many, long] {
            let answer = Answer::new(200).header("x-first", &format!("z\r\n{flood}x-last: z"));
            let stub = Stub::start(move |_| answer.clone()).await;
            let (code, _) = reason(client(&stub, None).manifest(REPOSITORY, "1.0.0").await);
            assert_eq!(code, "E4001");
        }
    });
}

#[test]
fn tags_come_to_an_end_and_stay_where_they_are() {
    run(async {
        // A next page after every page.
        let stub = Stub::start(|asked| {
            let link = format!("<{}x>; rel=\"next\"", asked.line.trim_start_matches("GET "));
            Answer::new(200).header("link", &link).body(r#"{"tags": ["1.0"]}"#)
        })
        .await;
        let error = error_of(client(&stub, None).tags(REPOSITORY).await);
        assert_eq!(error["details"]["reason"], "invalid_answer");
        assert_eq!(stub.seen().len(), 200);
        // A next page at another origin.
        let trap = Stub::trap().await;
        for place in
            [trap.url("/v2/x/tags/list"), "https://10.0.0.1/x".to_owned(), "file:///etc/passwd".to_owned()]
        {
            let link = format!("<{place}>; rel=\"next\"");
            let stub =
                Stub::start(move |_| Answer::new(200).header("link", &link).body(r#"{"tags": ["1.0"]}"#))
                    .await;
            let error = error_of(client(&stub, None).tags(REPOSITORY).await);
            assert_eq!(error["details"]["reason"], "invalid_answer", "{place}");
        }
        assert_eq!(trap.touched().await, 0);
        // Not a list.
        let stub = Stub::start(|_| Answer::new(200).body("<html>")).await;
        assert_eq!(
            error_of(client(&stub, None).tags(REPOSITORY).await)["details"]["reason"],
            "invalid_answer"
        );
    });
}

#[test]
fn tags_of_all_pages_without_what_is_no_tag() {
    run(async {
        let stub = Stub::start(|asked| {
            let (body, next) = match asked.line.split_once("last=") {
                None => {
                    (r#"{"name": "x", "tags": ["1.0", "a\u001b[31m", "a/b", ""]}"#, "/v2/x/tags/list?last=1")
                }
                Some((_, "1")) => (r#"{"tags": null}"#, "?last=2"),
                Some(_) => (r#"{"tags": ["2.0"]}"#, ""),
            };
            let answer = Answer::new(200).body(body);
            if next.is_empty() { answer } else { answer.header("link", &format!("<{next}>; rel=\"next\"")) }
        })
        .await;
        assert_eq!(client(&stub, None).tags(REPOSITORY).await.unwrap(), ["1.0", "2.0"]);
        let lines = stub.lines();
        assert_eq!(lines[0], format!("GET /v2/{REPOSITORY}/tags/list?n=1000"));
        assert_eq!(lines[1..], ["GET /v2/x/tags/list?last=1", "GET /v2/x/tags/list?last=2"]);
    });
}
