//! The owner of a record, and that one owner's records never evict another's.

use serde_json::{Value, json};

use super::fixture::{ANN, Act, BOB, Home, Server, Service};

fn with(key: &str) -> String {
    format!("authorization: Bearer {key}\r\n")
}

// Thirty invalid requests of 2 MiB, with stored payloads, do not evict the records of another key, and the eviction
// is reported.
#[test]
fn large_requests_of_one_key_leave_the_records_of_another_alone() {
    let home = Home::new("audit: {payloads: true}\n");
    let service = Service::start(|_| Act::Answer);
    let keys = home.path().join("keys").display().to_string();
    let server = Server::start(&home, &service, &["--keys", &keys]);
    for number in 0..40 {
        let answer = server.answer(&with(ANN), &json!({ "text": format!("<{number}>") }));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let large = json!({ "text": ["x".repeat(1_900_000)] });
    for _ in 0..30 {
        let answer = server.answer(&with(BOB), &large);
        assert!(answer.contains("E1001"), "{}", &answer[..300.min(answer.len())]);
    }
    let (_, metrics) = server.get_text("GET /metrics", &[("authorization", &format!("Bearer {ANN}"))], "");
    assert!(metrics.contains("cogn_audit_dropped_total{kind=\"records\"} 0"), "{metrics}");
    let said = server.stop();
    assert!(said.contains("the audit log has reached its limits"), "{said}");
    let ann: Vec<Value> = listed(&home, &["--key", "ann"]);
    assert_eq!(ann.len(), 40);
    assert!(ann.iter().all(|record| record["payload"].is_object() && record["user"] == "ann"));
    // The database counts payloads: parsing fifty megabytes of JSON would take long.
    let raw = rusqlite::Connection::open(home.database()).unwrap();
    let count = |what: &str| -> i64 {
        let sql = format!("SELECT count(*) FROM audit WHERE key = 'bob' AND event = 'run' AND {what}");
        raw.query_row(&sql, [], |row| row.get(0)).unwrap()
    };
    let (kept, dropped) = (count("payload IS NOT NULL"), count("payload IS NULL"));
    assert_eq!(kept + dropped, 30);
    assert!(kept > 20 && dropped > 0, "{kept} payloads kept, {dropped} dropped");
    let stats: Value = serde_json::from_slice(&home.cogn(&["audit", "stats", "--json"]).stdout).unwrap();
    assert_eq!(stats["dropped"][0]["owner"], "key:bob");
    assert_eq!(stats["dropped"][0]["payloads"], dropped);
    assert!(stats["dropped"][0]["since"].is_string());
    assert!(home.verified().0);
    // Only the records identify the user.
    assert_eq!(
        listed(&home, &["--user", "bob", "--failed", "--since", "2000-01-01", "--module", "?"]).len(),
        0
    );
    assert_eq!((listed(&home, &["--user", "ann"]).len(), listed(&home, &["--tenant", "ann"]).len()), (40, 0));
}

fn listed(home: &Home, which: &[&str]) -> Vec<Value> {
    let args = [&["audit", "list", "--json", "--limit", "1000"], which].concat();
    serde_json::from_slice(&home.cogn(&args).stdout).unwrap()
}

// Runs whose model calls tools endlessly do not evict the records of earlier runs.
#[test]
fn hostile_runs_leave_the_records_of_earlier_runs_alone() {
    let home = Home::new("audit: {keep: {records: 60}}\nmax_calls: 10\n");
    let service = Service::start(|text| if text == "bad" { Act::Tools } else { Act::Answer });
    for number in 0..5 {
        assert!(
            home.run(&service, &format!("<good-{number}>"), "ann")
                .wait_with_output()
                .unwrap()
                .status
                .success()
        );
    }
    for _ in 0..3 {
        home.run(&service, "<bad>", "ann").wait_with_output().unwrap();
    }
    let records = home.records();
    let count = |event: &str| records.iter().filter(|record| record["event"] == event).count();
    assert_eq!(count("run"), 8);
    assert_eq!(count("tool_call"), 15, "a quarter of the budget");
    assert!(home.verified().0);
}

// A run on the command line is recorded with its user.
#[test]
fn a_run_of_the_command_line_names_its_user_and_tenant() {
    let home = Home::new("");
    let service = Service::start(|_| Act::Answer);
    let args = ["run", "talk", "--set", "text=<a>", "--provider", "openai", "--model", "stub"];
    let run = home
        .command(&args)
        .args(["--base-url", &service.url, "--user", "ann", "--tenant", "acme"])
        .output()
        .unwrap();
    assert!(run.status.success());
    let records = home.records();
    assert_eq!(records.len(), 2);
    for record in &records {
        assert_eq!(
            (&record["user"], &record["tenant"], &record["key"]),
            (&json!("ann"), &json!("acme"), &Value::Null)
        );
        assert_eq!(record["run_id"], records[0]["run_id"]);
    }
    let listed = String::from_utf8(home.cogn(&["audit", "list", "--tenant", "acme"]).stdout).unwrap();
    assert!(listed.contains("acme/ann"), "{listed}");
}
