//! Servers whose database or Redis hangs: runs continue with a warning if they may, and are refused otherwise.

use cognitive_testkit::{TestPostgres, TestRedis};
use serde_json::{Value, json};

use super::service::{Home, Server, Service, answer};

#[test]
fn a_database_that_stands_still_stops_no_run_that_need_not_be_recorded() {
    let Some(postgres) = TestPostgres::durable() else { return };
    let address = postgres.database();
    let service = Service::start();
    let lenient = Home::new(&format!("audit: {{path: '{address}'}}\n"));
    let strict = Home::new(&format!("audit: {{path: '{address}', required: true}}\n"));
    let servers = [&lenient, &strict].map(|home| Server::start(home, &service, &["--rate", "0"]));
    let run = |server: &Server, text: &str| {
        answer(&server.address, "talk", &json!({ "text": format!("<{text}>") }))
    };
    assert_eq!(run(&servers[0], "a").0, 200);
    let (status, recorded) = run(&servers[1], "b");
    assert_eq!(status, 200, "{recorded}");
    postgres.freeze();
    let (status, said) = run(&servers[0], "c");
    assert_eq!((status, service.times("c")), (200, 1), "{said}");
    let (status, said) = run(&servers[1], "d");
    assert!(status >= 400 && said.contains("record"), "{said}");
    assert_eq!(service.times("d"), 0, "what cannot be recorded is not asked");
    postgres.thaw();
    drop(servers);
    let verified = lenient.verified();
    assert_eq!(verified["breaches"], json!([]), "{verified}");
    // Acknowledged data exists: a request is sent only after its call was recorded. The end of its run may not have
    // reached the hanging database.
    let is_there = |record: &Value| record["trace_id"].as_str().is_some_and(|trace| recorded.contains(trace));
    let records = lenient.records();
    assert!(records.iter().any(|record| record["event"] == "call" && is_there(record)), "{records:?}");
}

#[test]
fn a_redis_that_stands_still_leaves_each_server_with_its_own_limits() {
    let Some(redis) = TestRedis::start() else { return };
    let (home, service) = (Home::new(""), Service::start());
    let server = Server::start(&home, &service, &["--shared", &redis.address(), "--rate", "3"]);
    redis.freeze();
    let run = |text: &str| answer(&server.address, "talk", &json!({ "text": format!("<{text}>") })).0;
    // A minute holds three; a slow one holds more of them before the first that is too many.
    let let_in = (0..100).map(|_| run("a")).take_while(|status| *status == 200).count();
    assert!((3..100).contains(&let_in), "{let_in}");
    redis.thaw();
}
