//! A registry that redirects to internal addresses, to plain HTTP or in circles. No request follows, and only the
//! registry receives credentials.

use std::sync::{Arc, Mutex};

use crate::registry::stub::{
    Answer, Everywhere, PASSWORD, REPOSITORY, Stub, ann, client, digest, error_of, reason, run,
};

const BYTES: &[u8] = b"a layer";

/// URLs that an external server must not lead to. `TRAP` is a server that records connections.
const INSIDE: &[&str] = &[
    "http://TRAP/x",
    "//TRAP/x",
    "https://TRAP/x",
    "http://localhost:PORT/x",
    "https://a.localhost:PORT/x",
    "http://[::1]:PORT/x",
    "http://[::ffff:127.0.0.1]:PORT/x",
    "http://2130706433:PORT/x",
    "https://127.1:PORT/x",
    "http://169.254.169.254/latest/meta-data/",
    "https://169.254.169.254/latest/meta-data/",
    "https://10.0.0.1/x",
    "https://192.168.1.1:8443/x",
    "https://[fd00:ec2::254]/x",
    "https://0.0.0.0/x",
    "http://93.184.216.34/x",
    "http://public.example/x",
    "https://intern.example:PORT/x",
    "file:///etc/passwd",
    "ftp://127.0.0.1/x",
    "data:,x",
    "gopher://TRAP/x",
    "\\\\TRAP\\x",
    "http://ann:pw@TRAP/x",
];

fn place(template: &str, trap: &Stub) -> String {
    let port = trap.host.rsplit_once(':').unwrap().1;
    template.replace("TRAP", &trap.host).replace("PORT", port)
}

/// Asserts that a rule refused the URL, as opposed to a failed attempt.
fn assert_rule((code, reason): (String, String), place: &str) {
    assert_eq!(code, "E4007", "{place}: {reason}");
    assert!(
        matches!(reason.as_str(), "blocked_address" | "blocked_scheme" | "invalid_url"),
        "{place}: {reason}"
    );
}

// SEC-001, SEC-011: every redirect of a registry is checked again, on the address that is dialled.
#[test]
fn sec_001_sec_011_no_redirect_of_a_registry_leads_inside() {
    run(async {
        let trap = Stub::trap().await;
        for (template, status) in INSIDE.iter().zip([301, 302, 303, 307, 308].into_iter().cycle()) {
            let to = place(template, &trap);
            let location = to.clone();
            let stub = Stub::start(move |asked| match asked.authorization() {
                None => Answer::new(401).header("www-authenticate", "Basic realm=x"),
                Some(_) => Answer::redirect(status, &location),
            })
            .await;
            // Names that resolve to internal addresses.
            let client = client(&stub, Some(ann())).with_lookup(Arc::new(Everywhere("127.0.0.1")));
            assert_rule(reason(client.blob(REPOSITORY, &digest(BYTES), 7).await), &to);
            assert_rule(reason(client.manifest(REPOSITORY, "1.0").await), &to);
            assert_rule(reason(client.tags(REPOSITORY).await), &to);
            assert_rule(reason(client.has_blob(REPOSITORY, &digest(BYTES)).await), &to);
        }
        assert_eq!(trap.touched().await, 0, "{:?}", trap.lines());
    });
}

#[test]
fn what_is_refused_is_said_with_its_place() {
    run(async {
        let stub = Stub::start(|_| Answer::redirect(307, "https://me:s3cret@10.1.2.3/x?sig=s3cret")).await;
        let error = error_of(client(&stub, None).blob(REPOSITORY, &digest(BYTES), 7).await);
        let message =
            "the registry leads to a forbidden address, because its address is not public: `10.1.2.3`";
        assert_eq!(error["message"], message);
        assert!(!error.to_string().contains("s3cret"), "{error}");
    });
}

#[test]
fn a_blob_may_be_with_a_storage_host_that_learns_no_login() {
    run(async {
        let storage = Stub::start(|_| Answer::new(200).body(BYTES)).await;
        let place = storage.url("/x?signature=1");
        let stub = Stub::start(move |asked| match asked.authorization() {
            None => Answer::new(401).header("www-authenticate", "Basic realm=x"),
            Some(_) => Answer::redirect(307, &place),
        })
        .await;
        let client = client(&stub, Some(ann())).with_trusted_origin(&storage.url("")).unwrap();
        assert_eq!(client.blob(REPOSITORY, &digest(BYTES), 7).await.unwrap(), BYTES);
        assert_eq!(stub.seen().len(), 2);
        assert_eq!(stub.seen()[1].authorization(), Some("Basic YW5uOnBhNTV3b3JkLTBmLWFubi0wMTIz"));
        assert_eq!(storage.lines(), ["GET /x?signature=1"]);
        assert_eq!(storage.seen()[0].authorization(), None);
    });
}

// The host in between could choose the URL that is requested with the credentials.
#[test]
fn a_request_that_has_left_comes_back_without_a_login() {
    run(async {
        let between = Arc::new(Mutex::new(String::new()));
        let shared = Arc::clone(&between);
        let storage = Stub::start(move |_| Answer::redirect(302, &shared.lock().unwrap())).await;
        let place = storage.url("/x");
        let stub = Stub::start(move |asked| match (asked.is("GET /secret"), asked.authorization()) {
            (true, _) => Answer::new(200).body(BYTES),
            (false, None) => Answer::new(401).header("www-authenticate", "Basic realm=x"),
            (false, Some(_)) => Answer::redirect(302, &place),
        })
        .await;
        *between.lock().unwrap() = stub.url("/secret");
        let client = client(&stub, Some(ann())).with_trusted_origin(&storage.url("")).unwrap();
        client.blob(REPOSITORY, &digest(BYTES), 7).await.unwrap();
        let last = stub.seen().pop().unwrap();
        assert_eq!((last.line.as_str(), last.authorization()), ("GET /secret", None));
    });
}

#[test]
fn circles_end() {
    run(async {
        let stub = Stub::start(|_| Answer::redirect(307, "/v2/again")).await;
        let error = error_of(client(&stub, None).manifest(REPOSITORY, "1.0").await);
        assert_eq!(error["details"]["reason"], "too_many_redirects");
        assert_eq!(stub.seen().len(), 6, "the request and five redirects");
    });
}

// The challenge of a storage host is not answered, and its token server is not contacted.
#[test]
fn a_challenge_of_another_host_is_not_answered() {
    run(async {
        let trap = Stub::trap().await;
        let realm = trap.url("/token");
        let storage = Stub::start(move |_| Answer::token_wanted(&realm)).await;
        let place = storage.url("/x");
        let stub = Stub::start(move |_| Answer::redirect(307, &place)).await;
        let client = client(&stub, Some(ann()))
            .with_trusted_origin(&storage.url(""))
            .unwrap()
            .with_trusted_origin(&trap.url(""))
            .unwrap();
        let (code, _) = reason(client.blob(REPOSITORY, &digest(BYTES), 7).await);
        assert_eq!((code.as_str(), storage.seen().len()), ("E4007", 1));
        assert_eq!(trap.touched().await, 0);
        assert!(stub.seen().iter().chain(&storage.seen()).all(|asked| asked.authorization().is_none()));
    });
}

// SEC-001: a token server must pass the guard before it receives credentials.
#[test]
fn sec_001_no_login_goes_to_a_giver_of_tokens_inside() {
    run(async {
        let trap = Stub::trap().await;
        for template in INSIDE {
            let to = place(template, &trap);
            let realm = to.clone();
            let stub = Stub::start(move |_| Answer::token_wanted(&realm)).await;
            let client = client(&stub, Some(ann())).with_lookup(Arc::new(Everywhere("127.0.0.1")));
            let error = error_of(client.manifest(REPOSITORY, "1.0").await);
            // An incomplete URL is invalid.
            if error["code"] != "E4007" {
                assert_eq!(error["details"]["reason"], "invalid_answer", "{to}");
            }
            let asked = stub.seen();
            assert!(asked.len() == 1 && asked[0].authorization().is_none(), "{to}");
        }
        assert_eq!(trap.touched().await, 0, "{:?}", trap.lines());
    });
}

// A token server that redirects causes no request with credentials to the target.
#[test]
fn a_giver_of_tokens_that_redirects_takes_no_login_along() {
    run(async {
        let second = Stub::start(|_| Answer::new(200).body(r#"{"token": "t0ken-0f-the-registry"}"#)).await;
        let place = second.url("/t");
        let stub = Stub::start(move |asked| match (asked.is("GET /token"), asked.authorization()) {
            (true, _) => Answer::redirect(307, &place),
            (false, Some("Bearer t0ken-0f-the-registry")) => Answer::new(200).body("{}"),
            _ => {
                let host = &asked.headers["host"];
                Answer::token_wanted(&format!("http://{host}/token"))
            }
        })
        .await;
        let client = client(&stub, Some(ann())).with_trusted_origin(&second.url("")).unwrap();
        client.manifest(REPOSITORY, "1.0").await.unwrap();
        assert_eq!(second.seen().len(), 1);
        assert_eq!(second.seen()[0].authorization(), None);
        assert!(!format!("{:?}", second.seen()).contains(PASSWORD));
    });
}
