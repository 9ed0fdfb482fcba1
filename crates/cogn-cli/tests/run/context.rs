//! `cogn context` and runs with context as processes: a command finds what an earlier one stored, for the same user
//! only.

use cognitive_testkit::Home;
use serde_json::{Value, json};

use crate::home;

/// Runs a context command and returns exit code, stdout and stderr.
fn cogn(home: &Home, args: &[&str], stdin: &str) -> (i32, String, String) {
    any(home, &[&["context"], args].concat(), stdin)
}

/// Runs any command and returns exit code, stdout and stderr.
fn any(home: &Home, args: &[&str], stdin: &str) -> (i32, String, String) {
    home.run(args, &[], stdin).parts()
}

fn json(home: &Home, args: &[&str]) -> Value {
    let (code, out, err) = cogn(home, args, "");
    assert_eq!(code, 0, "{args:?}: {err}");
    serde_json::from_str(&out).unwrap()
}

#[test]
fn s_23_what_is_set_is_found_by_its_user_only() {
    let home = home();
    let set = ["set", "user_profile", r#"{"expertise_level":"expert"}"#, "--user", "ann"];
    assert_eq!(cogn(&home, &set, ""), (0, String::new(), "stored as `user_profile`\n".to_owned()));
    assert_eq!(
        json(&home, &["get", "user_profile", "--user", "ann"]),
        json!({ "expertise_level": "expert" })
    );
    for other in [&["get", "user_profile", "--user", "bob"][..], &["get", "user_profile"]] {
        let (code, out, err) = cogn(&home, other, "");
        assert_eq!((code, out.as_str()), (1, ""), "{other:?}");
        assert!(
            err.starts_with("error: no such context entry for this user: `user_profile`\nhint: "),
            "{err}"
        );
    }
    assert_eq!(json(&home, &["list", "--user", "bob", "--json"]), json!([]));
    assert_eq!(cogn(&home, &["list"], "").2, "no context is stored\n");
    let listed = json(&home, &["list", "--user", "ann", "--json"]);
    assert_eq!((&listed[0]["ttl"], &listed[0]["ends"]), (&json!(-1), &Value::Null));
}

#[test]
fn sessions_are_apart_and_see_what_belongs_to_the_user() {
    let home = home();
    cogn(&home, &["set", "session_state", "-", "--session", "s1", "--ttl", "3600"], r#"{"n": 1}"#);
    cogn(&home, &["set", "session_state", "plain words", "--session", "s2"], "");
    cogn(&home, &["set", "user_profile", "7", "--key", "mine"], "");
    let kinds = |args: &[&str]| {
        let listed = json(&home, args);
        listed
            .as_array()
            .unwrap()
            .iter()
            .map(|each| each["key"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(kinds(&["list", "--json", "--session", "s1"]), ["mine", "s1:session_state"]);
    assert_eq!(kinds(&["list", "session_state", "--json"]), ["s2:session_state", "s1:session_state"]);
    assert_eq!(json(&home, &["get", "session_state", "--session", "s1"]), json!({ "n": 1 }));
    assert_eq!(json(&home, &["get", "session_state", "s2:session_state"]), json!("plain words"));
    let table = cogn(&home, &["list"], "").1;
    assert!(table.starts_with("TYPE") && table.lines().count() == 4, "{table}");
}

#[test]
fn entries_are_removed_one_by_one_or_all_of_a_type() {
    let home = home();
    for key in ["a", "b", "c"] {
        cogn(&home, &["set", "t", "1", "--key", key], "");
    }
    assert_eq!(json(&home, &["rm", "t", "a", "--json"]), json!({ "removed": 1 }));
    assert_eq!(cogn(&home, &["rm", "t", "a"], "").0, 1);
    assert_eq!(cogn(&home, &["rm", "t"], "").0, 2, "what is to be removed has to be said");
    assert_eq!(json(&home, &["rm", "t", "--all", "--json"]), json!({ "removed": 2 }));
    assert_eq!(json(&home, &["gc", "--json"]), json!({ "removed": 0 }));
    assert_eq!(cogn(&home, &["set", "t", "1", "--ttl", "0"], "").0, 2);
}

#[test]
fn looking_creates_no_store() {
    let home = home();
    assert_eq!(cogn(&home, &["list"], "").0, 0);
    assert_eq!(cogn(&home, &["gc"], "").0, 0);
    assert!(!home.path(".cognitive").exists());
}

/// Writes the reply of a model to a file.
fn saved(home: &Home, name: &str, data: &Value, emitted: &Value) -> String {
    let meta = json!({ "confidence": 0.9, "risk": "low", "explain": "Done." });
    let reply = json!({ "ok": true, "meta": meta, "data": data, "_emitted_context": emitted });
    home.write(name, reply.to_string());
    name.to_owned()
}

// CTX-008: the example of the context protocol (8.1), with its printed replies.
#[test]
fn ctx_008_a_review_of_two_turns_is_two_commands() {
    let home = home();
    let data =
        |issues: Value| json!({ "issues": issues, "status": "needs_changes", "rationale": "As seen." });
    let state = json!({ "session_state": { "files_reviewed": ["login.py"], "issues_found": 2 } });
    let issues = json!(["SQL injection", "No rate limiting"]);
    let first = saved(&home, "first.json", &data(issues.clone()), &state);
    let as_ann = ["--user", "ann", "--session", "review"];
    let turn = |command: &str, code: &str, who: &[&str], more: &[&str]| {
        let input = json!({ "code": code, "_context": {} }).to_string();
        let args = [&[command, "interactive-reviewer", "--input", &input], who, more].concat();
        let (exit, out, err) = any(&home, &args, "");
        assert_eq!(exit, 0, "{out}{err}");
        serde_json::from_str::<Value>(&out).unwrap()
    };
    let one = turn("run", "def login(u, p): ...", &as_ann, &["--reply", &first]);
    assert_eq!((&one["_emitted_context"], &one["data"]["issues"]), (&state, &issues));
    assert!(!one["meta"].to_string().contains("CONTEXT"), "{one}");

    let second = saved(&home, "second.json", &data(json!(["No rate limiting"])), &json!({}));
    let wish = "# Fix the SQL injection";
    let asked = |who: &[&str]| turn("prompt", wish, who, &["--json"])["input"].as_str().unwrap().to_owned();
    assert!(asked(&as_ann).contains(&state.to_string()), "{}", asked(&as_ann));
    turn("run", wish, &as_ann, &["--reply", &second]);
    let books = any(&home, &["audit", "export", "--jsonl"], "").1;
    assert_eq!(books.matches("context_access").count(), 1, "{books}");
    assert!(!books.contains("login.py"), "{books}");
    for other in [&["--user", "bob", "--session", "review"][..], &["--user", "ann"], &["--session", "review"]]
    {
        assert!(!asked(other).contains("login.py"), "{other:?}");
    }
}

// CTX-003: the example of the context protocol (8.2).
#[test]
fn ctx_003_an_explanation_needs_a_profile_and_may_find_it_kept() {
    let home = home();
    let data = json!({ "explanation": "It fetches.", "rationale": "Short, for an expert." });
    let reply = saved(&home, "reply.json", &data, &json!({}));
    let code = "async function fetchData() { ... }";
    let explain = |input: Value, user: &str| {
        let input = input.to_string();
        let args = ["run", "adaptive-explainer", "--user", user, "--input", &input, "--reply", &reply];
        serde_json::from_str::<Value>(&any(&home, &args, "").1).unwrap()
    };
    assert_eq!(explain(json!({ "code": code }), "ann")["error"]["code"], "E1001");
    for level in ["beginner", "expert"] {
        let input = json!({ "code": code, "_context": { "user_profile": { "expertise_level": level } } });
        assert_eq!(explain(input, "ann")["ok"], true);
    }
    cogn(&home, &["set", "user_profile", r#"{"expertise_level":"expert"}"#, "--user", "ann"], "");
    assert_eq!(explain(json!({ "code": code }), "ann")["ok"], true);
    assert_eq!(explain(json!({ "code": code }), "bob")["error"]["code"], "E1001");
}

// S-46: the second reply is never read.
#[test]
fn s_46_the_same_input_is_answered_once_unless_asked_otherwise() {
    let home = home();
    let emits = json!([{ "type": "analysis_cache", "ttl": 3600, "key_pattern": "${module}:${input_hash}" }]);
    home.simple_module("./cached", &json!({ "context": { "emits": emits } }));
    let reply = |n: u64| {
        let data = json!({ "n": n, "rationale": "r" });
        saved(&home, &format!("{n}.json"), &data, &json!({}))
    };
    let ask = |n: u64, more: &[&str]| {
        let reply = reply(n);
        let args = [&["run", "./cached", "--input", r#"{"q":1}"#, "--reply", &reply], more].concat();
        serde_json::from_str::<Value>(&any(&home, &args, "").1).unwrap()
    };
    assert_eq!(ask(1, &[])["data"]["n"], 1);
    let again = ask(2, &[]);
    assert_eq!((&again["data"]["n"], &again["meta"]["warnings"][0]["code"]), (&json!(1), &json!("CACHED")));
    assert_eq!(ask(3, &["--no-cache"])["data"]["n"], 3);
    assert_eq!(ask(4, &[])["data"]["n"], 3, "what was asked anew is what is kept");
    assert_eq!(ask(5, &["--user", "ann"])["data"]["n"], 5, "every user has answers of his own");
}

// CTX-041: an operator can exempt names that only look like secrets; everything else stays redacted.
#[test]
fn ctx_041_names_that_only_look_like_secrets_can_be_spared() {
    let home = home();
    let state = json!({ "keywords": ["zebra"], "api_key": "k-123" });
    let input = json!({ "code": "x", "_context": { "session_state": state } }).to_string();
    let asked = || any(&home, &["prompt", "interactive-reviewer", "--input", &input, "--json"], "").1;
    let usual = asked();
    assert!(!usual.contains("zebra") && !usual.contains("k-123"), "{usual}");
    home.user_config("context: {not_secret: [Keywords]}\n");
    let spared = asked();
    assert!(spared.contains("zebra") && !spared.contains("k-123"), "{spared}");
}

// S-21: users with the same name in different tenants share nothing.
#[test]
fn s_21_tenants_are_apart() {
    let home = home();
    let of = |tenant: &'static str| ["--user", "ann", "--tenant", tenant];
    cogn(
        &home,
        &[&["set", "user_profile", r#"{"expertise_level":"expert"}"#], &of("north")[..]].concat(),
        "",
    );
    let get = |who: &[&str]| cogn(&home, &[&["get", "user_profile"], who].concat(), "").0;
    assert_eq!((get(&of("north")), get(&of("south")), get(&["--user", "ann"])), (0, 1, 1));
    let asked = |tenant: &'static str| {
        let args = [&["prompt", "adaptive-explainer", "--set", "code=x"], &of(tenant)[..]].concat();
        any(&home, &args, "").0
    };
    assert_eq!((asked("north"), asked("south")), (0, 1));
}

// D-22: `${module}` in a key is the name of the reader. Stored context of one module satisfies no other one.
#[test]
fn d_22_context_under_the_name_of_a_module_is_found_by_that_module_alone() {
    let home = home();
    let kept = |pattern: &str| json!({ "type": "session_state", "ttl": 3600, "key_pattern": pattern });
    let accepts = json!([{ "type": "session_state", "required": true }]);
    for (name, pattern) in [("notes", "${module}:last"), ("board", "shared board")] {
        let context = json!({ "emits": [kept(pattern)], "accepts": [{ "type": "session_state" }] });
        home.simple_module(name, &json!({ "context": context }));
    }
    home.simple_module("chat", &json!({ "context": { "accepts": accepts } }));
    let read = |module: &str| {
        let (_, out, err) = any(&home, &["prompt", module, "--input", "{}", "--json"], "");
        format!("{out}{err}")
    };
    let emit = |module: &str, text: &str| {
        let state = json!({ "session_state": { "note": text } });
        let reply = saved(&home, "reply.json", &json!({ "rationale": "r" }), &state);
        let (code, out, err) = any(&home, &["run", module, "--input", "{}", "--reply", &reply], "");
        assert_eq!(code, 0, "{out}{err}");
    };
    emit("notes", "Ann is leaving");
    assert!(read("notes").contains("Ann is leaving"), "{}", read("notes"));
    let (code, out, err) = any(&home, &["run", "chat", "--input", "{}", "--reply", "reply.json"], "");
    assert!(code == 1 && out.contains("E1001"), "{out}{err}");
    assert!(!read("chat").contains("Ann is leaving"), "{}", read("chat"));
    emit("board", "Lunch is at noon");
    assert!(read("chat").contains("Lunch is at noon"), "{}", read("chat"));
    assert!(!read("chat").contains("Ann is leaving"), "{}", read("chat"));
}
