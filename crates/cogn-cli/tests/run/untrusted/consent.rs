//! `cogn trust` and its effects: the record, its end when the file changes, and the options without a terminal.
//! Settings that are not trusted are always reported.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::world::{Ended, World};

const CONFIG: &str = "provider: openai\nbase_url: {REAL}\nmodel: m\naudit: {payloads: true}\n";

fn cogn(world: &World, env: &[(&str, &str)], line: &str) -> Ended {
    let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let env: Vec<(String, String)> =
        env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    world.cogn(&args, &env)
}

fn json_of(ended: &Ended) -> Value {
    serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}: {}", ended.said))
}

const RUN: &str = "run summarizer --set text=x";

// Trusted until the file changes.
#[test]
fn a_file_that_was_trusted_counts_until_it_changes() {
    let world = World::new();
    world.write("cognitive.yaml", CONFIG);
    let refused = cogn(&world, &[], RUN);
    let error = &json_of(&refused)["error"];
    assert_eq!((refused.code, &error["code"]), (Some(1), &json!("E4001")), "{}", refused.said);
    assert_eq!(error["details"]["setting"], "base_url");
    for text in ["cognitive.yaml", "OPENAI_API_KEY", "127.0.0.1"] {
        assert!(error["message"].as_str().unwrap().contains(text), "{error}");
    }
    assert!(error["suggestion"].as_str().unwrap().contains("`cogn trust`"), "{error}");
    assert!(refused.said.contains("`audit.payloads`"), "{}", refused.said);
    assert!(world.real().raw_requests().is_empty());

    let unasked = cogn(&world, &[], "trust");
    assert_eq!(unasked.code, Some(1), "{}", unasked.said);
    assert!(unasked.said.contains("base_url") && unasked.said.contains("--yes"), "{}", unasked.said);
    let shown = json_of(&cogn(&world, &[], "trust --json"));
    let names: Vec<&str> =
        shown["settings"].as_array().unwrap().iter().map(|held| held["setting"].as_str().unwrap()).collect();
    assert_eq!((names, &shown["trusted"]), (vec!["base_url", "audit.payloads"], &json!(false)));

    assert_eq!(cogn(&world, &[], "trust --yes").code, Some(0));
    let record = world.home().join(".cognitive/trusted.json");
    assert_eq!(fs::metadata(&record).unwrap().permissions().mode() & 0o777, 0o600);
    let works = cogn(&world, &[], RUN);
    assert_eq!((works.code, world.real().raw_requests().len()), (Some(0), 1), "{}", works.said);
    assert!(!works.said.contains("are ignored"), "{}", works.said);
    assert!(cogn(&world, &[], "trust --list").out.contains("trusted"));

    world.write("cognitive.yaml", &CONFIG.replace("{REAL}", "{THIEF}"));
    let changed = cogn(&world, &[], RUN);
    assert_eq!(changed.code, Some(1), "{}", changed.said);
    assert!(changed.said.contains("changed since"), "{}", changed.said);
    assert!(cogn(&world, &[], "trust --list").out.contains("changed since"));
    assert!(world.thief_heard().is_empty());

    assert_eq!(cogn(&world, &[], "trust --remove").code, Some(0));
    assert_eq!(cogn(&world, &[], "trust --remove").code, Some(1));
    assert_eq!(json_of(&cogn(&world, &[], "trust --list --json")), json!([]));
}

// A container has no terminal; the operator vouches for the file, or for one version of it.
#[test]
fn a_container_vouches_for_the_file_or_for_one_version_of_it() {
    let world = World::new();
    world.write("cognitive.yaml", CONFIG);
    let hash = json_of(&cogn(&world, &[], "trust --json"))["sha256"].as_str().unwrap().to_owned();
    for (env, line) in [
        (vec![("COGN_TRUST_PROJECT", "1")], RUN.to_owned()),
        (vec![("COGN_TRUST_PROJECT", hash.as_str())], RUN.to_owned()),
        (vec![], format!("{RUN} --trust-project")),
        (vec![], format!("--trust-project={hash} {RUN}")),
    ] {
        let works = cogn(&world, &env, &line);
        assert_eq!(works.code, Some(0), "{}", works.said);
    }
    let wrong = "0".repeat(64);
    for (env, line) in [
        (vec![("COGN_TRUST_PROJECT", wrong.as_str())], RUN.to_owned()),
        (vec![], format!("{RUN} --trust-project={wrong}")),
        (vec![("COGN_TRUST_PROJECT", "0")], RUN.to_owned()),
    ] {
        assert_eq!(cogn(&world, &env, &line).code, Some(1), "{line}");
    }
    assert_eq!(world.real().raw_requests().len(), 4);
}

// Without a key, a model on this machine may be called; nothing is sent elsewhere.
#[test]
fn an_address_on_this_machine_needs_no_trust_where_no_key_goes() {
    let world = World::new();
    world.write("cognitive.yaml", "provider: vllm\nbase_url: {REAL}\nmodel: m\n");
    let works = cogn(&world, &[("VLLM_API_KEY", "")], RUN);
    assert_eq!((works.code, world.real().raw_requests().len()), (Some(0), 1), "{}", works.said);
    world.write("cognitive.yaml", "provider: vllm\nbase_url: http://192.0.2.7/v1\nmodel: m\n");
    let refused = cogn(&world, &[("VLLM_API_KEY", "")], RUN);
    assert!(refused.said.contains("would send the input"), "{}", refused.said);
}

// `doctor` shows the origin of settings, those that are not in effect, and the real destination of a run.
#[test]
fn doctor_shows_where_each_setting_comes_from_and_what_is_not_trusted() {
    let world = World::new();
    world.write(
        "cognitive.yaml",
        "provider: openai\nreask: 2\nbase_url: http://me:pw@192.0.2.7/v1\naudit: {path: x.db}\n",
    );
    fs::write(world.home().join(".cognitive/config.yaml"), "timeout_seconds: 7\nreask: 1\n").unwrap();
    let env = [("LLM_MODEL", "m")];
    let health = json_of(&cogn(&world, &env, "doctor --json --receipt"));
    let state = |name: &str| {
        let all = health["settings"].as_array().unwrap();
        all.iter().find(|state| state["setting"] == name).unwrap().clone()
    };
    for (name, value, from) in [
        ("provider", json!("openai"), "project file"),
        ("reask", json!(2), "project file"),
        ("timeout", json!(7), "user file"),
        ("model", json!("m"), "environment"),
        ("receipt", json!(true), "flag"),
        ("early_stop", Value::Null, "default"),
        ("audit.path", Value::Null, "default"),
    ] {
        let state = state(name);
        assert_eq!((&state["value"], &state["from"]), (&value, &json!(from)), "{name}");
    }
    assert_eq!(state("audit.path")["not_trusted"], "x.db");
    assert_eq!(state("base_url")["not_trusted"], "http://192.0.2.7/v1");
    assert_eq!(health["project_file"]["trusted"], false);

    world.write("cognitive.yaml", "provider: openai\nbase_url: {REAL}\n");
    assert_eq!(cogn(&world, &[], "trust --yes").code, Some(0));
    let named = |health: &Value| {
        let all = health["providers"].as_array().unwrap();
        all.iter().find(|provider| provider["name"] == "openai").unwrap().clone()
    };
    let shown = named(&json_of(&cogn(&world, &[], "doctor --json")));
    assert_eq!(shown["address"].as_str().unwrap(), world.real().url());
    let people = cogn(&world, &[], "doctor").said;
    assert!(people.contains("project file") && people.contains(&world.real().url()), "{people}");
}

// No key is sent over plain http to another machine, whatever names the address, unless the user allows it.
#[test]
fn a_key_goes_over_http_to_this_machine_only() {
    let world = World::new();
    let line = format!("{RUN} --model m --base-url http://192.0.2.7/v1");
    let refused = cogn(&world, &[], &line);
    assert!(refused.said.contains("would send its key over `http://`"), "{}", refused.said);
    assert!(refused.said.contains("COGN_ALLOW_PLAIN_HTTP"), "{}", refused.said);
    let by_environment = cogn(&world, &[("OPENAI_BASE_URL", "http://192.0.2.7/v1")], RUN);
    assert!(by_environment.said.contains("would send its key over `http://`"), "{}", by_environment.said);
    // A proxy on this machine plays the other machine.
    let proxy = world.real().url().replace("/v1", "");
    let env = [("COGN_ALLOW_PLAIN_HTTP", "1"), ("HTTP_PROXY", proxy.as_str())];
    let works = cogn(&world, &env, &line);
    assert_eq!((works.code, world.real().raw_requests().len()), (Some(0), 1), "{}", works.said);
}
