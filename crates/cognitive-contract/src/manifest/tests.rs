//! Tests of manifest defaults and rejections. Each case names its requirement ids.

use serde_json::{Value, json};

use super::*;

fn resolve(manifest: Value) -> Manifest {
    Manifest::from_value(&manifest, Format::V22).unwrap()
}

fn refused(manifest: Value) -> Vec<String> {
    let found = Manifest::from_value(&manifest, Format::V22).unwrap_err();
    found.iter().map(|each| format!("{} {}", each.path, each.message)).collect()
}

#[test]
fn man_002_012_an_empty_manifest_loads() {
    let manifest = resolve(json!({}));
    assert_eq!((manifest.tier, manifest.response.mode), (Tier::Decision, Mode::Sync));
    assert_eq!(manifest.name, "");
}

#[test]
fn tier_001_enum_005_the_tier_table() {
    let row = |tier: &str| {
        let m = resolve(json!({ "tier": tier }));
        (m.schema_strictness, m.overflow.enabled, m.overflow.max_items, m.enums.strategy, m.response.mode)
    };
    assert_eq!(row("exec"), (SchemaStrictness::High, false, 0, EnumStrategy::Strict, Mode::Sync));
    assert_eq!(row("decision"), (SchemaStrictness::Medium, true, 5, EnumStrategy::Extensible, Mode::Both));
    assert_eq!(
        row("exploration"),
        (SchemaStrictness::Low, true, 20, EnumStrategy::Extensible, Mode::Streaming)
    );
}

#[test]
fn tier_006_explicit_strictness_rules_the_other_defaults() {
    let manifest = resolve(json!({ "tier": "decision", "schema_strictness": "high" }));
    assert!(!manifest.overflow.enabled);
    assert_eq!(manifest.enums.strategy, EnumStrategy::Strict);
}

#[test]
fn man_003_a_partial_block_keeps_the_other_defaults() {
    let overflow = resolve(json!({ "tier": "exploration", "overflow": { "max_items": 7 } })).overflow;
    assert_eq!(
        overflow,
        Overflow { enabled: true, max_items: 7, recoverable: true, require_suggested_mapping: true }
    );
}

#[test]
fn over_006_two_names_for_the_mapping_switch() {
    let required =
        |overflow: Value| resolve(json!({ "overflow": overflow })).overflow.require_suggested_mapping;
    assert!(required(json!({})));
    assert!(!required(json!({ "recoverable": false })));
    assert!(!required(json!({ "require_suggested_mapping": false })));
    assert!(required(json!({ "require_suggested_mapping": false, "recoverable": true })));
    assert!(required(json!({ "require_suggested_mapping": true, "recoverable": false })));
}

#[test]
fn man_004_pol_002_policies_have_two_spellings_and_deny_wins() {
    let network = |policies: Value| resolve(json!({ "policies": policies })).policies.network;
    assert_eq!(network(json!({})), Allow::Deny);
    assert_eq!(network(json!({ "network": "allow" })), Allow::Allow);
    assert_eq!(network(json!({ "network": true })), Allow::Allow);
    assert_eq!(network(json!({ "network": "allow", "network_allowed": false })), Allow::Deny);
    assert_eq!(network(json!({ "network_allowed": true })), Allow::Deny);
    let manifest = resolve(json!({ "policies": { "payments": "allow", "tools_allowed": false } }));
    assert_eq!(manifest.policies.other["payments"], Allow::Allow);
    assert!(!manifest.policies.tools);
}

#[test]
fn man_005_versions_are_semantic_and_text() {
    assert_eq!(resolve(json!({ "version": "2.3.0-beta.1+build.7" })).version, "2.3.0-beta.1+build.7");
    for wrong in [json!(1.0), json!("v1.0.0"), json!("1.0"), json!("01.0.0"), json!("1.0.0-01")] {
        let manifest = json!({ "version": wrong });
        assert_eq!(violations(&manifest).len(), 1, "{wrong}");
        // MAN-012, C-17: `validate` reports this; the module still runs.
        assert!(Manifest::from_value(&manifest, Format::V22).is_ok());
    }
}

#[test]
fn man_006_unknown_keys_are_kept_out_of_the_way() {
    let manifest = json!({ "x-team": "a", "tier": "exec" });
    resolve(manifest.clone());
    assert_eq!(unknown_keys(&manifest).collect::<Vec<_>>(), ["x-team"]);
}

#[test]
fn man_007_closed_lists_are_closed_and_all_findings_come_at_once() {
    let mut found = refused(json!({
        "tier": "fast", "schema_strictness": 1, "enums": { "strategy": "loose" }, "response": { "mode": "push" },
        "context": { "mode": "x" }, "composition": { "pattern": "iterative" }, "tools": { "policy": "no" },
        "failure": { "contract": "c" }, "meta": { "risk_rule": "r" },
    }));
    found.sort();
    let places: Vec<&str> = found.iter().map(|each| each.split(' ').next().unwrap()).collect();
    assert_eq!(
        places,
        [
            "/composition/pattern",
            "/context/mode",
            "/enums/strategy",
            "/failure/contract",
            "/meta/risk_rule",
            "/response/mode",
            "/schema_strictness",
            "/tier",
            "/tools/policy"
        ]
    );
    assert!(
        found.iter().any(|each| each == "/tier expected one of `exec`, `decision`, `exploration`"),
        "{found:#?}"
    );
}

#[test]
fn man_008_the_limit_is_a_whole_number_up_to_twenty() {
    for wrong in [json!(21), json!(-1), json!(2.5), json!("5")] {
        assert_eq!(refused(json!({ "overflow": { "max_items": wrong } })).len(), 1, "{wrong}");
    }
    assert_eq!(resolve(json!({ "overflow": { "max_items": 20 } })).overflow.max_items, 20);
}

#[test]
fn man_001_val_018_types_are_checked() {
    assert_eq!(refused(json!([1])), [" expected a map of fields such as `name` and `version`"]);
    assert_eq!(refused(json!({ "overflow": { "enabled": "yes" } })), ["/overflow/enabled expected boolean"]);
    assert_eq!(violations(&json!({ "name": "../x" })).len(), 1);
    assert_eq!(resolve(json!({ "overflow": { "max_items": 5.0 } })).overflow.max_items, 5);
}

#[test]
fn man_010_tests_are_split_at_the_arrow() {
    let manifest = resolve(json!({ "tests": ["a.input.json->a.expected.json", " b  ->  c "] }));
    let pairs: Vec<_> = manifest.tests.iter().map(|t| (t.input.as_str(), t.expected.as_str())).collect();
    assert_eq!(pairs, [("a.input.json", "a.expected.json"), ("b", "c")]);
}

#[test]
fn man_014_text_is_always_there() {
    let manifest = resolve(json!({ "modalities": { "input": ["audio"], "output": ["image"] } }));
    assert_eq!(manifest.modalities.input, [InputModality::Text, InputModality::Audio]);
    assert_eq!(manifest.modalities.output, [OutputModality::Text, OutputModality::Image]);
}

#[test]
fn compat_010_011_old_formats_always_wrap_and_new_ones_only_when_told() {
    assert!(Manifest::from_value(&json!({}), Format::V1).unwrap().compat.wraps());
    let compat = resolve(json!({ "tier": "exec" })).compat;
    assert!(!compat.wraps() && compat.accepts_v22_payload);
    assert!(!resolve(json!({ "compat": { "runtime_auto_wrap": true } })).compat.wraps());
    assert!(resolve(json!({ "compat": { "accepts_v21_payload": true } })).compat.wraps());
}

#[test]
fn compat_015_v1_promises_become_policies() {
    let manifest = resolve(json!({
        "policies": { "network": "allow", "side_effects": "allow" },
        "constraints": { "no_network": true, "no_side_effects": true, "no_inventing_data": true },
    }));
    assert_eq!((manifest.policies.network, manifest.policies.side_effects), (Allow::Deny, Allow::Deny));
    assert!(manifest.constraints.no_inventing_data);
}

#[test]
fn the_short_form_of_context_names_the_mode() {
    assert_eq!(resolve(json!({ "context": "fork" })).context.mode, ContextMode::Fork);
}
