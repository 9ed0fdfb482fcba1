//! `cogn store copy`: from a file to a server and back, complete, and never over existing data.

use cognitive_testkit::TestPostgres;
use serde_json::{Value, json};

use super::service::{Home, Service};

fn run(home: &Home, service: &Service, text: &str) {
    let input = format!("text=<{text}>");
    let args = [
        "run",
        "talk",
        "--set",
        &input,
        "--provider",
        "openai",
        "--model",
        "stub",
        "--base-url",
        &service.url,
    ];
    let done = home.cogn(&args);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn a_store_goes_to_a_server_and_comes_back_with_the_same_chains() {
    let Some(postgres) = TestPostgres::start() else { return };
    let (home, service) = (Home::new(""), Service::start());
    for number in 0..5 {
        run(&home, &service, &number.to_string());
    }
    assert!(home.cogn(&["context", "set", "session_state", "k", "7"]).status.code().is_some());
    let file = format!("sqlite:{}", home.path().join(".cognitive/cognitive.db").display());
    let server = postgres.database();
    let copied = home.cogn(&["store", "copy", &file, &server, "--json"]);
    assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
    let copy: Value = serde_json::from_slice(&copied.stdout).unwrap();
    assert!(copy["verified"].as_u64().unwrap() >= 5 && copy["chains"].as_u64().unwrap() >= 1, "{copy}");
    let head = |place: Option<&str>| {
        let mut command = home.command(&["audit", "head"]);
        if let Some(place) = place {
            command.env("COGNITIVE_DB", place);
        }
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert_eq!(head(Some(&server)), head(None));
    // Runs continue there, and so does the chain; then everything is copied back.
    let mut more =
        home.command(&["run", "talk", "--set", "text=<more>", "--provider", "openai", "--model", "stub"]);
    more.args(["--base-url", &service.url]).env("COGNITIVE_DB", &server);
    assert!(more.output().unwrap().status.success());
    let back = format!("sqlite:{}", home.path().join("back.db").display());
    assert!(home.cogn(&["store", "copy", &server, &back]).status.success());
    assert_eq!(head(Some(home.path().join("back.db").to_str().unwrap())), head(Some(&server)));
    // Nothing is overwritten.
    let refused = home.cogn(&["store", "copy", &file, &server]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("it is not empty"), "{said}");
    let refused = home.cogn(&["store", "copy", "x.db", &server]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("sqlite:PATH"));
    assert_eq!(home.verified()["breaches"], json!([]));
}
