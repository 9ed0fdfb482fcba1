//! Uploads of several servers: a shared folder makes them available everywhere; without it, the wrong server returns a
//! hint.

use cognitive_testkit::TestRedis;
use serde_json::{Value, json};

use super::service::{ANN, BOB, Home, Server, Service, send};
use super::streams::shared;

/// Announces three bytes and returns the upload address.
fn announce(server: &Server) -> String {
    let wish = json!({ "filename": "a.txt", "media_type": "image/png", "size_bytes": 3 }).to_string();
    let (status, said) = send(&server.address, "POST /v1/media/upload-url", ANN, &wish);
    assert_eq!(status, 200, "{said}");
    let (_, body) = said.split_once("\r\n\r\n").unwrap();
    let announced: Value = serde_json::from_str(body).unwrap();
    announced["upload_url"].as_str().unwrap().to_owned()
}

fn put(server: &Server, place: &str, key: &str) -> (u16, String) {
    send(&server.address, &format!("PUT {place}"), key, "abc")
}

#[test]
fn servers_with_one_folder_receive_what_was_announced_to_another() {
    let Some(redis) = TestRedis::start() else { return };
    let service = Service::start();
    let args = shared(&redis, "0");
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let config = "audit: {enabled: false}\n";
    let (home, elsewhere) = (Home::new(config), Home::new(config));
    let [one, other] = [0; 2].map(|_| Server::start(&home, &service, &args));
    let apart = Server::start(&elsewhere, &service, &args);
    let place = announce(&one);
    assert_eq!(put(&other, &place, BOB).0, 404, "nobody else's");
    let (status, refused) = put(&apart, &place, ANN);
    assert!(
        status == 404 && refused.contains("E1019") && refused.contains("share the upload folder"),
        "{refused}"
    );
    assert_eq!(put(&other, &place, ANN).0, 200);
    let (status, refused) = put(&one, &place, ANN);
    assert!(status == 400 && refused.contains("complete"), "{refused}");
}
