//! Uploads to a registry: their URLs, the credentials, and that nothing is sent twice.

use crate::registry::stub::{Answer, Asked, REPOSITORY, Stub, ann, client, digest, error_of, reason, run};

const BYTES: &[u8] = &[0, 159, 146, 150, 10, 13];

/// Creates an empty registry that requires a login and names this upload URL.
fn registry(place: String) -> impl Fn(&Asked) -> Answer + Send + Sync + 'static {
    move |asked| {
        if asked.authorization().is_none() {
            return Answer::new(401).header("www-authenticate", "Basic realm=x");
        }
        match asked.line.split(' ').next().unwrap() {
            "HEAD" => Answer::new(404),
            "POST" => Answer::new(202).header("location", &place),
            _ => Answer::new(201).header("docker-content-digest", &digest(&asked.body)),
        }
    }
}

#[test]
fn a_blob_is_sent_in_one_piece_to_where_the_registry_wants_it() {
    run(async {
        for (place, expected) in [
            (
                "/v2/team/modules/blobs/uploads/7?_state=a%2Fb",
                "/v2/team/modules/blobs/uploads/7?_state=a%2Fb&digest=",
            ),
            ("7", "/v2/team/modules/blobs/uploads/7?digest="),
        ] {
            let stub = Stub::start(registry(place.to_owned())).await;
            let found = client(&stub, Some(ann())).put_blob(REPOSITORY, BYTES).await.unwrap();
            assert_eq!(found, digest(BYTES));
            let lines = stub.lines();
            let escaped = found.replace(':', "%3A");
            assert_eq!(
                lines,
                [
                    format!("HEAD /v2/team/modules/blobs/{found}"),
                    format!("HEAD /v2/team/modules/blobs/{found}"),
                    "POST /v2/team/modules/blobs/uploads/".to_owned(),
                    format!("PUT {expected}{escaped}"),
                ]
            );
            let put = stub.seen().pop().unwrap();
            assert_eq!(put.body, BYTES);
            assert_eq!(put.headers["content-length"], "6");
            assert_eq!(put.headers["content-type"], "application/octet-stream");
        }
    });
}

#[test]
fn what_is_there_is_not_sent() {
    run(async {
        let stub = Stub::start(|_| Answer::new(200).header("content-length", "6")).await;
        client(&stub, None).put_blob(REPOSITORY, BYTES).await.unwrap();
        assert_eq!(stub.seen().len(), 1);
    });
}

#[test]
fn an_upload_to_another_host_carries_no_login() {
    run(async {
        let storage = Stub::start(|_| Answer::new(201)).await;
        let stub = Stub::start(registry(storage.url("/put?sig=1"))).await;
        let client = client(&stub, Some(ann())).with_trusted_origin(&storage.url("")).unwrap();
        client.put_blob(REPOSITORY, BYTES).await.unwrap();
        let put = storage.seen().pop().unwrap();
        assert!(put.is("PUT /put?sig=1&digest=sha256%3A"));
        assert_eq!((put.authorization(), put.body.as_slice()), (None, BYTES));
    });
}

// SEC-001: a registry cannot direct an upload to an internal address.
#[test]
fn sec_001_no_upload_goes_inside() {
    run(async {
        let trap = Stub::trap().await;
        for place in [
            trap.url("/put"),
            format!("https://{}/put", trap.host),
            "http://169.254.169.254/put".to_owned(),
            "https://10.0.0.1/put".to_owned(),
            "http://93.184.216.34/put".to_owned(),
            "file:///tmp/put".to_owned(),
        ] {
            let stub = Stub::start(registry(place.clone())).await;
            let error = error_of(client(&stub, Some(ann())).put_blob(REPOSITORY, BYTES).await);
            assert_eq!(error["code"], "E4007", "{place}");
            let message = error["message"].as_str().unwrap();
            assert!(message.starts_with("the registry sends the upload to a forbidden address"), "{message}");
            assert!(!stub.lines().iter().any(|line| line.starts_with("PUT")), "{place}");
        }
        assert_eq!(trap.touched().await, 0);
    });
}

#[test]
fn an_upload_without_a_place_or_with_another_outcome_fails() {
    run(async {
        let stub = Stub::start(|asked| Answer::new(if asked.is("HEAD") { 404 } else { 202 })).await;
        let (_, why) = reason(client(&stub, None).put_blob(REPOSITORY, BYTES).await);
        assert_eq!(why, "invalid_answer");
        let stub = Stub::start(|asked| match asked.line.split(' ').next().unwrap() {
            "HEAD" => Answer::new(404),
            "POST" => Answer::new(202).header("location", "/x"),
            _ => Answer::new(201).header("docker-content-digest", &digest(b"something else")),
        })
        .await;
        let (code, why) = reason(client(&stub, None).put_blob(REPOSITORY, BYTES).await);
        assert_eq!((code.as_str(), why.as_str()), ("E1020", "digest"));
    });
}

#[test]
fn nothing_is_sent_twice() {
    run(async {
        for failing in ["POST", "PUT"] {
            let stub = Stub::start(move |asked| match asked.line.split(' ').next().unwrap() {
                method if method == failing => Answer::new(503).header("retry-after", "1"),
                "HEAD" => Answer::new(404),
                _ => Answer::new(202).header("location", "/x"),
            })
            .await;
            let client = client(&stub, None);
            let error = error_of(client.put_blob(REPOSITORY, BYTES).await);
            assert_eq!(error["details"]["status"], 503);
            let count = || stub.lines().iter().filter(|line| line.starts_with(failing)).count();
            assert_eq!(count(), 1, "{failing}");
            if failing == "PUT" {
                assert_eq!(
                    error_of(client.put_manifest(REPOSITORY, "1", "a/b", b"{}").await)["details"]["status"],
                    503
                );
                assert_eq!(count(), 2, "one more, for the manifest");
            }
        }
    });
}

#[test]
fn a_manifest_goes_by_its_tag_or_its_own_digest() {
    run(async {
        let stub = Stub::start(registry(String::new())).await;
        let client = client(&stub, Some(ann()));
        let found = client.put_manifest(REPOSITORY, "1.0", "application/x+json", b"{}").await.unwrap();
        assert_eq!(found, digest(b"{}"));
        let put = stub.seen().pop().unwrap();
        assert_eq!(put.line, "PUT /v2/team/modules/manifests/1.0");
        assert_eq!(
            (put.headers["content-type"].as_str(), put.body.as_slice()),
            ("application/x+json", &b"{}"[..])
        );
        client.put_manifest(REPOSITORY, &found, "application/x+json", b"{}").await.unwrap();
        let before = stub.seen().len();
        for (reference, kind) in
            [(digest(b"other"), "a/b"), ("1.0".to_owned(), "a\r\nb"), ("../x".to_owned(), "a/b")]
        {
            let (code, _) = reason(client.put_manifest(REPOSITORY, &reference, kind, b"{}").await);
            assert_eq!(code, "E1001", "{reference} {kind}");
        }
        assert_eq!(stub.seen().len(), before);
    });
}

#[test]
fn no_name_reaches_beyond_its_repository() {
    run(async {
        let stub = Stub::trap().await;
        let client = client(&stub, None);
        for repository in ["", "../x", "a/../../x", "a?x=y", "a#b", "A", "a b", "a%2e", "a//b"] {
            assert_eq!(reason(client.tags(repository).await).0, "E1001", "{repository}");
            assert_eq!(reason(client.put_blob(repository, BYTES).await).0, "E1001", "{repository}");
        }
        for reference in ["", "../x", "a/b", "a?b", "sha256:00", "sha256:../../../x"] {
            assert_eq!(reason(client.manifest("a", reference).await).0, "E1001", "{reference}");
            assert_eq!(reason(client.blob("a", reference, 1).await).0, "E1001", "{reference}");
        }
        assert!(stub.seen().is_empty());
    });
}
