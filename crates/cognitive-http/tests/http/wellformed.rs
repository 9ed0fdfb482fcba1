//! Ambiguous requests, pages of other origins, and pages that a browser may open without a key.

use cognitive_contract::media::UploadStore;
use cognitive_http::ApiKey;

use crate::support::{ANSWER, Script, Server, ask, client, head, json_of, roomy};

async fn server() -> Server {
    Server::start(&Script::free(&ANSWER), "both", roomy()).await
}

// The documentation says 431 above 64 KiB of headers, however they arrive.
#[tokio::test]
async fn headers_above_64_kib_are_refused_however_they_arrive() {
    let server = server().await;
    for length in [66_000, 100_000, 120_000] {
        let long = format!(
            "GET /ready HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx: {}\r\n\r\n",
            "y".repeat(length)
        );
        let answer = server.raw(long.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 431 "), "{length}: {answer:.100}");
    }
    let fits = format!(
        "GET /ready HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx: {}\r\n\r\n",
        "y".repeat(60_000)
    );
    assert!(server.raw(fits.as_bytes()).await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn a_host_is_said_once_and_is_nothing_but_a_host() {
    let server = server().await;
    let ready = async |hosts: &str| {
        server.raw(format!("GET /ready HTTP/1.1\r\n{hosts}connection: close\r\n\r\n").as_bytes()).await
    };
    assert!(ready("host: localhost\r\n").await.starts_with("HTTP/1.1 200 "));
    let two = ready("host: localhost\r\nhost: evil.example\r\n").await;
    assert!(two.starts_with("HTTP/1.1 400 ") && two.contains("E1000"), "{two}");
    for odd in ["[::1]evil.example", "localhost:evil", "127.0.0.1.evil.example"] {
        let answer = ready(&format!("host: {odd}\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{odd}: {answer}");
    }
}

// RFC 9112, 6.1: an unknown transfer coding is 501. Only `chunked` is supported.
#[tokio::test]
async fn a_body_in_another_coding_is_not_taken_for_plain() {
    let server = server().await;
    let send = async |coding: &str| {
        let head = head(0, &format!("connection: close\r\ntransfer-encoding: {coding}\r\n"));
        let head = head.replace("content-length: 0\r\n", "");
        server.raw(format!("{head}d\r\n{{\"text\": \"a\"}}\r\n0\r\n\r\n").as_bytes()).await
    };
    let plain = send("chunked").await;
    assert!(plain.starts_with("HTTP/1.1 200 "), "{plain}");
    for coding in ["gzip, chunked", "gzip,chunked", "identity, chunked"] {
        let answer = send(coding).await;
        assert!(answer.starts_with("HTTP/1.1 501 "), "{coding}: {answer:.200}");
    }
}

// S11: a page of another origin cannot detect the server by loading its resources.
#[tokio::test]
async fn no_answer_can_be_embedded_by_another_origin() {
    let server = server().await;
    for path in ["/docs.js", "/docs", "/health", "/openapi.json", "/nothing", "/api/modules"] {
        let response = client().get(server.url(path)).send().await.unwrap();
        assert_eq!(response.headers()["cross-origin-resource-policy"], "same-origin", "{path}");
    }
    let run = ask(&server, "text/event-stream").send().await.unwrap();
    assert_eq!(run.headers()["cross-origin-resource-policy"], "same-origin");
}

// S11: browsers cannot send a key with a navigation, so the first page opens without one and reveals nothing. No
// other page opens without a key.
#[tokio::test]
async fn the_first_page_opens_without_a_key_and_asks_for_it() {
    let mut config = roomy();
    config.keys = vec![ApiKey::new("anna", "a-key-of-some-length").unwrap()];
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    let page = client().get(server.url("/")).header("accept", "text/html,*/*").send().await.unwrap();
    assert_eq!(page.status(), 200);
    let page = page.text().await.unwrap();
    assert!(!page.contains("words") && !page.contains("anna"), "{page}");
    assert_eq!(client().post(server.url("/")).send().await.unwrap().status(), 401);
    for path in ["/docs", "/docs.js", "/openapi.json"] {
        assert_eq!(client().get(server.url(path)).send().await.unwrap().status(), 401, "{path}");
    }
}

// A browser gets a page whose links work below any path; a program gets links to the endpoints.
#[tokio::test]
async fn the_first_page_is_for_people_and_for_programs() {
    let mut config = roomy();
    config.studio = false;
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    let page = client().get(server.url("/")).header("accept", "text/html, */*;q=0.8").send().await.unwrap();
    assert_eq!(page.headers()["content-type"], "text/html; charset=utf-8");
    assert!(page.headers().get_all("vary").iter().any(|each| each == "Accept"));
    let page = page.text().await.unwrap();
    assert!(page.contains("src=\"docs.js\"") && !page.contains("=\"/"), "{page}");
    let script = client().get(server.url("/docs.js")).send().await.unwrap().text().await.unwrap();
    assert!(script.contains("ask(\"openapi.json\")"), "{script}");
    let places = json_of(client().get(server.url("/")).send().await.unwrap()).await;
    assert_eq!(places["openapi"], "openapi.json");
    for place in ["docs", "openapi", "modules", "health"] {
        let path = format!("/{}", places[place].as_str().unwrap());
        assert_eq!(client().get(server.url(&path)).send().await.unwrap().status(), 200, "{path}");
    }
}

// All callers on this machine are one client, with whichever loopback address.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn addresses_of_this_machine_are_one_client() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut config = roomy();
    config.runs_per_minute = 2;
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    for (number, expected) in [(1, "200"), (2, "200"), (3, "429"), (200, "429")] {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, number], 0).into()).unwrap();
        let mut stream = socket.connect(server.address).await.unwrap();
        let request = head(13, "connection: close\r\n") + r#"{"text": "a"}"#;
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer.get(9..12), Some(expected), "127.0.0.{number}");
    }
}

// RFC 9110, 14.4: a partial upload is refused instead of being stored as the whole.
#[tokio::test]
async fn a_part_of_an_upload_is_not_taken_for_the_whole() {
    use cognitive_contract::media::{MediaType, NewUpload};
    let folder = tempfile::tempdir().unwrap();
    let limits = cognitive_media::UploadLimits::default();
    let uploads =
        cognitive_media::Uploads::open(folder.path().join("u"), limits, std::time::SystemTime::now).unwrap();
    let announced = uploads.announce("local", &NewUpload::new("a.png", MediaType::Png, 3)).unwrap();
    let mut config = roomy();
    config.uploads = Some(std::sync::Arc::new(uploads));
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    let put = || client().put(server.url(&format!("/v1/media/uploads/{}", announced.id))).body("abc");
    let part = put().header("content-range", "bytes 0-2/1000").send().await.unwrap();
    assert_eq!(
        (part.status().as_u16(), &part.headers()["cogn-error-code"]),
        (400, &"E1001".parse().unwrap())
    );
    assert_eq!(put().send().await.unwrap().status(), 200);
}
