//! Places, proxies, and connections that end while they are idle.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

fn service(base: &str) -> Service {
    Service::new(&Url::parse(base).unwrap(), Proxies::None).unwrap()
}

#[test]
fn a_request_names_its_path_and_its_host() {
    for (url, uri, host) in [
        ("http://a:80/v1/x?k=1#part", "/v1/x?k=1", "a"),
        ("http://a:8080", "/", "a:8080"),
        ("https://[::1]:443/v1", "/v1", "[::1]"),
    ] {
        let place = service(url).place(&Url::parse(url).unwrap(), &HeaderMap::new()).unwrap();
        assert_eq!((place.uri.to_string().as_str(), place.headers[HOST].to_str().unwrap()), (uri, host));
    }
}

// ERR-015: a password in a URL becomes a header that is never printed, and a key takes precedence over it.
#[test]
fn err_015_a_password_in_an_address_is_a_header() {
    let url = Url::parse("http://me:pa%20ss@a/v1").unwrap();
    let place = service("http://a").place(&url, &HeaderMap::new()).unwrap();
    assert_eq!(place.headers[AUTHORIZATION], "Basic bWU6cGEgc3M=");
    assert!(!format!("{place:?}").contains("bWU6"), "{place:?}");
    assert!(!format!("{place:?}").contains("pa%20ss"), "{place:?}");
    let key = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static("Bearer k"))]);
    assert_eq!(service("http://a").place(&url, &key).unwrap().headers[AUTHORIZATION], "Bearer k");
}

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
}

async fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

/// Reads a request head and no further byte.
async fn head(stream: &mut TcpStream) -> String {
    let mut seen = Vec::new();
    while !seen.ends_with(b"\r\n\r\n") {
        seen.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(seen).unwrap().to_lowercase()
}

async fn got(service: &Service, place: &Place) -> Result<Vec<u8>, Trouble> {
    let answer = service.ask(Method::GET, place, Segments::default()).await?;
    Ok(answer.beginning().await)
}

/// Creates a service behind a proxy at this address.
fn behind(proxy: &str, base: &str) -> (Service, Place) {
    let matcher = Matcher::builder().all(format!("http://me:pass@{proxy}")).build();
    let base = Url::parse(base).unwrap();
    let service = Service::with_proxies(&base, Some(&matcher)).unwrap();
    let place = service.place(&base, &HeaderMap::new()).unwrap();
    (service, place)
}

#[test]
fn a_proxy_reads_requests_without_tls() {
    run(async {
        let (listener, address) = listener().await;
        let (service, place) = behind(&address, "http://svc.example:8080/v1/models?all=1");
        let proxy = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let seen = head(&mut stream).await;
            stream.write_all(ANSWER).await.unwrap();
            seen
        };
        let (answered, seen) = tokio::join!(got(&service, &place), proxy);
        assert_eq!(answered.unwrap(), b"ok");
        assert!(seen.starts_with("get http://svc.example:8080/v1/models?all=1 http/1.1\r\n"), "{seen}");
        assert!(seen.contains("\r\nhost: svc.example:8080\r\n"), "{seen}");
        assert!(seen.contains("\r\nproxy-authorization: basic bwu6cgfzcw==\r\n"), "{seen}");
    });
}

#[test]
fn a_proxy_sees_nothing_of_requests_with_tls() {
    run(async {
        let (listener, address) = listener().await;
        let (service, place) = behind(&address, "https://svc.example/v1");
        let proxy = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let seen = head(&mut stream).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            (seen, stream.read_u8().await.unwrap())
        };
        let (answered, (seen, first)) = tokio::join!(got(&service, &place), proxy);
        assert!(matches!(answered, Err(Trouble::Unreached(_))), "the proxy hung up in the middle of TLS");
        assert!(seen.starts_with("connect svc.example:443 http/1.1\r\n"), "{seen}");
        assert!(seen.contains("\r\nproxy-authorization: basic bwu6cgfzcw==\r\n"), "{seen}");
        assert_eq!(first, 0x16, "what follows is a handshake of TLS");
    });
}

#[test]
fn a_proxy_of_another_kind_is_refused() {
    let matcher = Matcher::builder().all("socks5://127.0.0.1:9").build();
    let base = Url::parse("http://svc.example/").unwrap();
    let service = Service::with_proxies(&base, Some(&matcher)).unwrap();
    let place = service.place(&base, &HeaderMap::new()).unwrap();
    let trouble = run(got(&service, &place)).unwrap_err();
    assert!(matches!(&trouble, Trouble::Unreached(why) if why.to_string().contains("proxy")), "{trouble:?}");
}

/// Creates a service on this machine, its client and a place.
async fn local() -> (TcpListener, Service, Place) {
    let (listener, address) = listener().await;
    let base = format!("http://{address}/");
    let service = service(&base);
    let place = service.place(&Url::parse(&base).unwrap(), &HeaderMap::new()).unwrap();
    (listener, service, place)
}

#[test]
fn a_connection_that_the_service_closed_is_not_used_again() {
    run(async {
        let (listener, service, place) = local().await;
        let serve = async {
            // The first connection serves two requests and is closed; the second serves the third request.
            for requests in [2, 1] {
                let (mut stream, _) = listener.accept().await.unwrap();
                for _ in 0..requests {
                    head(&mut stream).await;
                    stream.write_all(ANSWER).await.unwrap();
                }
            }
        };
        let ask = async {
            for _ in 0..3 {
                assert_eq!(got(&service, &place).await.unwrap(), b"ok");
                // The runtime sees the end of a connection when it next polls its sockets.
                tokio::task::yield_now().await;
            }
        };
        tokio::join!(serve, ask);
    });
}

/// Creates a connection over a pipe, and its other end.
async fn pipe() -> (Line, tokio::io::DuplexStream) {
    let (here, there) = tokio::io::duplex(1 << 16);
    (Line::connect_over(Box::new(hyper_util::rt::TokioIo::new(here))).await.unwrap(), there)
}

fn request() -> Request<Segments> {
    Request::new(Segments::default())
}

// The server may close an idle connection, which is detected only at its next use.
#[test]
fn a_request_on_a_connection_that_just_ended_comes_back() {
    run(async {
        let (mut line, mut there) = pipe().await;
        let serve = async {
            let mut seen = [0; 1_024];
            assert!(there.read(&mut seen).await.unwrap() > 0);
            there.write_all(ANSWER).await.unwrap();
        };
        let ask = async {
            let mut body = line.send(request()).await.unwrap().into_body();
            while line.next(&mut body).await.unwrap().is_some() {}
        };
        tokio::join!(serve, ask);
        assert!(line.is_free());
        drop(there);
        let mut refusal = line.send(request()).await.unwrap_err();
        assert!(refusal.take_message().is_some(), "nothing of it was sent");
        assert!(!line.is_free());
    });
}

#[test]
fn an_error_whose_body_stalls_says_what_it_said() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let (listener, service, place) = local().await;
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            head(&mut stream).await;
            stream.write_all(b"HTTP/1.1 429 Slow\r\ncontent-length: 99\r\n\r\nslow down").await.unwrap();
            stream
        };
        let (answered, _open) = tokio::join!(service.ask(Method::GET, &place, Segments::default()), serve);
        assert_eq!(answered.unwrap().beginning().await, b"slow down");
    });
}

#[test]
fn an_answer_that_is_dropped_takes_its_connection_along() {
    run(async {
        let (listener, service, place) = local().await;
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            head(&mut stream).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nhalf").await.unwrap();
            stream.read(&mut [0]).await
        };
        let ask = async {
            let mut answer = service.ask(Method::GET, &place, Segments::default()).await.unwrap();
            assert_eq!(answer.next(99).await.unwrap().unwrap(), "half");
        };
        let (left, ()) = tokio::join!(serve, ask);
        assert_eq!(left.unwrap(), 0, "the service sees the end");
        assert!(service.idle.lock().is_empty());
    });
}
