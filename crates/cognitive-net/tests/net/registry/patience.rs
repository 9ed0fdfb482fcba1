//! Retries, waits and time limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cognitive_net::Proxies;
use cognitive_net::registry::OciClient;
use cognitive_testkit::SilentAddress;
use tokio::net::TcpListener;
use tokio::time::Instant;

use crate::registry::stub::{
    Answer, Ending, NoPause, REPOSITORY, Stub, client, digest, error_of, reason, run, run_without_waiting,
};

/// Gives this answer for the first requests, then a good one.
fn first(
    times: usize,
    answer: Answer,
) -> impl Fn(&crate::registry::stub::Asked) -> Answer + Send + Sync + 'static {
    let count = AtomicUsize::new(0);
    move |_| {
        if count.fetch_add(1, Ordering::SeqCst) < times {
            answer.clone()
        } else {
            Answer::new(200).body("{}")
        }
    }
}

#[test]
fn what_may_work_a_moment_later_is_tried_twice_more() {
    run(async {
        for (answer, waits) in [
            (Answer::new(503), [500, 1_000]),
            (Answer::new(500), [500, 1_000]),
            (Answer::new(429).header("retry-after", "7"), [7_000, 7_000]),
            (Answer::new(200).body("{").announcing(2), [500, 1_000]),
        ] {
            let stub = Stub::start(first(2, answer.clone())).await;
            let pause = Arc::new(NoPause::default());
            let client = client(&stub, None).with_pause(pause.clone());
            client.manifest(REPOSITORY, "1.0").await.unwrap();
            assert_eq!(pause.waits(), waits, "{answer:?}");
            let stub = Stub::start(first(3, answer.clone())).await;
            assert!(client_of(&stub).blob(REPOSITORY, &digest(b"{}"), 2).await.is_err(), "{answer:?}");
            assert_eq!(stub.seen().len(), 3);
        }
    });
}

fn client_of(stub: &Stub) -> OciClient {
    client(stub, None)
}

#[test]
fn what_will_not_work_later_is_not_tried_again() {
    run(async {
        for answer in [
            Answer::new(400),
            Answer::new(403),
            Answer::new(404),
            Answer::new(429).header("retry-after", "31"),
        ] {
            let stub = Stub::start(first(1, answer.clone())).await;
            assert!(client_of(&stub).manifest(REPOSITORY, "1.0").await.is_err());
            assert_eq!(stub.seen().len(), 1, "{answer:?}");
        }
    });
}

#[test]
fn a_registry_that_falls_silent_is_left() {
    run_without_waiting(async {
        let stub = Stub::start(|_| Answer::new(200).body("{").announcing(2).then(Ending::Stall)).await;
        let (code, why) = reason(client_of(&stub).blob(REPOSITORY, &digest(b"{}"), 2).await);
        assert_eq!((code.as_str(), why.as_str()), ("E4001", "timeout"));
        // A server that accepts the connection and never answers.
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let client = OciClient::new(&host, None, false).unwrap().with_proxies(Proxies::None);
        assert_eq!(reason(client.manifest(REPOSITORY, "1.0").await).1, "timeout");
        assert_eq!(reason(client.put_blob(REPOSITORY, b"x").await).1, "timeout");
        let manifest = vec![b' '; 64 * 1024 * 1024];
        assert_eq!(reason(client.put_manifest(REPOSITORY, "1.0", "a/b", &manifest).await).1, "timeout");
    });
}

#[test]
fn a_blob_may_take_its_time_while_it_moves_and_a_manifest_may_not() {
    run_without_waiting(async {
        let bytes = vec![7; 1_000];
        for (seconds, arrives) in [(25, true), (31, false)] {
            let body = bytes.clone();
            let stub =
                Stub::start(move |_| Answer::new(200).body(body.clone()).then(Ending::Slowly(seconds))).await;
            let began = Instant::now();
            let outcome = client_of(&stub).blob(REPOSITORY, &digest(&bytes), 1_000).await;
            assert_eq!(outcome.is_ok(), arrives, "{seconds}");
            let expected = if arrives { 250 } else { 30 };
            assert_eq!(began.elapsed().as_secs(), expected);
            if arrives {
                let began = Instant::now();
                assert_eq!(reason(client_of(&stub).manifest(REPOSITORY, "1.0").await).1, "timeout");
                assert_eq!(began.elapsed().as_secs(), 60);
            }
        }
    });
}

// Each byte comes before the silence is too long, so only the time of the whole body ends it.
#[test]
fn a_registry_that_drips_is_left() {
    run_without_waiting(async {
        let bytes = vec![7; 10_000];
        let body = bytes.clone();
        let stub = Stub::start(move |_| Answer::new(200).body(body.clone()).then(Ending::Dripping(20))).await;
        let began = Instant::now();
        let outcome = client_of(&stub).blob(REPOSITORY, &digest(&bytes), 10_000).await;
        assert_eq!(reason(outcome).1, "timeout");
        assert_eq!(began.elapsed().as_secs(), 320);
    });
}

#[test]
fn a_registry_that_is_not_there_says_so() {
    run(async {
        let silent = SilentAddress::take();
        let client =
            OciClient::new(&silent.address().to_string(), None, false).unwrap().with_proxies(Proxies::None);
        let error = error_of(client.manifest(REPOSITORY, "1.0").await);
        assert_eq!(error["message"], "the host does not respond: `127.0.0.1`");
        // A server without TLS, contacted with TLS.
        let stub = Stub::trap().await;
        let client = OciClient::new(&format!("https://{}", stub.host), None, false).unwrap();
        let error = error_of(client.with_proxies(Proxies::None).manifest(REPOSITORY, "1.0").await);
        assert_eq!(error["details"]["reason"], "tls");
        assert!(error["message"].as_str().unwrap().contains("it does not speak TLS: `127.0.0.1:"), "{error}");
        assert!(error["suggestion"].as_str().unwrap().contains("`--plain-http`"), "{error}");
    });
}
