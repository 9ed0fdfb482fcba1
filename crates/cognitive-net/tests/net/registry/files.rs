//! Files by URL: from public hosts and from user-named origins, within limits, and never from internal addresses.

use std::sync::Arc;

use cognitive_net::Proxies;
use cognitive_net::registry::FileFetcher;

use crate::registry::stub::{Answer, Ending, Everywhere, NoPause, Stub, error_of, reason, run};

fn fetcher(trusted: &[String]) -> FileFetcher {
    let fetcher = FileFetcher::new(trusted).unwrap().with_pause(Arc::new(NoPause::default()));
    fetcher.with_proxies(Proxies::None).with_lookup(Arc::new(Everywhere("127.0.0.1")))
}

#[test]
fn a_file_of_a_named_origin_also_by_way_of_redirects() {
    run(async {
        let stub = Stub::start(|asked| {
            if asked.is("GET /a") {
                Answer::redirect(302, "/b.tar.gz")
            } else {
                Answer::new(200).body("0123456789")
            }
        })
        .await;
        let fetcher = fetcher(&[stub.url("")]);
        assert_eq!(fetcher.get(&stub.url("/a"), 10).await.unwrap(), b"0123456789");
        assert_eq!(stub.seen()[1].headers["accept-encoding"], "identity");
        let error = error_of(fetcher.get(&stub.url("/a?sig=s3cret"), 9).await);
        let message = format!("the server sent more than the allowed 9 bytes: `{}`", stub.url("/a"));
        assert_eq!(error["message"], message);
    });
}

// SEC-001, SEC-011: origins that the user did not name must be public and use TLS.
#[test]
fn sec_001_sec_011_no_file_comes_from_inside() {
    run(async {
        let trap = Stub::trap().await;
        let port = trap.host.rsplit_once(':').unwrap().1.to_owned();
        for place in [
            trap.url("/x"),
            format!("https://{}/x", trap.host),
            format!("https://localhost:{port}/x"),
            format!("https://intern.example:{port}/x"),
            "http://public.example/x".to_owned(),
            "https://169.254.169.254/x".to_owned(),
            "https://10.0.0.1/x".to_owned(),
            "file:///etc/passwd".to_owned(),
            "data:,x".to_owned(),
        ] {
            let (code, _) = reason(fetcher(&[]).get(&place, 100).await);
            assert_eq!(code, "E4007", "{place}");
            let location = place.clone();
            let stub = Stub::start(move |_| Answer::redirect(307, &location)).await;
            let (code, _) = reason(fetcher(&[stub.url("")]).get(&stub.url("/a"), 100).await);
            assert_eq!(code, "E4007", "{place}");
        }
        assert_eq!(trap.touched().await, 0);
    });
}

#[test]
fn what_is_no_file_says_so() {
    run(async {
        let stub = Stub::start(|asked| match asked.line.as_str() {
            "GET /401" => Answer::new(401),
            "GET /404" => Answer::new(404),
            "GET /206" => Answer::new(206).body("0"),
            "GET /gzip" => Answer::new(200).header("content-encoding", "gzip").body("0"),
            _ => Answer::new(200).body(vec![0; 4096]).unannounced().then(Ending::Endless),
        })
        .await;
        let fetcher = fetcher(&[stub.url("")]);
        for (path, code, why) in [
            ("/401", "E4007", "http_status"),
            ("/404", "E1006", "http_status"),
            ("/206", "E4001", "http_status"),
            ("/gzip", "E4001", "encoding"),
            ("/endless", "E4001", "too_large"),
        ] {
            let error = error_of(fetcher.get(&stub.url(path), 1_000_000).await);
            assert_eq!((&error["code"], &error["details"]["reason"]), (&code.into(), &why.into()), "{path}");
            assert!(!error.to_string().contains("docker login"), "{error}");
        }
        for wrong in ["", "nonsense", "https://", &format!("https://h/{}", "x".repeat(9000))] {
            assert_eq!(reason(fetcher.get(wrong, 1).await), ("E4007".to_owned(), "invalid_url".to_owned()));
        }
        assert!(FileFetcher::new(&["http://h/path".to_owned()]).is_err());
    });
}
