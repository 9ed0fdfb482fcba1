//! `cogn run` with rules, and `cogn review`, as processes.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use cognitive_testing::eval;
use cognitive_testkit::{SeededRandom, good_answer};
use serde_json::{Value, json};

const RULES: &str =
    "review: {rules: [{when: 'risk in [high]'}, {when: 'confidence < 0.6', modules: [labels]}]}\n";

/// A home with a module and these user settings.
struct Home(cognitive_testkit::Home);

impl Home {
    fn new(config: &str) -> Self {
        let home = cognitive_testkit::Home::new(env!("CARGO_BIN_EXE_cogn")).with("USER", "ann");
        home.user_config(config);
        home.simple_module("labels", &json!({}));
        let schema = json!({
            "input": { "type": "object", "required": ["text"], "properties": { "text": { "type": "string" } } },
            "data": { "type": "object", "required": ["rationale", "label"], "additionalProperties": false,
                "properties": { "rationale": { "type": "string" }, "label": { "enum": ["a", "b"] } } },
        });
        home.write("cognitive/modules/labels/schema.json", schema.to_string());
        for (name, confidence) in [("unsure", 0.4), ("sure", 0.9)] {
            let mut reply = good_answer(&json!({ "rationale": "r", "label": "a" }));
            reply["meta"] = json!({ "confidence": confidence, "risk": "low", "explain": "Some label" });
            home.write(&format!("{name}.txt"), reply.to_string());
        }
        Self(home)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.0.command(args, &[]);
        command.stdin(Stdio::null());
        command
    }

    /// Runs a command and returns exit code, stdout and stderr.
    fn cogn(&self, args: &[&str]) -> (i32, String, String) {
        self.0.cogn(args).parts()
    }

    fn json(&self, args: &[&str]) -> Value {
        let (code, out, err) = self.cogn(args);
        assert_eq!(code, 0, "{args:?}: {err}");
        serde_json::from_str(&out).unwrap()
    }

    /// Returns the review warning of a run.
    fn run(&self, reply: &str) -> Option<String> {
        let envelope = self.json(&["run", "labels", "--set", "text=t", "--reply", reply]);
        assert_eq!(envelope["ok"], true);
        let warnings = envelope["meta"]["warnings"].as_array().cloned().unwrap_or_default();
        let of_review = warnings.iter().find(|warning| warning["code"] == "REVIEW");
        of_review.map(|warning| warning["message"].as_str().unwrap().to_owned())
    }
}

#[test]
fn a_run_waits_is_decided_and_becomes_a_case() {
    let home = Home::new(RULES);
    assert_eq!(home.cogn(&["review", "list"]).2, "no run waits for review\n");
    assert_eq!(home.run("sure.txt"), None);
    for number in 1..=3 {
        let expected = format!("this answer needs review, review {number}: `confidence < 0.6`");
        assert_eq!(home.run("unsure.txt"), Some(expected));
    }
    let listed = home.json(&["review", "list", "--json"]);
    assert_eq!(listed.as_array().unwrap().len(), 3);
    assert_eq!((&listed[0]["id"], &listed[0]["confidence"]), (&json!("1"), &json!(0.4)));
    let whole = home.json(&["review", "show", "1", "--json"]);
    assert_eq!(
        (&whole["input"], &whole["envelope"]["data"]["label"]),
        (&json!({ "text": "t" }), &json!("a"))
    );
    let (_, card, _) = home.cogn(&["review", "show", "1"]);
    assert!(card.contains("confidence < 0.6") && card.contains("Some label"), "{card}");
    assert_eq!(home.cogn(&["review", "approve", "1", "--reason", "fine"]).1, "approved 1\n");
    let (code, out, err) = home.cogn(&["review", "reject", "1", "2"]);
    assert_eq!((code, out.as_str()), (1, "rejected 2\n"));
    assert!(err.contains("review 1 was already approved by: `ann`"), "{err}");
    assert_eq!(home.cogn(&["review", "approve", "1"]).1, "approved 1 (before, by ann)\n");
    let (code, _, err) = home.cogn(&["review", "correct", "3", "--set", "label=c"]);
    assert!(code == 1 && err.contains("/data/label"), "{err}");
    assert_eq!(home.cogn(&["review", "correct", "3", "--set", "label=b"]).1, "corrected 3\n");
    assert_eq!(home.cogn(&["review", "list"]).2, "no run waits for review\n");
    assert_eq!(home.json(&["review", "list", "--decided", "--json"])[0]["decision"]["by"], "ann");
    assert_eq!(home.cogn(&["review", "approve", "9"]).0, 1);
    let (_, cases, _) = home.cogn(&["review", "export", "--as", "cases"]);
    let read = eval::parse(&cases).unwrap();
    let envelope = &whole["envelope"];
    let right: Vec<bool> = read
        .iter()
        .map(|case| case.expect.judge(&case.input, envelope).iter().all(|place| place.right))
        .collect();
    assert_eq!(right, [true, false], "what was approved is right, what was corrected is not");
    let (_, lines, _) = home.cogn(&["review", "export"]);
    assert_eq!(lines.lines().count(), 3);
    let stats = home.json(&["review", "stats", "--json"]);
    assert_eq!((&stats["decisions"], &stats["bins"][4]["right"]), (&json!(3), &json!(1)));
    let models = stats["models"].as_array().unwrap();
    let pairs: Vec<(&Value, &Value)> =
        models.iter().map(|each| (&each["module"], &each["decisions"])).collect();
    assert_eq!(pairs, [(&json!("labels"), &json!(3))], "each module and model by itself");
    assert!(models[0]["model"].is_string() && models[0]["bins"][4]["right"] == 1, "{stats}");
    let records = home.json(&["audit", "list", "--json"]);
    assert_eq!(records.as_array().unwrap().len(), 4, "decisions are no runs");
    assert_eq!(home.cogn(&["audit", "verify"]).0, 0);
    let exported = home.cogn(&["audit", "export"]).1;
    assert_eq!(exported.lines().filter(|line| line.contains(r#""event":"review""#)).count(), 3);
}

#[test]
fn a_database_that_cannot_be_opened_is_a_warning_to_the_run_and_refuses_a_decision() {
    let home = Home::new(RULES);
    let output = home
        .command(&["run", "labels", "--set", "text=t", "--reply", "unsure.txt"])
        .env("COGNITIVE_DB", "/dev/null/x.db")
        .output()
        .unwrap();
    assert!(output.status.success());
    let envelope: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(envelope["ok"], true);
    assert!(envelope["meta"]["warnings"].to_string().contains("could not be queued"), "{envelope}");
    let decided =
        home.command(&["review", "approve", "1"]).env("COGNITIVE_DB", "/dev/null/x.db").output().unwrap();
    assert_eq!(decided.status.code(), Some(1));
    assert!(String::from_utf8(decided.stderr).unwrap().contains("/dev/null/x.db"));
}

#[test]
fn a_stranger_s_file_stores_nothing_and_takes_no_rule_away() {
    let home = Home::new("");
    home.0.project_config("review: {rules: [{when: 'true'}]}\n");
    assert_eq!(home.run("unsure.txt"), None);
    assert_eq!(home.cogn(&["review", "list"]).2.lines().last(), Some("no run waits for review"));
    let own = Home::new(RULES);
    own.0.project_config("review: {rules: [], max_open: 0}\n");
    assert!(own.run("unsure.txt").is_some_and(|warning| warning.contains("review 1:")));
    let trusted = own.json(&["run", "labels", "--set", "text=t", "--reply", "unsure.txt", "--trust-project"]);
    assert!(trusted["meta"]["warnings"].to_string().contains("1 runs already wait for review"), "{trusted}");
}

#[test]
fn a_wrong_rule_is_told_before_anything_runs() {
    let home = Home::new("review: {rules: [{when: 'risk > low'}]}\n");
    let (code, out, _) = home.cogn(&["run", "labels", "--set", "text=t", "--reply", "unsure.txt"]);
    assert_eq!(code, 1);
    assert!(out.contains("`review.rules[0].when`, at character"), "{out}");
}

// Every printed decision is stored, whenever the program was killed.
#[test]
fn kill_9_during_decisions_loses_none_that_was_acknowledged() {
    let home = Home::new("review: {rules: [{when: 'true'}]}\n");
    let mut random = SeededRandom::new(5);
    let mut first = 1;
    for round in 0..6 {
        let ids: Vec<String> = (first..first + 12).map(|id| id.to_string()).collect();
        for id in &ids {
            assert!(home.run("unsure.txt").unwrap().contains(&format!("review {id}:")));
        }
        first += 12;
        let words: Vec<&str> =
            ["review", "approve"].into_iter().chain(ids.iter().map(String::as_str)).collect();
        let mut child = home.command(&words).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let until = 1 + random.index(10);
        let mut said: Vec<String> = lines.by_ref().take(until).map(Result::unwrap).collect();
        child.kill().unwrap();
        said.extend(lines.map_while(Result::ok));
        child.wait().unwrap();
        assert!(said.len() >= until, "round {round}: {said:?}");
        for line in said {
            let id = line.strip_prefix("approved ").unwrap();
            let review = home.json(&["review", "show", id, "--json"]);
            assert_eq!(review["decision"]["verdict"], "approve", "round {round}: {id} was acknowledged");
        }
    }
    assert_eq!(home.cogn(&["audit", "verify"]).0, 0);
}
