//! A Redis behind TLS: used if its certificate is valid, and refused otherwise.

use std::sync::Arc;

use cognitive_testkit::{SELF_SIGNED, TestRedis};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use tokio::net::{TcpListener, UnixStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;

use super::service::{Home, Server, Service, answer};

/// Adds TLS in front of a plain Redis and returns its port. Ends with the runtime.
fn speak_tls(runtime: &Runtime, redis: &TestRedis) -> u16 {
    let certificates = CertificateDer::pem_file_iter(SELF_SIGNED).unwrap().collect::<Result<_, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_file(SELF_SIGNED).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let port = listener.local_addr().unwrap().port();
    let socket = redis.address().replace("redis+unix://", "");
    runtime.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, socket) = (acceptor.clone(), socket.clone());
            tokio::spawn(async move {
                let Ok(mut outside) = acceptor.accept(stream).await else { return };
                let mut inside = UnixStream::connect(socket).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
            });
        }
    });
    port
}

#[test]
fn servers_share_a_redis_behind_tls_whose_certificate_holds() {
    let Some(redis) = TestRedis::start() else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let address = format!("rediss://127.0.0.1:{}", speak_tls(&runtime, &redis));
    let service = Service::start();
    let config = "audit: {enabled: false}\n";
    let home = Home::new(config).with_env("SSL_CERT_FILE", SELF_SIGNED);
    let [one, other] = [0; 2].map(|_| Server::start(&home, &service, &["--shared", &address, "--rate", "2"]));
    let run = |server: &Server, text: &str| {
        answer(&server.address, "talk", &json!({ "text": format!("<{text}>") })).0
    };
    // A minute holds two; a slow one holds more of them before the first that is too many.
    let statuses: Vec<u16> = (0..100)
        .map(|number| run([&one, &other][number % 2], "a"))
        .take_while(|status| *status == 200)
        .collect();
    assert!((2..100).contains(&statuses.len()), "{statuses:?}");
    let doubtful = [Home::new(config), Home::new(config).with_env("SSL_CERT_FILE", SELF_SIGNED)];
    for (home, address) in doubtful.iter().zip([address.clone(), format!("{address}/#insecure")]) {
        let started = home.cogn(&[
            "serve",
            "--port",
            "0",
            "--provider",
            "openai",
            "--model",
            "m",
            "--shared",
            &address,
        ]);
        let said = String::from_utf8_lossy(&started.stderr).into_owned();
        assert!(!started.status.success() && said.contains("cannot use the shared state"), "{said}");
    }
}
