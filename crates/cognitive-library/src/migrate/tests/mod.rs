//! Tests plans on folders in memory. The tests that use a disk are in `tests/migrate.rs` of the crate.

mod contract;
mod manifest;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::validate::{Mode, validate};
use crate::yaml;

type Files = BTreeMap<String, String>;

fn files(given: &[(&str, &str)]) -> Files {
    given.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect()
}

fn folder(files: &Files) -> Folder {
    Folder::memory(
        "my-module",
        files.iter().map(|(file, text)| (file.clone(), text.clone().into_bytes())).collect(),
    )
}

const FRONT: &str =
    "name: my-module\nversion: 1.0.0\nresponsibility: One sentence\nexcludes:\n  - first thing\n";
const SCHEMA: &str = r#"{
  "$schema": "x",
  "input": { "type": "object", "properties": { "q": { "type": "string" } } },
  "output": {
    "type": "object",
    "required": ["result", "confidence"],
    "properties": { "result": { "type": "string" }, "confidence": { "type": "number" } }
  }
}
"#;

fn v1(front: &str) -> Files {
    let module = format!("---\n{front}---\n\n# Title\n\nDo the work and return JSON.\n");
    files(&[("MODULE.md", &module), ("schema.json", SCHEMA)])
}

fn v21(manifest: &str) -> Files {
    files(&[
        ("module.yaml", manifest),
        ("prompt.md", "Do the work and return JSON.\n"),
        ("schema.json", SCHEMA),
    ])
}

/// Migrates, and checks the invariants of every migration: the result is valid v2.2, a second migration changes
/// nothing, and each written file has a description.
fn migrated(old: &Files) -> (Files, MigrationPlan) {
    let plan = plan(&folder(old)).unwrap_or_else(|error| panic!("{error}"));
    let mut new = old.clone();
    new.extend(plan.files.clone());
    let report = validate(&folder(&new), Mode::Strict);
    let found: Vec<String> = report.findings.iter().map(Finding::summary).collect();
    assert!(report.valid(), "{found:?}\n{new:#?}");
    assert!(super::plan(&folder(&new)).unwrap().is_empty());
    for file in plan.files.keys() {
        assert!(plan.changes.iter().any(|change| change.file == *file), "{file}");
    }
    (new, plan)
}

fn yaml_of(files: &Files) -> Value {
    yaml::parse(&files["module.yaml"]).unwrap()
}

fn schema_of(files: &Files) -> Value {
    cognitive_contract::json::parse(&files["schema.json"]).unwrap()
}

/// The findings that prevent the migration of a module.
fn refused(old: &Files) -> Vec<Finding> {
    match plan(&folder(old)) {
        Err(MigrateError::Invalid { findings, .. }) => findings,
        other => panic!("expected findings, got {other:?}"),
    }
}

#[test]
fn mig_002_008_v1_becomes_v2_2_and_module_md_is_kept() {
    let old = v1(FRONT);
    let (new, plan) = migrated(&old);
    assert_eq!(plan.from, Format::V1);
    assert_eq!(new["MODULE.md"], old["MODULE.md"]);
    assert_eq!(plan.files.keys().collect::<Vec<_>>(), ["module.yaml", "prompt.md", "schema.json"]);
    assert!(
        new["prompt.md"]
            .starts_with("# Title\n\nDo the work and return JSON.\n\n## Response format (envelope)")
    );
    let kind_of = |file: &str| plan.changes.iter().find(|change| change.file == file).unwrap().kind;
    assert_eq!(kind_of("module.yaml"), FileChange::Created);
    assert_eq!(kind_of("schema.json"), FileChange::Updated);
}

#[test]
fn mig_003_008_v2_1_becomes_v2_2() {
    let (new, plan) = migrated(&v21("name: old-one\nversion: 2.1.0\nresponsibility: r\n"));
    assert_eq!(plan.from, Format::V21);
    let manifest = yaml_of(&new);
    assert_eq!(manifest["tier"], "decision");
    assert_eq!(
        manifest["overflow"],
        json!({ "enabled": true, "recoverable": true, "max_items": 5, "require_suggested_mapping": true })
    );
    assert_eq!(manifest["enums"], json!({ "strategy": "extensible" }));
    assert_eq!(
        manifest["compat"],
        json!({ "accepts_v21_payload": true, "runtime_auto_wrap": true, "schema_output_alias": "data" })
    );
    assert!(new["prompt.md"].starts_with("Do the work and return JSON.\n\n## Response format"));
}

#[test]
fn mig_004_009_v2_2_and_v2_5_need_nothing_even_where_validation_would_complain() {
    for manifest in ["tier: exec\n", "name: a\nresponse: {mode: both}\n"] {
        let plan = plan(&folder(&files(&[("module.yaml", manifest), ("schema.json", "not JSON")]))).unwrap();
        assert!(plan.is_empty() && plan.changes.is_empty());
        assert!(plan.from >= Format::V22);
    }
}

#[test]
fn mig_007_v0_needs_a_person_and_other_folders_are_no_modules() {
    let error = plan(&folder(&files(&[("module.md", "---\nname: a\n---\n")]))).unwrap_err();
    assert!(error.to_string().contains("requires manual review"), "{error}");
    assert!(matches!(error, MigrateError::ManualReview { .. }));
    assert!(matches!(plan(&folder(&files(&[("README.md", "")]))), Err(MigrateError::NotAModule { .. })));
}

#[test]
fn a_module_that_does_not_work_is_reported_with_the_place_and_not_touched() {
    let mut old = v21("name: a\nversion: 1.0.0\nresponsibility: r\n");
    old.insert("schema.json".to_owned(), "{\"input\": ".to_owned());
    assert_eq!(refused(&old)[0].rule, "schema/syntax");
    old.insert("schema.json".to_owned(), r##"{"input": {"$ref": "#/nowhere"}, "output": {}}"##.to_owned());
    assert_eq!(refused(&old)[0].rule, "schema/contract");
    let mut old = v21("name: a\nversion: 1.0.0\nresponsibility: r\n");
    old.remove("prompt.md");
    assert_eq!(refused(&old)[0].rule, "files/missing");
    assert_eq!(refused(&v21("name: [\n"))[0].rule, "manifest/syntax");
}

#[test]
fn mig_002_a_prompt_that_is_in_the_way_is_not_overwritten() {
    let mut old = v1(FRONT);
    old.insert("prompt.md".to_owned(), "mine".to_owned());
    assert_eq!(refused(&old)[0].rule, "migrate/prompt");
    old.insert("prompt.md".to_owned(), migrated(&v1(FRONT)).0["prompt.md"].clone());
    assert!(!migrated(&old).1.files.contains_key("prompt.md"));
}

#[test]
fn val_012_a_prompt_that_explains_the_envelope_stays_byte_for_byte() {
    let mut old = v21("name: a\nversion: 1.0.0\nresponsibility: r\n");
    old.insert("prompt.md".to_owned(), "Answer in the envelope.\r\n\r\n\r\n".to_owned());
    assert!(!migrated(&old).1.files.contains_key("prompt.md"));
    let module = format!("---\n{FRONT}---\nAnswer in the envelope.");
    let old = files(&[("MODULE.md", &module), ("schema.json", SCHEMA)]);
    assert_eq!(migrated(&old).0["prompt.md"], "Answer in the envelope.");
}

#[test]
fn every_bundled_module_is_already_where_it_should_be() {
    for name in crate::bundled_modules::names() {
        assert!(plan(&crate::bundled_modules::find(name).unwrap()).unwrap().is_empty(), "{name}");
    }
}
