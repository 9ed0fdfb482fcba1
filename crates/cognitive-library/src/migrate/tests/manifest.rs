//! Tests the migration of `module.yaml` and of front matter.

use super::*;
use crate::load;

const BASE: &str = "name: a\nversion: 1.0.0\nresponsibility: r\n";

fn effective(files: &Files) -> Value {
    serde_json::to_value(load(&folder(files)).unwrap().manifest).unwrap()
}

/// Migrates, and checks that the behaviour is the same before and after.
fn same_behaviour(old: &Files) -> Files {
    let (new, _) = migrated(old);
    let (before, after) = (effective(old), effective(&new));
    for key in before.as_object().unwrap().keys().filter(|key| !["response", "io"].contains(&key.as_str())) {
        assert_eq!(before[key], after[key], "{key}");
    }
    new
}

#[test]
fn mig_003_text_and_comments_of_the_author_come_first_unchanged() {
    let text = "# My module.\nname: a\nversion: \"1.0.0\" # keep\nresponsibility: r\n\n# Why\nfailure:\n  partial_allowed: false\n";
    let (new, plan) = migrated(&v21(text));
    assert!(new["module.yaml"].starts_with(text));
    let whats: Vec<&str> = plan
        .changes
        .iter()
        .filter(|each| each.file == "module.yaml")
        .map(|each| each.what.as_str())
        .collect();
    assert_eq!(whats[0], "added `tier: decision`");
    assert_eq!(whats[2], "added `enums: {strategy: extensible}`");
}

#[test]
fn mig_003_existing_values_are_never_overwritten() {
    let (new, _) = migrated(&v21(&format!("{BASE}compat:\n  accepts_v21_payload: false\nx-team: blue\n")));
    let manifest = yaml_of(&new);
    assert_eq!(manifest["compat"], json!({ "accepts_v21_payload": false }));
    assert_eq!(manifest["x-team"], "blue");
}

#[test]
fn mig_003_flow_style_and_json_are_written_anew_with_every_value() {
    let json =
        r#"{"name": "a", "version": "1.0.0", "responsibility": "r # s", "policies": {"network": "deny"}}"#;
    for text in
        [json, "{name: a, version: 1.0.0, responsibility: 'r # s', # c\n policies: {network: deny}}\n"]
    {
        let (new, plan) = migrated(&v21(text));
        let manifest = yaml_of(&new);
        assert_eq!(manifest["responsibility"], "r # s");
        assert_eq!(manifest["policies"], json!({ "network": "deny" }));
        assert!(plan.changes.iter().any(|change| change.what.contains("rewritten")), "{text}");
    }
}

#[test]
fn mig_003_a_key_without_a_value_is_no_decision() {
    let (new, _) = migrated(&v21(&format!("{BASE}compat:\n")));
    assert_eq!(yaml_of(&new)["compat"]["accepts_v21_payload"], true);
}

#[test]
fn mig_003_pointers_and_their_old_name_follow_the_section() {
    let io = "io:\n  input: ./schema.json#/input\n  output: ./schema.json#/output # was\n";
    let (new, plan) = migrated(&v21(&format!("{BASE}{io}")));
    assert!(new["module.yaml"].contains("\n  data: ./schema.json#/data # was\n"), "{}", new["module.yaml"]);
    assert!(plan.changes.iter().any(|change| change.what == "`io.output` now points to `#/data`"));
    for entry in ["data: schema.json#/output", "'output': \"#/output\"", "output : '#/output'"] {
        let (new, _) = migrated(&v21(&format!("{BASE}io: {{ {entry} }}\n")));
        assert!(new["module.yaml"].contains("#/data") && new["module.yaml"].starts_with(BASE), "{entry}");
        assert!(yaml_of(&new)["io"]["data"].is_string());
    }
}

#[test]
fn mig_003_strictness_that_the_author_chose_decides_about_overflow_and_enums() {
    let new = same_behaviour(&v21(&format!("{BASE}schema_strictness: high\n")));
    assert_eq!(yaml_of(&new)["overflow"]["enabled"], false);
    assert_eq!(yaml_of(&new)["enums"]["strategy"], "strict");
    assert_eq!(schema_of(&new)["data"]["properties"]["extensions"], Value::Null);
    let new = same_behaviour(&v21(&format!("{BASE}schema_strictness: low\n")));
    assert_eq!(schema_of(&new)["$defs"]["extensions"]["properties"]["insights"]["maxItems"], 20);
    same_behaviour(&v21(BASE));
}

#[test]
fn mig_002_front_matter_carries_over() {
    let front = format!(
        "{FRONT}context: fork\ninvocation:\n  user_invocable: false\nx-team: blue\nconstraints:\n  \
         no_network: true\n  no_inventing_data: true\n  require_confidence: true\n"
    );
    let new = same_behaviour(&v1(&front));
    let manifest = yaml_of(&new);
    assert_eq!(manifest["excludes"], json!(["first thing"]));
    assert_eq!(manifest["constraints"], json!({ "no_inventing_data": true, "require_confidence": true }));
    assert_eq!((&manifest["context"], &manifest["x-team"]), (&json!("fork"), &json!("blue")));
    let keys: Vec<&String> = manifest.as_object().unwrap().keys().take(9).collect();
    let order =
        ["name", "version", "responsibility", "tier", "excludes", "policies", "overflow", "enums", "compat"];
    assert_eq!(keys, order);
    assert!(new["module.yaml"].contains("\n\n# Permissions of a run.\npolicies:\n  network: deny\n"));
}

#[test]
fn mig_011_constraints_become_policies_and_silence_becomes_deny() {
    let all = ["network", "filesystem_write", "side_effects", "code_execution"];
    let policies =
        |front: &str| yaml_of(&same_behaviour(&v1(&format!("{FRONT}{front}"))))["policies"].clone();
    for front in ["", "constraints:\n  no_network: true\n", "constraints:\n  no_network: false\n"] {
        let policies = policies(front);
        assert!(all.iter().all(|name| policies[*name] == "deny"), "{front}");
    }
    let mixed = policies(
        "policies: {network: allow, code_execution: true, extra: allow}\nconstraints: {no_side_effects: true}\n",
    );
    assert_eq!(mixed["network"], "allow");
    assert_eq!(mixed["code_execution"], true);
    assert_eq!(mixed["extra"], "allow");
    assert_eq!(mixed["side_effects"], "deny");
    let denied = policies("policies: {network: allow}\nconstraints: {no_network: true}\n");
    assert_eq!(denied["network"], "deny", "a promise weighs more than a permission");
}

#[test]
fn mig_002_what_v1_already_says_about_v2_2_is_kept() {
    let new = same_behaviour(&v1(&format!(
        "{FRONT}tier: exec\nenums: {{strategy: extensible, unknown_tag: other}}\n"
    )));
    let manifest = yaml_of(&new);
    assert_eq!(manifest["tier"], "exec");
    assert_eq!(manifest["enums"], json!({ "strategy": "extensible", "unknown_tag": "other" }));
    assert_eq!(manifest["overflow"]["enabled"], false, "as the tier has it");
}

#[test]
fn mig_002_io_of_a_v1_module_follows_too() {
    let (new, _) = migrated(&v1(&format!("{FRONT}io: {{output: ./schema.json#/output}}\n")));
    assert_eq!(yaml_of(&new)["io"], json!({ "data": "./schema.json#/data" }));
}

#[test]
fn a_missing_name_is_that_of_the_folder_and_nothing_else_is_invented() {
    let rest = "version: 1.0.0\nresponsibility: r\n";
    let (new, _) = migrated(&v21(rest));
    assert!(new["module.yaml"].starts_with(rest));
    assert_eq!(yaml_of(&new)["name"], "my-module");
    assert_eq!(yaml_of(&migrated(&v1(rest)).0)["name"], "my-module");
    for (front, place) in [
        ("name: a\nresponsibility: r\n", "/version"),
        ("name: a\nversion: 1.0\nresponsibility: r\n", "/version"),
        ("name: a\nversion: v1.0.0\nresponsibility: r\n", "/version"),
        ("name: a\nversion: 1.0.0\n", "/responsibility"),
    ] {
        for old in [v1(front), v21(front)] {
            let found = refused(&old);
            assert_eq!(found.len(), 1, "{front}");
            assert_eq!(found[0].at, FindingLocation::Value(place.to_owned()), "{front}");
            assert!(found[0].hint.is_some(), "{front}");
        }
    }
    let odd = Folder::memory(
        "Odd Name",
        BTreeMap::from([
            ("module.yaml".to_owned(), rest.as_bytes().to_vec()),
            ("prompt.md".to_owned(), b"p".to_vec()),
            ("schema.json".to_owned(), SCHEMA.as_bytes().to_vec()),
        ]),
    );
    assert!(
        matches!(plan(&odd), Err(MigrateError::Invalid { findings, .. }) if findings[0].at == FindingLocation::Value("/name".to_owned()))
    );
}
