//! A browser that logs in or out at one server is logged in or out at all. Write access to Redis cannot forge a login.

use cognitive_http::SharedState as _;
use cognitive_http::redis::RedisState;
use cognitive_testkit::TestRedis;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::service::{EVE, Home, Server, Service, send};
use super::streams::{shared, three};

/// The headers that only a browser on the server's own page sends.
const OWN_PAGE: &str = "x-cogn-studio: 1\r\norigin: http://localhost\r\n";

/// Requests a page for authors with this cookie and returns the status.
fn seen(server: &Server, cookie: &str) -> u16 {
    send(&server.address, "GET /v1/models", &format!("cookie: cogn_session={cookie}\r\n"), "").0
}

/// Logs in and returns the value of the cookie.
fn log_in(server: &Server) -> String {
    let key = json!({ "key": "eve-0123456789abcdef" }).to_string();
    let (status, answer) = send(&server.address, "POST /v1/session", "", &key);
    assert_eq!(status, 200, "{answer}");
    answer.split("cogn_session=").nth(1).and_then(|rest| rest.split(';').next()).unwrap().to_owned()
}

#[test]
fn a_login_holds_at_all_servers_and_ends_at_all() {
    let Some(redis) = TestRedis::start() else { return };
    let (home, service) = (Home::new("audit: {enabled: false}\n"), Service::start());
    let servers = three(&home, &service, &shared(&redis, "0"));
    let (one, other) = (log_in(&servers[0]), log_in(&servers[1]));
    for server in &servers {
        assert_eq!((seen(server, &one), seen(server, &other), seen(server, "f00")), (200, 200, 401));
    }
    let out = format!("{OWN_PAGE}cookie: cogn_session={one}\r\n");
    assert_eq!(send(&servers[2].address, "DELETE /v1/session", &out, "").0, 200);
    for server in &servers {
        assert_eq!((seen(server, &one), seen(server, &other)), (401, 200));
    }
    // Replacing a key with the same name revokes its logins.
    let keys = std::fs::read_to_string(home.path().join("keys")).unwrap();
    std::fs::write(home.path().join("keys"), keys.replace("eve-0", "eve-1")).unwrap();
    let args = shared(&redis, "0");
    let newer = Server::start(&home, &service, &args.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!((seen(&newer, &other), seen(&servers[0], &other)), (401, 200));
}

#[test]
fn who_can_write_into_redis_but_knows_no_key_does_not_log_in() {
    let Some(redis) = TestRedis::start() else { return };
    let (home, service) = (Home::new("audit: {enabled: false}\n"), Service::start());
    let args = shared(&redis, "0");
    let server = Server::start(&home, &service, &args.iter().map(String::as_str).collect::<Vec<_>>());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let hash = cognitive_contract::text::hex(&Sha256::digest("mine"));
    runtime.block_on(async {
        let state = RedisState::connect(&redis.address(), None).await.unwrap();
        for holder in ["eve".to_owned(), format!("{hash} eve"), " eve".to_owned()] {
            state.keep_login(&hash, &holder, std::time::Duration::from_mins(1)).await.unwrap();
            assert_eq!(seen(&server, "mine"), 401, "{holder}");
        }
    });
}

#[test]
fn where_redis_stands_still_nobody_is_logged_in_and_keys_open_as_ever() {
    let Some(redis) = TestRedis::start() else { return };
    let (home, service) = (Home::new("audit: {enabled: false}\n"), Service::start());
    let args = shared(&redis, "0");
    let server = Server::start(&home, &service, &args.iter().map(String::as_str).collect::<Vec<_>>());
    let cookie = log_in(&server);
    redis.freeze();
    assert_eq!(seen(&server, &cookie), 503);
    assert_eq!(send(&server.address, "GET /v1/models", EVE, "").0, 200);
    let shown = format!("accept: text/html\r\ncookie: cogn_session={cookie}\r\n");
    assert_eq!(send(&server.address, "GET /", &shown, "").0, 200, "the page with the login is there");
    redis.thaw();
}
